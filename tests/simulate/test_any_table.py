"""Every mechanism on tables with levels, strings and missing cells."""

import numpy as np
import pytest

from psmvae.simulate import MECHANISMS, quantile_cut
from psmvae.simulate.table import Numbers

OPTIONS = {"label": {"label": "site"}, "blocks": {"n_blocks": 2}, "mar": {"given": ["site"]}}
N = 2000


def cells() -> dict[str, list]:
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, N).round(1)
    grade = rng.choice(["a", "b", "c", "d"], N, p=[0.4, 0.2, 0.2, 0.2])
    gone = rng.random(N) < 0.2
    return {
        "age": [None if lost else value for lost, value in zip(gone, age.tolist(), strict=True)],
        "grade": [None if lost else str(v) for lost, v in zip(gone[::-1], grade, strict=True)],
        "visits": rng.poisson(4.0, N).tolist(),
        "smoker": (rng.random(N) < 0.4).tolist(),
        "site": rng.choice(["Lyon", "Basel", "Ghent"], N).tolist(),
    }


def frame(library: str, content: dict[str, list]):
    if library == "array":
        return np.array(list(zip(*content.values(), strict=True)), dtype=object)
    module = pytest.importorskip(library)
    return module.table(content) if library == "pyarrow" else module.DataFrame(content)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "array"])
def test_table_becomes_numbers_and_level_numbers(library):
    content = cells()
    numbers = Numbers.of(frame(library, content))
    expected = {
        "age": [np.nan if v is None else v for v in content["age"]],
        "grade": [np.nan if v is None else "abcd".index(v) for v in content["grade"]],
        "visits": content["visits"],
        "smoker": content["smoker"],
        "site": [["Basel", "Ghent", "Lyon"].index(v) for v in content["site"]],
    }
    wanted = np.column_stack([np.asarray(column, dtype=float) for column in expected.values()])
    assert np.array_equal(numbers.x, wanted, equal_nan=True)
    assert numbers.names == (("x0", "x1", "x2", "x3", "x4") if library == "array" else (*content,))


def test_ordered_categories_are_numbered_in_their_order():
    pd = pytest.importorskip("pandas")
    levels = ["low", "medium", "high"]
    column = pd.Categorical(["high", "low", None, "medium"], categories=levels, ordered=True)
    numbers = Numbers.of(pd.DataFrame({"dose": column}))
    assert np.array_equal(numbers.x[:, 0], [2.0, 0.0, np.nan, 1.0], equal_nan=True)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_mask_of_a_frame_is_that_of_its_numbers(name, library):
    content = cells()
    table, options = frame(library, content), OPTIONS.get(name, {})
    before = Numbers.of(table)
    simulated = MECHANISMS[name](table, 0.3, np.random.default_rng(4), **options)
    at = {key: "x4" if value == "site" else value for key, value in options.items()}
    at |= {"given": ["x4"]} if name == "mar" else {}
    again = MECHANISMS[name](before.x, 0.3, np.random.default_rng(4), **at)
    assert np.array_equal(simulated.m, again.m)
    assert np.array_equal(simulated.sets, again.sets)
    assert simulated.columns == again.columns
    # the input is unchanged, missing cells stay missing, and there are more of them
    assert np.array_equal(Numbers.of(table).x, before.x, equal_nan=True)
    assert not simulated.m[np.isnan(before.x)].any()
    assert simulated.m.sum() < before.observed().sum()
    # sets are numbered from 0 without gaps
    assert simulated.sets.dtype == np.int64
    assert np.array_equal(np.unique(simulated.sets), np.arange(simulated.sets.max() + 1))


@pytest.mark.parametrize("name", MECHANISMS)
def test_same_seed_gives_the_same_mask_and_the_global_generator_is_unused(name):
    table, options = frame("pyarrow", cells()), OPTIONS.get(name, {})
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - only inspected
    one, two, other = (
        MECHANISMS[name](table, 0.3, np.random.default_rng(seed), **options) for seed in (5, 5, 6)
    )
    assert np.array_equal(one.m, two.m)
    assert np.array_equal(one.sets, two.sets)
    # at probability 1, a tail is missing for certain
    if name != "quantile":
        assert not np.array_equal(one.m, other.m)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", MECHANISMS)
def test_only_named_columns_get_missing_cells(name):
    table = frame("pyarrow", cells())
    options = OPTIONS.get(name, {})
    simulated = MECHANISMS[name](
        table, 0.3, np.random.default_rng(5), columns=["visits", "age"], **options
    )
    assert simulated.m[:, [3, 4]].all()
    assert set(simulated.columns) <= {0, 2}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_outside_0_and_1_is_refused(name, rate):
    table, options = frame("pyarrow", cells()), OPTIONS.get(name, {})
    with pytest.raises(ValueError, match="rate must be a probability between 0 and 1"):
        MECHANISMS[name](table, rate, np.random.default_rng(0), **options)


@pytest.mark.parametrize("name", MECHANISMS)
def test_named_column_without_observed_cells_is_refused(name):
    table = np.column_stack([np.arange(20.0), np.full(20, np.nan), np.arange(20.0) % 3])
    options = {k: {"given": [2], "label": 2}.get(k, v) for k, v in OPTIONS.get(name, {}).items()}
    with pytest.raises(ValueError, match="has no observed cell"):
        MECHANISMS[name](table, 0.3, np.random.default_rng(0), columns=[1], **options)


@pytest.mark.parametrize("start", [2**62, -(2**63), 2**63])
@pytest.mark.parametrize("how", ["array", "frame", "frame with nulls"])
def test_integers_beyond_float_precision_keep_their_order(start, how):
    pd = pytest.importorskip("pandas")
    dtype = np.uint64 if start >= 2**63 else np.int64
    values = np.array([start + k for k in range(1000)], dtype=dtype)
    table = values[:, None]
    if how != "array":
        name = "UInt64" if start >= 2**63 else "Int64"
        column = pd.Series(pd.array(values, dtype=name))
        if how == "frame with nulls":
            column[:100] = pd.NA
        table = pd.DataFrame({"a": column})
    simulated = quantile_cut(table, 0.2, np.random.default_rng(0))
    n_observed = 900 if how == "frame with nulls" else 1000
    gone = ~simulated.m[1000 - n_observed :, 0]
    np.testing.assert_array_equal(np.flatnonzero(gone), np.arange(n_observed)[-n_observed // 5 :])


def test_mnar_two_needs_two_columns():
    table = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="needs 2 columns, and there are 1"):
        MECHANISMS["mnar-two"](table, 0.2, np.random.default_rng(0), columns=[0])
