"""Encode tables as model values, and fill model values into the missing cells of tables.

`psmvae.kinds` is imported inside functions because it loads PyTorch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.table.casts import New, as_numpy, holds
from psmvae.table.cells import MAX_WHOLE, Cells, is_integer
from psmvae.table.column_checks import is_constant, stray_values, suspect_column
from psmvae.table.declared import check_bounds, check_kinds
from psmvae.table.derived import check_derived, check_observed, make_derived
from psmvae.table.errors import (
    ColumnMismatchError,
    ConstantColumnsWarning,
    ContentMismatchError,
    EmptyColumnsWarning,
    OutsideRangeWarning,
    UnknownLevelsError,
    UnsupportedColumnError,
    UnsupportedColumnsError,
)
from psmvae.table.frames import Frame, open_table
from psmvae.table.schema import Schema, check_domain, check_finite, make_column
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds import Column

# Imputations are reported if so many, and more than this share, are outside the observed range, or
# one is further outside than this multiple of the range. The tolerance is for rounding. The range
# of fewer observed cells than this says little.
MIN_OUTSIDE, MAX_SHARE_OUTSIDE, MAX_RANGES, RANGE_TOLERANCE = 5, 0.05, 3.0, 1e-6
# The distance in ranges where fewer cells are observed than the range needs.
MAX_RANGES_FEW = 10.0
# Difference of two equal values due to rounding errors, relative to the largest value.
SAME = 1e-12
MIN_OBSERVED = 30


@dataclass(frozen=True)
class Encoded:
    """Model values x, 0 where missing, and mask m, True where observed; both ``(row, column)``."""

    x: NDArray[np.float64]
    m: NDArray[np.bool_]


@dataclass(frozen=True)
class Codec:
    """Encodes and fills tables, or a `Frame` of `open_table`, which reads each column only once."""

    schema: Schema

    @classmethod
    def fit(
        cls,
        table: Any,
        *,
        kinds: Mapping[str, Any] | None = None,
        bounds: Mapping[str, Any] | None = None,
        derived: Mapping[str, str] | None = None,
    ) -> Codec:
        """Infer the kinds of a table's columns, and the statistics that each kind needs."""
        frame = open_table(table)
        declared = check_kinds(kinds or {}, frame.names)
        limits = check_bounds(bounds or {}, frame.names)
        formulas = check_derived(derived or {}, frame.names)
        for parameter, named in (("kinds", declared), ("bounds", limits)):
            if both := [name for name in named if name in formulas]:
                raise ValueError(
                    f"{parameter} names the derived column {both[0]!r}, which is not modelled: its "
                    f"values follow from {formulas[both[0]].text!r}; state {parameter} of the "
                    "columns of the formula, or leave the formula out"
                )
        columns, errors, constant = [], [], []
        suspects: list[Warning | None] = []
        for position, name in enumerate(frame.names):
            try:
                cells = frame.cells(position)
                if name in formulas:
                    columns.append(make_derived(cells, formulas[name]))
                    continue
                columns.append(make_column(cells, declared.get(name), limits.get(name)))
                suspects.append(None if name in declared else suspect_column(cells))
                if is_constant(cells):
                    constant.append(name)
            except UnsupportedColumnError as error:
                # reported together, so that the user need not find them one at a time
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else UnsupportedColumnsError.joining(errors)
        modelled = [column for column in columns if not column.formula]
        empty = tuple(column.name for column in modelled if column.n_observed == 0)
        if len(empty) == len(modelled):
            message = f"every cell is missing: no column of {quoted(empty)} has an observed value"
            raise ValueError(message if modelled else "every column is derived: none is left")
        suspects.append(EmptyColumnsWarning(empty) if empty else None)
        suspects.append(ConstantColumnsWarning(tuple(constant)) if constant else None)
        for warning in filter(None, suspects):
            warn_at_caller(warning)
        check_observed(frame, formulas)
        return cls(Schema(tuple(columns)))

    def encode(
        self,
        table: Any,
        *,
        handle_unknown: Literal["error", "missing"] = "error",
        standardise: bool = True,
    ) -> Encoded:
        """Return the model values of a table with the fitted columns."""
        from psmvae.kinds import KINDS

        if handle_unknown not in {"error", "missing"}:
            raise ValueError(f"handle_unknown must be 'error' or 'missing', got {handle_unknown!r}")
        frame, where = self._open(table)
        shape = (frame.n_rows, len(self.schema.modelled))
        x, m = np.empty(shape), np.empty(shape, dtype=bool)
        for j, column in enumerate(self.schema.modelled):
            cells = _checked(frame.cells(where[column.name]), column)
            check_finite(cells)
            values = _codes(cells, column, handle_unknown) if column.levels else cells.values()
            m[:, j] = ~np.isnan(values)
            check_domain(cells, column.kind, values)
            if standardise:
                kind = KINDS[column.kind]
                # values that overflow are clipped to the limit
                with np.errstate(over="ignore"):
                    values = kind.standardise(values, column)
                values = np.clip(values, -kind.limit, kind.limit)
            x[:, j] = np.where(m[:, j], values, 0.0)
        return Encoded(x, m)

    def filler(
        self,
        table: Any,
        *,
        rows: NDArray[np.bool_] | None = None,
        wanted: NDArray[np.bool_] | None = None,
        donors: Mapping[int, NDArray[np.float64]] | None = None,
        check: RangeCheck | None = None,
    ) -> Filler:
        """Return a function that fills a table with model values of all rows, or of `rows`.

        Where `wanted` ``(row, column)`` is False, a missing cell stays missing. `donors` are, by
        modelled column, values in ascending order that are filled in without rounding errors.
        `check` counts values outside the observed range; by default those of this table.
        """
        check = RangeCheck() if check is None else check
        frame, where = self._open(table)
        columns = []
        for j, column in enumerate(self.schema.modelled):
            position = where[column.name]
            cells = _checked(frame.cells(position), column)
            at = cells.missing_rows
            if wanted is not None:
                at = at[wanted[at, position]]
            if at.size:
                own = (donors or {}).get(j)
                columns.append(_ColumnFiller(position, j, column, cells, at, rows, own, check))
        n_rows = frame.n_rows if rows is None else int(np.count_nonzero(rows))
        return Filler(frame, columns, (n_rows, len(self.schema.modelled)), check)

    def fill(self, table: Any, x: NDArray[Any]) -> Any:
        """Return the table with the values x ``(row, column)`` in its missing cells."""
        return self.filler(table)(x)

    def positions(self, table: Any) -> dict[str, int]:
        """Return the positions of a table's columns by fitted name."""
        return self._open(table)[1]

    def _open(self, table: Any) -> tuple[Frame, dict[str, int]]:
        """Return the opened table and the positions of its columns by fitted name."""
        frame = open_table(table)
        names = self.schema.names
        if not frame.has_names:
            if len(frame.names) != len(names):
                found, fitted = len(frame.names), len(names)
                # scikit-learn's wording
                message = f"X has {found} features, but imputer is expecting {fitted} features"
                raise ValueError(f"{message} as input")
            return frame, {name: position for position, name in enumerate(names)}
        where, known = {name: position for position, name in enumerate(frame.names)}, set(names)
        unexpected = tuple(name for name in frame.names if name not in known)
        absent = tuple(name for name in names if name not in where)
        if unexpected or absent:
            raise ColumnMismatchError(unexpected, absent)
        return frame, where


