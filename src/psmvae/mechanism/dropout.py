"""Cells that are missing whenever another column is: later visits of a patient who has left.

The value of such a cell does not influence whether it is missing: the mask of the other column
explains it. The odds of going missing are learned from the other rows. A cell of these rows has the
distribution of all cells given the rest of its row, observed and missing ones together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

# A column is missing whenever another is if, in those rows, it is observed in at most this fraction
# of the cells that independent masks would leave, which must be enough to say so.
MAX_FRACTION, MIN_EXPECTED = 0.05, 10.0
# Fewest missing cells, and observed ones, from which the odds of going missing are learned.
MIN_CELLS = 10


def missing_with(m: Bools, j: int) -> tuple[int, ...]:
    """Return the columns whose missing cells imply that column ``j`` is missing.

    Parameters
    ----------
    m : ndarray of bool of shape (n_rows, n_columns)
        Mask, True where a cell is observed.
    j : int
        Number of the column.

    Returns
    -------
    tuple of int
        Empty if the other rows have too few missing cells of column ``j``.
    """
    observed = m[:, j]
    expected = (~m).sum(0) * observed.mean()
    found = observed.astype(float) @ ~m
    implied = (expected >= MIN_EXPECTED) & (found <= MAX_FRACTION * expected)
    implied[j] = False
    others = tuple(int(k) for k in np.flatnonzero(implied))
    left = (~observed & m[:, others].all(1)).sum()
    return others if left >= MIN_CELLS else ()
