"""Matching of pattern sets across the members of an ensemble."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


def align_sets(q_r: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Match the sets of all members and order them by size, the largest first.

    Mixture components are exchangeable: set 0 of one member may be set 3 of another. The sets of
    each member are matched to those of the first by the number of shared rows.

    Axes: q_r ``(member, row, set)``; returns ``(member, set)``.
    """
    n_members, _, n_sets = q_r.shape
    order = np.zeros((n_members, n_sets), dtype=np.int64)
    order[0] = np.arange(n_sets)
    for member in range(1, n_members):
        shared = q_r[0].T @ q_r[member]
        order[member] = linear_sum_assignment(-shared)[1]
    aligned = np.take_along_axis(q_r, order[:, None, :], axis=2).mean((0, 1))
    by_size = np.argsort(-aligned, kind="stable")
    return order[:, by_size], aligned[by_size]
