"""Tables of every library, built from the same columns, and their cells to the bit."""

import math
from itertools import pairwise

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from fuzz.columns import INTEGERS

NUMPY_FLOATS = {"float64": "float64", "float32": "float32", "float16": "float16"}
# int8 is Int8 in pandas and polars
_TITLES = {name: name.replace("int", "Int").replace("u", "U") for name in INTEGERS}
ARRAY_LAYOUTS = ["C", "F", "strided", "reversed", "read-only", "big-endian"]


def _floats(cells):
    return [math.nan if cell is None else cell for cell in cells]


class Array:
    """A NumPy array: of numbers or bools, or of objects where there is other content."""

    has_names = False

    def holds(self, column):
        # in an array of objects these are plain floats
        return column.dtype != "longdouble"

    def __init__(self, rng):
        self.layout = str(rng.choice(ARRAY_LAYOUTS))

    def build(self, columns):
        if all(c.dtype in NUMPY_FLOATS or c.dtype == "longdouble" for c in columns):
            dtype = np.result_type(*(c.dtype for c in columns))
            array = np.array([_floats(c.cells) for c in columns], dtype=dtype).T
        elif (
            all(c.dtype == columns[0].dtype for c in columns)
            and all(None not in c.cells for c in columns)
            and columns[0].dtype in (*INTEGERS, "bool")
        ):
            array = np.array([c.cells for c in columns], dtype=columns[0].dtype).T
        else:
            array = np.empty((len(columns[0].cells), len(columns)), dtype=object)
            for j, column in enumerate(columns):
                array[:, j] = pd.Series(column.cells, dtype=object).to_numpy()
        return self._laid_out(array)

    def _laid_out(self, array):
        match self.layout:
            case "C":
                return np.ascontiguousarray(array)
            case "strided":
                wide = np.empty((2 * array.shape[0], 3 * array.shape[1]), dtype=array.dtype)
                wide[::2, ::3] = array
                return wide[::2, ::3]
            case "reversed":
                return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]
            case "read-only":
                array = array.copy()
                array.setflags(write=False)
            case "big-endian" if array.dtype != object and array.dtype.itemsize <= 8:
                return array.astype(array.dtype.newbyteorder(">"))
        return array


class Rows:
    """A list of rows."""

    has_names = False

    def holds(self, column):
        return column.dtype != "longdouble"

    def __init__(self, rng):
        self.as_tuples = rng.random() < 0.5

    def build(self, columns):
        rows = zip(*(c.cells for c in columns), strict=True)
        return [tuple(row) if self.as_tuples else list(row) for row in rows]


class Pandas:
    """A pandas frame of NumPy types, nullable types, Arrow types or objects, with any index."""

    has_names = True

    def holds(self, column):
        return True

    INDICES = ("range", "repeated", "multi", "times", "text", "missing")

    def __init__(self, rng):
        self.flavour = str(rng.choice(["numpy", "nullable", "arrow", "objects", "mixed"]))
        self.index = str(rng.choice(self.INDICES))
        self.labels = str(rng.choice(["text", "text", "text", "integers", "multi"]))
        self.flavours = rng.choice(["numpy", "nullable", "arrow", "objects"], 64).tolist()

    def build(self, columns):
        kinds = self.flavours if self.flavour == "mixed" else [self.flavour] * len(columns)
        series = [self._series(c, kinds[j % 64]) for j, c in enumerate(columns)]
        frame = pd.concat(series, axis=1) if series else pd.DataFrame()
        frame.columns = self._labels([c.name for c in columns])
        if len(frame):
            frame.index = self._index(len(frame))
        frame.attrs["source"] = "here"
        return frame

    def _labels(self, names):
        if self.labels == "integers":
            return [int(name) for name in names]
        if self.labels == "multi":
            return pd.MultiIndex.from_tuples([("all", name) for name in names])
        return names

    def _index(self, n):
        match self.index:
            case "repeated":
                return pd.Index([7] * n, name="again")
            case "multi":
                return pd.MultiIndex.from_arrays([[1] * n, list(range(n))], names=["k", None])
            case "times":
                return pd.date_range("2020-01-01", periods=n, freq="h", tz="Europe/Zurich")
            case "text":
                return pd.Index([f"row {k}" for k in range(n)], name="a")
            case "missing":
                return pd.Index([np.nan] * n)
        return pd.RangeIndex(5, 5 + n)

    def _series(self, column, flavour):
        cells, dtype = column.cells, column.dtype
        if dtype in ("category", "ordered"):
            kind = pd.CategoricalDtype(list(column.categories), ordered=dtype == "ordered")
            return pd.Series(pd.Categorical(cells, dtype=kind))
        if dtype == "longdouble":
            return pd.Series(np.array(_floats(cells), dtype=np.longdouble))
        if dtype in ("object", "list", "decimal", "null") or flavour == "objects":
            return pd.Series(cells, dtype=object)
        if dtype in ("date", "time"):
            return pd.Series(pd.to_datetime(pd.Series(cells)))
        if flavour == "arrow" and dtype != "float16":
            return pd.Series(pd.array(cells, dtype=pd.ArrowDtype(_ARROW[dtype])))
        if dtype in NUMPY_FLOATS:
            nullable = flavour == "nullable" and dtype != "float16"
            return pd.Series(cells, dtype=dtype.capitalize() if nullable else dtype)
        if dtype == "string":
            return pd.Series(cells, dtype="string" if flavour == "nullable" else None)
        if dtype == "bool":
            return pd.Series(cells, dtype="boolean" if None in cells else "bool")
        nullable = None in cells or flavour == "nullable"
        return pd.Series(cells, dtype=_TITLES[dtype] if nullable else dtype)