def _checked(cells: Cells, column: Column) -> Cells:
    """Return the cells if they are of the fitted family: strings, or numbers."""
    fitted_text = bool(column.levels) and isinstance(column.levels[0], str)
    if cells.family != "nothing" and fitted_text != (cells.family == "string"):
        fitted, found = ("strings", "numbers") if fitted_text else ("numbers", "strings")
        held, holds_now = f"{fitted} ({column.dtype}, {column.kind})", f"{found} ({cells.dtype})"
        raise ContentMismatchError(column.name, held, holds_now, stray_values(cells))
    if cells.storage == "category" and cells.order and not column.levels:
        held = f"numbers ({column.dtype}, {column.kind})"
        raise ContentMismatchError(column.name, held, f"categories ({cells.dtype})")
    return cells


def _codes(cells: Cells, column: Column, handle_unknown: str) -> NDArray[np.float64]:
    codes = cells.codes(column.levels)
    unknown = codes == -1
    if unknown.any() and handle_unknown == "error":
        levels = tuple(dict.fromkeys(cells.raw[unknown].tolist()))
        n_cells = int(np.count_nonzero(unknown))
        raise UnknownLevelsError(column.name, levels, n_cells, column.levels)
    codes[unknown] = np.nan
    return codes


class RangeCheck:
    """Counts filled values outside the observed range of their columns, in one table or many."""

    def __init__(self) -> None:
        self._counts: dict[str, _Outside] = {}

    def add(self, column: Column, values: NDArray[np.float64]) -> None:
        """Count the values of a column; a constant column has none outside."""
        if not column.observed:
            return
        smallest, largest = column.observed
        # a range may overflow
        width = float(np.float64(largest) / 2 - np.float64(smallest) / 2) * 2
        if not 0 < width < np.inf:
            return
        # up to a bound every value is possible
        low = smallest if column.low is None else column.low
        high = largest if column.high is None else column.high
        with np.errstate(over="ignore"):
            away = np.maximum(low - values, values - high) / width
        count = self._counts.setdefault(column.name, _Outside(column.n_observed))
        count.n_filled += away.size
        count.n_outside += int(np.count_nonzero(away > RANGE_TOLERANCE))
        count.furthest = max(count.furthest, float(away.max(initial=0.0)))

    def warn(self) -> None:
        """Warn of columns with too many values outside the observed range, or too far from it."""
        found = {
            name: count.n_outside for name, count in self._counts.items() if count.is_suspicious
        }
        if found:
            warn_at_caller(OutsideRangeWarning(found))


