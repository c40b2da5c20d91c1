"""Explanations of the mask of one column: their comparison, and imputation by the value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from psmvae._quiet import FORESTS, load_libraries
from psmvae.chained.tilt import LogOdds
from psmvae.mechanism import rivals
from psmvae.mechanism.bins import Bins
from psmvae.mechanism.correction import Correction
from psmvae.mechanism.dropout import MIN_CELLS
from psmvae.mechanism.evidence import BayesFactors, bayes_factors
from psmvae.mechanism.families import Posterior, fit_families, refit_straight
from psmvae.mechanism.observed import Observed
from psmvae.mechanism.question import Question
from psmvae.mechanism.rivals import Likelihoods

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

# The value of a cell must explain its mask better than chance by as many nats.
MIN_NATS = 7.0
# The other columns may explain it better by MAX_BEHIND nats, and by a fraction of what the value
# explains beyond some nats: a large table shows that p_obs is an approximation. Chosen by simulated
# tables and by masks drawn for real ones, with seeds that no result uses.
MAX_BEHIND, MAX_BEHIND_FRACTION, BEHIND_FROM = 5.0, 0.45, 30.0
# Columns of levels must explain at least this fraction of what the other columns do: their
# probabilities have no shape that the model may miss. Chosen by simulated tables, with seeds that
# no result uses.
MIN_RATIO_LEVELS = 0.82
# Given the value, the other columns must add little: at most this fraction of what it explains,
# and as many nats.
MAX_ADDED, MAX_ADDED_NATS = 0.15, 2.0
# Smallest logarithms of the Bayes factors. Large tables show that p_obs is an approximation: above
# CLEAR_NATS that the value explains, a fraction of the rest is allowed for it. Chosen by simulated
# tables of 100 to 2,000 rows, with seeds that no result uses.
MIN_AGAINST_ONE, MIN_AGAINST_ANY = -0.75, -3.0
# Below these and above this logarithm of odds (1 : 20), a share of the draws is still by the value
# of the cell.
MIN_DRAWN = -3.0
CLEAR_NATS, APPROXIMATION = 60.0, 0.04
# The first comparison, without forests, is passed with less.
SCREEN_NATS, SCREEN_RATIO = 3.5, 0.25
# Rows whose masks are used at most.
MAX_ROWS = 10_000
# Draws of γ, and of the choice of an explanation, which has the period of the chains at most.
N_DRAWS, N_REPEATED = 60, 20
NOT_COMPARED = BayesFactors(np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Cells:
    """One column of a training table.

    ``prediction`` ``(row,)`` or ``(row, level)`` is that of a model that does not see the cell;
    numbers are corrected for the training on it. ``features`` ``(row, feature)`` are the other
    columns, standardised and filled, and their masks (``is_mask``); ``group`` is the number of each
    feature's column. Values that ``are_logarithms`` are never averaged: the mean of
    the column is not exp of their mean. Rows in which a column of ``missing_with`` is missing are
    not ``usable``: another mask explains that of the cell.
    """

    values: Floats
    observed: Bools
    prediction: Floats
    features: Floats
    group: NDArray[np.intp]
    is_mask: Bools
    n_levels: int
    ordered: bool
    are_logarithms: bool
    usable: Bools
    missing_with: tuple[int, ...]

    @property
    def inputs(self) -> Floats:
        """Features and prediction, for regressions."""
        return inputs_of(self.features, self.prediction)


@dataclass(frozen=True, eq=False)
class Tilt:
    """A fitted γ, with what it takes to impute by it.

    ``correction`` is None for columns of levels and for those whose predictor is a logarithm.
    """

    observed: Observed
    gamma: Floats
    weight: Floats
    draws: LogOdds
    correction: Correction | None
    family: str

    @property
    def bins(self) -> Bins:
        """Bins of the column."""
        return self.observed.bins

    def tilted(self, p_obs: Floats, applies: Bools | None = None) -> Floats:
        """Return p(x | rest, missing) ``(row, bin)``, averaged over the candidates for γ.

        In rows to which γ does not apply, the mask of another column explains that of the cell, and
        this is p(x | rest), of observed and missing cells together.
        """
        total = np.zeros_like(p_obs)
        for weight, gamma in zip(self.weight, self.gamma, strict=True):
            each = p_obs * factor(gamma, applies)
            total += weight * each / each.sum(1, keepdims=True)
        return total

    def share_missing(self, p_obs: Floats) -> Floats:
        """Return the probability of going missing by the value of the cell, ``(row,)``."""
        odds = p_obs @ np.exp(self.gamma).T
        return np.asarray((odds / (1 + odds)) @ self.weight)

    def p_obs(self, features: Floats, prediction: Floats) -> Floats:
        """Return p_obs(x | rest) ``(row, bin)`` of new rows."""
        return self.observed.predict(inputs_of(features, prediction), prediction)

    def draw(
        self, p_obs: Floats, number: int, rng: np.random.Generator, applies: Bools | None = None
    ) -> Floats:
        """Draw one value of each row, with draw ``number`` of γ.

        A value is drawn uniformly between the smallest and the largest observed value of its bin.
        """
        gamma = self.draws.gamma[number % len(self.draws.gamma)]
        odds = (p_obs * factor(gamma, applies)).cumsum(1)
        at = (odds < rng.random((len(odds), 1)) * odds[:, -1:]).sum(1)
        low, high = self.bins.low[at], self.bins.high[at]
        return np.asarray(low + rng.random(len(at)) * (high - low))

    def distribution(
        self, features: Floats, prediction: Floats, applies: Bools | None = None
    ) -> Floats:
        """Return p(x | rest, missing) ``(row, bin)`` of new rows; see `tilted`."""
        return self.tilted(self.p_obs(features, prediction), applies)

    def mean(self, features: Floats, prediction: Floats, applies: Bools | None = None) -> Floats:
        """Return the means of missing cells of a numeric column; see `tilted`."""
        inputs = inputs_of(features, prediction)
        p_obs = self.observed.predict(inputs, prediction)
        estimates = self.estimates(p_obs, prediction)
        mean = np.asarray(estimates[:, 0])
        if self.correction is not None:
            mean = self._limited(self.correction.predict(inputs, estimates), prediction)
        if applies is None or applies.all():
            return mean
        share = np.where(applies, 1.0, self.share_missing(p_obs))
        return np.asarray(prediction + share * (mean - prediction))

    def estimates(self, p_obs: Floats, prediction: Floats) -> Floats:
        """Return the two estimates of the mean that need no further regression."""
        tilted = self.tilted(p_obs) @ self.bins.value
        moved = prediction + tilted - p_obs @ self.bins.value
        return np.column_stack([self._limited(moved, prediction), tilted])

    def _limited(self, mean: Floats, prediction: Floats) -> Floats:
        """Limit means to the observed range, or to the model's prediction where that is outside.

        The largest values may all be missing. The model may predict such a value, but the tilt
        does not move any further than values that were observed.
        """
        low = np.minimum(prediction, self.observed.low)
        return np.clip(mean, low, np.maximum(prediction, self.observed.high))

    def probability(self) -> Floats:
        """Return the probability of going missing in each bin."""
        each = 0.5 * (1 + np.tanh(0.5 * self.gamma))
        return np.asarray(self.weight @ each)

    def band(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return a pointwise band of the probability of going missing in each bin.

        It is that of draws in which the value explains the mask.
        """
        each = 0.5 * (1 + np.tanh(0.5 * self.draws.gamma[self.draws.gamma.any(1)]))
        ends = (1 - level) / 2, (1 + level) / 2
        low, high = np.quantile(each, ends, axis=0)
        return np.asarray(low), np.asarray(high)

    def at_risk(self) -> Bools:
        """Return the bins whose probability is nearer to the largest than to the smallest."""
        probability = self.probability()
        return np.asarray(probability > 0.5 * (probability.max() + probability.min()))


