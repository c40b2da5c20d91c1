"""pandas frames."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from psmvae.table.cells import (
    Cells,
    New,
    Storage,
    as_numpy,
    as_objects,
    holds,
    number_cells,
    object_cells,
    unsupported,
)
from psmvae.table.frames import numpy_dtype_name, storage_of

if TYPE_CHECKING:
    from collections.abc import Mapping


# before pandas 3 a shallow copy shares its columns for good: writing to one wrote to the other
_SHARES = int(pd.__version__.partition(".")[0]) < 3


class PandasFrame:
    """A pandas DataFrame; a label that is no string is known by its text."""

    has_names = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.n_rows = len(frame)
        self.names = tuple(str(label) for label in frame.columns)

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, series = self.names[position], self.frame.iloc[:, position]
        if isinstance(series.dtype, np.dtype):
            return _numpy_cells(name, series)
        return _extension_cells(name, series)

    def replace(self, new: Mapping[int, New]) -> pd.DataFrame:
        """Return the frame with missing cells of some columns replaced; index and labels kept."""
        frame = self.frame.copy(deep=_SHARES)
        for position, change in new.items():
            # a series, because pandas would make strings of an array of objects
            column: Any = _fill(self.frame.iloc[:, position], change)
            frame.isetitem(position, column)
        return frame


def _numpy_cells(name: str, series: pd.Series[Any]) -> Cells:
    raw = series.to_numpy()
    kind = raw.dtype.kind
    if kind == "O":
        return object_cells(name, raw.tolist())
    if kind not in "fiub":
        raise unsupported(name, str(raw.dtype), temporal=kind in "mM")
    storage: Storage = "boolean" if kind == "b" else "float" if kind == "f" else "integer"
    return number_cells(name, numpy_dtype_name(raw.dtype), storage, raw)


def _extension_cells(name: str, series: pd.Series[Any]) -> Cells:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        from psmvae.table.frame_arrow import arrow_cells

        return arrow_cells(name, _arrow(series))
    if isinstance(dtype, pd.SparseDtype):
        message = f"{dtype}, and sparse columns are not read (see .sparse.to_dense())"
        raise unsupported(name, message)
    wrapped = nw.from_native(series, series_only=True).dtype
    storage = storage_of(name, wrapped, dtype)
    if storage == "category":
        categories = dtype.categories.to_numpy(dtype=object).tolist()
        order = tuple(object_cells(name, categories).raw.tolist())
        # the code of a missing cell is -1: the None at the end
        lookup = np.array([*categories, None], dtype=object)
        items = lookup[series.cat.codes.to_numpy()]
        cells = object_cells(name, items, dtype=str(wrapped), storage=storage, order=order)
        return replace(cells, ordered=bool(dtype.ordered))
    if storage == "string":
        items = series.to_numpy(dtype=object)
        return object_cells(name, items, dtype=str(wrapped), storage=storage)
    missing = series.isna().to_numpy()
    native = dtype.numpy_dtype
    blank: Any = np.nan if storage == "float" else native.type(0)
    raw = series.to_numpy(dtype=native, na_value=blank)
    return number_cells(name, str(wrapped), storage, raw, missing)


def _fill(series: pd.Series[Any], new: New) -> pd.Series[Any]:
    cells, values, widen = new
    # Arrow's types are widened where they are filled
    if widen and not isinstance(series.dtype, np.dtype | pd.ArrowDtype):
        series = series.astype("Float64")
    dtype: Any = series.dtype
    if not holds(cells, values):
        # pandas picks its own type for strings, which differs between its versions
        return pd.Series(values.tolist(), index=series.index)
    if isinstance(dtype, pd.ArrowDtype):
        from psmvae.table.frame_arrow import arrow_fill

        column: Any = pd.arrays.ArrowExtensionArray(arrow_fill(_arrow(series), new))
        return pd.Series(column, index=series.index)
    if isinstance(dtype, np.dtype):
        column = series.to_numpy(copy=True)
        content = "Float64" if widen else cells.dtype
        cast = as_objects(values, content) if dtype.kind == "O" else as_numpy(values, dtype)
        column[cells.missing] = cast
        return pd.Series(column, index=series.index, dtype=dtype)
    column = series.array.copy()
    if isinstance(dtype, pd.CategoricalDtype):
        known = set(dtype.categories)
        # a level known from the fit, but not to this table
        extra = [level for level in dict.fromkeys(values.tolist()) if level not in known]
        column = column.add_categories(extra) if extra else column
        column[cells.missing] = values.tolist()
    elif cells.storage == "string":
        column[cells.missing] = values
    else:
        column[cells.missing] = as_numpy(values, dtype.numpy_dtype)
    return pd.Series(column, index=series.index)


def _arrow(series: pd.Series[Any]) -> Any:
    import pyarrow as pa

    column = pa.array(series.array)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
