"""Every mechanism on frames with levels, strings and holes."""

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
def test_a_table_is_read_as_numbers_and_codes(library):
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


def test_an_ordered_category_counts_in_its_own_order():
    pd = pytest.importorskip("pandas")
    levels = ["low", "middle", "high"]
    column = pd.Categorical(["high", "low", None, "middle"], categories=levels, ordered=True)
    numbers = Numbers.of(pd.DataFrame({"dose": column}))
    assert np.array_equal(numbers.x[:, 0], [2.0, 0.0, np.nan, 1.0], equal_nan=True)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_gives_what_its_numbers_give(name, library):
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
    # nothing is changed in place, what was missing stays so, and some more is
    assert np.array_equal(Numbers.of(table).x, before.x, equal_nan=True)
    assert not simulated.m[np.isnan(before.x)].any()
    assert simulated.m.sum() < before.observed().sum()
    # sets are whole numbers without gaps
    assert simulated.sets.dtype == np.int64
    assert np.array_equal(np.unique(simulated.sets), np.arange(simulated.sets.max() + 1))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_same_generator_gives_the_same_and_no_other_is_touched(name):
    table, options = frame("pyarrow", cells()), OPTIONS.get(name, {})
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is looked at, not used
    one, two, other = (
        MECHANISMS[name](table, 0.3, np.random.default_rng(seed), **options) for seed in (5, 5, 6)
    )
    assert np.array_equal(one.m, two.m)
    assert np.array_equal(one.sets, two.sets)
    # a tail that is lost for certain leaves nothing to chance
    if name != "quantile":
        assert not np.array_equal(one.m, other.m)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", MECHANISMS)
def test_only_named_columns_go_missing(name):
    table = frame("pyarrow", cells())
    options = OPTIONS.get(name, {})
    simulated = MECHANISMS[name](
        table, 0.3, np.random.default_rng(5), columns=["visits", "age"], **options
    )
    assert simulated.m[:, [3, 4]].all()
    assert set(simulated.columns) <= {0, 2}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(name, rate):
    table, options = frame("pyarrow", cells()), OPTIONS.get(name, {})
    with pytest.raises(ValueError, match="rate must be a probability between 0 and 1"):
        MECHANISMS[name](table, rate, np.random.default_rng(0), **options)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (2, 2, 2)])
def test_what_is_no_table_is_refused(name, shape):
    with pytest.raises(ValueError, match="must be a table"):
        MECHANISMS[name](np.zeros(shape), 0.2, np.random.default_rng(0), **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_named_column_with_nothing_to_lose_is_refused(name):
    table = np.column_stack([np.arange(20.0), np.full(20, np.nan), np.arange(20.0) % 3])
    options = {k: {"given": [2], "label": 2}.get(k, v) for k, v in OPTIONS.get(name, {}).items()}
    with pytest.raises(ValueError, match="has no observed cell"):
        MECHANISMS[name](table, 0.3, np.random.default_rng(0), columns=[1], **options)


@pytest.mark.parametrize("start", [2**62, -(2**63), 2**63])
@pytest.mark.parametrize("how", ["array", "frame", "frame with gaps"])
def test_whole_numbers_that_no_float_tells_apart_keep_their_order(start, how):
    pd = pytest.importorskip("pandas")
    dtype = np.uint64 if start >= 2**63 else np.int64
    values = np.array([start + k for k in range(1000)], dtype=dtype)
    table = values[:, None]
    if how != "array":
        name = "UInt64" if start >= 2**63 else "Int64"
        column = pd.Series(pd.array(values, dtype=name))
        if how == "frame with gaps":
            column[:100] = pd.NA
        table = pd.DataFrame({"a": column})
    simulated = quantile_cut(table, 0.2, np.random.default_rng(0))
    n_there = 900 if how == "frame with gaps" else 1000
    gone = ~simulated.m[1000 - n_there :, 0]
    np.testing.assert_array_equal(np.flatnonzero(gone), np.arange(n_there)[-n_there // 5 :])


def test_one_named_column_is_too_few_for_two():
    table = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="needs 2 columns to choose from, and there are 1"):
        MECHANISMS["mnar-two"](table, 0.2, np.random.default_rng(0), columns=[0])
