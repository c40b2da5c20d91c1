"""Shifts of imputed cells in tables of all libraries."""

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psmvae import MICEImputer, MultipleImputation
from psmvae.table import ConditionError, FormulaError

N, M = 60, 4


def incomplete() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=N)
    frame = pd.DataFrame({"a": a, "b": 2 * a + rng.normal(size=N)})
    frame["g"] = np.where(a + rng.normal(size=N) > 0, "x", "y")
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    frame["arm"] = np.where(rng.random(N) < 0.5, "control", "treated")
    return frame


def imputed(frame):
    return MICEImputer(method="pmm", random_state=0).fit(frame).impute_multiple(frame, m=M)


MADE = imputed(incomplete())


def column(table, name):
    frame = nw.from_native(table, eager_only=True)
    return np.array(frame[name].to_list())


def as_library(mi, library):
    """The same completed tables, of another library."""
    convert = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    clean = mi.original.astype(object).where(mi.original.notna(), None)
    original = mi.original if library == "pandas" else clean
    tables = tuple(convert[library](table) for table in mi)
    return MultipleImputation(convert[library](original), tables, mi.mask, mi.info)


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def mi(request):
    return as_library(MADE, request.param)


def test_a_number_is_added_to_imputed_cells_only(mi):
    shifted = mi.shift({"a": 5, "b": "× 0.5"})
    assert isinstance(shifted, MultipleImputation)
    for before, after in zip(mi, shifted, strict=True):
        assert type(after) is type(before)
        for name, expected in (("a", lambda v: v + 5), ("b", lambda v: v * 0.5)):
            at = incomplete().columns.get_loc(name)
            old, new = column(before, name), column(after, name)
            wanted = np.where(mi.mask[:, at], expected(old), old)
            np.testing.assert_array_equal(new, wanted)
        np.testing.assert_array_equal(column(after, "g"), column(before, "g"))
    assert shifted.info["shift"] == [{"delta": {"a": 5, "b": "× 0.5"}}]
    assert shifted.info["imputer"] == "MICEImputer"
    again = shifted.shift({"a": -5})
    np.testing.assert_allclose(column(again[0], "a"), column(mi[0], "a"))
    assert len(again.info["shift"]) == 2
    assert "shift" not in mi.info


@pytest.mark.parametrize("text", ["× 2", "x2", "* 2.0", " *  2e0"])
def test_spellings_of_a_factor(text):
    imputed_a = MADE.mask[:, 0]
    found = MADE.shift({"a": text})[0]["a"][imputed_a]
    np.testing.assert_allclose(found, 2 * MADE[0]["a"][imputed_a])


def test_groups_by_a_condition(mi):
    shifted = mi.shift({"a": {"arm == 'treated'": -5, "arm == 'control' and b > 0": "× 2"}})
    for before, after in zip(mi, shifted, strict=True):
        a, b, arm = (column(before, name) for name in ("a", "b", "arm"))
        expected = np.where(arm == "treated", a - 5, np.where(b > 0, a * 2, a))
        np.testing.assert_array_equal(column(after, "a"), np.where(mi.mask[:, 0], expected, a))


def test_an_incomplete_column_of_a_condition_is_read_in_each_table():
    shifted = MADE.shift({"a": {"g == 'x'": 10}})
    pairs = zip(MADE, shifted, strict=True)
    moved = [np.flatnonzero(after["a"] != before["a"]) for before, after in pairs]
    assert len({tuple(rows) for rows in moved}) > 1
    for table, rows in zip(MADE, moved, strict=True):
        assert (table["g"].iloc[rows] == "x").all()


def test_groups_by_labels():
    sets = np.arange(N) % 3
    shifted = MADE.shift({"a": {0: 5, 2: -3}}, groups=sets)
    added = shifted[1]["a"] - MADE[1]["a"]
    expected = np.where(MADE.mask[:, 0], np.choose(sets, [5, 0, -3]), 0)
    np.testing.assert_allclose(added, expected, atol=1e-12)
    early = MADE.shift({"a": {True: 1}}, groups=np.arange(N) < 30)
    np.testing.assert_allclose(
        early[0]["a"] - MADE[0]["a"], MADE.mask[:, 0] & (np.arange(N) < 30), atol=1e-12
    )


def test_arrays():
    array = incomplete()[["a", "b"]].to_numpy()
    mi = imputed(array)
    shifted = mi.shift({"x0": {"x1 > 0": 5}})
    rows = np.isnan(array[:, 0]) & (mi[0][:, 1] > 0)
    np.testing.assert_array_equal(shifted[0], mi[0] + 5 * np.outer(rows, [1, 0]))


