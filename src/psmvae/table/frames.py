"""Any table behind one face: read a column as cells, give the table back with cells replaced."""

from __future__ import annotations

import sys
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.cells import (
    MAX_WHOLE,
    Cells,
    New,
    Storage,
    as_numpy,
    as_objects,
    empty_cells,
    holds,
    number_cells,
    object_cells,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Frame(Protocol):
    """A table whose columns are known by position."""

    names: tuple[str, ...]
    n_rows: int
    has_names: bool

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        ...

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return the table with the missing cells of some columns (by position) replaced."""
        ...


def open_table(table: Any) -> Frame:
    """See a pandas, polars, Arrow or NumPy table as a `Frame`.

    Parameters
    ----------
    table : DataFrame, Table, 2-D array or list of rows
        The table. A list is read as an array; of floats, if it holds numbers and None.

    Raises
    ------
    TypeError
        If it is not a table, or a lazy or sparse one.
    ValueError
        If it has no rows, no columns, columns of the same name, or not two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> open_table(np.zeros((3, 2))).names
    ('x0', 'x1')
    """
    frame = _as_frame(table)
    shape = (frame.n_rows, len(frame.names))
    if not frame.names:
        message = f"Found table with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        raise ValueError(message)
    if frame.n_rows == 0:
        message = f"Found table with 0 sample(s) (shape={shape}) while a minimum of 1 is required."
        raise ValueError(message)
    if len(set(frame.names)) < len(frame.names):
        twice = sorted({name for name in frame.names if frame.names.count(name) > 1})
        message = f"column names must be unique, but these occur more than once: {quoted(twice)}"
        raise ValueError(message)
    return frame


def quoted(names: Any, most: int = 10) -> str:
    """Names for a message, the first `most` of them.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = list(names)
    text = ", ".join(repr(name) for name in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most} more"


def array_names(n_columns: int) -> tuple[str, ...]:
    """Names of the columns of an array, as scikit-learn numbers them.

    Examples
    --------
    >>> array_names(2)
    ('x0', 'x1')
    """
    return tuple(f"x{j}" for j in range(n_columns))


def _as_frame(table: Any) -> Frame:
    # each library is imported only for a table that is its own
    if isinstance(table, nw.DataFrame):
        return NarwhalsFrame(table)
    if nw.dependencies.is_pandas_dataframe(table):
        from psmvae.table.frame_pandas import PandasFrame

        return PandasFrame(table)
    if nw.dependencies.is_polars_dataframe(table):
        from psmvae.table.frame_polars import PolarsFrame

        return PolarsFrame(table)
    if nw.dependencies.is_pyarrow_table(table):
        from psmvae.table.frame_arrow import ArrowFrame

        return ArrowFrame(table)
    if isinstance(table, list | tuple | np.ndarray):
        return ArrayFrame(_as_array(table))
    what = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    if nw.dependencies.is_polars_lazyframe(table) or isinstance(table, nw.LazyFrame):
        message = f"expected a table in memory, got {what}: collect it first with .collect()"
        raise TypeError(message)
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(table):
        message = (
            f"expected a dense table, got the sparse {what}, whose gaps are zeros and not missing "
            "values: use .toarray()"
        )
        raise TypeError(message)
    if nw.dependencies.is_into_series(table):
        message = f"Expected 2D table, got the 1D {what}. Reshape your data: make it a table first"
        raise ValueError(message)
    another = isinstance(table, np.generic) or hasattr(table, "columns")
    if hasattr(table, "__array__") and not another:
        # what says how to become an array, but is no single number nor another library's frame
        return ArrayFrame(_as_array(np.asarray(table)))
    message = (
        "expected a pandas or polars DataFrame, a pyarrow Table, a 2-D NumPy array or a list of "
        f"rows, got {what}"
    )
    raise TypeError(message)


def _as_array(table: Any) -> NDArray[Any]:
    if isinstance(table, np.ma.MaskedArray):
        message = "masked arrays are not supported: use .filled(np.nan) to mark what is missing"
        raise TypeError(message)
    try:
        array = np.asarray(table)
        if array.dtype.kind in "US" and not isinstance(table, np.ndarray):
            # NumPy would turn the NaN and the numbers beside a string into strings
            array = np.asarray(table, dtype=object)
        if array.dtype == object and not isinstance(table, np.ndarray):
            array = _numbers_with_gaps(array)
    except ValueError as error:
        message = "expected a list of rows of the same length, got rows that differ in length"
        raise ValueError(message) from error
    if array.dtype.kind == "c":
        message = f"Complex data not supported: got an array of {array.dtype}"
        raise ValueError(message)
    if array.ndim != 2:
        message = (
            f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}). Reshape "
            "your data: X.reshape(-1, 1) if it is a single column, X.reshape(1, -1) if a single row"
        )
        raise ValueError(message)
    if array.dtype.kind not in "fiubOUT":
        message = (
            f"expected an array of numbers, bools, strings or objects, got one of {array.dtype}: "
            "turn it into numbers or strings first"
        )
        raise TypeError(message)
    return array


