"""Choice of the columns that predict a column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

# Targets whose associations are computed at once: bounds the memory for tables of many columns.
BLOCK = 256


def nearest(
    z: Floats,
    group: Ints,
    y: Floats,
    m: Bools,
    y_group: Ints,
    n: int | None,
    allowed: Bools | None = None,
) -> list[Ints]:
    """Return the positions of the predictors of each target, ascending.

    These are the ``n`` predictors of other groups with the largest absolute covariance with the
    target, over the rows in which the target is observed; all of other groups if ``n`` is None.

    ``z`` ``(row, predictor)`` has standardised predictors, 0 where missing, and ``group`` their
    groups. ``y, m`` ``(row, target)`` are the targets and their masks, and ``y_group`` their
    groups. ``allowed`` ``(group, group)`` says which groups (second axis) may predict a group.
    """
    found: list[Ints] = []
    for start in range(0, len(y_group), BLOCK):
        block = slice(start, start + BLOCK)
        own = y_group[block]
        may = group != own[:, None]
        if allowed is not None:
            may &= allowed[own[:, None], group]
        if n is not None and len(group) > n:
            may &= _largest(_association(z, y[:, block], m[:, block]), may, n)
        found.extend(np.flatnonzero(each) for each in may)
    return found


def _association(z: Floats, y: Floats, m: Bools) -> Floats:
    """Return the absolute covariances ``(target, predictor)``."""
    count = np.maximum(m.sum(0), 1)
    away = np.where(m, y - np.where(m, y, 0.0).sum(0) / count, 0.0)
    covariance: Floats = np.abs((away / count).T @ z)
    return covariance


def _largest(association: Floats, may: Bools, n: int) -> Bools:
    """Say which ``n`` of the permitted predictors have the largest associations."""
    order = np.argpartition(np.where(may, -association, np.inf), n - 1, axis=1)[:, :n]
    chosen = np.zeros(may.shape, dtype=bool)
    np.put_along_axis(chosen, order, values=True, axis=1)
    return chosen
