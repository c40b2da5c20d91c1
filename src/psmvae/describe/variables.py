"""The columns of a table as numbers: values, or codes of levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.table.column_checks import suspect_column
from psmvae.table.errors import StrayTextWarning, UnsupportedColumnError, UnsupportedColumnsError
from psmvae.table.frames import Frame, open_table
from psmvae.table.inference import infer_kind
from psmvae.table.schema import check_finite

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Variable:
    """One column: NaN where missing. A column with levels has their positions as values."""

    name: str
    kind: str
    values: Floats
    levels: tuple[Any, ...] = ()

    @property
    def nominal(self) -> bool:
        """Whether the column has levels without an order."""
        return self.kind == "categorical"


def read_variables(table: Any) -> list[Variable]:
    """Read all columns, with the kinds that the imputers infer; dates are numbers."""
    frame = open_table(table)
    variables: list[Variable] = []
    errors: list[UnsupportedColumnError] = []
    for position in range(len(frame.names)):
        try:
            variables.append(_read(frame, position))
        except UnsupportedColumnError as error:
            if (times := _times(table, position)) is not None:
                variables.append(Variable(frame.names[position], "real", times))
                continue
            # reported together, so that the user need not find them one at a time
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else UnsupportedColumnsError.joining(errors)
    return variables


def _times(table: Any, position: int) -> Floats | None:
    """Return a column of dates or timestamps as numbers, None for other columns."""
    native = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(native, nw.DataFrame):
        return None
    column = native[:, position]
    if not isinstance(column.dtype, nw.Date | nw.Datetime):
        return None
    found = column.dt.timestamp("ms").cast(nw.Float64).to_numpy()
    return np.where(column.is_null().to_numpy(), np.nan, found)


def _read(frame: Frame, position: int) -> Variable:
    cells = frame.cells(position)
    check_finite(cells)
    if isinstance(suspect := suspect_column(cells), StrayTextWarning):
        # a code for missing values, such as "?", would be counted as observed
        warn_at_caller(suspect)
    name, kind = frame.names[position], infer_kind(cells).kind
    if cells.family == "string" or cells.storage == "category":
        levels = cells.levels()
        return Variable(name, kind, cells.codes(levels), levels)
    return Variable(name, kind, cells.values())
