"""Bounds of numeric columns: given by the user, or taken from the observed values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from psmvae.table.cells import Cells
from psmvae.table.declared import Bounds
from psmvae.table.errors import OutOfBoundsError

if TYPE_CHECKING:
    from psmvae.kinds import Column

# Whole numbers with so few distinct values, each in two cells or more on average, are imputed
# within the observed range.
_FEW_VALUES, _MIN_REPEATS = 20, 2
_WHOLE = ("integer", "count")


def with_bounds(column: Column, cells: Cells, given: Bounds | None) -> Column:
    """Return a numeric column with its observed range and its bounds.

    Without given bounds, a column without negative observed values is bounded by 0 below, and whole
    numbers with few distinct values are bounded by the smallest and largest of them.
    """
    values = cells.observed().astype(np.float64, copy=False)
    smallest, largest = float(values.min()), float(values.max())
    if given is not None:
        check_in_bounds(cells, given)
        low, high = given
        if column.kind in _WHOLE:
            low = None if low is None else float(math.ceil(low))
            high = None if high is None else float(math.floor(high))
    elif column.kind == "integer" and _few_values(cells):
        low, high = smallest, largest
    else:
        low, high = (0.0 if smallest >= 0 else None), None
    return replace(column, low=low, high=high, observed=(smallest, largest))


def check_in_bounds(cells: Cells, bounds: Bounds) -> None:
    """Raise if an observed value of a column is outside its given bounds."""
    if cells.family == "string":
        message = f"bounds are given for column {cells.name!r}, which holds strings"
        raise ValueError(f"{message} ({cells.dtype}); give bounds for numeric columns only")
    low, high = bounds
    values = cells.observed().astype(np.float64, copy=False)
    outside = values < (-np.inf if low is None else low)
    outside |= values > (np.inf if high is None else high)
    if outside.any():
        found = tuple(np.unique(values[outside]).tolist())
        raise OutOfBoundsError(cells.name, low, high, found, int(outside.sum()))


def _few_values(cells: Cells) -> bool:
    n_values = len(cells.distinct[0])
    return n_values <= min(_FEW_VALUES, cells.n_observed / _MIN_REPEATS)
