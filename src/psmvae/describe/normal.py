"""Maximum likelihood of a multivariate Normal distribution with missing values, by EM."""

from __future__ import annotations

import numpy as np

from psmvae.describe.masks import Patterns
from psmvae.describe.variables import Bools, Floats

TOLERANCE = 1e-8
"""Change of standardised means and covariances at which EM stops."""
MAX_ITER = 2000
"""Iterations of EM at most."""
# smallest eigenvalue of the covariance matrix, in that of standardised columns
_MIN_EIGENVALUE = 1e-7
# cells of the largest temporary array
_MAX_CELLS = 4_000_000


_SINGULAR = (
    "the covariance matrix of the columns is singular: there are too few rows for the number of "
    "columns, or columns are linear functions of others"
)


class NotIdentifiedError(ValueError):
    """The covariance matrix cannot be estimated."""


def fit_normal(
    z: Floats, patterns: Patterns, max_iter: int = MAX_ITER, tolerance: float = TOLERANCE
) -> tuple[Floats, Floats]:
    """Return mean and covariance matrix of standardised rows, NaN where missing."""
    n_rows, d = z.shape
    if n_rows <= d:
        # known beforehand, and steps of EM on a wide table take long
        raise NotIdentifiedError(_SINGULAR)
    mu, sigma = np.zeros(d), np.eye(d)
    for _ in range(max_iter):
        new_mu, new_sigma = _em_step(z, patterns, mu, sigma)
        change = max(np.abs(new_mu - mu).max(), np.abs(new_sigma - sigma).max())
        mu, sigma = new_mu, new_sigma
        if np.linalg.eigvalsh(sigma)[0] < _MIN_EIGENVALUE:
            raise NotIdentifiedError(_SINGULAR)
        if change < tolerance:
            return mu, sigma
    raise NotIdentifiedError(f"EM did not converge in {max_iter:,} iterations")


def _em_step(z: Floats, patterns: Patterns, mu: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the mean and covariance after one step of EM.

    Let K_g be Σ_oo⁻¹ of the observed columns o of pattern g, and 0 elsewhere. With w_i = K_g (x_i −
    μ), the expected row is μ + Σ w_i, and its conditional covariance matrix Σ − Σ K_g Σ.
    """
    n, d = z.shape
    residual = np.where(np.isnan(z), 0.0, z - mu)
    w = np.empty_like(residual)
    summed = np.zeros((d, d))
    by_pattern = np.argsort(patterns.of_row, kind="stable")
    ends = np.concatenate([[0], np.cumsum(patterns.counts)])
    size = max(1, _MAX_CELLS // d**2)
    for start in range(0, len(patterns.counts), size):
        stop = min(start + size, len(patterns.counts))
        k = _inverses(~patterns.missing[start:stop], s)
        summed += np.einsum("g,gij->ij", patterns.counts[start:stop].astype(np.float64), k)
        rows = by_pattern[ends[start] : ends[stop]]
        for at in range(0, len(rows), size):
            part = rows[at : at + size]
            inverse = k[patterns.of_row[part] - start]
            w[part] = np.matmul(inverse, residual[part][:, :, None])[:, :, 0]
    away = w @ s
    shift = away.mean(0)
    sigma = (away.T @ away) / n + s - s @ summed @ s / n - np.outer(shift, shift)
    return mu + shift, (sigma + sigma.T) / 2


def _inverses(patterns: Bools, s: Floats) -> Floats:
    """Return the inverses of the observed blocks of a matrix, 0 elsewhere."""
    pairs = patterns[:, :, None] & patterns[:, None, :]
    # an identity in place of the missing columns leaves the inverse of the others as it is
    padded = np.where(pairs, s, 0.0) + np.eye(s.shape[0]) * ~patterns[:, None, :]
    return np.where(pairs, np.linalg.inv(padded), 0.0).astype(np.float64, copy=False)
