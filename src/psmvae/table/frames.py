"""Tables of any library as a `Frame`: columns are read once, missing cells are replaced.

pandas, polars and pyarrow are optional, so the module for each is imported only when a table of
that library is opened.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.frame_numpy import ArraySource, array_names, as_array
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psmvae.table.casts import New
    from psmvae.table.cells import Cells

__all__ = ["Frame", "array_names", "open_table"]


class Source(Protocol):
    """A table of one library."""

    names: tuple[str, ...]
    n_rows: int
    has_names: bool

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        ...

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return a new table with the missing cells of some columns (by position) replaced."""
        ...


class Frame:
    """An opened table. Each column is read at most once; see `open_table`.

    The table must not be changed while its frame is in use.

    Attributes
    ----------
    names : tuple of str
        The columns' names; x0, x1, ... for an array.
    n_rows : int
        Number of rows.
    has_names : bool
        False for an array.
    """

    def __init__(self, source: Source) -> None:
        self.names, self.n_rows, self.has_names = source.names, source.n_rows, source.has_names
        self._source = source
        self._cells: dict[int, Cells] = {}

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        found = self._cells.get(position)
        if found is None:
            found = self._cells[position] = self._source.read(position)
        return found

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return a new table of the same type with the missing cells of some columns replaced."""
        return self._source.replace(new)


def open_table(table: Any) -> Frame:
    """Open a pandas, polars, Arrow or NumPy table."""
    if isinstance(table, Frame):
        return table
    source = _source_of(table)
    shape = (source.n_rows, len(source.names))
    if not source.names:
        message = f"Found table with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        raise ValueError(message)
    if source.n_rows == 0:
        message = f"Found table with 0 sample(s) (shape={shape}) while a minimum of 1 is required."
        raise ValueError(message)
    if len(set(source.names)) < len(source.names):
        twice = sorted({name for name in source.names if source.names.count(name) > 1})
        message = f"column names must be unique, but these occur more than once: {quoted(twice)}"
        raise ValueError(message)
    return Frame(source)


def _source_of(table: Any) -> Source:
    if isinstance(table, nw.DataFrame):
        return NarwhalsSource(table)
    if nw.dependencies.is_pandas_dataframe(table):
        from psmvae.table.frame_pandas import PandasSource

        return PandasSource(table)
    if nw.dependencies.is_polars_dataframe(table):
        from psmvae.table.frame_polars import PolarsSource

        return PolarsSource(table)
    if nw.dependencies.is_pyarrow_table(table):
        from psmvae.table.frame_arrow import ArrowSource

        return ArrowSource(table)
    if isinstance(table, list | tuple | np.ndarray):
        return ArraySource(as_array(table))
    _check_not_lazy_or_sparse(table)
    another = isinstance(table, np.generic) or hasattr(table, "columns")
    if hasattr(table, "__array__") and not another:
        # what converts to an array, and is neither a scalar nor a frame of another library
        return ArraySource(as_array(np.asarray(table)))
    message = (
        "expected a pandas or polars DataFrame, a pyarrow Table, a 2-D NumPy array or a list of "
        f"rows, got {_type_name(table)}"
    )
    raise TypeError(message)


def _check_not_lazy_or_sparse(table: Any) -> None:
    name = _type_name(table)
    if nw.dependencies.is_polars_lazyframe(table) or isinstance(table, nw.LazyFrame):
        message = f"expected a table in memory, got {name}: collect it first with .collect()"
        raise TypeError(message)
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(table):
        message = (
            f"expected a dense table, got the sparse {name}, whose empty cells are zeros and not "
            "missing values: use .toarray()"
        )
        raise TypeError(message)
    if nw.dependencies.is_into_series(table):
        message = f"Expected 2D table, got the 1D {name}. Reshape your data: make it a table first"
        raise ValueError(message)


def _type_name(table: Any) -> str:
    return f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"


class NarwhalsSource:
    """A narwhals DataFrame: the table inside it, wrapped again in the result."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self.inside = _source_of(frame.to_native())
        self.n_rows, self.names = self.inside.n_rows, self.inside.names
        self.has_names = self.inside.has_names

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        return self.inside.read(position)

    def replace(self, new: Mapping[int, New]) -> Any:
        """Return the table with the missing cells replaced, as a narwhals DataFrame."""
        return nw.from_native(self.inside.replace(new), eager_only=True)
