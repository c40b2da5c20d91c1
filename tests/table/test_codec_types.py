"""Codec: the data type of a filled column."""

from decimal import Decimal

import numpy as np
import pytest

from psmvae.table.codec import Codec

NAN = float("nan")


def integers(library, values):
    """A frame with a column of integers, in the dialect of a library."""
    if library == "polars":
        pl = pytest.importorskip("polars")
        return pl.DataFrame({"a": pl.Series(values, dtype=pl.Int64)})
    if library == "pyarrow":
        pa = pytest.importorskip("pyarrow")
        return pa.table({"a": pa.array(values, pa.int64())})
    pd = pytest.importorskip("pandas")
    if library == "object":
        return pd.DataFrame({"a": pd.Series(values, dtype=object)})
    return pd.DataFrame({"a": pd.array(values, dtype=library)})


FLOATS = {
    "Int64": "Float64",
    "Int8": "Float64",
    "int64[pyarrow]": "double[pyarrow]",
    "polars": "Float64",
    "pyarrow": "double",
    "object": "object",
}


def type_of(table):
    """The type of the only column, as its library prints it."""
    if hasattr(table, "column_names"):
        return str(table.schema.field(0).type)
    return str(table.dtypes[0] if isinstance(table.dtypes, list) else table.dtypes.iloc[0])


@pytest.mark.parametrize("library", FLOATS)
@pytest.mark.parametrize("how", ["declared", "fitted on fractions"])
def test_integers_become_floats_in_a_real_column(library, how):
    table = integers(library, [0, 1, 10, None])
    if how == "declared":
        codec = Codec.fit(table, kinds={"a": "real"})
    else:
        pd = pytest.importorskip("pandas")
        codec = Codec.fit(pd.DataFrame({"a": [0.0, 1.5, 10.0]}))
    column = codec.schema.columns[0]
    filled = codec.fill(table, np.full((4, 1), (6.6 - column.center) / column.scale))
    assert type(filled) is type(table)
    cells = filled["a"].to_pylist() if library == "pyarrow" else list(filled["a"])
    assert cells == [0, 1, 10, pytest.approx(6.6)]
    assert type_of(filled) == FLOATS[library]
    if library == "object":
        assert [type(cell) for cell in cells] == [int, int, int, float]
    # a column without missing cells keeps its type
    whole = integers(library, [0, 1, 10])
    assert type_of(codec.fill(whole, np.zeros((3, 1)))) == type_of(whole)


@pytest.mark.parametrize("library", FLOATS)
def test_integers_stay_integers_in_other_kinds(library):
    table = integers(library, [1, 2, 10, None])
    for kind in ("integer", "count", "positive"):
        filled = Codec.fit(table, kinds={"a": kind}).fill(table, np.full((4, 1), 0.3))
        assert type_of(filled) == type_of(table)


def test_integers_beyond_float64_stay_integers():
    table = integers("polars", [2**60 + 1, 1, None])
    filled = Codec.fit(table, kinds={"a": "real"}).fill(table, np.full((3, 1), 0.3))
    assert filled.schema == table.schema
    assert filled["a"][0] == 2**60 + 1


def test_positive_column_fitted_on_fractions_becomes_float():
    pl = pytest.importorskip("polars")
    codec = Codec.fit(pl.DataFrame({"a": [1.5, 2.25, None]}), kinds={"a": "positive"})
    filled = codec.fill(integers("polars", [3, None]), np.zeros((2, 1)))
    assert filled["a"].to_list() == [3, pytest.approx(np.sqrt(1.5 * 2.25))]


def test_empty_integer_column_of_a_real_kind_becomes_float():
    pa = pytest.importorskip("pyarrow")
    codec = Codec.fit(integers("pyarrow", [0, 1, 10]), kinds={"a": "real"})
    column = codec.schema.columns[0]
    table = pa.table({"a": pa.nulls(2)})
    filled = codec.fill(table, np.full((2, 1), (6.6 - column.center) / column.scale))
    assert filled["a"].to_pylist() == [pytest.approx(6.6)] * 2


@pytest.mark.parametrize("large", [1e308, Decimal("1e308"), 10**308])
def test_overflow_is_clipped_to_the_largest_float(large):
    table = np.array([[large], [-large], [None]], dtype=object)
    filled = Codec.fit(table).fill(table, np.full((3, 1), 1e3))
    assert type(filled[2, 0]) is type(large)
    assert float(filled[2, 0]) == np.finfo(float).max


def test_decimals_of_high_precision_keep_their_digits():
    pa = pytest.importorskip("pyarrow")
    exact = Decimal("12345678901234567890123456789012345.67")
    table = pa.table({"a": pa.array([exact, None], pa.decimal128(38, 2))})
    filled = Codec.fit(table).fill(table, np.full((2, 1), 1e300))
    assert filled["a"].to_pylist() == [exact, Decimal("9" * 36 + ".99")]
    assert filled.schema == table.schema
