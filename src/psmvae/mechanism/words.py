"""Descriptions of the values that go missing most often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psmvae.table.numbers import number

if TYPE_CHECKING:
    from psmvae.mechanism.column import Tilt
    from psmvae.mechanism.table import Mechanism

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# A ceiling of 1 cannot be told from a high one: more than this fraction of the values at risk is
# missing, and less than this fraction of the observed cells is at risk.
MOST, FEW_AT_RISK = 0.75, 0.06
# Numbers from here on are shown with an exponent.
LARGEST = 1e12


def missing_rate(tilt: Tilt) -> float:
    """Return the fraction of the values at risk that go missing."""
    probability, risky = tilt.probability(), tilt.at_risk()
    # observed shares, enlarged by those that went missing
    share = tilt.bins.share / np.maximum(1 - probability, 1e-12)
    return float(share[risky] @ probability[risky] / max(float(share[risky].sum()), 1e-12))


def few_observed(tilt: Tilt) -> bool:
    """Return whether most values at risk are missing, and few cells say what they are."""
    at_risk = float(tilt.bins.share[tilt.at_risk()].sum())
    return missing_rate(tilt) > MOST and at_risk < FEW_AT_RISK


def at_risk_words(mechanism: Mechanism, j: int, tilt: Tilt) -> str:
    """Describe the values at risk and their missing rate: "income above 3,300: 22 % go missing"."""
    risky = tilt.at_risk()
    rate = missing_rate(tilt)
    where = _region(mechanism, j, tilt, risky)
    return f"{mechanism.columns[j].name} {where}: {100 * rate:.0f} % go missing"


def _region(mechanism: Mechanism, j: int, tilt: Tilt, risky: Bools) -> str:
    if mechanism.columns[j].levels:
        levels = mechanism.in_units(j, tilt.bins.value[risky])
        return "in " + ", ".join(str(level) for level in levels)
    lower, upper = (
        [number(float(value), largest=LARGEST) for value in values]
        for values in _limits(mechanism, j, tilt)
    )
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
