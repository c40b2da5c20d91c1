"""The distribution p_obs of a column given the others, among the rows where it is observed.

It is a mixture of up to three parts over the bins of the column: the model's prediction plus the
residual of any row, the prediction plus the residual of a row with a similar prediction, and a
random forest. Columns with levels have the model's probabilities instead of the first two. The
weights of the mixture maximise the likelihood of the observed cells, each predicted without itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.mechanism.bins import Bins
from psmvae.mechanism.leaves import Leaves

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Residuals of a row at most, and similar rows: at least and as a fraction of the observed.
N_RESIDUALS, MIN_SIMILAR, SIMILAR_FRACTION = 200, 50, 0.04
# Pseudo-count that shrinks the mean residual of similar rows towards that of all.
PSEUDO_COUNT = 20
# Observed rows that are kept for residuals at most.
MAX_KEPT = 4000
# Share of the column's marginal distribution in each part: no bin has probability 0.
FLOOR = 0.005
N_EM = 60
# A forest is grown if there are as many observed rows.
MIN_ROWS_FOREST = 100


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of observed rows in the order of their predictions."""

    prediction: Floats
    residual: Floats
    n_similar: int

    @classmethod
    def of(cls, prediction: Floats, values: Floats, *, similar: bool) -> Self:
        """Keep the residuals of the observed rows; ``similar`` uses those near in prediction."""
        order = np.argsort(prediction, kind="stable")
        at, residual = prediction[order], (values - prediction)[order]
        n = len(at)
        if n > MAX_KEPT:
            kept = np.linspace(0, n - 1, MAX_KEPT).astype(np.intp)
            at, residual, n = at[kept], residual[kept], MAX_KEPT
        if not similar:
            spread = np.quantile(residual, (np.arange(N_RESIDUALS) + 0.5) / N_RESIDUALS)
            return cls(np.zeros(0), spread, 0)
        n_similar = min(n, max(MIN_SIMILAR, int(SIMILAR_FRACTION * n)))
        return cls(at, residual, n_similar)

    def values(self, prediction: Floats, own: NDArray[np.intp] | None = None) -> Floats:
        """Return values ``(row, residual)``; ``own`` leaves out the residual of the row itself."""
        if not self.n_similar:
            return np.asarray(prediction[:, None] + self.residual)
        n, k = len(self.prediction), self.n_similar
        start = np.clip(self.prediction.searchsorted(prediction) - k // 2, 0, n - k)
        near = start[:, None] + np.unique(np.linspace(0, k - 1, N_RESIDUALS).astype(np.intp))
        if own is not None:
            near = np.where(near == own[:, None], np.where(near + 1 < n, near + 1, near - 1), near)
        found = self.residual[near]
        mean = found.mean(1, keepdims=True)
        overall = self.residual.mean()
        shrunk = overall + (mean - overall) * k / (k + PSEUDO_COUNT)
        return np.asarray(prediction[:, None] + found - mean + shrunk)


@dataclass(frozen=True, eq=False)
class Observed:
    """A fitted p_obs: its bins, its parts and their weights."""

    bins: Bins
    parts: tuple[Residuals | Leaves | None, ...]
    weight: Floats

    @property
    def low(self) -> float:
        """The smallest observed number."""
        return float(self.bins.low[0])

    @property
    def high(self) -> float:
        """The largest observed number."""
        return float(self.bins.high[-1])

    @classmethod
    def fit(
        cls,
        bins: Bins,
        features: Floats,
        prediction: Floats,
        values: Floats,
        observed: Bools,
        *,
        forest: bool,
        seed: int,
        n_jobs: int | None = None,
    ) -> tuple[Self, Floats]:
        """Fit the mixture; also return the distributions ``(row, bin)`` of the training rows.

        Parameters
        ----------
        bins : Bins
            Bins of the column.
        features : ndarray of shape (n_rows, n_features)
            The other columns.
        prediction : ndarray of shape (n_rows,) or (n_rows, n_levels)
            Prediction of the cell by a model that does not see it.
        values : ndarray of shape (n_observed,)
            The observed values.
        observed : ndarray of bool of shape (n_rows,)
            Rows with an observed cell.
        forest : bool
            Whether to grow a forest.
        seed : int
            Seed of the forest.
        n_jobs : int, optional
            Jobs that grow the forest.

        Returns
        -------
        Observed, ndarray of shape (n_rows, n_bins)
            The mixture and its distributions.
        """
        parts: list[Any] = []
        found: list[Floats] = []
        made = cls(bins, (), np.zeros(0))
        if prediction.ndim > 1:
            parts.append(None)
            found.append(made._floored(prediction))
        else:
            for similar in (False, True):
                part = Residuals.of(prediction[observed], values, similar=similar)
                own = _positions(part, prediction, observed) if similar else None
                parts.append(part)
                found.append(made._histogram(part.values(prediction, own)))
        if forest and len(values) >= MIN_ROWS_FOREST:
            leaves, distribution = Leaves.fit(
                features, bins.index(values), observed, len(bins), seed, n_jobs
            )
            parts.append(leaves)
            found.append(made._floored(distribution))
        weight = _mixture(found, bins.index(values), observed)
        mixed = sum(w * each for w, each in zip(weight, found, strict=True))
        return cls(bins, tuple(parts), weight), np.asarray(mixed)

    def predict(self, features: Floats, prediction: Floats) -> Floats:
        """Return the distributions ``(row, bin)`` of cells of other rows."""
        total = np.zeros((len(prediction), len(self.bins)))
        for weight, part in zip(self.weight, self.parts, strict=True):
            if isinstance(part, Residuals):
                total += weight * self._histogram(part.values(prediction))
            else:
                found = prediction if part is None else part.predict(features)
                total += weight * self._floored(found)
        return total

    def spread(self, p_obs: Floats, prediction: Floats) -> tuple[Floats, Floats] | None:
        """Return values ``(row, value)`` that are not grouped into bins, and their probabilities.

        They are the prediction plus residuals of all rows, beyond the observed range too. The other
        parts of ``p_obs`` ``(row, bin)`` keep the bins, with the mean of the row's values in each,
        or of the observed cells in a bin without any. The floor is left out. None for bins of
        single values.
        """
        part = self.parts[0]
        if (self.bins.low == self.bins.high).all() or not isinstance(part, Residuals):
            return None
        values, n_bins = part.values(prediction), len(self.bins)
        flat = (self.bins.index(values) + n_bins * np.arange(len(values))[:, None]).ravel()
        size, shape = len(values) * n_bins, (len(values), n_bins)
        count = np.bincount(flat, minlength=size).reshape(shape)
        total = np.bincount(flat, values.ravel(), minlength=size).reshape(shape)
        center = np.where(count > 0, total / np.maximum(count, 1), self.bins.value)
        plain = (p_obs - FLOOR * self.bins.share) / (1 - FLOOR)
        rest = np.maximum(plain - self.weight[0] * count / values.shape[1], 0.0)
        own = np.full_like(values, self.weight[0] / values.shape[1])
        probability = np.concatenate([own, rest], 1)
        probability /= probability.sum(1, keepdims=True)
        return np.concatenate([values, center], 1), probability

    def _histogram(self, values: Floats) -> Floats:
        """Return the share of a row's values in each bin."""
        n_rows, n_bins = len(values), len(self.bins)
        at = self.bins.index(np.clip(values, self.low, self.high))
        flat = (at + n_bins * np.arange(n_rows)[:, None]).ravel()
        counts = np.bincount(flat, minlength=n_rows * n_bins).reshape(n_rows, n_bins)
        return self._floored(counts / values.shape[1])

    def _floored(self, distribution: Floats) -> Floats:
        return np.asarray((1 - FLOOR) * distribution + FLOOR * self.bins.share)


def _positions(part: Residuals, prediction: Floats, observed: Bools) -> NDArray[np.intp]:
    """Return where the residual of each training row is kept, -1 if it is not."""
    own = np.full(len(prediction), -1)
    order = np.argsort(prediction[observed], kind="stable")
    rows = np.flatnonzero(observed)[order]
    kept = np.linspace(0, len(rows) - 1, len(part.prediction)).astype(np.intp)
    own[rows[kept]] = np.arange(len(kept))
    return own


def _mixture(found: list[Floats], at: NDArray[np.intp], observed: Bools) -> Floats:
    """Return the weights that maximise the likelihood of the observed cells, by EM."""
    rows = np.flatnonzero(observed)
    each = np.stack([distribution[rows, at] for distribution in found], 1)
    weight = np.full(len(found), 1 / len(found))
    for _ in range(N_EM):
        share = each * weight
        share /= share.sum(1, keepdims=True)
        weight = (share.sum(0) + 0.5) / (len(rows) + 0.5 * len(found))
    return weight
