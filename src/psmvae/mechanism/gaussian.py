"""Predictions of cells from the observed other cells of their rows, by a Gaussian model.

Imputers by chained equations have no model that predicts a cell from what is observed of its row:
the other missing cells are filled with the help of the cell itself. A multivariate Normal, fitted
by EM to the encoded columns and their masks, predicts observed and missing cells in the same way,
so that a mask cannot be explained by how its cell was predicted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.predictors import Predictors

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Steps of EM, rows that it uses at most, and the ridge on the diagonal of the covariance.
N_STEPS, MAX_ROWS, RIDGE = 12, 4000, 1e-3
# Numbers held at once, and smallest probability of a level.
MAX_NUMBERS, MIN_PROBABILITY = 2 * 10**7, 0.01
# Smallest standard deviation of the code of an ordered level.
MIN_SPREAD = 0.3
# Encoded values are limited, so that a few extreme ones do not decide the covariance.
LIMIT = 10.0


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A multivariate Normal of encoded columns, followed by the masks of all columns."""

    mean: Floats
    covariance: Floats

    @classmethod
    def fit(cls, predictors: Predictors, x: Floats, m: Bools, seed: int) -> Self:
        """Fit to model values ``x`` with mask ``m`` by EM."""
        rows = np.sort(np.random.default_rng(seed).permutation(len(x))[:MAX_ROWS])
        z, seen = _encoded(predictors, x[rows], m[rows])
        made = cls(np.zeros(z.shape[1]), np.eye(z.shape[1]))
        for _ in range(1 if seen.all() else N_STEPS):
            made = made._step(z, seen)
        return made

    def predict(
        self,
        predictors: Predictors,
        x: Floats,
        m: Bools,
        hidden: Collection[int] = (),
        together: Mapping[int, Sequence[int]] | None = None,
    ) -> dict[int, Floats]:
        """Predict the cells of every column from the observed others.

        Missing cells are predicted in all columns, and observed ones in the columns in ``hidden``:
        both as an observed cell would be. ``together`` are, by column, the others that are never
        missing without it: what their masks say about its value is not identified either. Returns
        means in model values, or probabilities of levels.
        """
        z, seen = _encoded(predictors, x, m)
        found = {}
        for j, column in enumerate(predictors.columns):
            at = predictors.of(j)
            rows = np.flatnonzero(np.ones(len(x)) if j in hidden else ~m[:, j])
            without, others = seen[rows], z[rows]
            # The cell is not seen. Its mask is that of an observed cell in all rows: how missing
            # cells differ is not identified, and an average over the mask would depend on it.
            without[:, at] = False
            masks = [j, *(together or {}).get(j, ())]
            others[:, [len(predictors.group) + k for k in masks]] = 1.0
            mean = np.zeros((len(x), len(at)))
            mean[rows] = self._expected(others, without)[:, at]
            own = mean * predictors.scale[at] + predictors.center[at]
            if column.levels:
                found[j] = _probabilities(own, column.n_levels, predictors, j)
            elif column.kind == "count":
                found[j] = np.maximum(np.expm1(np.minimum(own[:, 0], 30.0)), 0.0)
            else:
                found[j] = own[:, 0]
        return found

    def _step(self, z: Floats, seen: Bools) -> Self:
        """Return the next parameters of EM."""
        n, p = z.shape
        total, square = np.zeros(p), np.zeros((p, p))
        for part in _chunks(n, p):
            inverse = self._inverse(seen[part])
            mean = self._mean(z[part], seen[part], inverse)
            total += mean.sum(0)
            left = len(mean) * self.covariance - self.covariance @ inverse.sum(0) @ self.covariance
            square += mean.T @ mean + left
        center = total / n
        covariance = square / n - np.outer(center, center)
        return type(self)(center, covariance + RIDGE * np.eye(p))

    def _expected(self, z: Floats, seen: Bools) -> Floats:
        """Return E[z | observed cells of its row]; observed cells are returned as they are."""
        parts = [
            self._mean(z[part], seen[part], self._inverse(seen[part]))
            for part in _chunks(len(z), z.shape[1])
        ]
        return np.concatenate(parts) if parts else z

    def _inverse(self, seen: Bools) -> Floats:
        """Return the inverse covariance of the observed cells of each row, 0 elsewhere."""
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        both = patterns[:, :, None] & patterns[:, None, :]
        filled = np.where(both, self.covariance, np.eye(seen.shape[1]))
        inverse = np.where(both, np.linalg.inv(filled), 0.0)
        return np.asarray(inverse[which.ravel()])

    def _mean(self, z: Floats, seen: Bools, inverse: Floats) -> Floats:
        away = np.where(seen, z - self.mean, 0.0)
        weight = (inverse @ away[..., None])[..., 0]
        return np.asarray(np.where(seen, z, self.mean + weight @ self.covariance))


def _encoded(predictors: Predictors, x: Floats, m: Bools) -> tuple[Floats, Bools]:
    """Return encoded columns, 0 where missing, and masks; also which are observed."""
    columns: list[Any] = [
        np.where(m[:, [j]], predictors.encode(j, np.where(m[:, j], x[:, j], 0.0)), 0.0)
        for j in range(x.shape[1])
    ]
    z = np.clip(np.concatenate(columns, 1), -LIMIT, LIMIT)
    seen = np.concatenate([m[:, predictors.group], np.ones(m.shape, dtype=bool)], 1)
    return np.concatenate([z, m.astype(np.float64)], 1), seen


def _chunks(n: int, p: int) -> list[slice]:
    size = max(1, MAX_NUMBERS // (p * p))
    return [slice(start, start + size) for start in range(0, n, size)]


def _probabilities(own: Floats, n_levels: int, predictors: Predictors, j: int) -> Floats:
    """Return probabilities ``(row, level)`` from expected indicators, or from the expected code."""
    codes, levels, at = np.arange(n_levels), predictors.levels[j], predictors.of(j)
    if levels:
        # levels without an indicator share what is left
        rest = np.setdiff1d(codes, levels)
        found = np.empty((len(own), n_levels))
        found[:, levels] = own
        found[:, rest] = (1 - own.sum(1, keepdims=True)) / max(len(rest), 1)
    elif n_levels == 2:
        found = np.column_stack([1 - own[:, 0], own[:, 0]])
    else:
        spread = max(float(predictors.scale[at[0]]), MIN_SPREAD)
        found = np.exp(-0.5 * ((codes - own) / spread) ** 2)
    found = np.maximum(found, MIN_PROBABILITY)
    return np.asarray(found / found.sum(1, keepdims=True))
