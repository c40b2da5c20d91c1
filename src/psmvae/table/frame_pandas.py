"""pandas frames."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from psmvae.table.casts import (
    New,
    added_categories,
    as_categories,
    as_numpy,
    as_objects,
    filled_numpy,
    holds,
    scattered,
)
from psmvae.table.cells import Cells, number_cells, object_cells, storage_of, unsupported_dtype

# before pandas 3 a write to a shallow copy is also a write to the original
_COPY_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3
# replacing one column takes time in proportion to the number of columns: more are replaced at once
_MANY = 50


class PandasSource:
    """A pandas DataFrame; the name of a column is the text of its label."""

    has_names = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.n_rows, self.index = len(frame), frame.index
        self.names = tuple(str(label) for label in frame.columns)

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, series = self.names[position], self.frame.iloc[:, position]
        if isinstance(series.dtype, np.dtype):
            return _numpy_cells(name, series)
        return _extension_cells(name, series)

    def replace(self, new: Mapping[int, New]) -> pd.DataFrame:
        """Return the frame with missing cells of some columns replaced; index and labels kept."""
        if len(new) > _MANY and type(self.frame) is pd.DataFrame:
            return self._rebuilt(new)
        frame = self.frame.copy(deep=not _COPY_ON_WRITE)
        for position, change in new.items():
            # a series, because pandas would make strings of an array of objects
            column: Any = _fill(self.frame.iloc[:, position], change)
            frame.isetitem(position, column)
        return frame

    def _rebuilt(self, new: Mapping[int, New]) -> pd.DataFrame:
        """Return a new frame of all columns."""
        old = self.frame
        columns: dict[int, Any] = {}
        for position in range(old.shape[1]):
            column = old.iloc[:, position]
            columns[position] = _fill(column, new[position]) if position in new else column
        frame = pd.DataFrame(columns, index=old.index, copy=not _COPY_ON_WRITE)
        # not the same objects: a new name of the index would be one of the input's index
        frame.index, frame.columns = old.index.copy(), old.columns.copy()
        frame.attrs = copy.deepcopy(old.attrs)
        return frame.set_flags(allows_duplicate_labels=old.flags.allows_duplicate_labels)


def _numpy_cells(name: str, series: pd.Series[Any]) -> Cells:
    raw = series.to_numpy()
    kind = raw.dtype.kind
    if kind == "O":
        return object_cells(name, raw.tolist())
    if kind not in "fiub":
        raise unsupported_dtype(name, str(raw.dtype), temporal=kind in "mM")
    return number_cells(name, raw)


def _extension_cells(name: str, series: pd.Series[Any]) -> Cells:
    dtype: Any = series.dtype
    if isinstance(dtype, pd.ArrowDtype):
        from psmvae.table.frame_arrow import arrow_cells

        return arrow_cells(name, _arrow(series))
    if isinstance(dtype, pd.SparseDtype):
        message = f"{dtype}, and sparse columns are not read (see .sparse.to_dense())"
        raise unsupported_dtype(name, message)
    wrapped = nw.from_native(series, series_only=True).dtype
    storage = storage_of(name, wrapped, dtype)
    if storage == "category":
        categories = dtype.categories.to_numpy(dtype=object).tolist()
        order = tuple(object_cells(name, categories).raw.tolist())
        # the code of a missing cell is -1: the None at the end
        items = np.array([*categories, None], dtype=object)[series.cat.codes.to_numpy()]
        cells = object_cells(name, items, dtype=str(wrapped), storage=storage, order=order)
        return replace(cells, ordered=bool(dtype.ordered))
    if storage == "string":
        items = series.to_numpy(dtype=object)
        return object_cells(name, items, dtype=str(wrapped), storage=storage)
    native = dtype.numpy_dtype
    blank: Any = np.nan if storage == "float" else native.type(0)
    raw, missing = series.to_numpy(dtype=native, na_value=blank), series.isna().to_numpy()
    return number_cells(name, raw, missing, dtype=str(wrapped), storage=storage)


def _fill(series: pd.Series[Any], new: New) -> pd.Series[Any]:
    cells, values, at = new.cells, new.values, new.at
    dtype: Any = series.dtype
    if not holds(cells, values):
        # pandas picks its own type for strings, which differs between its versions
        return pd.Series(scattered(new), index=series.index)
    if isinstance(dtype, pd.ArrowDtype):
        from psmvae.table.frame_arrow import arrow_fill

        column: Any = pd.arrays.ArrowExtensionArray(arrow_fill(_arrow(series), new))
        return pd.Series(column, index=series.index)
    if isinstance(dtype, np.dtype):
        if dtype.kind != "O":
            return pd.Series(filled_numpy(new), index=series.index, copy=False)
        column = series.to_numpy(copy=True)
        column[at] = as_objects(new)
        return pd.Series(column, index=series.index, dtype=dtype, copy=False)
    column = (series.astype("Float64") if new.widen else series).array.copy()
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # levels of the fitted table that this table does not have
        extra = added_categories(new, set(dtype.categories))
        column = column.add_categories(extra) if extra else column
        column[at] = as_categories(new)
    elif cells.storage == "string":
        column[at] = values
    else:
        column[at] = as_numpy(values, dtype.numpy_dtype)
    return pd.Series(column, index=series.index)


def _arrow(series: pd.Series[Any]) -> Any:
    import pyarrow as pa

    column = pa.array(series.array)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