@dataclass(frozen=True, eq=False)
class Finding:
    """What was compared for one column, and what was chosen.

    Attributes
    ----------
    likelihoods : Likelihoods
        Log-likelihoods of held-out masks under each explanation.
    chosen : {"own value", "at random"}
        The explanation that single imputations use, and at least half of the draws.
    assumed : bool
        Whether ``mask_model`` states that the value decides. "own value" is then an assumption and
        not the result of the comparison.
    n_missing, n_rows : int
        Number of missing cells and of rows.
    tilt : Tilt or None
        The fitted log odds γ; None where cells are taken to be missing at random. `Mechanism.odds`
        returns them as a table.
    n_joint : int
        Number of missing cells in rows where another column is missing that is hardly ever missing
        without this one, such as an earlier visit. They are explained by that column, and taken to
        be missing at random.
    log_bayes_factors : BayesFactors
        Logarithms of the Bayes factors of the value of the cell against the other columns.
    alternative : Tilt or None
        Where "at random" was chosen and the Bayes factors exclude the value of the cell only
        narrowly: γ, which is 0 in most of its draws. Draws of missing cells use it, single
        imputations do not.
    """

    likelihoods: Likelihoods
    chosen: Literal["own value", "at random"]
    assumed: bool
    n_missing: int
    n_rows: int
    tilt: Tilt | None = field(repr=False)
    n_joint: int = 0
    log_bayes_factors: BayesFactors = NOT_COMPARED
    alternative: Tilt | None = field(default=None, repr=False)

    @property
    def drawn(self) -> Tilt | None:
        """γ of draws: `tilt` or `alternative`."""
        return self.alternative if self.tilt is None else self.tilt

    @property
    def share_by_value(self) -> float:
        """Share of the draws that impute missing cells as missing by their value."""
        return 0.0 if self.drawn is None else float(self.drawn.draws.gamma.any(1).mean())


