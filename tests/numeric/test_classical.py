"""MICE and MissForest equal scikit-learn's imputers; draws of means agree with closed forms."""

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


def scikit_learn(estimator, x, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return IterativeImputer(estimator, random_state=seed).fit(x)


@pytest.mark.parametrize("standardise", [False, True])
def test_mice_equals_scikit_learns(standardise):
    seed = 0
    x, new = table(seed=seed), table(30, seed=9)
    ours = MICEImputer(standardise=standardise, random_state=seed).fit(x)
    center, scale = (np.nanmean(x, 0), np.nanstd(x, 0)) if standardise else (0.0, 1.0)
    theirs = scikit_learn(BayesianRidge(), (x - center) / scale, seed)
    for rows in (x, new):
        expected = theirs.transform((rows - center) / scale) * scale + center
        np.testing.assert_allclose(ours.transform(rows), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("standardise", [False, True])
def test_missforest_equals_scikit_learns(standardise):
    x, new = table(60), table(30, seed=9)
    ours = MissForestImputer(n_estimators=5, standardise=standardise, random_state=0, n_jobs=1).fit(
        x
    )
    center, scale = (np.nanmean(x, 0), np.nanstd(x, 0)) if standardise else (0.0, 1.0)
    trees = ExtraTreesRegressor(n_estimators=5, random_state=ours.seed_)
    theirs = scikit_learn(trees, (x - center) / scale, ours.seed_)
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
    missing = rng.random((n, 4)) < 0.2
    cells = [
        pl.when(pl.Series(missing[:, j])).then(None).otherwise(pl.col(name)).alias(name)
        for j, name in enumerate(frame.columns)
    ]
    return frame, frame.with_columns(cells), missing


@pytest.mark.parametrize("imputer", [MICEImputer(), MissForestImputer(random_state=0, n_jobs=1)])
def test_categories_are_predicted(imputer):
    complete, frame, missing = mixed()
    filled = imputer.fit_transform(frame)
    assert filled.schema == frame.schema
    # linear scores of three ordered levels are rarely highest for the second
    least = {"size": 0.75 if isinstance(imputer, MissForestImputer) else 0.55, "tall": 0.75}
    for name in ("size", "tall"):
        j = frame.columns.index(name)
        right = (filled[name] == complete[name]).to_numpy()[missing[:, j]].mean()
        assert right > least[name], (name, right)


def test_mean_and_mode():
    _, frame, missing = mixed()
    filled = MeanImputer().fit_transform(frame)
    seen = frame["size"].drop_nulls()
    assert set(filled["size"].to_numpy()[missing[:, 1]]) == {seen.mode().sort()[0]}
    expected = frame["height"].mean()
    np.testing.assert_allclose(filled["height"].to_numpy()[missing[:, 0]], expected)


def test_draws_of_mean_imputer_have_the_variance_of_the_column():
    _, frame, missing = mixed(2000)
    draws = MeanImputer().fit(frame).sample(frame, n=5)
    heights = np.concatenate([d["height"].to_numpy()[missing[:, 0]] for d in draws])
    assert heights.std() == pytest.approx(frame["height"].std(), rel=0.05)
    sizes = np.concatenate([d["size"].to_numpy()[missing[:, 1]] for d in draws])
    for level in ("S", "M", "L"):
        share = (frame["size"].drop_nulls() == level).mean()
        assert (sizes == level).mean() == pytest.approx(share, abs=0.04)


def test_draws_of_mean_imputer_include_the_uncertainty_of_the_mean():
    """Closed forms: Student-t for the mean of a number, Dirichlet for the rates of levels."""
    rng = np.random.default_rng(0)
    seen = pl.DataFrame({"a": rng.normal(5.0, 2.0, 12), "b": ["u"] * 2 + ["v"] * 3 + ["w"] * 7})
    imputer = MeanImputer(random_state=0).fit(seen)
    n_rows = 50
    empty = pl.DataFrame({"a": [None] * n_rows, "b": [None] * n_rows}, schema=seen.schema)
    draws = imputer.sample(empty, n=400)
    means = np.array([draw["a"].mean() for draw in draws])
    # σ²(1/n + 1/rows), with E σ² = (n − 1) s² / (n − 3)
    variance = seen["a"].var() * 11 / 9 * (1 / 12 + 1 / n_rows)
    assert means.mean() == pytest.approx(seen["a"].mean(), abs=4 * np.sqrt(variance / 400))
    assert means.var() == pytest.approx(variance, rel=0.3)
    shares = np.array([(draw["b"] == "w").mean() for draw in draws])
    # Beta(7, 5) shares, then a binomial of the rows
    p, variance = 7 / 12, 7 / 12 * 5 / 12
    expected = variance / 13 + (variance - variance / 13) / n_rows
    assert shares.mean() == pytest.approx(p, abs=4 * np.sqrt(expected / 400))
    assert shares.var() == pytest.approx(expected, rel=0.3)
