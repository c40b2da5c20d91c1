"""Held-out cells: calibrated draws give uniform ranks and 90 % coverage."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import psmvae
from psmvae.reporting.data.diagnostics import convergence_data, sample_size_data, training_data
from psmvae.reporting.data.holdout import hide, hold_out
from psmvae.reporting.data.validation import interval, transform, validation_data


def gaussian_table(n: int = 1500, rho: float = 0.6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    covariance = np.full((4, 4), rho) + (1 - rho) * np.eye(4)
    X = rng.multivariate_normal(np.zeros(4), covariance, n)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def mixed_table(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "whole": rng.integers(0, 100, n),
            "yes": rng.random(n) < 0.3,
            "text": rng.choice(["x", "y", "z"], n),
            "order": pd.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
        }
    )
    frame.loc[:9, "real"] = np.nan
    return frame


@pytest.fixture(scope="module")
def gaussian():
    X = gaussian_table()
    imputer = psmvae.MICEImputer(method="norm", random_state=0).fit(X)
    return X, imputer, validation_data(X, imputer, fraction=0.2)


def test_intervals_of_exchangeable_draws_cover_90_percent():
    rng = np.random.default_rng(0)
    for n_draws in (19, 20, 50):
        draws, truth = rng.normal(size=(n_draws, 40_000)), rng.normal(size=40_000)
        low, high = interval(draws)
        assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(0.9, abs=0.006)


@pytest.mark.parametrize("draw", ["normal", "coin"])
def test_transform_is_uniform_also_with_ties(draw):
    rng = np.random.default_rng(0)
    size = (20, 5000)
    draws = rng.normal(size=size) if draw == "normal" else rng.integers(0, 2, size).astype(float)
    truth = rng.permuted(draws, axis=0)[0]
    others = np.stack(
        [np.delete(draws[:, k], (draws[:, k] == truth[k]).argmax()) for k in range(5000)]
    )
    ranks = transform(truth, others.T, rng)
    assert stats.kstest(ranks, "uniform").pvalue > 0.001


def test_mice_is_calibrated_on_a_gaussian_table(gaussian):
    _, _, data = gaussian
    n = data["n_cells"]
    assert data["coverage"] == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / n))
    assert sum(data["pit"]) == n
    assert stats.chisquare(data["pit"]).pvalue > 0.001


def test_errors_are_those_of_the_known_regression(gaussian):
    # with three other columns of correlation 0.6, the residual variance is at least 0.509; with
    # missing predictors it is larger, and that of the mean is 1
    _, _, data = gaussian
    assert data["methods"] == ["MICEImputer", "MeanImputer"]
    assert np.sqrt(0.509) - 0.05 < data["error_numbers"]["MICEImputer"] < 0.85
    assert data["error_numbers"]["MeanImputer"] == pytest.approx(1, abs=0.06)


def test_sentence_says_what_was_done(gaussian):
    _, _, data = gaussian
    assert f"{data['n_cells']:,} cells" in data["sentence"]
    assert "all 1,500 rows" in data["sentence"]
    assert "more rows" not in data["sentence"]


def test_diagnostics_of_mice(gaussian):
    _, imputer, data = gaussian
    found = data["convergence"]
    assert found["columns"] == ["x0", "x1", "x2", "x3"]
    np.testing.assert_allclose(found["r_hat_mean"], imputer.convergence().r_hat()[0])
    mean = imputer.convergence().mean
    np.testing.assert_allclose(found["traces"]["x1"], mean[:, :, 1].T, rtol=1e-5)
    assert data["training"] is None
    assert data["effective_sample_size"] is None


def test_large_tables_are_sampled_and_said():
    X = gaussian_table(400)
    imputer = psmvae.MeanImputer(random_state=0).fit(X)
    data = validation_data(X, imputer, max_rows=200)
    assert "200 of 400 rows drawn at random" in data["sentence"]
    assert "had more rows" in data["sentence"]
    assert data["methods"] == ["MeanImputer", "MICEImputer"]
    assert data["error_numbers"]["MICEImputer"] < data["error_numbers"]["MeanImputer"]


def test_the_imputer_is_not_changed_and_results_repeat():
    X = gaussian_table(200)
    imputer = psmvae.MeanImputer().fit(X)
    before = imputer.transform(X)
    first, second = (validation_data(X, imputer, random_state=3) for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(imputer.transform(X), before)
    assert imputer.kinds is None


@pytest.mark.parametrize("convert", [lambda d: d, pl.from_pandas, pa.Table.from_pandas])
def test_tables_of_all_libraries(convert):
    table = convert(mixed_table())
    imputer = psmvae.MeanImputer(random_state=0).fit(table)
    data = validation_data(table, imputer)
    json.dumps(data, allow_nan=False)
    by_name = {one["name"]: one for one in data["columns"]}
    assert list(by_name) == ["real", "whole", "yes", "text", "order"]
    assert [one["kind"] for one in data["columns"]] == [one.kind for one in imputer.schema_.columns]
    assert by_name["real"]["n"] == 11
    assert len(by_name["real"]["truth"]) == 11
    assert by_name["text"]["coverage"] is None
    assert by_name["text"]["truth"] == []
    assert 0 <= by_name["text"]["error"]["MeanImputer"] <= 1
    assert sum(by_name["text"]["pit"]) == by_name["text"]["n"]


def test_hidden_cells_are_missing_and_others_unchanged():
    frame = mixed_table()
    imputer = psmvae.MeanImputer(random_state=0).fit(frame)
    rng = np.random.default_rng(0)
    held = hold_out(frame, imputer.schema_, max_rows=1000, fraction=0.1, rng=rng)
    hidden = np.zeros(frame.shape, dtype=bool)
    for one in held.columns:
        hidden[one.rows, one.position] = True
    np.testing.assert_array_equal(held.table.isna().to_numpy(), frame.isna().to_numpy() | hidden)
    seen = ~held.table.isna().to_numpy()
    assert (held.table.to_numpy()[seen] == frame.to_numpy()[seen]).all()
    assert held.table["order"].cat.ordered


@pytest.mark.parametrize("array", [np.arange(6).reshape(3, 2), np.array([["a", "b"]] * 3)])
def test_cells_of_arrays_can_be_hidden(array):
    hidden = np.array([[True, False], [False, False], [False, True]])
    found = hide(array, np.arange(3), hidden)
    np.testing.assert_array_equal(pd.isna(pd.DataFrame(found)).to_numpy(), hidden)


def test_derived_columns_have_no_hidden_cells():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    frame.loc[:9, "a"] = np.nan
    frame["sum"] = frame["a"] + frame["b"]
    imputer = psmvae.MeanImputer(derived={"sum": "a + b"}, random_state=0).fit(frame)
    data = validation_data(frame, imputer)
    assert [one["name"] for one in data["columns"]] == ["a", "b"]


def test_columns_not_shown_have_no_single_cells():
    X = gaussian_table(200)
    data = validation_data(X, psmvae.MeanImputer(random_state=0).fit(X), shown=["x1"])
    assert [bool(one["truth"]) for one in data["columns"]] == [False, True, False, False]
    assert all(one["coverage"] is not None for one in data["columns"])


def test_a_deep_imputer_also_from_a_file(tmp_path):
    X = gaussian_table(120)
    steps = []
    imputer = psmvae.PSMVAEImputer(max_epochs=2, random_state=0).fit(X)
    data = validation_data(X, imputer, n_draws=19, progress=steps.append)
    json.dumps(data, allow_nan=False)
    assert data["methods"] == ["PSMVAEImputer", "MeanImputer", "MICEImputer"]
    assert steps[0] == "PSMVAEImputer without the held-out cells"
    assert data["training"]["epoch"] == [one.epoch for one in imputer.history_]
    sizes = data["effective_sample_size"]
    assert sizes == sorted(sizes)
    assert len(sizes) == 7
    assert sizes[0] >= 1
    imputer.save(tmp_path / "model.safetensors")
    again = validation_data(X, psmvae.load(tmp_path / "model.safetensors"), n_draws=19)
    assert again["error_numbers"] == data["error_numbers"]
    assert again["pit"] == data["pit"]
    # a file has the last epoch only
    assert again["training"] is None


def test_tilted_columns_are_checked_without_their_correction():
    X = gaussian_table(300)
    X[X[:, 0] > 0.8, 0] = np.nan
    imputer = psmvae.MICEImputer(mask_model="self", random_state=0).fit(X)
    assert imputer.mechanism_.tilts
    data = validation_data(X, imputer)
    assert "explain their own absence were left out" in data["sentence"]
    # hidden cells are observed values, below 0.8: a correction would move imputations above them
    column = data["columns"][0]
    assert np.mean(np.subtract(column["point"], column["truth"])) < 0.25


def test_a_refit_that_fails_is_said():
    X = gaussian_table(100)
    imputer = psmvae.MICEImputer(random_state=0).fit(X)
    imputer.method = "unknown"
    data = validation_data(X, imputer)
    assert "could not be fitted again" in data["sentence"]
    assert data["methods"] == []
    assert data["n_cells"] == 0
    assert data["convergence"]["columns"]
    json.dumps(data, allow_nan=False)


def test_too_few_observed_cells():
    X = gaussian_table(9)
    imputer = psmvae.MeanImputer(random_state=0).fit(X)
    data = validation_data(X, imputer)
    assert data["columns"] == []
    assert "10 observed cells" in data["sentence"]


def test_diagnostics_of_other_imputers_are_none():
    X = gaussian_table(50)
    imputer = psmvae.MeanImputer(random_state=0).fit(X)
    assert training_data(imputer) is None
    assert sample_size_data(imputer, X) is None
    assert convergence_data(imputer) is None


def test_very_large_and_small_values_have_the_errors_of_others():
    X = gaussian_table(200)
    errors = [
        validation_data(X * scale, psmvae.MeanImputer().fit(X * scale))["columns"][0]["error"]
        for scale in (1.0, 1e200, 1e-200)
    ]
    assert errors[1]["MeanImputer"] == pytest.approx(errors[0]["MeanImputer"])
    assert errors[2]["MeanImputer"] == pytest.approx(errors[0]["MeanImputer"])


def test_wide_tables_are_checked_on_fewer_rows():
    X = np.random.default_rng(0).normal(size=(500, 101))
    X[:50, 0] = np.nan
    data = validation_data(X, psmvae.MeanImputer(random_state=0).fit(X), n_draws=19)
    # 40,000 cells in 101 columns
    assert data["sentence"].startswith("In 396 of 500 rows drawn at random")