@dataclass
class _Outside:
    """Numbers of filled values of a column, and of those outside the observed range."""

    n_observed: int
    n_filled: int = 0
    n_outside: int = 0
    furthest: float = 0.0

    @property
    def is_suspicious(self) -> bool:
        """Whether the values outside the observed range are too many or too far from it.

        Of draws like the n observed values, a share of 2 / (n + 1) is outside on average.
        """
        expected = 2 / (self.n_observed + 1)
        too_many = self.n_outside > (MAX_SHARE_OUTSIDE + 2 * expected) * self.n_filled
        if self.n_observed < MIN_OBSERVED:
            return self.furthest > MAX_RANGES_FEW
        return (too_many and self.n_outside >= MIN_OUTSIDE) or self.furthest > MAX_RANGES


class Filler:
    """Fills one table with model values; see `Codec.filler`."""

    def __init__(
        self,
        frame: Frame,
        columns: list[_ColumnFiller],
        shape: tuple[int, int],
        check: RangeCheck,
    ) -> None:
        self._frame, self._columns, self._shape, self._check = frame, columns, shape, check

    def __call__(self, x: NDArray[Any]) -> Any:
        """Return the table with the values x ``(row, column)`` in its missing cells."""
        x, shape = np.asarray(x), self._shape
        if x.shape != shape:
            raise ValueError(f"x must be (row, column) = {shape} for this table, got {x.shape}")
        return self._frame.replace({column.position: column.new(x) for column in self._columns})

    def filled(self) -> NDArray[np.bool_]:
        """Return which cells are filled, ``(row, column)`` in the order of the table."""
        mask = np.zeros((self._frame.n_rows, len(self._frame.names)), dtype=bool)
        for column in self._columns:
            mask[column.at, column.position] = True
        return mask

    def warn(self) -> None:
        """Warn of the values filled so far that are outside the observed range."""
        self._check.warn()


class _ColumnFiller:
    """A column to fill: its positions in the table and among the modelled columns."""

    def __init__(
        self,
        position: int,
        j: int,
        column: Column,
        cells: Cells,
        at: NDArray[np.intp],
        rows: NDArray[np.bool_] | None,
        donors: NDArray[np.float64] | None,
        check: RangeCheck,
    ) -> None:
        self.position, self.name, self.at = position, column.name, at
        self._j, self._column, self._cells = j, column, cells
        self._check = check
        self._rows = at
        if rows is not None:
            if not rows[at].all():
                message = "rows must include every row with a missing cell, but not so in "
                raise ValueError(f"{message}{cells.name!r}")
            self._rows = (np.cumsum(rows) - 1)[at]
        self._widen = _needs_fractions(self._column, self._cells)
        self._levels = _level_array(self._column) if self._column.levels else None
        self._donors = donors

    def new(self, x: NDArray[Any]) -> New:
        """Return the values of the cells to fill."""
        picked = x[self._rows, self._j].astype(np.float64)
        values = self._restored(picked)
        return New(self._cells, values, self._widen, self.at, self._column.levels)

    def _restored(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """Return table values of model values: float64, or the levels' own type."""
        from psmvae.kinds import KINDS

        column, cells = self._column, self._cells
        if n_broken := x.size - int(np.count_nonzero(np.isfinite(x))):
            raise ValueError(
                f"x must be finite in missing cells, but {n_broken} of {x.size} values for column "
                f"{column.name!r} are not"
            )
        with np.errstate(over="ignore"):
            values: NDArray[Any] = KINDS[column.kind].restore(x, column)
        values = as_numpy(values, np.dtype(np.float64))
        if self._donors is not None:
            values = snapped(values, self._donors)
        if column.low is not None or column.high is not None:
            values = np.clip(values, column.low, column.high)
        self._check.add(column, values)
        if self._levels is not None:
            values = self._levels[np.clip(np.rint(values), 0, column.n_levels - 1).astype(np.intp)]
        untyped = cells.storage == "object" and cells.family == "nothing"
        new_type = untyped or not holds(cells, values)
        if new_type and is_integer(column.dtype) and column.kind != "real":
            # this table does not show that the fitted column was of integers
            values = as_numpy(values, np.dtype(np.int64))
        return values


def snapped(values: NDArray[np.float64], donors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values, or the ascending donors that differ from them by rounding errors."""
    after = np.searchsorted(donors, values).clip(0, len(donors) - 1)
    before = np.maximum(after - 1, 0)
    is_before = np.abs(values - donors[before]) < np.abs(values - donors[after])
    near = donors[np.where(is_before, before, after)]
    tolerance = SAME * max(abs(donors[0]), abs(donors[-1]))
    return np.where(np.abs(values - near) <= tolerance, near, values)


def _needs_fractions(column: Column, cells: Cells) -> bool:
    """Whether integers must become floats to hold the values of their column."""
    # a positive column of integers stays so; a real one was declared, or had fractions at fit
    not_whole = column.kind == "positive" and not is_integer(column.dtype)
    fractions = column.kind == "real" or not_whole
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
