"""Degenerate tables and extreme values give finite results."""

import warnings
from contextlib import contextmanager
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

from contract.registry import methods_of
from psmvae.imputers.fit_warnings import FewRowsWarning, NothingLearnedWarning
from psmvae.table import ConstantColumnsWarning, EmptyColumnsWarning, OutsideRangeWarning


def complete():
    """A complete table of 30 rows."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 1)) + rng.normal(size=(30, 4))


@pytest.fixture
def base():
    return complete()


def with_missing(table, rate=0.3):
    """Remove cells at random, except in the first row."""
    rng = np.random.default_rng(4)
    missing = rng.random(table.shape) < rate
    missing[0] = False
    return np.where(missing, np.nan, table)


@contextmanager
def only_expected_warnings():
    """Raise for a warning, unless it is about the tiny and degenerate tables of this module."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in (FewRowsWarning, NothingLearnedWarning):
            warnings.simplefilter("ignore", category)
        for category in (ConstantColumnsWarning, OutsideRangeWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Predictors are left out")
        yield


@cache
def fitted_to_base(make, *, missing=True):
    """An imputer fitted to that table. It is shared between tests."""
    with only_expected_warnings():
        return make().fit(with_missing(complete()) if missing else complete())


def check(imputer, table):
    """Fit and check the results of every method."""
    with only_expected_warnings():
        imputer.fit(table)
    return check_results(imputer, table)


def check_results(imputer, new):
    """Check that all results are finite and observed cells are unchanged."""
    with only_expected_warnings():
        filled, drawn = imputer.transform(new), imputer.sample(new, n=3)
        for each in [filled, *drawn]:
            assert np.isfinite(each).all()
            assert (each == new)[~np.isnan(new)].all()
        for method in set(methods_of(imputer)) - {"transform", "sample"}:
            assert np.isfinite(getattr(imputer, method)(new)).all(), method
        if hasattr(imputer, "predict_set_proba"):
            np.testing.assert_allclose(imputer.predict_set_proba(new).sum(1), 1.0, atol=1e-9)
    arrays, _ = imputer._state()
    assert all(np.isfinite(np.asarray(array)).all() for array in arrays.values())
    return filled, drawn


@pytest.mark.parametrize("value", [0.0, 1e12 + 0.5])
def test_a_constant_column(algorithm, base, value):
    base[:, 1] = value
    table = with_missing(base)
    filled, drawn = check(algorithm(), table)
    missing = np.isnan(table[:, 1])
    for each in [filled, *drawn]:
        assert np.abs(each[missing, 1] - value).max() < 0.5


def test_a_constant_column_of_strings(algorithm):
    table = pl.DataFrame({"a": ["u", None, "u", "u"], "b": [1.5, 2.5, None, 0.5]})
    imputer = algorithm().fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["a"].to_list() == ["u"] * 4


def test_a_column_with_one_observed_value(algorithm, base):
    table = with_missing(base)
    table[1:, 1] = np.nan
    filled, _ = check(algorithm(), table)
    assert np.abs(filled[:, 1] - table[0, 1]).max() < 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_tiny_and_huge_units(algorithm, base, scale):
    table = with_missing(base * scale)
    filled, drawn = check(algorithm(), table)
    for each in [filled, *drawn]:
        assert np.abs(each).max() < 20 * scale
    assert (np.stack(drawn)[:, np.isnan(table)] / scale).std() > 0.1


def test_units_that_differ_between_columns(algorithm, base):
    scales = np.array([1e-12, 1.0, 1e12, 1e6])
    table = with_missing(base * scales + np.array([0.0, 0.0, 0.0, 1e12]))
    filled, _ = check(algorithm(), table)
    assert (np.abs(filled[:, :3]).max(0) < 20 * scales[:3]).all()
    assert np.abs(filled[:, 3] - 1e12).max() < 20 * 1e6


def test_the_result_does_not_depend_on_the_unit(algorithm, base):
    table = with_missing(base)
    one = fitted_to_base(algorithm).transform(table)
    # powers of two, so that standardising gives the same bits
    other = algorithm().fit(table * 2.0**40).transform(table * 2.0**40)
    np.testing.assert_array_equal(one * 2.0**40, other)


def check_categories(imputer, n):
    rng = np.random.default_rng(5)
    words = [f"level {i}" for i in range(n)]
    cells = np.array(words + rng.choice(words, 20).tolist(), dtype=object)
    cells[n::3] = None
    table = pl.DataFrame({"word": cells.tolist(), "x": rng.normal(size=n + 20)})
    imputer.fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["word"].null_count() == 0
        assert set(each["word"]) <= set(words)
    if hasattr(imputer, "score_samples"):
        assert np.isfinite(imputer.score_samples(table)).all()


# so many categories in so few rows give a warning
@pytest.mark.filterwarnings("ignore:.*looks like an identifier")
def test_50_categories(algorithm):
    check_categories(algorithm(), 50)


def test_transform_of_a_single_row(algorithm):
    check_results(fitted_to_base(algorithm), np.array([[0.3, np.nan, np.nan, 1.0]]))


def test_a_row_without_observed_cells_is_imputed_near_the_mean(algorithm, base):
    table = with_missing(base + np.array([100.0, -50.0, 0.0, 7.0]))
    table[5] = np.nan
    imputer = algorithm()
    filled, _ = check(imputer, table)
    mean, deviation = np.nanmean(table, 0), np.nanstd(table, 0)
    assert (np.abs(filled[5] - mean) < 1.5 * deviation).all()
    new = np.full((2, 4), np.nan)
    filled, _ = check_results(imputer, new)
    assert (np.abs(filled - mean) < 1.5 * deviation).all()
    assert (filled[0] == filled[1]).all()


def test_a_table_with_nothing_missing(algorithm, base):
    filled, drawn = check_results(fitted_to_base(algorithm, missing=False), base)
    assert all(each.tobytes() == base.tobytes() for each in [filled, *drawn])


def test_missing_cells_after_a_fit_to_a_complete_table(algorithm, base):
    check_results(fitted_to_base(algorithm, missing=False), with_missing(base))


def test_a_table_with_one_row(algorithm):
    imputer = algorithm()
    check(imputer, np.array([[1.5, 2.0, -3.0]]))
    check_results(imputer, np.array([[np.nan, 1.0, np.nan]]))


def test_a_table_with_one_column(algorithm, base):
    check(algorithm(), with_missing(base[:, :1]))


def test_a_table_with_one_cell(algorithm):
    imputer = algorithm()
    check(imputer, np.array([[2.5]]))
    filled, _ = check_results(imputer, np.array([[np.nan]]))
    assert abs(filled[0, 0] - 2.5) < 0.5


def test_a_column_without_observed_cells_stays_missing(algorithm, base):
    table = with_missing(base)
    table[:, 2] = np.nan
    with pytest.warns(EmptyColumnsWarning, match="left missing: 'x2'") as caught:
        imputer = algorithm().fit(table)
    assert len([one for one in caught if one.category is EmptyColumnsWarning]) == 1
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert np.isnan(each[:, 2]).all()
        assert np.isfinite(np.delete(each, 2, axis=1)).all()
    assert imputer.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    # a later value of that column is kept
    table[3, 2] = 5.0
    assert imputer.transform(table)[3, 2] == 5.0


def test_a_huge_outlier(algorithm, base):
    table = with_missing(base)
    table[0, 0] = 1e15
    check(algorithm(), table)
    new = np.array([[1e15, np.nan, 0.0, 0.0], [-1e300, 0, 0, np.nan]])
    filled, _ = check_results(fitted_to_base(algorithm), new)
    assert np.abs(filled[0, 1:]).max() < 1e15


def test_integers_beyond_the_precision_of_float64(algorithm):
    big = 2**62 + 1
    values = [big, big + 2, None, big + 4, None, big + 6]
    table = pd.DataFrame({"id": pd.array(values, dtype="Int64"), "x": [0.5, 1, 1.5, 2, 2.5, 3]})
    imputer = algorithm().fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["id"].dtype == "Int64"
        assert not each["id"].isna().any()
        kept = [i for i, value in enumerate(values) if value is not None]
        assert [each["id"].iloc[i] for i in kept] == [values[i] for i in kept]
        assert all(abs(int(value) - big) < 2**53 for value in each["id"])


def test_duplicated_rows(algorithm, base):
    table = np.repeat(with_missing(base)[:3], 12, axis=0)
    filled, _ = check(algorithm(), table)
    for first in (0, 12, 24):
        for row in filled[first : first + 12]:
            np.testing.assert_allclose(row, filled[first], rtol=1e-4, atol=1e-5)


def test_duplicated_columns(algorithm, base):
    table = with_missing(np.repeat(base[:, :1], 4, axis=1))
    check(algorithm(), table)


def test_a_wide_table(algorithm):
    check(algorithm(), with_missing(np.random.default_rng(6).normal(size=(10, 25))))


def test_nearly_everything_missing(algorithm, base):
    check(algorithm(), with_missing(base, rate=0.95))


@pytest.mark.parametrize("extreme", [{"n_sets": 1, "n_draws": 1}, {"n_latent": 30}, {"n_sets": 12}])
def test_sizes_out_of_proportion_to_the_table(quick, base, extreme):
    check(quick("logistic-ceiling", **extreme), with_missing(base))


@pytest.mark.parametrize(
    "setting",
    [
        {"pi": 0.0},
        {"pi": 1.0},
        {"pi": "rate"},
        {"input_mask_rate": 0.0, "validation_fraction": 0.0},
        {"scale": 1e-3},
        {"learning_rate": 10.0, "max_epochs": 5},
        {"batch_size": 5},
    ],
    ids=str,
)
def test_settings_at_their_limits(quick, base, setting):
    check(quick("logistic-ceiling", **setting), with_missing(base[:12]))
