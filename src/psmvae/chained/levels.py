"""One step of the chains for a column of levels: a sequence of logistic regressions.

The levels are taken in turn: is it the first, if not is it the second, and so on. The likelihood of
these questions is a product, so that their parameters can be drawn one question after another.
Ordinal levels are taken in their order (a continuation-ratio model), others by frequency.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.numeric import MIN_HELD_OUT, P_NOT_USED
from psmvae.chained.regression import Draws, dependent, transposed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

# Questions at most. Levels after them are drawn in proportion to the learned probabilities, or to
# their frequencies.
MAX_QUESTIONS = 20
# Prior standard deviation of a coefficient of a standardised predictor and of the intercept. It
# keeps coefficients finite where a predictor separates the levels.
PRIOR_DEVIATION, PRIOR_DEVIATION_INTERCEPT = 5.0, 10.0
N_NEWTON = 12
TOLERANCE = 1e-6
LEARNED_COEFS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
# Learned log odds are clipped, since very small probabilities are not reliable.
MAX_LOG_ODDS = 8.0


class LevelParameters(NamedTuple):
    """Drawn parameters of one column, for each chain and question.

    The log odds of level ``order[q]`` against all later ones are ``intercept + predictors · coef +
    learned_coef · (the learned log odds)``. ``coef`` is ``(chain, question, predictor)``, the
    others ``(chain, question)``. ``mode`` are the posterior modes, from which the next round
    starts; ``shares`` are the frequencies of the levels.
    """

    order: Ints
    coef: Floats
    intercept: Floats
    learned_coef: Floats
    mode: Floats
    shares: Floats

    def draw(self, x: Floats, learned: Floats | None, shift: Floats | None, rng: Draws) -> Floats:
        """Draw codes ``(chain, row)`` given predictors ``(chain, row, predictor)``.

        ``shift`` ``(row, level)`` or ``(chain, 1, level)`` is added to the log probabilities.
        """
        n_chains, n_rows = x.shape[:2]
        probability = np.empty((n_chains, n_rows, len(self.order)))
        remaining = np.ones((n_chains, n_rows))
        n_questions = self.coef.shape[1]
        for q in range(n_questions):
            log_odds = _linear(x, self.coef[:, q]) + self.intercept[:, q, None]
            if learned is not None:
                log_odds = log_odds + self.learned_coef[:, q, None] * _odds(learned, self.order, q)
            yes = _sigmoid(log_odds)
            probability[..., q] = remaining * yes
            remaining = remaining * (1 - yes)
        rest = self.order[n_questions:]
        share = self.shares[rest] if learned is None else np.maximum(learned[:, rest], 1e-12)
        probability[..., n_questions:] = remaining[..., None] * share / share.sum(-1, keepdims=True)
        if shift is not None:
            probability *= np.exp(shift[..., self.order])
        cumulated = probability.cumsum(-1)
        uniform = rng.uniform(n_rows) * cumulated[..., -1]
        at = (cumulated < uniform[..., None]).sum(-1)
        return np.asarray(self.order[np.minimum(at, len(self.order) - 1)], dtype=np.float64)


def fit_levels(
    x: Floats,
    codes: Ints,
    learned: Floats | None,
    held_out: Bools,
    rng: Draws,
    *,
    n_levels: int,
    ordered: bool,
    start: LevelParameters | None = None,
) -> LevelParameters:
    """Draw the parameters of a column from their posterior given its observed rows.

    ``x`` are predictors ``(chain, row, predictor)``, ``codes`` ``(row,)`` and the learned
    probabilities ``(row, level)``. Predictors that are constant or collinear are left out, as in
    the regression of a number: their coefficients would be drawn from the prior.
    """
    away = x - x.mean(1, keepdims=True)
    dropped = dependent((transposed(away) @ away).mean(0), x.shape[1])
    x = np.where(dropped, 0.0, x)
    counts = np.bincount(codes, minlength=n_levels)
    order = np.arange(n_levels) if ordered else np.argsort(-counts, kind="stable")
    # levels that do not occur are never drawn
    order = order[counts[order] > 0]
    rank = np.full(n_levels, -1)
    rank[order] = np.arange(len(order))
    position = rank[codes]
    n_questions = min(len(order) - 1, MAX_QUESTIONS)
    n_chains, _, n = x.shape
    shape = (n_chains, n_questions)
    coef, intercept = np.zeros((*shape, n)), np.zeros(shape)
    learned_coef, mode = np.zeros(shape), np.zeros((*shape, n + 1))
    for q in range(n_questions):
        rows = np.flatnonzero(position >= q)
        answer = (position[rows] == q).astype(np.float64)
        design = np.concatenate([np.ones((n_chains, len(rows), 1)), x[:, rows]], -1)
        first = np.zeros((n_chains, n + 1)) if start is None else start.mode[:, q]
        at, root, weight = _newton(design, answer, np.zeros((n_chains, len(rows))), first)
        offset = np.zeros((n_chains, len(rows)))
        projection = np.zeros((n_chains, n + 1))
        if learned is not None:
            odds = _odds(learned[rows], order, q)
            projection = _weighted_fit(design, odds, weight)
            rest = odds - _linear(design, projection)
            learned_coef[:, q] = _learned_coef(
                _linear(design, at), rest, answer, held_out[rows], rng
            )
            offset = learned_coef[:, q, None] * rest
            if learned_coef[:, q].any():
                at, root, weight = _newton(design, answer, offset, at)
        mode[:, q] = at
        drawn = at + (root @ rng.normal(n + 1)[..., None])[..., 0]
        drawn = drawn - learned_coef[:, q, None] * projection
        intercept[:, q], coef[:, q] = drawn[:, 0], np.where(dropped, 0.0, drawn[:, 1:])
    return LevelParameters(order, coef, intercept, learned_coef, mode, counts / counts.sum())


def _newton(
    design: Floats, answer: Floats, offset: Floats, start: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the posterior mode, a root of its covariance and the weights of the rows."""
    n = design.shape[-1]
    precision = np.full(n, PRIOR_DEVIATION**-2)
    precision[0] = PRIOR_DEVIATION_INTERCEPT**-2
    at = start.copy()
    for _ in range(N_NEWTON):
        p = _sigmoid(_linear(design, at) + offset)
        weight = np.maximum(p * (1 - p), 1e-6)
        hessian = transposed(design * weight[..., None]) @ design + precision * np.eye(n)
        gradient = _linear(transposed(design), answer - p) - precision * at
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        # a full Newton step can overshoot where the fit is almost separated
        at = at + np.clip(step, -4.0, 4.0)
        if np.abs(step).max() < TOLERANCE:
            break
    root = np.linalg.cholesky(np.linalg.inv(hessian))
    return at, root, weight