def test_an_analysis_moves_by_the_share_of_imputed_cells(mi):
    """The mean of a shifted column moves by δ times the share of imputed cells."""

    def analysis(table):
        values = column(table, "a")
        return {"mean": (values.mean(), values.var() / N)}

    before, after = (one.analyse(analysis).pool().pooled for one in (mi, mi.shift({"a": 3.0})))
    np.testing.assert_allclose(after.estimate - before.estimate, 3 * mi.mask[:, 0].mean())
    np.testing.assert_allclose(after.b, before.b)


INTEGERS = {
    "Int64": lambda v: pd.DataFrame({"n": pd.array(v, dtype="Int64")}),
    "UInt8": lambda v: pd.DataFrame({"n": pd.array(v, dtype="UInt8")}),
    "polars": lambda v: pl.DataFrame({"n": pl.Series(v, dtype=pl.Int32)}),
    "pyarrow": lambda v: pa.table({"n": pa.array(v, type=pa.int16())}),
    "objects": lambda v: pd.DataFrame({"n": pd.Series(v, dtype=object)}),
    "numpy": lambda v: pd.DataFrame({"n": [-9 if x is None else x for x in v]}),
}


def one_column(library):
    make = INTEGERS[library]
    tables = (make([1, 2, 3, 4]), make([1, 2, 5, 6]))
    mask = np.array([[False], [False], [True], [True]])
    return MultipleImputation(make([1, 2, None, None]), tables, mask)


@pytest.mark.parametrize("library", INTEGERS)
def test_integers_stay_integers_if_they_can(library):
    mi = one_column(library)
    whole = mi.shift({"n": 2})
    assert column(whole[1], "n").tolist() == [1, 2, 7, 8]
    assert str(nw.from_native(whole[1]).schema) == str(nw.from_native(mi[1]).schema)
    halves = mi.shift({"n": "× 0.5"})
    assert column(halves[0], "n").tolist() == [1, 2, 1.5, 2]
    # 5 and 6 halved are not whole: both tables have floats
    assert nw.from_native(halves[0]).schema == nw.from_native(halves[1]).schema
    if library != "objects":
        assert nw.from_native(halves[0]).schema["n"].is_float()


def test_values_beyond_the_range_of_a_type_become_floats():
    assert column(one_column("UInt8").shift({"n": -10})[0], "n").tolist() == [1, 2, -7, -6]


def long_imputation(levels, n=400, m=10, dtype=None):
    """Half of a column imputed by draws of the observed levels."""
    rng = np.random.default_rng(0)
    truth = rng.choice(levels, n)
    mask = np.arange(n) < n // 2
    tables = [np.where(mask, rng.choice(levels, n), truth) for _ in range(m)]
    frames = [pd.DataFrame({"v": table.tolist()}).astype(dtype or {}) for table in tables]
    original = pd.DataFrame({"v": pd.Series(truth.tolist()).mask(mask)})
    return MultipleImputation(original, tuple(frames), mask[:, None])


def share(mi, of):
    return np.mean([(table["v"] == of)[mi.mask[:, 0]].mean() for table in mi])


@pytest.mark.parametrize(
    ("levels", "delta", "of"),
    [
        (["no", "yes"], "odds × 3", "yes"),
        (["no", "yes"], "odds of yes x 3", "yes"),
        (["no", "yes"], "odds of no × 3", "no"),
        ([False, True], "odds * 3", True),
        ([0, 1], "odds × 3", 1),
    ],
)
def test_odds_of_two_levels(levels, delta, of):
    mi = long_imputation(levels)
    shifted = mi.shift({"v": delta})
    assert share(shifted, of) == pytest.approx(3 / 4, abs=0.04)
    for before, after in zip(mi, shifted, strict=True):
        assert after["v"].dtype == before["v"].dtype
        assert after["v"][200:].equals(before["v"][200:])


def test_odds_of_ordered_levels():
    order = ["low", "middle", "high"]
    dtype = {"v": pd.CategoricalDtype(order, ordered=True)}
    mi = long_imputation(order, dtype=dtype)
    found = [share(mi.shift({"v": "odds × 4"}), level) for level in order]
    # P(x > low) = 2/3 and P(x > middle) = 1/3 have the odds 2 and 1/2, which become 8 and 2
    np.testing.assert_allclose(found, [1 / 9, 8 / 9 - 2 / 3, 2 / 3], atol=0.04)
    text = long_imputation(order)
    again = text.shift({"v": "odds × 4"}, levels={"v": order})
    np.testing.assert_allclose([share(again, level) for level in order], found)
    with pytest.raises(ValueError, match=r"3 levels without an order.*odds of middle.*levels="):
        text.shift({"v": "odds × 4"})
    with pytest.raises(ValueError, match="'middle' of column 'v' are not in its order"):
        text.shift({"v": "odds × 4"}, levels={"v": ["low", "high"]})


