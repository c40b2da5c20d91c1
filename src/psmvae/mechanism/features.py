"""The other columns as features of a column's mask and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.predictors import Predictors

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Standardised features are limited: a few extreme values would dominate linear models.
LIMIT = 6.0


@dataclass(frozen=True, eq=False)
class Features:
    """Standardised columns of a table, missing cells at the mean, and their masks.

    A mask of another column is a feature too, because the mask of a column must not depend on it
    given the value. ``has_mask`` are the columns whose mask is used.
    """

    predictors: Predictors
    has_mask: NDArray[np.intp]

    @classmethod
    def of(cls, predictors: Predictors, m: Bools) -> Self:
        """Make the features of a training table with mask ``m``."""
        return cls(predictors, np.flatnonzero(~m.all(0)))

    @property
    def group(self) -> NDArray[np.intp]:
        """Table column of each feature."""
        return np.concatenate([self.predictors.group, self.has_mask])

    @property
    def is_mask(self) -> Bools:
        """Whether each feature is the mask of its column."""
        return np.arange(len(self.group)) >= len(self.predictors.group)

    def table(self, x: Floats, m: Bools) -> Floats:
        """Return all features ``(row, feature)``.

        A missing cell is at the mean of its column. A prediction in its place would depend on the
        other cells of the row, and so on whether the cell that is to be explained is observed.
        """
        parts = []
        for j in range(x.shape[1]):
            seen = self.predictors.encode(j, np.where(m[:, j], x[:, j], 0.0))
            parts.append(np.where(m[:, [j]], seen, 0.0))
        encoded = np.clip(np.concatenate(parts, 1), -LIMIT, LIMIT)
        return np.concatenate([encoded, (~m[:, self.has_mask]).astype(np.float64)], 1)

    def of_others(self, j: int, table: Floats) -> Floats:
        """Return the features that do not come from column ``j``."""
        return table[:, self.group != j]