def _learned_coef(
    log_odds: Floats, rest: Floats, answer: Floats, held_out: Bools, rng: Draws
) -> Floats:
    """Draw the coefficient of the learned log odds by the likelihood of held-out cells."""
    if np.count_nonzero(held_out) < MIN_HELD_OUT:
        return np.zeros(len(log_odds))
    total = log_odds[:, None, held_out] + LEARNED_COEFS[:, None] * rest[:, None, held_out]
    sign = 2 * answer[held_out] - 1
    log = -np.logaddexp(0.0, -sign * total).sum(-1)
    prior = np.full(len(LEARNED_COEFS), np.log((1 - P_NOT_USED) / (len(LEARNED_COEFS) - 1)))
    prior[0] = np.log(P_NOT_USED)
    log = log + prior
    weight = np.exp(log - log.max(1, keepdims=True)).cumsum(1)
    chosen = (weight / weight[:, -1:] < rng.uniform(1)).sum(1)
    return np.asarray(LEARNED_COEFS[chosen])


def _weighted_fit(design: Floats, y: Floats, weight: Floats) -> Floats:
    """Return the coefficients of a weighted regression of ``y`` ``(row,)``."""
    weighted = design * weight[..., None]
    gram = transposed(weighted) @ design + 1e-6 * np.eye(design.shape[-1])
    return np.asarray(np.linalg.solve(gram, transposed(weighted) @ y[:, None])[..., 0])


def _odds(probability: Floats, order: Ints, q: int) -> Floats:
    """Return the log odds of level ``order[q]`` against the later ones."""
    tiny = np.finfo(np.float64).tiny
    yes, no = probability[:, order[q]], probability[:, order[q + 1 :]].sum(1)
    odds = np.log(np.maximum(yes, tiny)) - np.log(np.maximum(no, tiny))
    return np.asarray(np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _linear(terms: Floats, coef: Floats) -> Floats:
    return np.asarray((terms @ coef[..., None])[..., 0])