def test_odds_of_a_level_and_of_counts():
    named = long_imputation(["a", "b", "c"]).shift({"v": "odds of b × 2"})
    np.testing.assert_allclose([share(named, v) for v in "abc"], [1 / 4, 1 / 2, 1 / 4], atol=0.04)
    counts = long_imputation([0, 1, 2, 3]).shift({"v": "odds × 0.5"})
    # P(x > 0) = 3/4 has the odds 3, which become 3/2
    assert 1 - share(counts, 0) == pytest.approx(3 / 5, abs=0.04)


@pytest.mark.parametrize("delta", ["odds of 1 × 3", "odds of '1' × 3", "odds of 1.0 × 3"])
def test_odds_of_a_whole_number_among_floats(delta):
    """pandas makes floats of whole numbers with missing values."""
    mi = long_imputation([0.0, 1.0])
    shifted = mi.shift({"v": delta})
    assert share(shifted, 1.0) == pytest.approx(3 / 4, abs=0.04)
    with pytest.raises(ValueError, match="no level '2'; it has '0', '1'"):
        mi.shift({"v": "odds of 2 × 3"})


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_odds_in_other_libraries(library):
    other = as_library(MADE, library)
    expected = [
        table["g"].tolist() for table in MADE.shift({"g": {"arm == 'treated'": "odds × 9"}})
    ]
    found = other.shift({"g": {"arm == 'treated'": "odds × 9"}})
    assert [column(table, "g").tolist() for table in found] == expected
    assert any((a["g"] != b).any() for a, b in zip(MADE, expected, strict=True))


def test_odds_depend_on_the_seed_only():
    one, same, other = (MADE.shift({"g": "odds × 4"}, random_state=k) for k in (1, 1, 2))
    assert all(a.equals(b) for a, b in zip(one, same, strict=True))
    assert not all(a.equals(b) for a, b in zip(one, other, strict=True))


def test_derived_columns_follow():
    frame = incomplete()[["a", "b"]]
    frame["total"] = frame["a"] + frame["b"]
    imputer = MICEImputer(method="pmm", derived={"total": "a + b"}, random_state=0)
    mi = imputer.fit(frame).impute_multiple(frame, m=2)
    shifted = mi.shift({"a": 7})
    for table in shifted:
        np.testing.assert_allclose(table["total"], table["a"] + table["b"])
    for delta in ({"total": 7}, {"a": 7, "total": 7}):
        with pytest.raises(ValueError, match=r"'total' is derived, 'a \+ b', .*shift 'a', 'b'"):
            mi.shift(delta)
    alone = mi.shift({"total": 7}, derived={})
    assert (alone[0]["total"] - mi[0]["total"]).max() == pytest.approx(7)
    with pytest.raises(FormulaError, match="'c'"):
        mi.shift({"a": 7}, derived={"total": "a + c"})


def test_cells_that_are_still_missing_stay_so():
    mi = MADE
    tables = tuple(table.assign(a=table["a"].mask(np.arange(N) < 20)) for table in mi)
    shifted = MultipleImputation(mi.original, tables, mi.mask).shift({"a": 5})
    assert shifted[0]["a"].isna().sum() == 20


@pytest.mark.parametrize(
    ("delta", "match"),
    [
        ({"nothing": 5}, "no column 'nothing'; the columns are 'a', 'b', 'g', 'arm'"),
        ({"arm": "odds × 2"}, "'arm' has no imputed cells"),
        ({"g": 5}, "'g' is of String and not of numbers.*odds"),
        ({"g": "× 2"}, "not of numbers"),
        ({"a": "odds × 2"}, "fractions"),
        ({"a": "more"}, "'a': a shift must be a number.*got 'more'"),
        ({"a": "5"}, "a shift must be a number"),
        ({"a": True}, "a shift must be a number"),
        ({"a": np.nan}, "a shift must be a number"),
        ({"a": None}, "a shift must be a number"),
        ({"g": "odds × 0"}, "factor above 0"),
        ({"g": "odds × -1"}, "factor above 0"),
        ({"g": "odds of z × 2"}, "no level 'z'; it has 'x', 'y'"),
        ({"a": {}}, "no group"),
        ({"a": {"arm == 'none'": 1}}, "no imputed cell is in the condition"),
        ({"a": {"arm == 'treated'": 1, "b > -99": 2}}, "in another group too"),
        ({"g": {"arm == 'treated'": 1, "arm == 'control'": "odds × 2"}}, "together"),
    ],
)
def test_bad_shifts_are_named(delta, match):
    with pytest.raises(ValueError, match=match):
        MADE.shift(delta)


