r"""Levels re-drawn so that the odds of their distribution are multiplied by a factor.

Only draws of a cell are at hand, and not the probabilities p that they were drawn from. These are
drawn from their posterior, given the m draws of the cell: p has the prior Dirichlet(a π), where π
are the frequencies of the levels in all imputed cells and a is estimated by the method of moments.
Each level is then moved as little as possible (maximal coupling), so that levels with probabilities
p become levels with the probabilities

.. math::

    \text{one level:} \quad p'_k = \frac{c\,p_k}{1 + (c - 1)\,p_k}, \quad
        p'_l = \frac{p_l}{1 + (c - 1)\,p_k} \\
    \text{in order:} \quad \operatorname{odds}' P(x > l) = c \operatorname{odds} P(x > l).

Because p and the draws have their joint distribution, the result is exact in expectation over
cells whose probabilities have the prior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Correlation of two draws of a cell: above 0, so that the prior is finite.
MIN_CORRELATION = 1e-6


def redraw(
    codes: Codes, n_levels: int, factor: float, level: int | None, rng: np.random.Generator
) -> Codes:
    """Multiply the odds of `level`, or the cumulative odds if it is None.

    ``codes`` ``(imputation, cell)`` are positions in the levels, and so is the result.
    """
    counts = np.stack([(codes == k).sum(0) for k in range(n_levels)], axis=1)
    posterior = counts + concentration(counts) * counts.sum(0) / counts.sum()
    return np.stack([_move(one, posterior, factor, level, rng) for one in codes])


def tilt(p: Floats, factor: float, level: int | None) -> Floats:
    """Return probabilities ``(..., level)`` after the odds of a level, or of all cuts, changed."""
    if level is not None:
        weighted = p.copy()
        weighted[..., level] *= factor
        tilted: Floats = weighted / weighted.sum(-1, keepdims=True)
        return tilted
    above = np.clip(1 - np.cumsum(p, -1)[..., :-1], 0.0, 1.0)
    above = factor * above / (1 - above + factor * above)
    ends = np.ones((*p.shape[:-1], 1))
    return -np.diff(np.concatenate([ends, above, 0 * ends], -1), axis=-1)


def concentration(counts: NDArray[np.int64]) -> float:
    r"""Estimate a of the prior Dirichlet(a π) from the counts ``(cell, level)`` of m draws.

    Two draws of a cell agree with probability :math:`\sum_l \pi_l^2 + \rho (1 - \sum_l \pi_l^2)`,
    where the correlation :math:`\rho = 1 / (1 + a)`.
    """
    m = int(counts[0].sum())
    if m < 2:
        return 1 / MIN_CORRELATION - 1
    pi = counts.sum(0) / counts.sum()
    by_chance = float((pi**2).sum())
    agree = float((counts * (counts - 1)).sum(1).mean() / (m * (m - 1)))
    rho = (agree - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
    return 1 / float(np.clip(rho, MIN_CORRELATION, 1.0)) - 1


def _move(
    own: Codes, posterior: Floats, factor: float, level: int | None, rng: np.random.Generator
) -> Codes:
    """Move the levels ``(cell,)`` of one imputation."""
    p = rng.standard_gamma(posterior)
    p /= p.sum(1, keepdims=True)
    target = tilt(p, factor, level)
    rows = np.arange(own.size)
    # the same random numbers for every factor: results then change gradually with it
    stay, to = rng.random((2, own.size))
    excess = np.cumsum(np.clip(target - p, 0.0, None), 1)
    other = (to[:, None] * excess[:, -1:] >= excess).sum(1)
    moved = stay * p[rows, own] >= target[rows, own]
    return np.where(moved & (excess[:, -1] > 0), np.minimum(other, p.shape[1] - 1), own)