def factor(gamma: Floats, applies: Bools | None = None) -> Floats:
    """Return what multiplies p_obs in each bin, up to a constant: ``(bin,)`` or ``(row, bin)``.

    It is exp γ for cells that are missing by their value. With odds exp γ(x) of going missing, the
    distribution of all cells is p_obs · (1 + exp γ): that of rows to which γ does not apply.
    """
    tilted = np.exp(gamma - gamma.max())
    if applies is None or applies.all():
        return np.asarray(tilted)
    return np.asarray(np.where(applies[:, None], tilted, np.exp(-gamma.max()) + tilted))


def inputs_of(features: Floats, prediction: Floats) -> Floats:
    """Return features and prediction, for regressions."""
    own = prediction[:, None]
    if prediction.ndim > 1:
        own = np.log(prediction[:, 1:] + 1e-3)
    return np.column_stack([features, own])


def fit_column(cells: Cells, question: Question, seed: int, n_jobs: int | None = None) -> Finding:
    """Compare the explanations of a column's mask, and fit the tilt where it is used.

    A first comparison is quick. A second one, with forests, follows only where the value of the
    cells may explain their masks.
    """
    missing = ~cells.observed
    counts = question.assumed, int(missing.sum()), len(missing)
    joint = int((missing & ~cells.usable).sum())
    nothing = Finding(Likelihoods(np.nan, np.nan, np.nan), "at random", *counts, None, joint)
    if len(np.unique(cells.values)) < 2:
        return nothing
    fit = _Fit.of(cells, question, seed, n_jobs)
    n_used = int(missing[fit.rows].sum())
    if min(n_used, len(fit.rows) - n_used) < MIN_CELLS:
        return nothing
    regression = fit.logistic()
    free = fit.gain(regression)
    stage = fit.run(first=True)
    passes = stage.gain >= SCREEN_NATS and stage.gain >= SCREEN_RATIO * free
    if not (passes or question.assumed):
        return replace(nothing, likelihoods=Likelihoods(free, stage.gain, np.nan))
    load_libraries(FORESTS)
    stage = fit.run(first=False)
    forest = fit.forest()
    free = max(free, fit.gain(forest), fit.gain(0.5 * (forest + regression)))
    both = fit.gain(fit.both(stage))
    factors = fit.bayes_factors(stage)
    explains = (
        stage.gain >= MIN_NATS
        and stage.gain >= free - _max_behind(stage.gain)
        and (not cells.n_levels or stage.gain >= MIN_RATIO_LEVELS * free)
        and both <= (1 + MAX_ADDED) * stage.gain + MAX_ADDED_NATS
        and stage.posterior.best.family.name != "constant"
    )
    # both limits are those of one number, with that against one column
    slack = APPROXIMATION * max(0.0, stage.gain - CLEAR_NATS)
    log_odds = slack + min(
        factors.one_column, factors.any_columns + MIN_AGAINST_ONE - MIN_AGAINST_ANY
    )
    found = replace(
        nothing, likelihoods=Likelihoods(free, stage.gain, both), log_bayes_factors=factors
    )
    if question.assumed:
        return replace(found, chosen="own value", tilt=fit.tilt(stage))
    if explains and log_odds >= MIN_AGAINST_ONE:
        # the posterior probability of one other column, with even prior odds; the chosen
        # explanation has at least half of the draws
        share = expit(max(factors.one_column, 0.0))
        return replace(found, chosen="own value", tilt=fit.tilt(stage, share))
    if explains and log_odds >= MIN_DRAWN:
        return replace(found, alternative=fit.tilt_of_draws(stage, expit(log_odds)))
    return found