def test_bad_arguments_are_named():
    with pytest.raises(ConditionError, match="no column 'treatment'"):
        MADE.shift({"a": {"treatment == 1": 5}})
    with pytest.raises(TypeError, match="map names of columns"):
        MADE.shift(5)
    with pytest.raises(ValueError, match="label for each of the 60 rows"):
        MADE.shift({"a": {1: 5}}, groups=[1, 2])
    with pytest.raises(ValueError, match="no group 7 in groups; its labels are 0, 1"):
        MADE.shift({"a": {7: 5}}, groups=np.arange(N) % 2)
    holes = tuple(table.assign(b=np.nan) for table in MADE)
    with pytest.raises(ValueError, match="needs the column 'b', which is missing in"):
        MultipleImputation(MADE.original, holes, MADE.mask).shift({"a": {"b > 0": 1}})


def test_formulas_of_a_long_table():
    frame = incomplete()[["a", "b"]]
    frame["total"] = frame["a"] + frame["b"]
    imputer = MICEImputer(method="pmm", derived={"total": "a + b"}, random_state=0)
    mi = imputer.fit(frame).impute_multiple(frame, m=2)
    read = MultipleImputation.from_long(mi.to_long(), derived={"total": "a + b"})
    for table, expected in zip(read.shift({"a": 7}), mi.shift({"a": 7}), strict=True):
        np.testing.assert_allclose(table, expected)
    with pytest.raises(FormulaError, match="'c'"):
        MultipleImputation.from_long(mi.to_long(), derived={"total": "a + c"})


def test_the_declared_order_of_levels_is_used():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "n": rng.integers(1, 4, 200).astype(float)})
    frame["edu"] = np.select([frame["x"] < -0.5, frame["x"] < 0.5], ["Mid", "Low"], "Top")
    for name in ("edu", "n"):
        frame[name] = frame[name].mask(rng.random(200) < 0.4)
    order = ("Top", "Low", "Mid")
    kinds = {"edu": "ordinal:Top,Low,Mid", "n": "ordinal:3,2,1"}
    mi = MICEImputer(kinds=kinds, random_state=0).fit(frame).impute_multiple(frame, m=3)
    assert mi.info["levels"] == {"edu": order, "n": (3, 2, 1)}
    shifts = {"edu": "odds × 5", "n": "odds × 5"}
    shifted = mi.shift(shifts)
    long = MultipleImputation.from_long(mi.to_long(), levels={"edu": order, "n": ["3", "2", "1"]})
    for table, before, same in zip(shifted, mi, long.shift(shifts), strict=True):
        assert table["edu"].tolist() == same["edu"].tolist()
        assert table["n"].mean() == same["n"].mean() < before["n"].mean()
        assert table["edu"].map(order.index).mean() > before["edu"].map(order.index).mean()
    # what is given comes first
    back = mi.shift({"edu": "odds × 5"}, levels={"edu": order[::-1]})
    assert back[0]["edu"].map(order.index).mean() < mi[0]["edu"].map(order.index).mean()


@pytest.mark.parametrize(
    ("levels", "error", "match"),
    [
        (["x", "y"], TypeError, r"levels must map .* in order, such as .*, got \['x', 'y'\]"),
        ({"gg": ["x", "y"]}, ValueError, "no column 'gg'; the columns are 'a', 'b', 'g', 'arm'"),
        ({"g": ["x", "y", "x"]}, ValueError, "levels of column 'g' must be distinct"),
        ({"g": "xy"}, ValueError, "levels of column 'g' must be distinct strings or numbers"),
        ({"g": 5}, ValueError, "levels of column 'g' must be distinct strings or numbers"),
    ],
)
def test_bad_levels_are_named(levels, error, match):
    with pytest.raises(error, match=match):
        MADE.shift({"g": "odds × 2"}, levels=levels)
    with pytest.raises(error, match=match):
        MultipleImputation.from_long(MADE.to_long(), levels=levels)
