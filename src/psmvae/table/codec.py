"""Encode tables as model values, and fill model values into the missing cells of tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psmvae.table.cells import Cells
from psmvae.table.column_checks import stray_values, suspect_column
from psmvae.table.errors import (
    ColumnMismatchError,
    ContentMismatchError,
    EmptyColumnsWarning,
    UnknownLevelsError,
    UnsupportedColumnError,
    UnsupportedColumnsError,
)
from psmvae.table.filler import Filler, Target
from psmvae.table.frames import Frame, open_table
from psmvae.table.schema import Schema, check_domain, check_finite, check_kinds, make_column
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds import Column


@dataclass(frozen=True)
class Encoded:
    """Model values x of the modelled columns, 0 where missing, and the mask m, True where observed.

    Both are ``(row, column)``. Model values are standardised numbers, counts or codes of levels.
    """

    x: NDArray[np.float64]
    m: NDArray[np.bool_]


@dataclass(frozen=True)
class Codec:
    """Encodes tables as model values, and fills model values into a table's missing cells.

    Every method takes a table or a `Frame` of `open_table`. A frame reads each column once, so
    open a table that is used several times.
    """

    schema: Schema

    @classmethod
    def fit(cls, table: Any, *, kinds: Mapping[str, str] | None = None) -> Codec:
        """Infer the kinds of a table's columns, and the statistics that each kind needs."""
        frame = open_table(table)
        declared = check_kinds(kinds or {}, frame.names)
        columns, errors, suspects = [], [], []
        for position, name in enumerate(frame.names):
            try:
                cells = frame.cells(position)
                columns.append(make_column(cells, declared.get(name)))
                suspects.append(None if name in declared else suspect_column(cells))
            except UnsupportedColumnError as error:
                # reported together, so that the user need not find them one at a time
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else UnsupportedColumnsError.joining(errors)
        empty = tuple(column.name for column in columns if column.n_observed == 0)
        if len(empty) == len(columns):
            message = f"every cell is missing: no column of {quoted(empty)} has an observed value"
            raise ValueError(message)
        for warning in filter(None, [EmptyColumnsWarning(empty) if empty else None, *suspects]):
            warnings.warn(warning, stacklevel=2)
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

    def filler(self, table: Any, *, rows: NDArray[np.bool_] | None = None) -> Filler:
        """Return a function that fills a table with model values, as often as it is called."""
        frame, where = self._open(table)
        targets = [
            Target(where[column.name], j, column, _checked(frame.cells(where[column.name]), column))
            for j, column in enumerate(self.schema.modelled)
        ]
        with_missing = [target for target in targets if target.cells.missing_rows.size]
        return Filler(frame, with_missing, len(targets), rows)

    def fill(self, table: Any, x: NDArray[Any]) -> Any:
        """Return the table with the values x ``(row, column)`` in its missing cells."""
        return self.filler(table)(x)

    def _open(self, table: Any) -> tuple[Frame, dict[str, int]]:
        """Return the opened table and the positions of its columns by fitted name."""
        frame = open_table(table)
        names = self.schema.names
        if not frame.has_names:
            if len(frame.names) != len(names):
                # scikit-learn's wording
                raise ValueError(
                    f"X has {len(frame.names)} features, but imputer is expecting {len(names)} "
                    "features as input"
                )
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
        raise ContentMismatchError(
            column.name,
            f"{fitted} ({column.dtype}, {column.kind})",
            f"{found} ({cells.dtype})",
            stray_values(cells),
        )
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