def _at_random(share: float, rng: np.random.Generator) -> Bools:
    """Choose the draws that are not by the value of the cell: all but a ``share`` of them.

    They are spread evenly, so that the first draws have nearly the same share as all, and at random
    within even parts, so that those of several columns are independent. The choice repeats: draws
    with the parameters of one chain are all of one kind, with which the chain was fitted.
    """
    rarer = min(share, 1 - share)
    n = round(N_REPEATED * rarer)
    ends = np.round(np.arange(n + 1) * N_REPEATED / max(n, 1)).astype(np.intp)
    chosen = np.zeros(N_REPEATED, dtype=bool)
    chosen[rng.integers(ends[:-1], ends[1:])] = True
    return np.tile(chosen if share > rarer else ~chosen, N_DRAWS // N_REPEATED)


def _max_behind(gain: float) -> float:
    """Return how many nats the other columns may explain more than a value that explains some."""
    return MAX_BEHIND + MAX_BEHIND_FRACTION * max(0.0, gain - BEHIND_FROM)


@dataclass(frozen=True, eq=False)
class _Stage:
    observed: Observed
    p_obs: Floats
    posterior: Posterior
    gain: float


@dataclass(frozen=True, eq=False)
class _Fit:
    """The steps of a fit, which share the column.

    ``rows`` are those whose masks are used, and ``folds`` those of all rows.
    """

    cells: Cells
    question: Question
    bins: Bins
    rows: Ints
    folds: Ints
    seed: int
    n_jobs: int | None

    @classmethod
    def of(cls, cells: Cells, question: Question, seed: int, n_jobs: int | None) -> Self:
        """Choose bins, rows and folds."""
        bins = Bins.of(cells.values)
        if cells.n_levels:
            bins = Bins.of_levels(cells.values, cells.n_levels)
        n = len(cells.observed)
        rows = np.random.default_rng(seed).permutation(n)
        rows = np.sort(rows[cells.usable[rows]][:MAX_ROWS])
        return cls(cells, question, bins, rows, rivals.folds_of(n, seed), seed, n_jobs)

    def gain(self, probability: Floats) -> float:
        """Return the log-likelihood of the masks in nats above that of a constant rate."""
        return rivals.log_likelihood(probability, ~self.cells.observed[self.rows])

    def logistic(self) -> Floats:
        """Return the probability of each mask by a logistic regression on the other columns."""
        missing = ~self.cells.observed[self.rows]
        return rivals.logistic(self.cells.inputs[self.rows], missing, self.folds[self.rows])

    def forest(self) -> Floats:
        """Return the probability of each mask by a forest on the other columns."""
        missing = ~self.cells.observed[self.rows]
        return rivals.forest(self.cells.inputs[self.rows], missing, self.seed, self.n_jobs)

    @property
    def _others(self) -> Floats | None:
        """Features that enter the log odds because they are no shadow variables."""
        shadow = self.question.shadow
        if shadow is None:
            return None
        return self.cells.features[:, ~np.isin(self.cells.group, list(shadow))]

    def run(self, *, first: bool) -> _Stage:
        """Fit p_obs, then γ, and compute the held-out likelihood of the masks.

        The first comparison has no forest and few candidates for γ, since most columns need no
        second.
        """
        cells, rows, question = self.cells, self.rows, self.question
        observed, p_obs = Observed.fit(
            self.bins, cells.inputs, cells.prediction, cells.values, cells.observed,
            forest=not first, seed=self.seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        missing = ~cells.observed[rows]
        others = None if self._others is None else self._others[rows]
        posterior = fit_families(
            p_obs[rows], missing, self.bins, question.shape, ordered=cells.ordered,
            slope=question.slope, sign=question.sign, others=others, coarse=first,
        )  # fmt: skip
        held_out = rivals.own_value(posterior, p_obs[rows], missing, self.folds[rows], others)
        return _Stage(observed, p_obs, posterior, self.gain(held_out))

    def both(self, stage: _Stage) -> Floats:
        """Return the probability of each mask by the value of the cell and the other columns."""
        missing = ~self.cells.observed[self.rows]
        best = Posterior((stage.posterior.best,), np.ones(1))
        return rivals.own_value(
            best, stage.p_obs[self.rows], missing, self.folds[self.rows],
            self.cells.features[self.rows],
        )  # fmt: skip

    def bayes_factors(self, stage: _Stage) -> BayesFactors:
        """Return those of the value of the cell against the other columns."""
        cells, missing = self.cells, ~self.cells.observed[self.rows]
        return bayes_factors(
            stage.posterior.evidence, cells.features[self.rows], cells.group, cells.is_mask, missing
        )

    def refined(self, stage: _Stage) -> _Stage:
        """Return the stage with straight candidates fitted again, to values without bins."""
        rows = self.rows
        spread = stage.observed.spread(stage.p_obs[rows], self.cells.prediction[rows])
        if spread is None:
            return stage
        others = None if self._others is None else self._others[rows]
        missing = ~self.cells.observed[rows]
        posterior = refit_straight(stage.posterior, missing, self.bins, *spread, others)
        return replace(stage, posterior=posterior)

    def tilt_of_draws(self, stage: _Stage, share: float) -> Tilt:
        """Return the tilt of draws; a ``share`` of them is by the value of the cell.

        In the others another column explains the mask, and γ is 0.
        """
        stage = self.refined(stage)
        rng = np.random.default_rng([self.seed, 1])
        gamma, is_straight = stage.posterior.draw(N_DRAWS, rng)
        gamma[_at_random(share, rng)] = 0.0
        bins = self.bins
        draws = LogOdds(bins.edges, bins.value, gamma, is_straight, self.cells.missing_with)
        posterior = stage.posterior
        return Tilt(
            stage.observed, posterior.gamma, posterior.weight, draws, None,
            posterior.best.family.name,
        )  # fmt: skip

    def tilt(self, stage: _Stage, share: float = 1.0) -> Tilt:
        """Return `tilt_of_draws` with the regressions for means where a column has means."""
        cells, tilt = self.cells, self.tilt_of_draws(stage, share)
        if cells.prediction.ndim > 1 or cells.are_logarithms:
            return tilt
        own = cells.observed
        estimates = tilt.estimates(stage.p_obs[own], cells.prediction[own])
        at, gamma = self.bins.index(cells.values), tilt.gamma
        weight = tilt.weight @ np.exp(gamma - gamma.max(1, keepdims=True))[:, at]
        correction = Correction.fit(
            cells.inputs[own], estimates, cells.values, weight, self.folds[own],
            seed=self.seed, n_jobs=self.n_jobs,
        )  # fmt: skip
        return replace(tilt, correction=correction)
