"""Draws of missing cells whose value decides on their absence.

A missing cell has the distribution p_obs(x | rest) · exp γ(x). Values are proposed by the
regression of the observed rows, and accepted by the rule of Metropolis and Hastings. Its bias falls
geometrically with the number of proposals; that of one proposal taken in proportion to exp γ falls
as 1 / number only, and with 100 is .024 standard deviations of a Normal with γ(x) = x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    column's predictor or in codes of levels. A draw that is 0 has no tilt. Draws with
    ``is_straight`` are linear functions of the value, the others constant in a bin. γ does not
    apply to rows in which a column of ``missing_with`` is missing, whose mask explains that of the
    cell.
    """

    edges: Floats
    value: Floats
    gamma: Floats
    is_straight: Bools
    missing_with: tuple[int, ...] = ()

    def applies(self, m: Bools) -> Bools:
        """Return the rows of a mask ``(row, column)`` to which γ applies."""
        return np.asarray(m[:, list(self.missing_with)].all(1))

    def are_tilted(self, keys: Sequence[int]) -> Bools:
        """Return the draws ``keys``, modulo their number, in which γ is not 0."""
        return np.asarray(self.gamma[[key % len(self.gamma) for key in keys]].any(1))

    def __call__(self, keys: list[int], x: Floats, applies: Bools | None = None) -> Floats:
        """Return γ of values ``(chain, row)``, by draw ``key`` modulo their number.

        Where γ does not apply, cells have the distribution of observed and missing ones together,
        p_obs · (1 + exp γ), and this is log(1 + exp γ).
        """
        found, numbers = np.empty_like(x), [key % len(self.gamma) for key in keys]
        drawn = self.gamma[numbers]
        for chain, gamma in enumerate(drawn):
            if self.is_straight[numbers[chain]]:
                # γ of the outer bins may be limited: the steepest piece has the slope
                slopes = np.diff(gamma) / np.diff(self.value)
                at = int(np.abs(slopes).argmax())
                found[chain] = gamma[at] + slopes[at] * (x[chain] - self.value[at])
            else:
                found[chain] = gamma[np.searchsorted(self.edges, x[chain])]
        tilted = np.clip(found - np.median(drawn, 1, keepdims=True), -MAX_LOG_ODDS, MAX_LOG_ODDS)
        if applies is None or applies.all():
            return tilted
        return np.where(applies, tilted, np.logaddexp(0.0, np.minimum(found, MAX_LOG_ODDS)))

    def of_levels(self, keys: list[int], applies: Bools) -> Floats:
        """Return γ of the levels, ``(chain, row, level)``, or log(1 + exp γ); see `__call__`."""
        gamma = self.gamma[[key % len(self.gamma) for key in keys]][:, None]
        return np.where(applies[:, None], gamma, np.logaddexp(0.0, gamma))


def take_one(
    propose: Callable[[], Floats], log_odds: Callable[[Floats], Floats], rng: Draws
) -> Floats:
    """Return the last accepted proposal of each cell, by independent Metropolis–Hastings."""
    taken = propose()
    odds = np.exp(log_odds(taken))
    for _ in range(N_PROPOSALS - 1):
        proposed = propose()
        others = np.exp(log_odds(proposed))
        accepted = rng.uniform(taken.shape[1]) * odds < others
        taken, odds = np.where(accepted, proposed, taken), np.where(accepted, others, odds)
    return taken
