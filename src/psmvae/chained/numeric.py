"""One step of the chains for a numeric column: draw parameters, then cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from psmvae.chained.regression import (
    ANY_SIGNAL_TO_NOISE,
    SIGNAL_TO_NOISE,
    Design,
    Draws,
    regress,
    transposed,
)
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
        n_near, width = _n_near(n), None
        if tilted is not None:
            n_near = max(TILTED_MIN_DONORS, int(TILTED_DONOR_FRACTION * n))
            width = smoothing_width(self.donor)[:, None]

        def draw(chains: Any) -> Floats:
            own = rng.of(chains)
            residual = self.of(chains).residuals(mean[chains], n_near, own)
            if width is not None:
                mixed = np.sqrt(1 - width[chains] ** 2) * residual
                residual = mixed + width[chains] * own.normal(mean.shape[1])
            return np.asarray(mean[chains] + noise[chains] * residual)

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

    def residuals(self, mean: Floats, n_donors: int, rng: Draws) -> Floats:
        """Return the residual of one of the rows with the nearest means, for each cell."""
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
    are the rows whose cell the learned model was not trained on. The prediction enters by its part
    that the other terms do not explain, so that a prediction that fits its training cells too well
    does not change their coefficients.

    Rows have equal weights also where the noise depends on the terms, and coefficients are drawn
    with the variance that this gives them. Weights by the noise would make the mean of noisy rows
    depend on the other rows, which biases it where the terms only approximate the mean.
    ``terms`` are overwritten.
    """
    design = Design.of(terms)
    target = np.broadcast_to(y, terms.shape[:2])
    signals = SIGNAL_TO_NOISE if n_flat else ANY_SIGNAL_TO_NOISE
    found = regress(design, target, rng, n_flat=n_flat, groups=groups, signals=signals)
    learned_coef, sigma = np.zeros(len(terms)), found.sigma
    log_scale = np.zeros_like(found.mean)
    if homoscedastic and learned is None and not pmm:
        # Normal noise needs no donors
        none = np.zeros((len(terms), 0))
        drawn = found.draw(design, rng)
        return NumericParameters(design.center, *drawn, learned_coef, sigma, log_scale, none, none)
    residual, covariance = target - found.predict(design), found.covariance
    explained, level = np.zeros_like(found.mean), 0.0
    if learned is not None and np.count_nonzero(held_out) >= MIN_HELD_OUT:
        explained, level = _project(design, learned, covariance), float(learned.mean())
        rest = learned - level - design.times(explained)
        own = 1 / (1 - design.leverage(covariance, held_out))
        learned_coef, reduction = _learned_coef(
            residual[:, held_out] * own, rest[:, held_out] * own, found.scale, rng
        )
        residual = residual - learned_coef[:, None] * rest
        sigma = sigma * reduction
    noise, donor = None, target
    if not (pmm or homoscedastic):
        log_scale = _log_scale(design, residual, covariance, found.scale, rng, n_flat)
        noise = np.exp(_clipped(design.times(log_scale)))
    if not pmm:
        donor = residual if noise is None else residual / noise
        square = np.sqrt((donor**2).mean(1, keepdims=True))
        donor = donor / np.maximum(square, 1e-12)
        # sigma² stays the mean of the noise variance over the rows
        mean_square = np.sqrt((residual**2).mean(1))
        sigma = sigma * square[:, 0] / np.maximum(mean_square, 1e-12)
    if noise is not None:
        noise = noise / np.sqrt((noise**2).mean(1, keepdims=True))
    coef, intercept = found.draw(design, rng, noise)
    fitted = target - residual
    order = fitted.argsort(1)
    donor = np.take_along_axis(np.ascontiguousarray(donor), order, 1)
    return NumericParameters(
        design.center,
        coef - learned_coef[:, None] * explained,
        intercept - learned_coef * level,
        learned_coef,
        sigma,
        log_scale,
        np.take_along_axis(fitted, order, 1),
        donor if pmm else shrink_local_means(donor, _n_near(len(y))),
    )


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


def _truncated(draw: Callable[[Any], Floats], low: float, high: float) -> Floats:
    """Draw again where a value is out of its bounds.

    ``draw`` takes the chains to draw for. A chain is drawn again for its own values only, so that
    its random numbers do not depend on the other chains.
    """
    drawn = draw(slice(None))
    if np.isinf(low) and np.isinf(high):
        return drawn
    for _ in range(MAX_REDRAWS):
        outside = (drawn < low) | (drawn > high)
        at = np.flatnonzero(outside.any(1))
        if not at.size:
            return drawn
        drawn[at] = np.where(outside[at], draw(at), drawn[at])
    return np.clip(drawn, low, high)


def _project(design: Design, learned: Floats, covariance: Floats) -> Floats:
    """Return the coefficients of the terms in a regression of the learned prediction."""
    products = transposed(design.away) @ (learned - learned.mean())[:, None]
    return np.asarray((covariance @ products)[..., 0])


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


def _log_scale(
    design: Design, residual: Floats, covariance: Floats, scale: Floats, rng: Draws, n_flat: int
) -> Floats:
    """Draw coefficients of the log standard deviation of the noise; all 0 if it is constant.

    It may depend on the first ``n_flat`` terms or on all; which, is drawn too.
    """
    # a fit that follows single rows makes their residuals smaller
    own = 1 - design.leverage(covariance)
    log = np.log(residual**2 / own + 1e-4 * scale[:, None] ** 2)
    # The residual of a row that determines its own fit, such as the only one of a level, says
    # nothing about its noise: it is about 0 whatever the noise is.
    known = own >= MIN_OWN_RESIDUAL
    average = (log * known).sum(1, keepdims=True) / np.maximum(known.sum(1, keepdims=True), 1)
    is_flat = np.arange(design.away.shape[2]) < n_flat
    groups = np.stack([is_flat, np.ones_like(is_flat)])
    found = regress(design, np.where(known, log, average), rng, n_flat=0, groups=groups)
    return 0.5 * found.draw(design, rng)[0]


def _clipped(log_scale: Floats) -> Floats:
    return np.clip(log_scale, -MAX_LOG_SCALE, MAX_LOG_SCALE)