def _numbers_with_gaps(array: NDArray[Any]) -> NDArray[Any]:
    """Return objects as floats if they are numbers or None, and floats can hold them."""
    cells = array.ravel().tolist()
    # by type, since a bool is an int too
    plain = {int, float, NoneType, np.float64, np.int64}
    if not set(map(type, cells)) <= plain:
        return array
    large = any(isinstance(cell, int | np.int64) and abs(int(cell)) > MAX_WHOLE for cell in cells)
    return array if large else array.astype(np.float64)


class ArrayFrame:
    """A 2-D NumPy array; its columns are x0, x1, ..."""

    has_names = False

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.n_rows = array.shape[0]
        self.names = array_names(array.shape[1])

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, column = self.names[position], self.array[:, position]
        kind = column.dtype.kind
        if kind in "OUT":
            storage: Storage = "object" if kind == "O" else "string"
            return object_cells(name, column.tolist(), storage=storage)
        storage = "boolean" if kind == "b" else "float" if kind == "f" else "integer"
        return number_cells(name, numpy_dtype_name(column.dtype), storage, column)

    def replace(self, new: Mapping[int, New]) -> NDArray[Any]:
        """Return a copy with missing cells replaced; of objects if its type cannot hold them."""
        array = self.array.copy(order="K")
        if not all(holds(change.cells, change.values) for change in new.values()):
            array = array.astype(object)
        for position, (cells, values, widen) in new.items():
            if array.dtype == object:
                cast = as_objects(values, "Float64" if widen else cells.dtype)
            else:
                cast = values if array.dtype.kind in "UT" else as_numpy(values, array.dtype)
            array[cells.missing, position] = cast
        return array


class NarwhalsFrame:
    """A narwhals DataFrame: the frame inside it, wrapped again on the way out."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self.inside = _as_frame(frame.to_native())
        self.n_rows, self.names = self.inside.n_rows, self.inside.names
        self.has_names = self.inside.has_names

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        return self.inside.cells(position)

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return the table with the missing cells replaced, as a narwhals DataFrame."""
        return nw.from_native(self.inside.replace(new), eager_only=True)


def numpy_dtype_name(dtype: np.dtype[Any]) -> str:
    """Return a NumPy type as narwhals prints it.

    Examples
    --------
    >>> numpy_dtype_name(np.dtype("uint8"))
    'UInt8'
    """
    if dtype.kind == "b":
        return "Boolean"
    return dtype.name.capitalize().replace("Uint", "UInt")


def storage_of(name: str, dtype: nw.dtypes.DType, native: Any) -> Storage:
    """Return what a column of a data type can hold.

    Raises
    ------
    UnsupportedColumnError
        If no kind can model it; `native` is the type as the table's own library calls it.
    """
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return "category"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "float"
    if isinstance(dtype, nw.Boolean):
        return "boolean"
    if isinstance(dtype, nw.String):
        return "string"
    # narwhals knows neither the type of nothing nor decimals of other widths
    if str(native).lower() == "null":
        return "null"
    if dtype.is_decimal() or str(native).startswith("decimal"):
        return "decimal"
    raise unsupported(name, str(native), temporal=dtype.is_temporal())


def series_cells(name: str, series: nw.Series[Any], storage: Storage, dtype: str) -> Cells:
    """Cells of a polars or Arrow column that is no category."""
    if storage == "null":
        return empty_cells(name, len(series), dtype, storage)
    # integers of 128 bits are none of NumPy's
    if storage == "string" or dtype.endswith("128"):
        return object_cells(name, series.to_list(), dtype=dtype, storage=storage)
    if storage in {"float", "decimal"}:
        raw = (series if storage == "float" else series.cast(nw.Float64())).to_numpy()
        return number_cells(name, dtype, storage, raw)
    missing = series.is_null().to_numpy()
    # with its gaps filled, an integer column becomes integers in NumPy and not floats
    blank = False if storage == "boolean" else 0
    raw = series.fill_null(blank).to_numpy() if missing.any() else series.to_numpy()
    return number_cells(name, dtype, storage, raw, missing)
