"""Fill the missing cells of one table with model values, any number of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.table.casts import New, as_numpy, holds
from psmvae.table.cells import MAX_WHOLE, Cells, is_integer
from psmvae.table.frames import Frame

if TYPE_CHECKING:
    from psmvae.kinds import Column


class Target(NamedTuple):
    """A column to fill: its positions in the table and among the modelled columns."""

    position: int
    j: int
    column: Column
    cells: Cells


class Filler:
    """Fills one table with model values; see `Codec.filler`.

    `rows` are the rows that values are given for, by default all.
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
        """Return the table with the values x ``(row, column)`` in its missing cells."""
        x = np.asarray(x)
        if x.shape != self._shape:
            expected = f"(row, column) = {self._shape}"
            raise ValueError(f"x must be {expected} for this table, got {x.shape}")
        return self._frame.replace({column.position: column.new(x) for column in self._columns})


class _ColumnFiller:
    """One column to fill, with all that does not depend on the values."""

    def __init__(self, target: Target, rows: NDArray[np.bool_] | None) -> None:
        self.position, self._j, self._column, self._cells = target
        self._rows = self._cells.missing_rows
        if rows is not None:
            if not rows[self._rows].all():
                raise ValueError(
                    "rows must include every row with a missing cell, but not so in "
                    f"{self._cells.name!r}"
                )
            self._rows = (np.cumsum(rows) - 1)[self._rows]
        self._widen = _needs_fractions(self._column, self._cells)
        self._levels = _level_array(self._column) if self._column.levels else None

    def new(self, x: NDArray[Any]) -> New:
        """Return the values of the missing cells."""
        picked = x[self._rows, self._j].astype(np.float64)
        return New(self._cells, self._restored(picked), self._widen)

    def _restored(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Return table values of model values: float64, or the levels' own type."""
        # imported here because it loads PyTorch
        from psmvae.kinds import KINDS

        column, cells = self._column, self._cells
        n_broken = x.size - int(np.count_nonzero(np.isfinite(x)))
        if n_broken:
            raise ValueError(
                f"x must be finite in missing cells, but {n_broken} of {x.size} values for column "
                f"{column.name!r} are not"
            )
        with np.errstate(over="ignore"):
            values: NDArray[Any] = KINDS[column.kind].restore(x, column)
        largest = np.finfo(np.float64).max
        values = np.clip(values, -largest, largest)
        if self._levels is not None:
            values = self._levels[np.clip(np.rint(values), 0, column.n_levels - 1).astype(np.intp)]
        new_type = not holds(cells, values) or (
            cells.storage == "object" and cells.family == "nothing"
        )
        if new_type and is_integer(column.dtype) and column.kind != "real":
            # this table does not show that the fitted column was of integers
            values = as_numpy(values, np.dtype(np.int64))
        return values


def _needs_fractions(column: Column, cells: Cells) -> bool:
    """Whether integers must become floats to hold the values of their column."""
    # a positive column of integers may be meant to stay so; a real one was declared real, or had
    # fractions at fit
    fractions = column.kind == "real" or (
        column.kind == "positive" and not is_integer(column.dtype)
    )
    integers = cells.storage in {"integer", "object"} and is_integer(cells.dtype)
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
