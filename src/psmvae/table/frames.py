"""Tables of any library as a `Frame`; optional libraries are imported when one is opened."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.casts import New
from psmvae.table.cells import Cells
from psmvae.table.frame_numpy import ArraySource, array_names, as_array
from psmvae.table.libraries import (
    is_arrow_table,
    is_pandas_frame,
    is_polars_frame,
    is_polars_lazy_frame,
)
from psmvae.table.wording import quoted, repeated

__all__ = ["Frame", "array_names", "open_table"]


class _Source(Protocol):
    """A table of one library. `replace` takes new values by the positions of their columns.

    ``index`` are the labels of the rows, which only pandas has.
    """

    names: tuple[str, ...]
    n_rows: int
    has_names: bool
    index: Any

    def read(self, position: int) -> Cells: ...
    def replace(self, new: Mapping[int, New]) -> Any: ...


class Frame:
    """An opened table, which must not be changed; each column is read at most once.

    An array has no names of its own: `has_names` is False, and its columns are x0, x1, ...
    """

    def __init__(self, source: _Source) -> None:
        self.names, self.n_rows, self.has_names = source.names, source.n_rows, source.has_names
        self.index = source.index
        self._source = source
        self._cells: dict[int, Cells] = {}

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        if position not in self._cells:
            self._cells[position] = self._source.read(position)
        return self._cells[position]

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return a new table of the same type with the missing cells of some columns replaced."""
        return self._source.replace(new)


class _NarwhalsFrame(Frame):
    """The table inside a narwhals DataFrame; a filled table is wrapped again."""

    def replace(self, new: Mapping[int, New]) -> Any:
        return nw.from_native(super().replace(new), eager_only=True)


def open_table(table: Any) -> Frame:
    """Open a pandas, polars, Arrow or NumPy table."""
    if isinstance(table, Frame):
        return table
    wrapped = isinstance(table, nw.DataFrame)
    source = _source_of(table.to_native() if wrapped else table)
    shape = (source.n_rows, len(source.names))
    for what, size in (("feature", shape[1]), ("sample", shape[0])):
        if size == 0:
            message = f"Found table with 0 {what}(s) (shape={shape}) while a minimum of 1"
            raise ValueError(f"{message} is required.")
    if twice := repeated(source.names):
        message = f"column names must be unique, but these occur more than once: {quoted(twice)}"
        raise ValueError(message)
    return _NarwhalsFrame(source) if wrapped else Frame(source)


def _source_of(table: Any) -> _Source:
    if is_pandas_frame(table):
        from psmvae.table.frame_pandas import PandasSource

        return PandasSource(table)
    if is_polars_frame(table):
        from psmvae.table.frame_polars import PolarsSource

        return PolarsSource(table)
    if is_arrow_table(table):
        from psmvae.table.frame_arrow import ArrowSource

        return ArrowSource(table)
    if isinstance(table, list | tuple | np.ndarray):
        return ArraySource(as_array(table))
    name = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    _check_not_lazy_or_sparse(table, name)
    another = isinstance(table, np.generic) or hasattr(table, "columns")
    # what converts to an array, and is neither a scalar nor a frame of another library
    if hasattr(table, "__array__") and not another:
        return ArraySource(as_array(np.asarray(table)))
    raise TypeError(
        "expected a pandas or polars DataFrame, a pyarrow Table, a 2-D NumPy array or a list of "
        f"rows, got {name}"
    )


def _check_not_lazy_or_sparse(table: Any, name: str) -> None:
    if is_polars_lazy_frame(table) or isinstance(table, nw.LazyFrame):
        raise TypeError(
            f"expected a table in memory, got {name}: collect it first with .collect(), or use "
            "transform_batches"
        )
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(table):
        raise TypeError(
            f"expected a dense table, got the sparse {name}, whose empty cells are zeros and not "
            "missing values: use .toarray()"
        )
    if nw.dependencies.is_into_series(table):
        message = f"Expected 2D table, got the 1D {name}. Reshape your data: make it a table first"
        raise ValueError(message)
