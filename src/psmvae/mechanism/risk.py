"""Pattern sets by mechanism: who was at risk of losing which value."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psmvae.mechanism.column import Tilt
from psmvae.mechanism.table import Mechanism

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


def at_risk_words(mechanism: Mechanism, j: int, tilt: Tilt) -> str:
    """Describe who is at risk of losing a column: "income above 3,300: 22 % go missing"."""
    probability, risky = tilt.probability(), tilt.at_risk()
    share = tilt.bins.share / (1 - probability)
    rate = share[risky] @ probability[risky] / max(float(share[risky].sum()), 1e-12)
    where = _region(mechanism, j, tilt, risky)
    return f"{mechanism.columns[j].name} {where}: {100 * rate:.0f} % go missing"


def _region(mechanism: Mechanism, j: int, tilt: Tilt, risky: Bools) -> str:
    if mechanism.columns[j].levels:
        levels = mechanism.in_units(j, tilt.bins.value[risky])
        return "in " + ", ".join(str(level) for level in levels)
    lower, upper = ([f"{value:,.4g}" for value in values] for values in _limits(mechanism, j, tilt))
    starts = np.flatnonzero(risky & ~np.concatenate([[False], risky[:-1]]))
    ends = np.flatnonzero(risky & ~np.concatenate([risky[1:], [False]]))
    parts = []
    for start, end in zip(starts, ends, strict=True):
        if start == 0:
            parts.append(f"below {upper[min(int(end), len(upper) - 1)]}")
        elif end == len(risky) - 1:
            parts.append(f"above {lower[start - 1]}")
        else:
            parts.append(f"between {lower[start - 1]} and {upper[end]}")
    return " or ".join(parts)


def _limits(mechanism: Mechanism, j: int, tilt: Tilt) -> tuple[Floats, Floats]:
    """Return the edges of the bins in units of the table.

    The edges of whole numbers are the last one below and the first one above: all values of a bin
    are above the former and below the latter.
    """
    column, bins = mechanism.columns[j], tilt.bins
    if column.kind not in ("integer", "count"):
        edges = mechanism.in_units(j, bins.edges)
        return edges, edges
    return mechanism.in_units(j, bins.high[:-1]), mechanism.in_units(j, bins.low[1:])


def _proba(probability: Floats, patterns: Bools) -> Floats:
    """Return the probability of each pattern ``(row, pattern)``, columns taken as independent."""
    each = np.where(patterns, probability[:, None], 1 - probability[:, None])
    return np.asarray(each.prod(-1))


def _closeness(probability: Floats, patterns: Bools) -> Floats:
    """Return how near each pattern is to a row: 2 minus the mean difference of the columns."""
    return np.asarray(2 - np.abs(probability[:, None] - patterns).mean(-1))
