"""Draws of MICEImputer: closed forms, R's mice, predictors that are left out."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from psmvae import MICEImputer, PSMVAEImputer, load

ROOT = Path(__file__).parent.parent.parent


def one_predictor(seed, n=40):
    """y depends strongly on x and is missing more often where x is high."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = np.column_stack([x, 2.0 * x + rng.normal(size=n)])
    table[rng.random(n) < 1 / (1 + np.exp(-2 * x)), 1] = np.nan
    return table


def exact_mean(table):
    """Posterior mean and variance of the mean of y, flat priors of coefficients and log σ."""
    x, y, seen = table[:, 0], table[:, 1], ~np.isnan(table[:, 1])
    design = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.inv(design[seen].T @ design[seen])
    line = inverse @ design[seen].T @ y[seen]
    squares = ((y[seen] - design[seen] @ line) ** 2).sum()
    lost = design[~seen].sum(0) / len(x)
    uncertain = lost @ inverse @ lost + (~seen).sum() / len(x) ** 2
    # of σ² χ²: squares / (freedom − 2) on average
    return y[seen].sum() / len(x) + lost @ line, squares / (seen.sum() - 4) * uncertain


def test_variance_between_imputations_equals_the_closed_form():
    """60 draws have parameters of their own."""
    ratios, errors = [], []
    for seed in range(12):
        table = one_predictor(seed)
        draws = MICEImputer(max_iter=1, random_state=seed).fit(table).sample(table, n=60)
        means = np.array([draw[:, 1].mean() for draw in draws])
        mean, variance = exact_mean(table)
        ratios.append(means.var(ddof=1) / variance)
        errors.append((means.mean() - mean) / np.sqrt(variance / 60))
    # the standard error of the mean of twelve ratios is .05
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)
    assert np.mean(errors) == pytest.approx(0.0, abs=1.2)


@pytest.fixture(scope="module")
def stacked(benchmark):
    """The table of two studies that R's mice imputed too."""
    return benchmark("mice_r").stacked_studies()


class TestStackedStudies:
    """y is observed in the first study only, where the study and the dose are constant."""

    @pytest.mark.parametrize("method", ["norm", "pmm"])
    def test_mean_and_spread_are_those_of_r(self, stacked, method):
        record = json.loads((ROOT / "benchmarks" / "results" / "mice_r.json").read_text())
        key = {"table": "stacked", "method": method, "analysis": "mean"}
        theirs = [each for each in record["R"] if each.items() >= key.items()]
        with pytest.warns(UserWarning, match="study, dose for y"):
            imputer = MICEImputer(method=method, random_state=0).fit(stacked)
        assert imputer.dropped_ == {"y": ["study", "dose"]}
        means = np.array([draw["y"].mean() for draw in imputer.sample(stacked, n=60)])
        spread = np.sqrt(np.mean([each["b"] for each in theirs]))
        estimate = np.mean([each["estimate"] for each in theirs])
        # relative standard errors: 9 % of 60 draws, 7 % of R's 100
        assert means.std(ddof=1) == pytest.approx(spread, rel=0.3)
        assert means.mean() == pytest.approx(estimate, abs=4 * spread / np.sqrt(60))

    def test_levels_leave_out_the_same_predictors(self, stacked):
        sick = np.where(stacked["y"].isna(), None, np.where(stacked["y"] > 1, "yes", "no"))
        table = stacked.assign(y=sick)
        with pytest.warns(UserWarning, match="study, dose for y"):
            imputer = MICEImputer(random_state=0).fit(table)
        shares = [(draw["y"] == "yes").mean() for draw in imputer.sample(table, n=20)]
        # coefficients of the dose drawn from their prior would give shares near 0 and 1
        assert np.std(shares) < 0.1


@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.parametrize(
    "imputer",
    [MICEImputer(random_state=0), PSMVAEImputer(max_epochs=2, device="cpu", random_state=0)],
)
def test_draws_of_few_rows_with_many_columns_are_as_large_as_the_values(imputer):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 20))
    missing = rng.random(table.shape) < 0.2
    table[missing] = np.nan
    drawn = np.stack(imputer.fit(table).sample(table, n=10))[:, missing]
    # with flat priors it was about 100
    assert 0.8 < drawn.std() < 1.3


