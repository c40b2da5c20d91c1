"""Properties of encode and fill on random tables of unusual types and values."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from psmvae.table import Schema
from psmvae.table.codec import Codec

# random tables have constant columns
pytestmark = pytest.mark.filterwarnings("ignore:columns with one distinct observed value")
SETTINGS = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = {
    "float64": FINITE,
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint8": st.integers(0, 255),
    "zero-one": st.integers(0, 1),
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "category": st.sampled_from(["lo", "mid", "hi", "ß"]),
}
MODEL_VALUES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def columns(draw, kinds=tuple(VALUES)):
    """A dict of name -> (type, cells), None where missing; every column has something observed."""
    n_rows = draw(st.integers(1, 6))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    table = {}
    for position, kind in enumerate(chosen):
        cell = st.none() | VALUES[kind]
        cells = draw(st.lists(cell, min_size=n_rows, max_size=n_rows))
        assume(any(cell is not None for cell in cells))
        table[f"{kind} {position}"] = (kind, cells)
    return table


def to_pandas(table):
    pd = pytest.importorskip("pandas")
    dtypes = {
        "int64": "Int64",
        "uint8": "UInt8",
        "zero-one": "Int8",
        "bool": "boolean",
        "string": "string",
        "category": pd.CategoricalDtype(["hi", "ß", "mid", "lo", "none"]),
    }
    frame = pd.DataFrame(
        {name: pd.Series(v, dtype=dtypes.get(kind, kind)) for name, (kind, v) in table.items()}
    )
    frame.index = pd.Index([7] * len(frame), name="again")
    return frame


def to_pandas_objects(table):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({name: pd.Series(v, dtype=object) for name, (_, v) in table.items()})


def to_polars(table):
    pl = pytest.importorskip("polars")
    dtypes = {
        "float64": pl.Float64,
        "float32": pl.Float32,
        "int64": pl.Int64,
        "uint8": pl.UInt8,
        "zero-one": pl.Int32,
        "bool": pl.Boolean,
        "string": pl.String,
        "category": pl.Enum(["hi", "ß", "mid", "lo", "none"]),
    }
    return pl.DataFrame([pl.Series(n, v, dtype=dtypes[k]) for n, (k, v) in table.items()])


def to_arrow(table):
    pa = pytest.importorskip("pyarrow")
    dtypes = {
        "float64": pa.float64(),
        "float32": pa.float32(),
        "int64": pa.int64(),
        "uint8": pa.uint8(),
        "zero-one": pa.int32(),
        "bool": pa.bool_(),
        "string": pa.large_string(),
        "category": pa.dictionary(pa.int8(), pa.string()),
    }
    return pa.table({name: pa.array(v, dtypes[kind]) for name, (kind, v) in table.items()})


def to_numpy_objects(table):
    return np.array([v for _, v in table.values()], dtype=object).T


MAKERS = [to_pandas, to_pandas_objects, to_polars, to_arrow, to_numpy_objects]


def bits(table):
    """Cells column by column; floats so that their bits can be compared, None where missing."""
    if isinstance(table, np.ndarray):
        cells = table.T.tolist()
    elif hasattr(table, "to_pydict"):
        cells = list(table.to_pydict().values())
    elif hasattr(table, "iloc"):
        cells = [table.iloc[:, j].tolist() for j in range(table.shape[1])]
    else:
        cells = [column.to_list() for column in table]
    return [[_bits(cell) for cell in column] for column in cells]


def _bits(cell):
    if cell is None or type(cell).__name__ == "NAType":
        return None
    if isinstance(cell, float):
        return None if math.isnan(cell) else (float, cell.hex())
    return type(cell), cell


def layout(table):
    """Everything about a table but its cells."""
    if isinstance(table, np.ndarray):
        return table.dtype, table.shape
    if hasattr(table, "iloc"):
        return list(table.columns), list(table.dtypes), table.index.tolist(), table.index.name
    return table.schema


@pytest.mark.parametrize("maker", MAKERS)
@given(columns(), st.data())
@SETTINGS
def test_fill_replaces_all_missing_cells_and_no_others(maker, cells, data):
    table = maker(cells)
    codec = Codec.fit(table)
    before, shape = bits(table), (len(next(iter(cells.values()))[1]), len(cells))
    size = shape[0] * shape[1]
    x = np.array(data.draw(st.lists(MODEL_VALUES, min_size=size, max_size=size))).reshape(shape)
    filled = codec.fill(table, x)
    assert type(filled) is type(table)
    assert layout(filled) == layout(table)
    assert bits(table) == before
    for old, new in zip(before, bits(filled), strict=True):
        assert None not in new
        assert [cell for cell, was in zip(new, old, strict=True) if was is not None] == [
            cell for cell in old if cell is not None
        ]


@pytest.mark.parametrize("maker", MAKERS)
@given(columns())
@SETTINGS
def test_encode_is_finite_and_masks_missing_cells(maker, cells):
    table = maker(cells)
    codec = Codec.fit(table)
    encoded = codec.encode(table)
    assert np.isfinite(encoded.x).all()
    assert (encoded.x[~encoded.m] == 0).all()
    seen = np.array([[cell is not None for cell in v] for _, v in cells.values()]).T
    assert (encoded.m == seen).all()
    assert Schema.from_json(codec.schema.to_json()) == codec.schema


@given(
    st.lists(st.floats(-1e12, 1e12) | st.integers(-(10**6), 10**6), min_size=1, max_size=20),
    st.sampled_from(["float64", "float32", "int64"]),
)
@SETTINGS
def test_numbers_are_restored_from_model_values(values, dtype):
    table = np.array(values).astype(dtype).reshape(-1, 1)
    codec = Codec.fit(table)
    x = codec.encode(table).x
    holes = np.full(table.shape, np.nan)
    again = codec.fill(holes, x)
    column = codec.schema.columns[0]
    # the rounding of an integer, and of a standardised value in float32
    size = np.abs(table.astype(float)).max()
    slack = 2e-7 * np.abs(table - column.center).max() + 1e-15 * size
    assert np.abs(again - table).max() <= slack + (0.5 if column.kind == "integer" else 0.0)


@given(columns(kinds=("string", "category", "bool", "zero-one")))
@SETTINGS
def test_levels_are_restored_from_codes(cells):
    table = to_polars(cells)
    codec = Codec.fit(table)
    filled = codec.fill(table.clear(len(table)), codec.encode(table).x)
    for name, (_, values) in cells.items():
        if codec.schema.columns[codec.schema.names.index(name)].levels:
            again = filled[name].to_list()
            assert all(a == b for a, b in zip(again, values, strict=True) if b is not None)
