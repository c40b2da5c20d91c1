"""Draws of missing cells whose value decides on their absence.

A missing cell has the distribution p_obs(x | rest) · exp γ(x): values are proposed by the
regression of the observed rows, and one of them is taken with probability in proportion to exp γ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.regression import Draws

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Proposals for one cell.
N_PROPOSALS = 100
# Largest difference of γ from its median.
MAX_LOG_ODDS = 12.0


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Drawn functions γ of one column: log odds of going missing.

    ``gamma`` is ``(draw, bin)``, for bins between ``edges`` with mean ``value``, in units of the
    column's predictor or in codes of levels. Draws with ``is_straight`` are linear functions of the
    value, the others constant in a bin.
    """

    edges: Floats
    value: Floats
    gamma: Floats
    is_straight: Bools

    def __call__(self, keys: list[int], x: Floats) -> Floats:
        """Return γ of values ``(chain, row)``, by draw ``key`` modulo their number."""
        found, numbers = np.empty_like(x), [key % len(self.gamma) for key in keys]
        drawn = self.gamma[numbers]
        drawn = drawn - np.median(drawn, 1, keepdims=True)
        for chain, gamma in enumerate(drawn):
            if self.is_straight[numbers[chain]]:
                # γ of the outer bins may be limited: the steepest piece has the slope
                slopes = np.diff(gamma) / np.diff(self.value)
                at = int(np.abs(slopes).argmax())
                found[chain] = gamma[at] + slopes[at] * (x[chain] - self.value[at])
            else:
                found[chain] = gamma[np.searchsorted(self.edges, x[chain])]
        return np.clip(found, -MAX_LOG_ODDS, MAX_LOG_ODDS)

    def of_levels(self, keys: list[int]) -> Floats:
        """Return γ of the levels, ``(chain, 1, level)``."""
        return self.gamma[[key % len(self.gamma) for key in keys]][:, None]


def take_one(
    propose: Callable[[], Floats], log_odds: Callable[[Floats], Floats], rng: Draws
) -> Floats:
    """Take one of several proposals of each cell, in proportion to exp γ."""
    taken = propose()
    total = np.exp(log_odds(taken))
    for _ in range(N_PROPOSALS - 1):
        proposed = propose()
        odds = np.exp(log_odds(proposed))
        total += odds
        taken = np.where(rng.uniform(taken.shape[1]) * total < odds, proposed, taken)
    return taken