@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
def test_a_draw_of_few_rows_follows_many_predictors():
    rng = np.random.default_rng(1)
    common, noise = rng.normal(size=(40, 1)), rng.normal(size=(40, 20))
    complete = common + 0.5 * noise
    missing = rng.random(complete.shape) < 0.2
    table = np.where(missing, np.nan, complete)
    imputer = MICEImputer(random_state=0).fit(table)
    assert imputer.dropped_ == {}
    draws = np.stack(imputer.sample(table, n=20))
    # the best prediction leaves about .5
    assert np.sqrt(np.mean((draws.mean(0) - complete)[missing] ** 2)) < 0.65
    assert draws.std(0)[missing].mean() == pytest.approx(0.55, abs=0.15)


@pytest.mark.filterwarnings("ignore:Predictors are left out of the draws")
@pytest.mark.parametrize("n", [40, 62, 80])
def test_columns_that_others_determine_are_drawn_without_noise(n):
    """Below 60 rows, the coefficients of the 20 predictors are penalised."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 18))
    complete = np.column_stack([x, 2 * x[:, 0] + 1, x[:, 1] + x[:, 2]])
    table = complete.copy()
    table[: n // 6, 18] = table[n // 6 : n // 3, 19] = np.nan
    drawn = np.stack(MICEImputer(random_state=0).fit(table).sample(table, n=10))
    error = np.sqrt(((drawn - complete) ** 2)[:, np.isnan(table)].mean())
    assert error < 0.01


def test_dependent_predictors_of_few_rows():
    """Coefficients of numbers are penalised, and those of levels leave out dependent predictors."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(28, 9)), columns=list("abcdefghi"))
    frame["copy"] = frame["a"]
    frame["bin"] = np.where(frame["b"] > 0, "yes", "no")
    frame.loc[:3, "bin"] = None
    frame.loc[4:7, "c"] = np.nan
    with pytest.warns(UserWarning, match="Predictors are left out .*copy for bin"):
        imputer = MICEImputer(random_state=0).fit(frame)
    assert imputer.dropped_ == {"bin": ["copy"]}


def test_one_warning_lists_the_predictors():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    size = np.where(np.arange(60) < 30, "S", np.where(np.arange(60) < 45, "M", "L"))
    frame = pl.DataFrame({"a": x, "twice": 2 * x, "size": size, "y": x + rng.normal(size=60)})
    frame = frame.with_columns(y=pl.when(pl.arange(0, 60) < 45).then("y"))
    with pytest.warns(UserWarning, match="Predictors are left out") as caught:
        imputer = MICEImputer(random_state=0).fit(frame)
    assert len(caught) == 1
    assert imputer.dropped_ == {"y": ["twice", "size=L"]}


@pytest.mark.filterwarnings("ignore:columns with one distinct observed value")
def test_a_column_that_is_constant_in_the_table_is_listed_without_a_second_warning():
    table = one_predictor(0)
    table = np.column_stack([table, np.ones(len(table))])
    assert MICEImputer(random_state=0).fit(table).dropped_ == {"x1": ["x2"]}


