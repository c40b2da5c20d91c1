"""Nonlinear terms of a regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Predictors that enter nonlinear terms: those most correlated with the target.
MAX_PREDICTORS = 5
# Frequencies of the sines and cosines of one predictor, in radians for a standard deviation. Sums
# of them are smooth functions of it.
FREQUENCIES = (0.6, 1.2, 1.8)
# Cosines of several predictors, at most how many, and the standard deviation of their frequencies.
N_JOINT, MAX_ACTIVE, JOINT_FREQUENCY = 12, 3, 0.9
# Terms at most.
MAX_TERMS = (
    MAX_PREDICTORS * (MAX_PREDICTORS + 1) // 2 + 2 * len(FREQUENCIES) * MAX_PREDICTORS + N_JOINT
)
# Fewest rows for each nonlinear term.
ROWS_PER_TERM = 4


@dataclass(frozen=True)
class Basis:
    """Squares, products, sines and cosines of a few predictors.

    Predictors are clipped to their observed range first. Otherwise a value a little outside gives a
    larger one in the next column, and a chain of squares diverges.

    ``at`` are the predictors used, ``first`` and ``second`` the factors of each product among them,
    ``frequency`` ``(predictor, cosine)`` and ``phase`` ``(cosine,)`` define the cosines (a sine is
    one with a phase), and ``low`` and ``high`` are the ranges.
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
        # functions of an indicator are linear in it
        is_number = np.array([len(np.unique(z[:, k])) > 2 for k in at], dtype=bool)
        keep = (first != second) | is_number[first]
        first, second = first[keep], second[keep]
        if len(at) == 0 or n_terms < len(first):
            return cls.empty()
        frequency, phase = _cosines(is_number, rng)
        n_cosines = n_terms - len(first)
        frequency, phase = frequency[:, :n_cosines], phase[:n_cosines]
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

    def write(self, z: Floats, terms: Floats) -> None:
        """Write the terms ``(..., term)`` of predictors ``(..., predictor)``."""
        used = np.clip(z[..., self.at], self.low, self.high)
        for k, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            np.multiply(used[..., a], used[..., b], out=terms[..., k])
        if not len(self.phase):
            return
        # Cosines are the largest part of the time of chains, and several times as fast in float32.
        # Sums of few products are faster than a matrix product, and a row does not depend on the
        # number of rows.
        single, frequency = used.astype(np.float32), self.frequency.astype(np.float32)
        angle = np.empty((*used.shape[:-1], len(self.phase)), dtype=np.float32)
        angle[...] = self.phase
        for k, each in enumerate(frequency):
            angle += single[..., k, None] * each
        terms[..., self.n_products :] = np.cos(angle, out=angle)


def _cosines(is_number: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return frequencies ``(predictor, cosine)`` and phases, low frequencies first."""
    n = len(is_number)
    own = np.concatenate([np.eye(n)[:, is_number] * each for each in FREQUENCIES], 1)
    # a cosine and a sine of each
    own = np.repeat(own, 2, axis=1)
    phase = np.tile([0.0, -np.pi / 2], own.shape[1] // 2)
    if n < 2:
        return own, phase
    n_active = rng.integers(2, min(MAX_ACTIVE, n) + 1, N_JOINT)
    order = rng.random((n, N_JOINT)).argsort(0).argsort(0)
    joint = JOINT_FREQUENCY * rng.normal(size=order.shape) * (order < n_active)
    phase = np.concatenate([phase, rng.uniform(0, 2 * np.pi, N_JOINT)])
    return np.concatenate([own, joint], 1), phase
