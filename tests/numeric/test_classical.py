"""MICE and MissForest are scikit-learn's, cell for cell; mixed tables go through indicators."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

from psmvae import MeanImputer, MICEImputer, MissForestImputer


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, 5))
    x = x * [1.0, 20.0, 0.3, 1.0, 5.0] + [0.0, 100.0, 0.0, 3.0, -2.0]
    x[rng.random(x.shape) < 0.25] = np.nan
    return x


def direct(estimator, x, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return IterativeImputer(estimator, random_state=seed).fit(x)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("standardise", [False, True])
def test_mice_is_scikit_learns(seed, standardise):
    x, new = table(seed=seed), table(30, seed=9)
    ours = MICEImputer(standardise=standardise, random_state=seed).fit(x)
    center, scale = (np.nanmean(x, 0), np.nanstd(x, 0)) if standardise else (0.0, 1.0)
    theirs = direct(BayesianRidge(), (x - center) / scale, seed)
    for rows in (x, new):
        expected = theirs.transform((rows - center) / scale) * scale + center
        np.testing.assert_allclose(ours.transform(rows), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("standardise", [False, True])
def test_missforest_is_scikit_learns(standardise):
    x, new = table(), table(30, seed=9)
    ours = MissForestImputer(standardise=standardise, random_state=0, n_jobs=1).fit(x)
    center, scale = (np.nanmean(x, 0), np.nanstd(x, 0)) if standardise else (0.0, 1.0)
    trees = ExtraTreesRegressor(n_estimators=10, random_state=ours.seed_)
    theirs = direct(trees, (x - center) / scale, ours.seed_)
    for rows in (x, new):
        expected = theirs.transform((rows - center) / scale) * scale + center
        np.testing.assert_allclose(ours.transform(rows), expected, rtol=1e-9, atol=1e-9)


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    frame = pl.DataFrame(
        {
            "height": 170 + 8 * z,
            "size": np.array(["S", "M", "L"])[np.digitize(z, [-0.5, 0.5])],
            "tall": z > 0,
            "shoe": np.rint(42 + 2 * z).astype(int),
        }
    )
    holes = rng.random((n, 4)) < 0.2
    cells = [
        pl.when(pl.Series(holes[:, j])).then(None).otherwise(pl.col(name)).alias(name)
        for j, name in enumerate(frame.columns)
    ]
    return frame, frame.with_columns(cells), holes


@pytest.mark.parametrize("imputer", [MICEImputer(), MissForestImputer(random_state=0)])
def test_levels_are_predicted(imputer):
    complete, frame, holes = mixed()
    filled = imputer.fit_transform(frame)
    assert filled.schema == frame.schema
    # a straight line cannot have the middle of three levels as its highest
    least = {"size": 0.75 if isinstance(imputer, MissForestImputer) else 0.55, "tall": 0.75}
    for name in ("size", "tall"):
        j = frame.columns.index(name)
        right = (filled[name] == complete[name]).to_numpy()[holes[:, j]].mean()
        assert right > least[name], (name, right)


def test_the_mean_and_the_mode():
    _, frame, holes = mixed()
    filled = MeanImputer().fit_transform(frame)
    seen = frame["size"].drop_nulls()
    assert set(filled["size"].to_numpy()[holes[:, 1]]) == {seen.mode().sort()[0]}
    expected = frame["height"].mean()
    np.testing.assert_allclose(filled["height"].to_numpy()[holes[:, 0]], expected)


def test_draws_of_the_mean_have_the_columns_own_spread():
    _, frame, holes = mixed(2000)
    draws = MeanImputer().fit(frame).sample(frame, n=5)
    heights = np.concatenate([d["height"].to_numpy()[holes[:, 0]] for d in draws])
    assert heights.std() == pytest.approx(frame["height"].std(), rel=0.05)
    sizes = np.concatenate([d["size"].to_numpy()[holes[:, 1]] for d in draws])
    for level in ("S", "M", "L"):
        share = (frame["size"].drop_nulls() == level).mean()
        assert (sizes == level).mean() == pytest.approx(share, abs=0.04)


def test_draws_of_the_mean_carry_what_is_uncertain_of_it():
    """Closed forms: t about the mean for a number, Dirichlet shares for a level."""
    rng = np.random.default_rng(0)
    seen = pl.DataFrame({"a": rng.normal(5.0, 2.0, 12), "b": ["u"] * 2 + ["v"] * 3 + ["w"] * 7})
    imputer = MeanImputer(random_state=0).fit(seen)
    n_rows = 50
    empty = pl.DataFrame({"a": [None] * n_rows, "b": [None] * n_rows}, schema=seen.schema)
    draws = imputer.sample(empty, n=1000)
    means = np.array([draw["a"].mean() for draw in draws])
    # σ²(1/n + 1/rows), with E σ² = (n − 1) s² / (n − 3)
    variance = seen["a"].var() * 11 / 9 * (1 / 12 + 1 / n_rows)
    assert means.mean() == pytest.approx(seen["a"].mean(), abs=4 * np.sqrt(variance / 1000))
    assert means.var() == pytest.approx(variance, rel=0.2)
    shares = np.array([(draw["b"] == "w").mean() for draw in draws])
    # Beta(7, 5) shares, then a binomial of the rows
    p, spread = 7 / 12, 7 / 12 * 5 / 12
    expected = spread / 13 + (spread - spread / 13) / n_rows
    assert shares.mean() == pytest.approx(p, abs=4 * np.sqrt(expected / 1000))
    assert shares.var() == pytest.approx(expected, rel=0.2)


def test_one_draw_in_place_of_each_cell_is_as_scikit_learns():
    """`transform` that draws: a Normal about the prediction, as IterativeImputer has it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)).repeat(2, axis=1)
    x[:, 1] += 0.5 * rng.normal(size=400)
    x[:40, 1] = np.nan
    center, scale = np.nanmean(x, 0), np.nanstd(x, 0)
    rows = np.column_stack([rng.normal(size=5000), np.full(5000, np.nan)])
    ours = MICEImputer(sample_posterior=True, n_chains=1, random_state=0).fit(x).transform(rows)
    theirs = IterativeImputer(sample_posterior=True, random_state=0).fit((x - center) / scale)
    expected = theirs.transform((rows - center) / scale) * scale + center
    residual = [table[:, 1] - table[:, 0] for table in (ours, expected)]
    assert residual[0].mean() == pytest.approx(residual[1].mean(), abs=0.04)
    assert residual[0].std() == pytest.approx(residual[1].std(), rel=0.04)


def test_mice_draws_are_multiple_imputations():
    """x1 = x0 + noise: draws of the missing x1 carry the noise, means do not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1)).repeat(2, axis=1)
    x[:, 1] += 0.5 * rng.normal(size=600)
    holes = rng.random(600) < 0.3
    table = x.copy()
    table[holes, 1] = np.nan
    drawn = MICEImputer(sample_posterior=True, random_state=0).fit(table).sample(table, n=10)
    residual = np.stack([d[holes, 1] for d in drawn]) - x[holes, 0]
    assert residual.std() == pytest.approx(0.5, rel=0.1)
    assert len({d.tobytes() for d in drawn}) == 10
    # chains differ too, not only what is drawn of one
    single = MICEImputer(sample_posterior=True, random_state=0).fit(table)
    assert len(single.chains_) == 5