@pytest.fixture(scope="module")
def frame():
    """y is a multiple of x, missing in the first hundred rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = pl.DataFrame({"x": x, "z": rng.normal(size=300), "y": 3 * x})
    return frame.with_columns(y=pl.when(pl.arange(0, 300) >= 100).then("y"))


class TestPredictors:
    def correlation(self, table):
        return np.corrcoef(table["x"][:100], table["y"][:100])[0, 1]

    @pytest.mark.parametrize("method", ["norm", "pmm"])
    def test_a_column_that_is_not_allowed_is_not_used(self, frame, method):
        settings = {"method": method, "random_state": 0}
        free = MICEImputer(**settings).fit(frame)
        limited = MICEImputer(predictors={"y": ["z"]}, **settings).fit(frame)
        assert self.correlation(free.sample(frame, n=1)[0]) > 0.9
        assert abs(self.correlation(limited.sample(frame, n=1)[0])) < 0.4
        assert limited.transform(frame)["y"][:100].std() < 1

    def test_a_matrix_of_predictors(self, frame):
        matrix = pd.DataFrame(1, index=["y"], columns=list(frame.columns))
        matrix[[name for name in frame.columns if name != "z"]] = 0
        named = MICEImputer(predictors={"y": {"z"}}, random_state=0).fit(frame)
        found = MICEImputer(predictors=matrix, random_state=0).fit(frame)
        assert found.transform(frame).equals(named.transform(frame))

    def test_no_predictors_give_the_mean(self, frame):
        filled = MICEImputer(predictors={"y": []}).fit_transform(frame)
        np.testing.assert_allclose(filled["y"][:100], frame["y"].mean())

    def test_unknown_names(self, frame):
        with pytest.raises(ValueError, match=r"predictors names unknown columns 'age'.*'x'"):
            MICEImputer(predictors={"y": ["age"]}).fit(frame)


@pytest.mark.parametrize("kind", ["real", "positive"])
def test_pmm_imputes_observed_values(kind):
    table = np.exp(one_predictor(1)).round(2) + 0.01
    seen = table[~np.isnan(table[:, 1]), 1]
    imputer = MICEImputer(method="pmm", kinds={"x1": kind}, random_state=0).fit(table)
    for draw in imputer.sample(table, n=5):
        assert np.isin(draw[:, 1], seen).all()


def test_draws_do_not_depend_on_the_number_of_draws():
    table = one_predictor(2)
    imputer = MICEImputer(random_state=0).fit(table)
    few, many = imputer.sample(table, n=3), imputer.sample(table, n=8)
    for one, other in zip(few, many, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_convergence(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    frame = pd.DataFrame(
        {
            "bmi": 25 + 3 * z,
            "age": 50 + 9 * z + rng.normal(size=200),
            "sick": z + rng.normal(size=200) > 0,
        }
    )
    frame[["bmi", "sick"]] = frame[["bmi", "sick"]].mask(rng.random((200, 2)) < 0.3)
    imputer = MICEImputer(random_state=0).fit(frame)
    imputer.save(tmp_path / "model")
    for each in (imputer, load(tmp_path / "model")):
        found = each.convergence()
        assert found.columns == ("bmi", "sick")
        assert found.mean.shape == (6, 20, 2)
        missing = frame["bmi"].isna()
        # in the units of the table
        assert found.mean[-1, :, 0].mean() == pytest.approx((25 + 3 * z)[missing].mean(), abs=0.5)
        assert (found.summary()["r_hat_mean"] < 1.1).all()
    assert imputer.describe()["r_hat"] < 1.2


class TestBounds:
    def test_draws_are_truncated_and_not_clipped(self):
        """Most cells have a mean below the bound."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=300)
        y = np.where(x > 0, 2.0 + 3 * x + rng.normal(size=300), np.nan)
        table = pd.DataFrame({"x": x, "y": y}).query("not y < 0")
        imputer = MICEImputer(kinds={"y": "real"}, random_state=0).fit(table)
        drawn = np.concatenate([draw["y"][table["y"].isna()] for draw in imputer.sample(table, 5)])
        assert (drawn > 0).all()
        assert len(np.unique(drawn)) == len(drawn)

    def test_draws_of_counts_reach_below_their_mean(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=400)
        count = rng.poisson(np.exp(3 + 0.5 * x)).astype(float)
        hidden = rng.random(400) < 0.3
        table = pd.DataFrame({"x": x, "count": np.where(hidden, np.nan, count)})
        imputer = MICEImputer(kinds={"count": "count"}, random_state=0).fit(table)
        drawn = np.concatenate([draw["count"][hidden] for draw in imputer.sample(table, 5)])
        assert np.quantile(drawn, 0.1) == pytest.approx(np.quantile(count[hidden], 0.1), rel=0.3)


@pytest.mark.filterwarnings("ignore:columns with one distinct observed value")
@pytest.mark.parametrize("kind", ["ordinal", "categorical"])
def test_a_single_observed_level_of_several_is_imputed(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50), "c": ["x"] * 50})
    frame.loc[:5, "c"] = None
    frame.loc[3:9, "a"] = np.nan
    imputer = MICEImputer(kinds={"c": (kind, ["x", "y", "z"])}, random_state=0).fit(frame)
    for filled in (imputer.transform(frame), *imputer.sample(frame, n=2)):
        assert set(filled["c"]) == {"x"}
        assert not filled["a"].isna().any()
