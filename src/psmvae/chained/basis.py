"""Nonlinear terms of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Predictors that enter nonlinear terms: those most correlated with the target.
MAX_PREDICTORS = 5
# Cosines, and the standard deviation of their frequencies. A cosine varies along one to three
# predictors, so that sums of them are smooth functions of few predictors.
N_COSINES, FREQUENCY, MAX_ACTIVE = 32, 0.9, 3
# Terms at most.
MAX_TERMS = MAX_PREDICTORS * (MAX_PREDICTORS + 1) // 2 + N_COSINES
# Fewest rows for each nonlinear term.
ROWS_PER_TERM = 4


@dataclass(frozen=True)
class Basis:
    """Squares, products and random cosines of a few predictors.

    Predictors are clipped to their observed range first. Otherwise a value a little outside gives a
    larger one in the next column, and a chain of squares diverges.

    ``at`` are the predictors used, ``first`` and ``second`` the factors of each product among them,
    ``frequency`` ``(predictor, cosine)`` and ``phase`` ``(cosine,)`` define the cosines, and
    ``low`` and ``high`` are the ranges.
    """

    at: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    frequency: Floats
    phase: Floats
    low: Floats
    high: Floats

    @classmethod
    def make(
        cls, z: Floats, y: Floats, low: Floats, high: Floats, rng: np.random.Generator
    ) -> Self:
        """Choose terms for the target ``y`` ``(row,)`` and predictors ``z`` ``(row, predictor)``.

        ``low`` and ``high`` are the observed ranges of the predictors.
        """
        n_rows = len(z)
        spread = np.maximum(z.std(0), 1e-12)
        association = np.abs(((z - z.mean(0)) * (y - y.mean())[:, None]).mean(0)) / spread
        n_terms = n_rows // ROWS_PER_TERM
        at = np.sort(np.argsort(-association, kind="stable")[:MAX_PREDICTORS])
        first, second = np.triu_indices(len(at))
        # the square of an indicator is the indicator
        keep = (first != second) | (np.array([len(np.unique(z[:, k])) for k in at])[first] > 2)
        first, second = first[keep], second[keep]
        if len(at) == 0 or n_terms < len(first):
            return cls.empty()
        n_cosines = min(N_COSINES, n_terms - len(first))
        n_active = rng.integers(1, min(MAX_ACTIVE, len(at)) + 1, n_cosines)
        order = rng.random((len(at), n_cosines)).argsort(0).argsort(0)
        frequency = FREQUENCY * rng.normal(size=order.shape) * (order < n_active)
        phase = rng.uniform(0, 2 * np.pi, n_cosines)
        return cls(at, first, second, frequency, phase, low[at], high[at])

    @classmethod
    def empty(cls) -> Self:
        """Return a basis without terms."""
        none = np.zeros(0, dtype=np.intp)
        nothing = np.zeros(0)
        return cls(none, none, none, np.zeros((0, 0)), nothing, nothing, nothing)

    @property
    def n_products(self) -> int:
        """Number of squares and products, which come before the cosines."""
        return len(self.first)

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.first) + len(self.phase)

    def __call__(self, z: Floats) -> Floats:
        """Return the terms ``(..., term)`` of predictors ``(..., predictor)``."""
        used = np.clip(z[..., self.at], self.low, self.high)
        products = used[..., self.first] * used[..., self.second]
        if not len(self.phase):
            return products
        return np.concatenate([products, np.cos(used @ self.frequency + self.phase)], -1)
