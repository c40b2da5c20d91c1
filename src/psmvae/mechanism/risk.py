"""Pattern sets of a mechanism: rows in which the same columns are likely to go missing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psmvae.mechanism.table import Mechanism
from psmvae.mechanism.words import at_risk_words

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

# Columns that define sets at most: those whose values explain their masks best.
MAX_COLUMNS = 4
# A set must hold this fraction of the training rows; smaller ones are joined to the nearest.
MIN_SIZE = 0.01


@dataclass(frozen=True, eq=False)
class RiskSets:
    """Sets of rows that are at risk of the same columns, the largest set first.

    ``columns`` are positions among the tilted columns, ``at_risk`` ``(set, column)`` says of which
    of them the rows of a set are at risk, ``size`` is the fraction of the training rows.
    """

    columns: Ints
    at_risk: Bools
    size: Floats

    @classmethod
    def of(cls, mechanism: Mechanism, probability: Floats, n_sets: int | None = None) -> Self:
        """Make the sets of training rows with probabilities of being at risk ``(row, column)``.

        ``n_sets`` is their number at most.
        """
        names = [mechanism.columns[j].name for j in mechanism.tilts]
        nats = np.array([mechanism[name].likelihoods.own_value for name in names])
        columns = np.sort(np.argsort(-np.nan_to_num(nats), kind="stable")[:MAX_COLUMNS])
        patterns = np.array(list(product((False, True), repeat=len(columns))))
        size = _proba(probability[:, columns], patterns).mean(0)
        largest = np.sort(size)[::-1][: n_sets or len(size)]
        kept = patterns[size >= max(min(MIN_SIZE, size.max()), largest[-1])][:n_sets]
        size = cls(columns, kept, np.zeros(len(kept))).proba(probability).mean(0)
        order = np.argsort(-size, kind="stable")
        return cls(columns, kept[order], size[order])

    def proba(self, probability: Floats) -> Floats:
        """Return the probability of each set, ``(row, set)``."""
        own = probability[:, self.columns]
        # rows of a pattern that is no set go to the nearest
        found = _proba(own, self.at_risk) + 1e-9 * _closeness(own, self.at_risk)
        return np.asarray(found / found.sum(1, keepdims=True))

    def words(self, mechanism: Mechanism) -> list[str]:
        """Describe each set by what its rows are at risk of."""
        tilts = list(mechanism.tilts.items())
        described = [at_risk_words(mechanism, *tilts[k]) for k in self.columns]
        return [
            "; ".join(text for text, risky in zip(described, row, strict=True) if risky)
            or "at no elevated risk"
            for row in self.at_risk
        ]


def _proba(probability: Floats, patterns: Bools) -> Floats:
    """Return the probability of each pattern ``(row, pattern)``, columns taken as independent."""
    each = np.where(patterns, probability[:, None], 1 - probability[:, None])
    return np.asarray(each.prod(-1))


def _closeness(probability: Floats, patterns: Bools) -> Floats:
    """Return how near each pattern is to a row: 2 minus the mean difference of the columns."""
    return np.asarray(2 - np.abs(probability[:, None] - patterns).mean(-1))
