"""Odd tables give finite answers, for every mask model."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest


@pytest.fixture(params=["latent", "self", "none"])
def mask(request):
    return request.param


@pytest.fixture
def base():
    """A full table of 30 rows."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 1)) + rng.normal(size=(30, 4))


def holes(table, share=0.3):
    """The table with holes, but for its first row."""
    rng = np.random.default_rng(4)
    gone = rng.random(table.shape) < share
    gone[0] = False
    return np.where(gone, np.nan, table)


def check(imputer, table, new=None):
    """Fit, ask everything, and find all finite and all holes filled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputer.fit(table)
        new = table if new is None else new
        filled, drawn = imputer.transform(new), imputer.sample(new, n=3)
        for each in [filled, *drawn]:
            assert np.isfinite(each).all()
            assert (each == new)[~np.isnan(new)].all()
        proba = imputer.predict_set_proba(new)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(1), 1.0, atol=1e-9)
        assert np.isfinite(imputer.score_samples(new)).all()
        assert np.isfinite(imputer.effective_sample_size(new)).all()
    assert all(bool(p.isfinite().all()) for p in imputer.model_.parameters())
    return filled, drawn


@pytest.mark.parametrize("value", [7.25, 0.0, -3.0, 1e12 + 0.5])
def test_a_constant_column(quick, base, mask, value):
    base[:, 1] = value
    table = holes(base)
    filled, drawn = check(quick(mask), table)
    gone = np.isnan(table[:, 1])
    for each in [filled, *drawn]:
        assert np.abs(each[gone, 1] - value).max() < 0.5


def test_a_constant_column_of_strings(quick, mask):
    table = pl.DataFrame({"a": ["u", None, "u", "u"], "b": [1.5, 2.5, None, 0.5]})
    imputer = quick(mask).fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["a"].to_list() == ["u"] * 4


def test_a_column_with_one_observed_value(quick, base, mask):
    table = holes(base)
    table[1:, 1] = np.nan
    filled, _ = check(quick(mask), table)
    assert np.abs(filled[:, 1] - table[0, 1]).max() < 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e300])
def test_scales(quick, base, mask, scale):
    table = holes(base * scale)
    filled, drawn = check(quick(mask), table)
    for each in [filled, *drawn]:
        assert np.abs(each).max() < 20 * scale
    assert (filled[np.isnan(table)] / scale).std() > 0.1


def test_scales_side_by_side(quick, base, mask):
    scales = np.array([1e-12, 1.0, 1e12, 1e6])
    table = holes(base * scales + np.array([0.0, 0.0, 0.0, 1e12]))
    filled, _ = check(quick(mask), table)
    assert (np.abs(filled[:, :3]).max(0) < 20 * scales[:3]).all()
    assert np.abs(filled[:, 3] - 1e12).max() < 20 * 1e6


def test_the_result_does_not_depend_on_the_unit(quick, base, mask):
    table = holes(base)
    one = quick(mask).fit(table).transform(table)
    # powers of two, so that standardising gives the same bits
    other = quick(mask).fit(table * 2.0**40).transform(table * 2.0**40)
    np.testing.assert_array_equal(one * 2.0**40, other)


def test_200_categories(quick, mask):
    rng = np.random.default_rng(5)
    words = [f"level {i}" for i in range(200)]
    cells = np.array(words + rng.choice(words, 40).tolist(), dtype=object)
    cells[200::3] = None
    table = pl.DataFrame({"word": cells.tolist(), "x": rng.normal(size=240)})
    imputer = quick(mask).fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["word"].null_count() == 0
        assert set(each["word"]) <= set(words)
    assert np.isfinite(imputer.score_samples(table)).all()


def test_a_single_row_at_transform(quick, base, mask):
    check(quick(mask), holes(base), new=np.array([[0.3, np.nan, np.nan, 1.0]]))


def test_a_row_with_nothing_observed_is_imputed_from_the_marginal(quick, base, mask):
    table = holes(base + np.array([100.0, -50.0, 0.0, 7.0]))
    table[5] = np.nan
    filled, _ = check(quick(mask), table)
    middle, spread = np.nanmean(table, 0), np.nanstd(table, 0)
    assert (np.abs(filled[5] - middle) < 1.5 * spread).all()
    new = np.full((2, 4), np.nan)
    filled, _ = check(quick(mask), table, new=new)
    assert (np.abs(filled - middle) < 1.5 * spread).all()
    assert (filled[0] == filled[1]).all()


def test_a_table_with_nothing_missing(quick, base, mask):
    filled, drawn = check(quick(mask), base)
    assert all(each.tobytes() == base.tobytes() for each in [filled, *drawn])


def test_nothing_missing_at_fit_but_later(quick, base, mask):
    check(quick(mask), base, new=holes(base))


def test_a_table_with_one_row(quick, mask):
    check(quick(mask), np.array([[1.5, 2.0, -3.0]]))
    check(quick(mask), np.array([[1.5, 2.0, -3.0]]), new=np.array([[np.nan, 1.0, np.nan]]))


def test_a_table_with_one_column(quick, base, mask):
    check(quick(mask), holes(base[:, :1]))


def test_a_table_with_one_cell(quick, mask):
    filled, _ = check(quick(mask), np.array([[2.5]]), new=np.array([[np.nan]]))
    assert abs(filled[0, 0] - 2.5) < 0.5


def test_a_column_with_nothing_observed_is_left_missing(quick, base, mask):
    table = holes(base)
    table[:, 2] = np.nan
    with pytest.warns(UserWarning, match="nothing observed are left missing: 'x2'") as caught:
        imputer = quick(mask).fit(table)
    assert len(caught) == 1
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert np.isnan(each[:, 2]).all()
        assert np.isfinite(np.delete(each, 2, axis=1)).all()
    assert imputer.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    # a value that turns up later stays as it is
    table[3, 2] = 5.0
    assert imputer.transform(table)[3, 2] == 5.0


def test_a_huge_outlier(quick, base, mask):
    table = holes(base)
    table[0, 0] = 1e15
    check(quick(mask), table)
    filled, _ = check(
        quick(mask), holes(base), new=np.array([[1e15, np.nan, 0.0, 0.0], [-1e300, 0, 0, np.nan]])
    )
    assert np.abs(filled[0, 1:]).max() < 1e15


def test_whole_numbers_beyond_float64(quick, mask):
    big = 2**62 + 1
    values = [big, big + 2, None, big + 4, None, big + 6]
    table = pd.DataFrame({"id": pd.array(values, dtype="Int64"), "x": [0.5, 1, 1.5, 2, 2.5, 3]})
    imputer = quick(mask).fit(table)
    for each in [imputer.transform(table), *imputer.sample(table, n=2)]:
        assert each["id"].dtype == "Int64"
        assert not each["id"].isna().any()
        kept = [i for i, value in enumerate(values) if value is not None]
        assert [each["id"].iloc[i] for i in kept] == [values[i] for i in kept]
        assert all(abs(int(value) - big) < 2**53 for value in each["id"])


def test_duplicated_rows(quick, base, mask):
    table = np.repeat(holes(base)[:3], 12, axis=0)
    filled, _ = check(quick(mask), table)
    for first in (0, 12, 24):
        for row in filled[first : first + 12]:
            np.testing.assert_allclose(row, filled[first], rtol=1e-4, atol=1e-5)


def test_duplicated_columns(quick, base, mask):
    table = holes(np.repeat(base[:, :1], 4, axis=1))
    check(quick(mask), table)


def test_a_wide_table(quick, mask):
    check(quick(mask), holes(np.random.default_rng(6).normal(size=(10, 60))))


def test_nearly_everything_missing(quick, base, mask):
    check(quick(mask), holes(base, share=0.95))


@pytest.mark.parametrize("extreme", [{"n_sets": 1, "n_draws": 1}, {"n_latent": 30}, {"n_sets": 12}])
def test_sizes_that_do_not_suit_the_table(quick, base, extreme):
    check(quick("self", **extreme), holes(base))


@pytest.mark.parametrize(
    "setting",
    [
        {"pi": 0.0},
        {"pi": 1.0},
        {"pi": "rate"},
        {"hide": 0.0, "held_out": 0.0},
        {"scale": 1e-3},
        {"learning_rate": 10.0, "max_epochs": 5},
        {"batch_size": 5},
    ],
    ids=str,
)
def test_settings_at_their_ends(quick, base, setting):
    check(quick("self", **setting), holes(base[:12]))
