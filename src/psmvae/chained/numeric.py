"""One step of the chains for a numeric column: draw parameters, then cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from psmvae.chained.regression import Design, Draws, Posterior, regress, transposed
from psmvae.chained.residuals import shrink_local_means, smoothing_width
from psmvae.chained.tilt import take_one

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Candidates for the coefficient of the learned prediction; the first has this prior probability.
LEARNED_COEFS, P_NOT_USED = np.linspace(0.0, 1.2, 7), 0.9
# Fewest held-out cells that can justify the use of the learned prediction.
MIN_HELD_OUT = 10
# Pseudo-count of held-out cells that shrinks the estimated reduction of the noise towards none.
NOISE_PSEUDO_COUNT = 5
# Donors of a residual: the nearest in the mean, at least and as a fraction of all.
MIN_DONORS, DONOR_FRACTION = 20, 0.1
# The same where the value of a cell decides on its absence.
TILTED_MIN_DONORS, TILTED_DONOR_FRACTION = 200, 0.25
# Donors of a value in predictive mean matching, as in R's mice; the fraction of all under a tilt.
PMM_DONORS = 5
TILTED_PMM_FRACTION = 0.05
# Largest deviation of the log standard deviation of the noise from its mean.
MAX_LOG_SCALE = 1.5
# Smaller coefficients of the log variance are 0.
MIN_LOG_SCALE = 1e-6
# One minus the leverage of a row whose residual is used for the variance of the noise, at least.
MIN_OWN_RESIDUAL = 0.5
# Redraws of a cell that is out of its bounds, before it is set to the nearest bound.
MAX_REDRAWS = 20


class NumericParameters(NamedTuple):
    """Drawn parameters of one column, for each chain.

    The mean of a cell is ``intercept + (terms − center) · coef + learned_coef · prediction``. Its
    noise is ``sigma · exp((terms − center) · log_scale)`` times the standardised residual of a
    donor, one of the observed rows with the nearest means. In predictive mean matching the cell is
    the donor's value. Donors are sorted by ``donor_mean``; ``donor`` is the residual or value.
    """

    center: Floats
    coef: Floats
    intercept: Floats
    learned_coef: Floats
    sigma: Floats
    log_scale: Floats
    donor_mean: Floats
    donor: Floats

    def mean(self, terms: Floats, learned: Floats) -> Floats:
        """Return the mean of each cell ``(chain, row)`` under the drawn parameters."""
        linear = self._times(terms, self.coef) + self.intercept[:, None]
        return np.asarray(linear + self.learned_coef[:, None] * learned)

    def _times(self, terms: Floats, coef: Floats) -> Floats:
        """Return the sums of terms minus their center times coefficients, ``(chain, row)``."""
        # a difference of sums: the matrix of differences would take as long as its product
        product = (terms @ coef[..., None])[..., 0]
        return np.asarray(product - (self.center * coef).sum(1, keepdims=True))

    def draw(
        self,
        terms: Floats,
        learned: Floats,
        rng: Draws,
        *,
        pmm: bool,
        low: float,
        high: float,
        normal: bool = False,
        log_odds: Callable[[Floats], Floats] | None = None,
    ) -> Floats:
        """Draw cells ``(chain, row)``, truncated to the bounds; ``normal`` draws Normal noise.

        ``log_odds`` are those of going missing, where the value of a cell decides on its absence.
        """
        propose = self._proposal(
            terms, learned, rng, pmm=pmm, low=low, high=high, normal=normal, tilted=log_odds
        )
        return propose() if log_odds is None else take_one(propose, log_odds, rng)

    def _proposal(
        self,
        terms: Floats,
        learned: Floats,
        rng: Draws,
        *,
        pmm: bool,
        low: float,
        high: float,
        normal: bool,
        tilted: Any,
    ) -> Callable[[], Floats]:
        """Return a function that draws cells, truncated to the bounds.

        Under a tilt there are more donors, and their residuals are smoothed: some of few similar
        rows would be taken too often, and none is beyond the largest.
        """
        mean, n = self.mean(terms, learned), self.donor.shape[1]
        if pmm:
            n_near = PMM_DONORS if tilted is None else max(PMM_DONORS, int(TILTED_PMM_FRACTION * n))
            return lambda: self._nearest(mean, n_near, rng)
        if normal:
            sigma = self.sigma[:, None]
            return lambda: _normal(mean, sigma, low, high, rng)
        log_scale = self._times(terms, self.log_scale)
        noise = self.sigma[:, None] * np.exp(_clipped(log_scale))
        if tilted is None:
            return lambda: _truncated(
                lambda: mean + noise * self._donors(mean, _n_near(n), rng), low, high
            )
        n_donors = max(TILTED_MIN_DONORS, int(TILTED_DONOR_FRACTION * n))
        width = smoothing_width(self.donor)[:, None]
        kept = np.sqrt(1 - width**2)

        def draw() -> Floats:
            residual = kept * self._donors(mean, n_donors, rng)
            return np.asarray(mean + noise * (residual + width * rng.normal(mean.shape[1])))

        return lambda: _truncated(draw, low, high)

    def _nearest(self, mean: Floats, n_donors: int, rng: Draws) -> Floats:
        """Return the value of one of the ``n_donors`` rows with the nearest means."""
        n = self.donor.shape[1]
        n_donors = min(n_donors, n)
        picked = (rng.uniform(mean.shape[1]) * n_donors).astype(np.intp)
        width = min(2 * n_donors, n)
        found = np.empty_like(mean)
        for chain, (sorted_mean, donor) in enumerate(zip(self.donor_mean, self.donor, strict=True)):
            # the nearest ones are among as many on either side
            start = np.searchsorted(sorted_mean, mean[chain]) - n_donors
            near = np.clip(start, 0, n - width)[:, None] + np.arange(width)
            distance = np.abs(sorted_mean[near] - mean[chain][:, None])
            order = distance.argsort(1, kind="stable")[np.arange(len(near)), picked[chain]]
            found[chain] = donor[near[np.arange(len(near)), order]]
        return found

    def _donors(self, mean: Floats, n_donors: int, rng: Draws) -> Floats:
        """Return ``donor`` of one of the rows with the nearest means, for each cell."""
        n = self.donor.shape[1]
        n_donors = min(n_donors, n)
        picked = (rng.uniform(mean.shape[1]) * n_donors).astype(np.intp)
        found = np.empty_like(mean)
        for chain, (sorted_mean, donor) in enumerate(zip(self.donor_mean, self.donor, strict=True)):
            at = np.searchsorted(sorted_mean, mean[chain]) - n_donors // 2
            found[chain] = donor[np.clip(at, 0, n - n_donors) + picked[chain]]
        return found

    def of(self, chains: Any) -> NumericParameters:
        """Return the parameters of some chains: a slice or a mask."""
        return NumericParameters(*(field[chains] for field in self))

    def thinned(self, n_donors: int, *, pmm: bool) -> NumericParameters:
        """Return the parameters with at most ``n_donors`` donors.

        Residuals keep the mean of all. Otherwise the mean of the thinned ones would shift all
        cells of a chain, which adds to the variance between imputations.
        """
        n = self.donor.shape[1]
        if n <= n_donors:
            return self
        at = np.linspace(0, n - 1, n_donors).astype(np.intp)
        donor = self.donor[:, at]
        if not pmm:
            donor = donor + (self.donor.mean(1) - donor.mean(1))[:, None]
        return self._replace(donor_mean=self.donor_mean[:, at], donor=donor)


def fit_numeric(
    terms: Floats,
    y: Floats,
    learned: Floats | None,
    held_out: Bools,
    rng: Draws,
    *,
    n_flat: int,
    groups: NDArray[np.bool_],
    pmm: bool,
    homoscedastic: bool = False,
) -> NumericParameters:
    """Draw the parameters of a column from their posterior given its observed rows.

    ``terms`` are ``(chain, row, term)``, ``y`` and the learned prediction ``(row,)``. ``held_out``
    are the rows whose cell the learned model was not trained on. Where the noise depends on the
    terms, the regression is fitted again with weights: with equal ones, coefficients that depend on
    noisy rows would be drawn with too small a variance. ``terms`` are overwritten.
    """
    design = Design.of(terms)
    target = np.broadcast_to(y, terms.shape[:2])
    fit = partial(_fit_mean, y=target, rng=rng, n_flat=n_flat, groups=groups)
    if learned is not None and np.count_nonzero(held_out) >= MIN_HELD_OUT:
        fit = partial(fit, learned=learned, held_out=held_out)
    mean = fit(design)
    center, log_scale, scale = design.center, np.zeros_like(mean.coef), np.ones((1, 1))
    if homoscedastic and learned is None and not pmm:
        # Normal noise needs no donors
        none = np.zeros((len(terms), 0))
        return NumericParameters(center, *mean[:3], mean.sigma, log_scale, none, none)
    if not (pmm or homoscedastic):
        noise = _log_scale(design, mean, rng, n_flat)
        log_scale = 0.5 * noise.coef
        scale = np.exp(_clipped(design.times(log_scale)))
        if (np.abs(noise.mean) > MIN_LOG_SCALE).any():
            design = design.weighted(np.exp(-2 * _clipped(design.times(0.5 * noise.mean))))
            mean = fit(design)
    # The log scale of a cell is clipped around the center of all rows: that of the weighted ones is
    # where the noise is small.
    intercept = mean.intercept + ((center - design.center) * mean.coef).sum(1)
    fitted, sigma = target - mean.residual, mean.sigma
    donor = target
    if not pmm:
        donor = mean.residual / scale
        square = np.sqrt((donor**2).mean(1, keepdims=True))
        donor = donor / np.maximum(square, 1e-12)
        # the mean noise variance over the rows, by their weights, stays sigma²
        mean_square = np.sqrt(((design.root * mean.residual) ** 2).mean(1))
        sigma = sigma * square[:, 0] / np.maximum(mean_square, 1e-12)
    order = fitted.argsort(1)
    donor = np.take_along_axis(np.ascontiguousarray(donor), order, 1)
    return NumericParameters(
        center,
        mean.coef,
        intercept,
        mean.learned_coef,
        sigma,
        log_scale,
        np.take_along_axis(fitted, order, 1),
        donor if pmm else shrink_local_means(donor, _n_near(len(y))),
    )


class _Mean(NamedTuple):
    """Drawn coefficients of the mean, the drawn ``sigma`` of the noise, and residuals.

    The residuals ``(chain, row)`` are those of the posterior mean. ``posterior`` is that without
    the learned prediction.
    """

    coef: Floats
    intercept: Floats
    learned_coef: Floats
    sigma: Floats
    residual: Floats
    posterior: Posterior


def _fit_mean(
    design: Design,
    *,
    y: Floats,
    rng: Draws,
    n_flat: int,
    groups: NDArray[np.bool_],
    learned: Floats | None = None,
    held_out: Bools | None = None,
) -> _Mean:
    """Draw the parameters of the mean.

    The learned prediction enters by its part that the other terms do not explain, so that a
    prediction that fits its training cells too well does not change their coefficients.
    """
    found = regress(design, y, rng, n_flat=n_flat, groups=groups)
    coef, intercept, sigma = found.coef, found.intercept, found.sigma
    residual, learned_coef = y - found.predict(design), np.zeros(len(y))
    if learned is not None:
        explained, level = _project(design, learned, found)
        rest = learned - level[:, None] - design.times(explained)
        root = np.broadcast_to(design.root, residual.shape)[:, held_out]
        own = root / (1 - design.leverage(found.covariance, held_out))
        learned_coef, noise = _learned_coef(
            residual[:, held_out] * own, rest[:, held_out] * own, found.scale, rng
        )
        coef = coef - learned_coef[:, None] * explained
        intercept = intercept - learned_coef * level
        residual = residual - learned_coef[:, None] * rest
        sigma = sigma * noise
    return _Mean(coef, intercept, learned_coef, sigma, residual, found)


def _n_near(n: int) -> int:
    """Return the number of donors of a residual, of ``n`` observed rows."""
    return max(MIN_DONORS, int(DONOR_FRACTION * n))


def _normal(mean: Floats, sigma: Floats, low: float, high: float, rng: Draws) -> Floats:
    """Draw Normal numbers, truncated to the bounds."""
    if np.isinf(low) and np.isinf(high):
        return mean + sigma * rng.normal(mean.shape[1])
    # the quantile of a uniform number between the probabilities of the bounds; below the mean of
    # them in logarithms, above it by symmetry
    below, above = (low - mean) / sigma, (high - mean) / sigma
    flipped = below + above > 0
    first, last = np.where(flipped, -above, below), np.where(flipped, -below, above)
    first, last = log_ndtr(first), log_ndtr(last)
    uniform = rng.uniform(mean.shape[1])
    log_p = last + np.log1p(-uniform * -np.expm1(first - last))
    drawn = ndtri_exp(log_p)
    return np.asarray(np.clip(mean + sigma * np.where(flipped, -drawn, drawn), low, high))


def _truncated(draw: Callable[[], Floats], low: float, high: float) -> Floats:
    """Draw again where a value is out of its bounds."""
    drawn = draw()
    if np.isinf(low) and np.isinf(high):
        return drawn
    for _ in range(MAX_REDRAWS):
        outside = (drawn < low) | (drawn > high)
        if not outside.any():
            return drawn
        drawn = np.where(outside, draw(), drawn)
    return np.clip(drawn, low, high)


def _project(design: Design, learned: Floats, found: Posterior) -> tuple[Floats, Floats]:
    """Return coefficients and level of the terms in a regression of the learned prediction."""
    level = design.level(np.broadcast_to(learned, design.away.shape[:2]))
    rest = design.root * (learned - level[:, None])
    products = transposed(design.away) @ rest[..., None]
    return np.asarray((found.covariance @ products)[..., 0]), level


def _learned_coef(
    residual: Floats, rest: Floats, scale: Floats, rng: Draws
) -> tuple[Floats, Floats]:
    """Draw the coefficient of the learned prediction; also return the factor on the noise.

    Both come from held-out cells: ``residual`` and ``rest`` ``(chain, cell)`` are what the other
    terms leave of the target and of the prediction.
    """
    n = residual.shape[1]
    squares = ((residual[:, None] - LEARNED_COEFS[:, None] * rest[:, None]) ** 2).sum(-1)
    prior = np.full(len(LEARNED_COEFS), np.log((1 - P_NOT_USED) / (len(LEARNED_COEFS) - 1)))
    prior[0] = np.log(P_NOT_USED)
    log = prior - 0.5 * n * np.log(np.maximum(squares, 1e-300))
    weight = np.exp(log - log.max(1, keepdims=True)).cumsum(1)
    chosen = (weight / weight[:, -1:] < rng.uniform(1)).sum(1)
    chains = np.arange(len(chosen))
    pseudo = NOISE_PSEUDO_COUNT * scale**2
    noise = np.sqrt((squares[chains, chosen] + pseudo) / (squares[:, 0] + pseudo))
    return LEARNED_COEFS[chosen], noise


def _log_scale(design: Design, mean: _Mean, rng: Draws, n_flat: int) -> Posterior:
    """Regress the log variance of the noise on the terms; coefficients are 0 if it is constant.

    It depends on the flat terms or on all.
    """
    floor = 1e-4 * mean.posterior.scale[:, None] ** 2
    # a fit that follows single rows makes their residuals smaller
    own = 1 - design.leverage(mean.posterior.covariance)
    log = np.log(mean.residual**2 / own + floor)
    # The residual of a row that determines its own fit, such as the only one of a level, says
    # nothing about its noise: it is about 0 whatever the noise is.
    known = own >= MIN_OWN_RESIDUAL
    average = (log * known).sum(1, keepdims=True) / np.maximum(known.sum(1, keepdims=True), 1)
    is_flat = np.arange(design.away.shape[2]) < n_flat
    groups = np.unique(np.stack([is_flat, np.ones_like(is_flat)]), axis=0)
    return regress(design, np.where(known, log, average), rng, n_flat=0, groups=groups)


def _clipped(log_scale: Floats) -> Floats:
    return np.clip(log_scale, -MAX_LOG_SCALE, MAX_LOG_SCALE)
