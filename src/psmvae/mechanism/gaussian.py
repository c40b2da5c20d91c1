"""Predictions of cells from the observed other cells of their rows, by a Gaussian model.

Imputers by chained equations have no model that predicts a cell from what is observed of its row:
the other missing cells are filled with the help of the cell itself. A multivariate Normal, fitted
by EM to the encoded columns and their masks, predicts observed and missing cells in the same way,
so that a mask cannot be explained by how its cell was predicted.
"""

# ruff: noqa: SLF001 (other objects of the same class)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.predictors import Predictors

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Steps of EM with masks, and rows that are used at most.
N_STEPS, MAX_ROWS = 12, 4000
# Ridge on the covariance, with and without masks. The larger one is that with which the comparison
# of mask explanations was calibrated; columns that are nearly functions of others need a small one.
RIDGE = {True: 1e-3, False: 1e-4}
# Accelerated cycles of EM without masks, each of two steps; those on the first rows alone, and
# those from parameters of nearly the same cells.
N_CYCLES, N_CYCLES_FIRST, N_CYCLES_FROM_START = 8, 4, 3
# Largest factor by which steps are extrapolated.
MAX_ALPHA = 1e3
# Numbers held at once, and smallest probability of a level.
MAX_NUMBERS, MIN_PROBABILITY = 2 * 10**7, 0.01
# Smallest standard deviation of the code of an ordered level.
MIN_SPREAD = 0.3
# Encoded values are limited, so that a few extreme ones do not decide the covariance.
LIMIT = 10.0


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A multivariate Normal of encoded columns, followed by the ``masks`` of all columns."""

    mean: Floats
    covariance: Floats
    masks: bool = True

    @classmethod
    def fit(
        cls,
        predictors: Predictors,
        x: Floats,
        m: Bools,
        seed: int,
        *,
        masks: bool = True,
        start: Self | None = None,
        first: Bools | None = None,
    ) -> Self:
        """Fit to model values ``x`` with mask ``m`` by EM, from the parameters of ``start``.

        EM sees the rows ``first`` alone before it sees all rows.
        """
        rows = np.sort(np.random.default_rng(seed).permutation(len(x))[:MAX_ROWS])
        z, seen = encode(predictors, x[rows], m[rows], masks=masks)
        made = start or cls(np.zeros(z.shape[1]), np.eye(z.shape[1]), masks)
        if first is not None:
            made = made._em(z[first[rows]], seen[first[rows]], N_CYCLES_FIRST)
        return made._em(z, seen, N_CYCLES if start is None else N_CYCLES_FROM_START)

    def _em(self, z: Floats, seen: Bools, n_cycles: int) -> Self:
        """Return the parameters after EM; with masks it takes `N_STEPS` plain steps."""
        if seen.all():
            return self._step(z, seen)
        made = self
        for _ in range(N_STEPS if self.masks else n_cycles):
            made = made._step(z, seen) if self.masks else made._cycle(z, seen)
        return made

    def predict(
        self,
        predictors: Predictors,
        x: Floats,
        m: Bools,
        columns: Mapping[int, Sequence[int]],
        *,
        observed: bool = False,
    ) -> dict[int, Floats]:
        """Predict the missing cells of columns from the observed cells of their rows.

        The keys of ``columns`` are the columns. Its values are the other columns that are never
        missing without them: what their masks say about the value is not identified either. With
        ``observed``, observed cells are predicted too, as if they were missing. Returns means in
        model values, or probabilities of levels, by column.
        """
        z, seen = encode(predictors, x, m, masks=self.masks)
        at = {j: predictors.of(j) for j in columns}
        mean = {j: np.zeros((len(x), len(at[j]))) for j in columns}
        # rows with the same pattern follow each other, so that it is inverted once
        order = np.argsort(np.unique(seen, axis=0, return_inverse=True)[1].ravel(), kind="stable")
        for part in _chunks(len(x), z.shape[1]):
            rows = order[part]
            inverse, which = self._inverse(seen[rows])
            away = np.where(seen[rows], z[rows] - self.mean, 0.0)
            for j, together in columns.items():
                wanted = np.flatnonzero(observed | ~m[rows, j])
                others = away[wanted]
                if self.masks:
                    # The mask is that of an observed cell in all rows: how missing cells differ is
                    # not identified, and an average over the mask would depend on it.
                    masks = [len(predictors.group) + k for k in (j, *together)]
                    others[:, masks] = 1.0 - self.mean[masks]
                coef = self._coef(inverse, at[j])[which[wanted]]
                mean[j][rows[wanted]] = self.mean[at[j]] + (coef @ others[..., None])[..., 0]
        return {j: _prediction(predictors, j, mean[j]) for j in columns}

    def _coef(self, inverse: Floats, at: NDArray[np.intp]) -> Floats:
        """Return the regressions of the encoded columns ``at`` on the observed others.

        ``inverse`` ``(pattern, encoded, encoded)`` is that of `_inverse`. With P the inverse
        covariance of the observed cells and a those of them that are to be predicted, their
        coefficients are −P_aa⁻¹ P_a·. Returns ``(pattern, at, encoded)``.
        """
        coef = self.covariance[at] @ inverse
        # a column with one observed level has no encoded column
        seen = (inverse[:, at[:1], at[:1]] > 0).any(1)
        own = inverse[seen][:, at]
        coef[seen] = -np.linalg.solve(own[:, :, at], own)
        # the cells do not predict themselves
        coef[:, :, at] = 0.0
        return np.asarray(coef)

    def _step(self, z: Floats, seen: Bools) -> Self:
        """Return the next parameters of EM."""
        n, p = z.shape
        total, square = np.zeros(p), np.zeros((p, p))
        for part in _chunks(n, p):
            of_pattern, which = self._inverse(seen[part])
            inverse = of_pattern[which]
            mean = self._mean(z[part], seen[part], inverse)
            total += mean.sum(0)
            left = len(mean) * self.covariance - self.covariance @ inverse.sum(0) @ self.covariance
            square += mean.T @ mean + left
        center = total / n
        covariance = square / n - np.outer(center, center)
        return type(self)(center, covariance + RIDGE[self.masks] * np.eye(p), self.masks)

    def _cycle(self, z: Floats, seen: Bools) -> Self:
        """Return the parameters after two steps of EM, extrapolated by SQUAREM.

        With r the change by the first step and v how much that of the second differs from it, the
        parameters become θ + 2αr + α²v with α = |r| / |v| (Varadhan and Roland 2008, scheme S3).
        """
        first = self._step(z, seen)
        second = first._step(z, seen)
        ends = [np.column_stack([one.mean, one.covariance]) for one in (self, first, second)]
        r = ends[1] - ends[0]
        v = ends[2] - ends[1] - r
        alpha = float(np.linalg.norm(r) / np.maximum(np.linalg.norm(v), 1e-300))
        # EM has converged where steps hardly change
        if alpha <= 1 or alpha > MAX_ALPHA:
            return second
        found = ends[0] + 2 * alpha * r + alpha**2 * v
        try:
            np.linalg.cholesky(found[:, 1:])
        except np.linalg.LinAlgError:
            return second
        return type(self)(found[:, 0], found[:, 1:], self.masks)

    def _inverse(self, seen: Bools) -> tuple[Floats, NDArray[np.intp]]:
        """Return the inverse covariance of the observed cells, 0 elsewhere, of each pattern.

        Also returns the pattern of each row.
        """
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        both = patterns[:, :, None] & patterns[:, None, :]
        filled = np.where(both, self.covariance, np.eye(seen.shape[1]))
        return np.where(both, np.linalg.inv(filled), 0.0), which.ravel()

    def _mean(self, z: Floats, seen: Bools, inverse: Floats) -> Floats:
        """Return E[z | observed cells of its row]; observed cells are returned as they are."""
        away = np.where(seen, z - self.mean, 0.0)
        weight = (inverse @ away[..., None])[..., 0]
        return np.asarray(np.where(seen, z, self.mean + weight @ self.covariance))


def encode(
    predictors: Predictors, x: Floats, m: Bools, *, masks: bool = True
) -> tuple[Floats, Bools]:
    """Return encoded columns, 0 where missing, and masks if asked for; also which are observed."""
    columns: list[Any] = [
        np.where(m[:, [j]], predictors.encode(j, np.where(m[:, j], x[:, j], 0.0)), 0.0)
        for j in range(x.shape[1])
    ]
    z = np.clip(np.concatenate(columns, 1), -LIMIT, LIMIT)
    seen = m[:, predictors.group]
    if not masks:
        return z, seen
    always = np.ones(m.shape, dtype=bool)
    return np.concatenate([z, m.astype(np.float64)], 1), np.concatenate([seen, always], 1)


def _chunks(n: int, p: int) -> list[slice]:
    size = max(1, MAX_NUMBERS // (p * p))
    return [slice(start, start + size) for start in range(0, n, size)]


def _prediction(predictors: Predictors, j: int, mean: Floats) -> Floats:
    """Return means of encoded values as model values, or as probabilities of levels."""
    column, at = predictors.columns[j], predictors.of(j)
    own = mean * predictors.scale[at] + predictors.center[at]
    if column.levels:
        return _probabilities(own, column.n_levels, predictors, j)
    if column.kind == "count":
        return np.maximum(np.expm1(np.minimum(own[:, 0], 30.0)), 0.0)
    return np.asarray(own[:, 0])


def _probabilities(own: Floats, n_levels: int, predictors: Predictors, j: int) -> Floats:
    """Return probabilities ``(row, level)`` from expected indicators, or from the expected code."""
    codes, levels, at = np.arange(n_levels), predictors.levels[j], predictors.of(j)
    if levels or not len(at):
        # levels without an indicator share what is left
        rest = np.setdiff1d(codes, levels)
        found = np.empty((len(own), n_levels))
        found[:, list(levels)] = own
        found[:, rest] = (1 - own.sum(1, keepdims=True)) / max(len(rest), 1)
    elif n_levels == 2:
        found = np.column_stack([1 - own[:, 0], own[:, 0]])
    else:
        spread = max(float(predictors.scale[at[0]]), MIN_SPREAD)
        found = np.exp(-0.5 * ((codes - own) / spread) ** 2)
    found = np.maximum(found, MIN_PROBABILITY)
    return np.asarray(found / found.sum(1, keepdims=True))
