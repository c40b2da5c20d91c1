"""Bins of the observed values of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

N_BINS = 32


@dataclass(frozen=True)
class Bins:
    """Bins between ``edges``, with the mean ``value`` and the ``share`` of the observed cells.

    The bins of a column with levels are its levels. Distinct values are bins where there are few
    of them. Otherwise a value that is frequent, such as 0 in a zero-inflated column, has a bin of
    its own and the others are grouped by quantiles.
    """

    edges: Floats
    value: Floats
    share: Floats

    @classmethod
    def of(cls, values: Floats, n_bins: int = N_BINS) -> Self:
        """Make the bins of observed numbers."""
        distinct, counts = np.unique(values, return_counts=True)
        last = np.arange(len(distinct) - 1)
        if len(distinct) > n_bins:
            is_frequent = counts > len(values) / n_bins
            frequent = np.flatnonzero(is_frequent)
            others = np.where(is_frequent, 0, counts).cumsum()
            n_groups = max(2, n_bins - 2 * len(frequent))
            targets = others[-1] * np.arange(1, n_groups) / n_groups
            last = np.unique(np.concatenate([others.searchsorted(targets), frequent, frequent - 1]))
            last = last[(last >= 0) & (last < len(distinct) - 1)]
        edges = (distinct[last] + distinct[last + 1]) / 2
        return cls._between(edges, values)

    @classmethod
    def of_levels(cls, codes: Floats, n_levels: int) -> Self:
        """Make one bin for each level."""
        made = cls._between(np.arange(0.5, n_levels - 1), codes)
        return cls(made.edges, np.arange(float(n_levels)), made.share)

    @classmethod
    def _between(cls, edges: Floats, values: Floats) -> Self:
        at = np.searchsorted(edges, values)
        counts = np.bincount(at, minlength=len(edges) + 1)
        totals = np.bincount(at, values, minlength=len(edges) + 1)
        return cls(edges, totals / np.maximum(counts, 1), counts / max(len(values), 1))

    def __len__(self) -> int:
        return len(self.value)

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the bin of each value."""
        return np.searchsorted(self.edges, values)