_ARROW = {
    "float64": pa.float64(),
    "float32": pa.float32(),
    "float16": pa.float32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "null": pa.null(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "list": pa.list_(pa.int64()),
    "decimal": pa.decimal128(12, 2),
    **{name: getattr(pa, name)() for name in INTEGERS},
}


class Arrow:
    """A pyarrow table, in one or several chunks."""

    has_names = True

    def holds(self, column):
        return column.dtype not in ("object", "longdouble")

    def __init__(self, rng):
        self.n_chunks = int(rng.choice([1, 1, 2, 3]))
        view = getattr(pa, "string_view", pa.large_string)()
        self.text = [pa.string(), pa.large_string(), view][rng.integers(3)]
        self.index_type = [pa.int8(), pa.int32()][rng.integers(2)]

    def build(self, columns):
        table = pa.Table.from_arrays(
            [self._array(c) for c in columns], names=[c.name for c in columns]
        )
        return table.replace_schema_metadata({"source": "here"})

    def _array(self, column):
        bounds = np.linspace(0, len(column.cells), self.n_chunks + 1).astype(int)
        chunks = [column.cells[a:b] for a, b in pairwise(bounds)]
        if column.dtype not in ("category", "ordered"):
            kind = self.text if column.dtype == "string" else _ARROW[column.dtype]
            return pa.chunked_array([pa.array(cells, type=kind) for cells in chunks], type=kind)
        values, ordered = pa.array(column.categories), column.dtype == "ordered"
        code = {level: k for k, level in enumerate(column.categories)} | {None: None}
        arrays = []
        for cells in chunks:
            indices = pa.array([code[cell] for cell in cells], type=self.index_type)
            arrays.append(pa.DictionaryArray.from_arrays(indices, values, ordered=ordered))
        return pa.chunked_array(arrays)


_POLARS = {
    "float64": pl.Float64,
    "float32": pl.Float32,
    "float16": pl.Float32,
    "bool": pl.Boolean,
    "string": pl.String,
    "null": pl.Null,
    "date": pl.Date,
    "time": pl.Datetime,
    "list": pl.List(pl.Int64),
    "decimal": pl.Decimal(12, 2),
}


class Polars:
    """A polars frame."""

    has_names = True

    def holds(self, column):
        return column.dtype not in ("object", "longdouble")

    def __init__(self, rng):
        self.rechunked = rng.random() < 0.7

    def build(self, columns):
        frame = pl.DataFrame([self._series(c) for c in columns])
        n = frame.height
        return frame if self.rechunked or n < 2 else pl.concat([frame[: n // 2], frame[n // 2 :]])

    def _series(self, column):
        cells, dtype = column.cells, column.dtype
        if dtype in ("category", "ordered"):
            texts = [None if cell is None else str(cell) for cell in cells]
            levels = [str(level) for level in column.categories]
            kind = pl.Enum(levels) if dtype == "ordered" or "spare" in levels else pl.Categorical
            return pl.Series(column.name, texts, dtype=kind)
        kind = _POLARS[dtype] if dtype in _POLARS else getattr(pl, _TITLES[dtype])
        return pl.Series(column.name, cells, dtype=kind)


class Narwhals(Polars):
    """A polars frame inside a narwhals frame."""

    def build(self, columns):
        return nw.from_native(super().build(columns), eager_only=True)


LIBRARIES = {
    "numpy": Array,
    "list": Rows,
    "pandas": Pandas,
    "pyarrow": Arrow,
    "polars": Polars,
    "narwhals": Narwhals,
}


def content(table):
    """Return every cell of a table by column, so that two are equal if their bits are.

    A missing cell is None. A float is its hexadecimal text, and other cells come with their type.
    """
    if isinstance(table, nw.DataFrame):
        table = table.to_native()
    if isinstance(table, list):
        columns = [list(column) for column in zip(*table, strict=True)]
    elif isinstance(table, np.ndarray):
        columns = [table[:, j].tolist() for j in range(table.shape[1])]
    elif isinstance(table, pd.DataFrame):
        columns = [table.iloc[:, j].tolist() for j in range(table.shape[1])]
    elif isinstance(table, pl.DataFrame):
        columns = [column.to_list() for column in table]
    else:
        columns = [column.to_pylist() for column in table.columns]
    return [[_bits(cell) for cell in column] for column in columns]


def _bits(cell):
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return None
    if isinstance(cell, float | np.floating):
        return None if math.isnan(cell) else (type(cell).__name__, float(cell).hex())
    if isinstance(cell, list):
        cell = tuple(cell)
    return type(cell).__name__, cell


def layout(table):
    """Return everything about a table but its cells: type, shape, labels, types, index."""
    if isinstance(table, nw.DataFrame):
        return "narwhals", layout(table.to_native())
    if isinstance(table, list):
        return type(table), shape(table)
    if isinstance(table, np.ndarray):
        return np.ndarray, table.dtype, table.shape
    if isinstance(table, pd.DataFrame):
        index = (table.index.dtype, table.index.tolist(), list(table.index.names))
        labels = (table.columns.tolist(), list(table.columns.names), dict(table.attrs))
        return type(table), list(table.dtypes), str(index), labels
    if isinstance(table, pl.DataFrame):
        return type(table), list(table.schema.items())
    return type(table), table.schema, table.schema.metadata


def shape(table):
    """Return the numbers of rows and columns."""
    if isinstance(table, list):
        return len(table), len(table[0]) if table else 0
    return tuple(table.shape)


def names(table):
    """Return the names of the columns, or None for arrays."""
    if isinstance(table, pa.Table):
        return list(table.column_names)
    return [str(label) for label in table.columns] if hasattr(table, "columns") else None
