"""Derived columns: left out of the model, and computed from the other columns by formulas."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.table.casts import New
from psmvae.table.cells import Cells
from psmvae.table.errors import FormulaDomainWarning, FormulaError, FormulaMismatchWarning
from psmvae.table.formula import Floats, Formula, parse_formula
from psmvae.table.frames import Frame, open_table
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds import Column

Bools = NDArray[np.bool_]

_UNKNOWN = "name columns of the table; a derived column must be one of them"
# An observed value may differ from its formula by a unit of its last decimal place and by this
# fraction, since the columns of the formula are rounded too.
_ROUNDING, _MAX_DECIMALS = 0.005, 6


def check_derived(derived: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Formula]:
    """Return formulas by column, each after those that it depends on."""
    formulas = {str(name): parse_formula(str(name), text) for name, text in derived.items()}
    for name, formula in formulas.items():
        unknown = [one for one in (name, *formula.names) if one not in names]
        if unknown:
            reason = f"there is no column {quoted(unknown)} in the table"
            raise FormulaError(name, formula.text, reason, f"{_UNKNOWN}: {quoted(names)}")
    graph = {
        name: [one for one in formula.names if one in formulas]
        for name, formula in formulas.items()
    }
    try:
        order = list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        cycle = error.args[1]
        reason = f"it depends on itself ({' -> '.join(cycle)})"
        text = formulas[cycle[0]].text
        raise FormulaError(cycle[0], text, reason, "leave one of these formulas out") from error
    return {name: formulas[name] for name in order}


def make_derived(cells: Cells, formula: Formula) -> Column:
    """Return the entry of a derived column in the schema."""
    from psmvae.kinds import Column

    _numbers(cells, cells.name, formula)
    _check_target(cells, formula)
    reason = f"derived: {formula.text}"
    return Column(
        cells.name, "real", cells.dtype, cells.n_observed, reason=reason, formula=formula.text
    )


def check_observed(frame: Frame, formulas: Mapping[str, Formula]) -> None:
    """Warn of observed values that are not those of the formula; raise if one is of strings."""
    where = {name: position for position, name in enumerate(frame.names)}
    for name, formula in formulas.items():
        inputs = {one: _numbers(frame.cells(where[one]), name, formula) for one in formula.names}
        observed, computed = frame.cells(where[name]).values(), formula(inputs)
        both = np.isfinite(observed) & np.isfinite(computed)
        if not both.any():
            continue
        gap = np.abs(observed - computed)[both]
        wrong = gap > _last_place(observed[both]) + _ROUNDING * np.abs(computed[both])
        if wrong.any():
            counts = int(wrong.sum()), int(both.sum())
            warning = FormulaMismatchWarning(name, formula.text, *counts, float(gap.max()))
            warn_at_caller(warning)


class Derivation:
    """Computes the derived columns of filled tables.

    Parameters
    ----------
    frame : Frame
        The incomplete table.
    formulas : mapping of str to Formula
        By column, each after those that it depends on.
    where : mapping of str to int
        Positions in the table, by the names that formulas use.
    wanted : ndarray of bool (row, column), optional
        Cells that may be filled.
    """

    def __init__(
        self,
        frame: Frame,
        formulas: Mapping[str, Formula],
        where: Mapping[str, int],
        wanted: Bools | None,
    ) -> None:
        self._frame, self._formulas, self._where, self._wanted = frame, formulas, where, wanted
        self.changed: dict[int, Bools] = {}
        self.undefined = dict.fromkeys(formulas, 0)

    def __call__(self, table: Any) -> Any:
        """Return a filled table with its derived columns computed.

        A cell is computed if it is missing or a column of its formula was filled, and if the
        result is finite.
        """
        before = self._frame
        filled_rows: dict[str, Bools] = {}
        for name, formula in self._formulas.items():
            filled = open_table(table)
            position, inputs = self._where[name], {}
            due = before.cells(position).missing.copy()
            for one in formula.names:
                cells = filled.cells(self._where[one])
                inputs[one] = _numbers(cells, name, formula)
                if one not in filled_rows:
                    filled_rows[one] = before.cells(self._where[one]).missing & ~cells.missing
                due |= filled_rows[one]
            if self._wanted is not None:
                due &= self._wanted[:, position]
            result = formula(inputs)
            known = np.all([~np.isnan(values) for values in inputs.values()], axis=0)
            undefined = due & known & ~np.isfinite(result)
            self.undefined[name] = max(self.undefined[name], int(undefined.sum()))
            filled_rows[name] = due & np.isfinite(result)
            rows = np.flatnonzero(filled_rows[name])
            if rows.size:
                _check_target(filled.cells(position), formula)
                new = New(filled.cells(position), result[rows], rows=rows)
                table = filled.replace({position: new})
            earlier = self.changed.get(position, False)
            self.changed[position] = filled_rows[name] | earlier
        return table

    def warn(self) -> None:
        """Warn of formulas that were not finite."""
        for name, n_rows in self.undefined.items():
            if n_rows:
                warning = FormulaDomainWarning(name, self._formulas[name].text, n_rows)
                warn_at_caller(warning)


def _numbers(cells: Cells, column: str, formula: Formula) -> Floats:
    if cells.family == "string":
        reason = f"column {cells.name!r} holds strings ({cells.dtype})"
        raise FormulaError(column, formula.text, reason, "formulas compute with numbers only")
    return cells.values()


def _check_target(cells: Cells, formula: Formula) -> None:
    """Raise if the results of a formula would be new categories."""
    if cells.storage == "category":
        reason = f"column {cells.name!r} has a categorical data type ({cells.dtype})"
        raise FormulaError(cells.name, formula.text, reason, "convert it to numbers")


def _last_place(values: Floats) -> float:
    """Return a unit of the last decimal place of rounded values, 0 if they are not rounded."""
    for decimals in range(_MAX_DECIMALS):
        if np.allclose(values, np.round(values, decimals), rtol=1e-12, atol=0.0):
            return float(10.0**-decimals)
    return 0.0
