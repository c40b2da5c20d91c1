"""Observed cells that are hidden in a sample of the rows, and their true values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.reporting.data.columns import sampled
from psmvae.table.frame_numpy import as_array
from psmvae.table.frames import open_table
from psmvae.table.libraries import is_arrow_table, is_pandas_frame, is_polars_frame

if TYPE_CHECKING:
    from psmvae.kinds import Column
    from psmvae.table.schema import Schema

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# A column with fewer observed cells in the sample keeps all of them.
MIN_OBSERVED = 10


@dataclass(frozen=True)
class HiddenColumn:
    """Hidden cells of one column: rows of the sample, true values (codes of levels), scale."""

    position: int
    column: Column
    rows: NDArray[np.intp]
    truth: Floats
    sd: float

    def read(self, table: Any) -> Floats:
        """Return the values of these cells in a table."""
        return column_values(table, self.position, self.column)[self.rows]


@dataclass(frozen=True)
class Holdout:
    """A sample of the rows with some observed cells hidden."""

    table: Any
    n_rows: int
    columns: tuple[HiddenColumn, ...]

    @property
    def n_cells(self) -> int:
        """Number of hidden cells."""
        return sum(one.rows.size for one in self.columns)


def hold_out(
    X: Any, schema: Schema, *, max_rows: int, fraction: float, rng: np.random.Generator
) -> Holdout:
    """Hide a fraction of the observed cells of each modelled column in a sample of the rows.

    ``schema`` has the names of the table's columns. Derived columns are computed from the others,
    so that none of their cells is hidden.
    """
    frame = open_table(X)
    rows = sampled(np.arange(frame.n_rows), max_rows, rng)
    where = {name: position for position, name in enumerate(frame.names)}
    hidden = np.zeros((rows.size, len(frame.names)), dtype=bool)
    found = []
    for column in schema.modelled:
        position = where[column.name]
        values = column_values(frame, position, column)[rows]
        observed = np.flatnonzero(~np.isnan(values))
        if observed.size < MIN_OBSERVED:
            continue
        n = max(1, round(fraction * observed.size))
        at = np.sort(rng.choice(observed, n, replace=False))
        hidden[at, position] = True
        # squares of very large or small values must not overflow or vanish
        largest = float(np.abs(values[observed]).max()) or 1.0
        sd = largest * float((values[observed] / largest).std())
        found.append(HiddenColumn(position, column, at, values[at], sd if sd > 0 else 1.0))
    return Holdout(hide(X, rows, hidden), rows.size, tuple(found))


def column_values(table: Any, position: int, column: Column) -> Floats:
    """Return the numbers of a column, or the codes of its levels; NaN where missing."""
    cells = open_table(table).cells(position)
    if not column.levels:
        return cells.values()
    codes = cells.codes(column.levels)
    # a level that `fit` did not see has no code
    return np.where(codes < 0, np.nan, codes)


def hide(X: Any, rows: NDArray[np.intp], hidden: Bools) -> Any:
    """Return these rows of a table, of the same type, with cells ``(row, column)`` missing."""
    native: Any = X.to_native() if isinstance(X, nw.DataFrame) else X
    if is_pandas_frame(native):
        return _hide_pandas(native, rows, hidden)
    if is_polars_frame(native):
        return _hide_polars(native, rows, hidden)
    if is_arrow_table(native):
        return _hide_arrow(native, rows, hidden)
    array = as_array(native)[rows]
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    elif array.dtype.kind != "f":
        array = array.astype(object)
    array[hidden] = np.nan
    return array


def _hide_pandas(frame: Any, rows: NDArray[np.intp], hidden: Bools) -> Any:
    taken = frame.iloc[rows].copy()
    for position in np.flatnonzero(hidden.any(0)):
        taken.isetitem(position, taken.iloc[:, position].mask(hidden[:, position]))
    return taken


def _hide_polars(frame: Any, rows: NDArray[np.intp], hidden: Bools) -> Any:
    import polars as pl

    # an index of null gives a cell of null, for every data type
    taken = [
        series.gather(pl.Series(rows).set(pl.Series(hidden[:, position]), None))
        for position, series in enumerate(frame.get_columns())
    ]
    return pl.DataFrame(taken)


def _hide_arrow(table: Any, rows: NDArray[np.intp], hidden: Bools) -> Any:
    import pyarrow as pa

    taken = [
        column.take(pa.array(rows, mask=hidden[:, position]))
        for position, column in enumerate(table.columns)
    ]
    return pa.table(taken, schema=_nullable(table.schema))


def _nullable(schema: Any) -> Any:
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
