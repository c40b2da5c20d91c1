"""Bounds of a column in the units of its model values."""

from __future__ import annotations

import numpy as np

from psmvae.kinds import KINDS
from psmvae.kinds.base import Column

# Kinds whose model values are rounded to whole numbers by `Kind.restore`.
_WHOLE = ("integer", "count")


def model_bounds(column: Column) -> tuple[float, float]:
    """Return the bounds between which draws of a column's model values are truncated.

    They are `Column.low` and `Column.high`, standardised; ±inf is no bound. For whole numbers they
    are half a unit further apart: a draw is rounded, and so are half of the values that round to
    the bound. Columns with levels have no bounds, since a code is always that of a level.
    """
    kind = KINDS[column.kind]
    if kind.has_levels:
        return -np.inf, np.inf
    margin = 0.5 if column.kind in _WHOLE else 0.0
    low = -np.inf if column.low is None else column.low - margin
    high = np.inf if column.high is None else column.high + margin
    # the logarithm of a positive column has no bound below where its value is bounded by 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        edges = kind.standardise(np.array([low, high]), column)
    return (
        -np.inf if np.isnan(edges[0]) else float(edges[0]),
        np.inf if np.isnan(edges[1]) else float(edges[1]),
    )
