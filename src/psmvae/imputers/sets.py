"""Pattern sets across members: which set of one is which of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


def align_sets(q_r: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Match the sets of all members and order them by size, the largest first.

    Sets carry no names: member 2's set 0 may be member 1's set 3. Each member's sets are matched to
    the first member's by how many rows they share.

    Parameters
    ----------
    q_r : ndarray of shape (member, row, set)
        Set probabilities of the training rows.

    Returns
    -------
    order : ndarray of shape (member, set)
        ``order[e, k]`` is the set of member e that is the k-th of all.
    sizes : ndarray of shape (set,)
        Mean share of the rows, falling.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]])
    >>> order, sizes = align_sets(np.stack([one, one[:, ::-1]]))
    >>> order.tolist(), sizes.round(2).tolist()
    ([[1, 0], [0, 1]], [0.6, 0.4])
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
