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

    ``low`` and ``high`` are the smallest and largest observed value of each bin.

    The bins of a column with levels are its levels. Distinct values are bins where there are few
    of them. Otherwise a value that is frequent, such as 0 in a zero-inflated column, has a bin of
    its own and the others are grouped by quantiles.
    """

    edges: Floats
    value: Floats
    share: Floats
    low: Floats
    high: Floats

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
        # the middle of two neighbouring floats may be the upper one, which is in the upper bin
        below = np.nextafter(distinct[last + 1], -np.inf)
        edges = np.minimum((distinct[last] + distinct[last + 1]) / 2, below)
        return cls._between(edges, values)

    @classmethod
    def of_levels(cls, codes: Floats, n_levels: int) -> Self:
        """Make one bin for each level."""
        made = cls._between(np.arange(0.5, n_levels - 1), codes)
        levels = np.arange(float(n_levels))
        return cls(made.edges, levels, made.share, levels, levels)

    @classmethod
    def _between(cls, edges: Floats, values: Floats) -> Self:
        at = np.searchsorted(edges, values)
        counts = np.bincount(at, minlength=len(edges) + 1)
        totals = np.bincount(at, values, minlength=len(edges) + 1)
        value = totals / np.maximum(counts, 1)
        low, high = value.copy(), value.copy()
        np.minimum.at(low, at, values)
        np.maximum.at(high, at, values)
        return cls(edges, value, counts / max(len(values), 1), low, high)

    def __len__(self) -> int:
        return len(self.value)

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the bin of each value."""
        return np.searchsorted(self.edges, values)
