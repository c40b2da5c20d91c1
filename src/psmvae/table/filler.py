"""Fill the missing cells of one table with model values, any number of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.table.casts import New, as_numpy, holds
from psmvae.table.cells import MAX_WHOLE, Cells
from psmvae.table.dtypes import is_integer_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from psmvae.kinds import Column
    from psmvae.table.frames import Frame


@dataclass(frozen=True)
class Target:
    """A column to fill.

    Parameters
    ----------
    position : int
        Position in the table.
    j : int
        Position among the modelled columns.
    column : Column
        The fitted column.
    cells : Cells
        The table's column, which has missing cells.
    """

    position: int
    j: int
    column: Column
    cells: Cells


class Filler:
    """Fills one table with model values; see `Codec.filler`.

    Parameters
    ----------
    frame : Frame
        The table.
    targets : sequence of Target
        The columns with missing cells.
    n_columns : int
        Number of modelled columns.
    rows : ndarray of bool, optional
        The rows that values are given for; by default all.

    Raises
    ------
    ValueError
        If a row with a missing cell is not among `rows`.
    """

    def __init__(
        self,
        frame: Frame,
        targets: Sequence[Target],
        n_columns: int,
        rows: NDArray[np.bool_] | None = None,
    ) -> None:
        self._frame = frame
        n_rows = frame.n_rows if rows is None else int(np.count_nonzero(rows))
        self._shape = (n_rows, n_columns)
        self._columns = [_ColumnFiller(target, rows) for target in targets]

    def __call__(self, x: NDArray[Any]) -> Any:
        """Return the table with its missing cells replaced, and only these.

        Axes: x ``(row, column)``.
        """
        model_values = np.asarray(x)
        if model_values.shape != self._shape:
            message = (
                f"x must be (row, column) = {self._shape} for this table, got {model_values.shape}"
            )
            raise ValueError(message)
        return self._frame.replace(
            {column.target.position: column.new(model_values) for column in self._columns}
        )


class _ColumnFiller:
    """One column to fill, with all that does not depend on the values."""

    def __init__(self, target: Target, rows: NDArray[np.bool_] | None) -> None:
        self.target = target
        cells, column = target.cells, target.column
        self._rows = cells.missing_rows if rows is None else _within(rows, cells)
        self._widen = _needs_fractions(column, cells)
        self._levels = _level_array(column) if column.levels else None

    def new(self, x: NDArray[Any]) -> New:
        """Return the values of the missing cells."""
        picked = x[self._rows, self.target.j].astype(np.float64)
        return New(self.target.cells, self._restored(picked), self._widen)

    def _restored(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Return table values of model values: float64, or the levels' own type."""
        # imported here because it loads PyTorch
        from psmvae.kinds import KINDS

        column, cells = self.target.column, self.target.cells
        n_broken = x.size - int(np.count_nonzero(np.isfinite(x)))
        if n_broken:
            message = (
                f"x must be finite in missing cells, but {n_broken} of {x.size} values for column "
                f"{column.name!r} are not"
            )
            raise ValueError(message)
        with np.errstate(over="ignore"):
            values: NDArray[Any] = KINDS[column.kind].restore(x, column)
        largest = np.finfo(np.float64).max
        values = np.clip(values, -largest, largest)
        if self._levels is not None:
            codes = np.clip(np.rint(values), 0, column.n_levels - 1).astype(np.intp)
            values = self._levels[codes]
        new_type = not holds(cells, values) or (
            cells.storage == "object" and cells.family == "nothing"
        )
        if new_type and is_integer_name(column.dtype) and column.kind != "real":
            # this table does not show that the fitted column was of integers
            values = as_numpy(values, np.dtype(np.int64))
        return values


def _within(rows: NDArray[np.bool_], cells: Cells) -> NDArray[np.intp]:
    """Return the positions of the missing cells among the chosen rows."""
    if not rows[cells.missing_rows].all():
        message = f"rows must include every row with a missing cell, but not so in {cells.name!r}"
        raise ValueError(message)
    return (np.cumsum(rows) - 1)[cells.missing_rows]


def _needs_fractions(column: Column, cells: Cells) -> bool:
    """Whether integers must become floats to hold the values of their column."""
    # a positive column of integers may be meant to stay so; a real one was declared real, or had
    # fractions at fit
    fractions = column.kind == "real" or (
        column.kind == "positive" and not is_integer_name(column.dtype)
    )
    integers = cells.storage in {"integer", "object"} and is_integer_name(cells.dtype)
    if not fractions or not integers:
        return False
    # an observed cell that no float can hold keeps its value, and its column its type
    return bool(np.all(np.abs(cells.observed().astype(np.float64)) <= MAX_WHOLE))


def _level_array(column: Column) -> NDArray[Any]:
    levels = column.levels
    if isinstance(levels[0], str):
        return np.array(levels, dtype=object)
    if any(isinstance(level, int) and level > np.iinfo(np.int64).max for level in levels):
        # by default NumPy makes floats of int64 and uint64 together
        return np.array(levels, dtype=np.uint64)
    return np.array(levels)
