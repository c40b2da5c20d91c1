"""Candidates for the log odds γ of going missing, and their posterior.

The candidates are functions of the bins: constant (missing completely at random), straight (a
logistic regression of the mask on the value), a floor and a ceiling with a sharp or gradual rise
between them, a region with odds of its own (both tails), and a smooth function. They are weighted
by their marginal likelihoods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from psmvae.mechanism.bins import Bins
from psmvae.mechanism.odds import Family, OddsFit, fit_odds
from psmvae.mechanism.question import Shape, Slope

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Prior standard deviations: of the constant, of a slope for one standard deviation of the column,
# of the difference between floor and ceiling, of the odds of a level.
SD_CONSTANT, SD_SLOPE, SD_STEP, SD_LEVEL = 5.0, 2.0, 3.0, 2.0
# Prior standard deviations of the difference between neighbouring bins of a smooth function.
SD_SMOOTH = (0.1, 0.3)
# Widths of a gradual rise, in standard deviations; number of positions tried.
WIDTHS, N_GRADUAL, N_REGION = (0.25, 0.6), 12, 8
# Candidates with less weight than this are left out.
MIN_WEIGHT = 0.02
PRIOR = {"constant": 0.25, "straight": 0.25, "ceiling": 0.25, "region": 0.05, "smooth": 0.2}


@dataclass(frozen=True, eq=False)
class Posterior:
    """Fitted candidates and their weights.

    ``evidence`` is the log marginal likelihood of the masks if they are not constant.
    """

    fits: tuple[OddsFit, ...]
    weight: Floats
    evidence: float = np.nan

    @property
    def best(self) -> OddsFit:
        """The candidate with the highest weight."""
        return self.fits[int(self.weight.argmax())]

    @property
    def gamma(self) -> Floats:
        """γ ``(candidate, bin)``."""
        return np.stack([fit.gamma for fit in self.fits])

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
        """Draw ``n`` functions γ ``(draw, bin)`` from the posterior; also which are straight."""
        # systematic draws of the candidate, in random order: its share is the weight
        at = (rng.random() + np.arange(n)) / n
        which = rng.permutation(np.searchsorted(self.weight.cumsum()[:-1], at))
        drawn = np.empty((n, len(self.fits[0].family.design)))
        for k, fit in enumerate(self.fits):
            rows = np.flatnonzero(which == k)
            # a Cholesky factor is continuous in the covariance, eigenvectors of one are not
            theta = rng.multivariate_normal(fit.theta, fit.covariance, len(rows), method="cholesky")
            if direction := fit.family.direction:
                theta[:, 1:] = direction * np.maximum(direction * theta[:, 1:], 0.0)
            drawn[rows] = fit.gamma_of(theta)
        is_straight = np.array([fit.family.name == "straight" for fit in self.fits])
        return drawn, is_straight[which]


def candidates(
    bins: Bins, shape: Shape, *, ordered: bool, slope: Slope | None, coarse: bool = False
) -> Iterator[tuple[Family, float]]:
    """Return the families of a column with their prior probabilities; ``coarse`` returns few."""
    n = len(bins)
    ones, constant = np.ones((n, 1)), SD_CONSTANT**-2
    if slope is not None:
        base = slope.mean * bins.value
        if slope.sd == 0:
            yield Family("straight", ones, np.diag([constant]), base), 1.0
        else:
            design = np.column_stack([ones, bins.value])
            yield Family("straight", design, np.diag([constant, slope.sd**-2]), base), 1.0
        return
    yield Family("constant", ones, np.diag([constant])), PRIOR["constant"]
    if not ordered or n < 3:
        precision = np.full((n, n), constant / n**2) + (np.eye(n) - 1 / n) * SD_LEVEL**-2
        # parameters of ordered levels are increments, whose sign may be given
        levels = np.tril(np.ones((n, n))) if ordered else np.eye(n)
        yield Family("levels", levels, levels.T @ precision @ levels), 1 - PRIOR["constant"]
        return
    center = bins.share @ bins.value
    spread = max(float(np.sqrt(bins.share @ (bins.value - center) ** 2)), 1e-12)
    u = (bins.value - center) / spread
    if shape in ("auto", "straight"):
        precision = np.diag([constant, SD_SLOPE**-2])
        yield Family("straight", np.column_stack([ones, u]), precision), PRIOR["straight"]
    if shape in ("auto", "ceiling"):
        precision = np.diag([constant, SD_STEP**-2])
        steps_at = range(1, n, 1 + n // N_GRADUAL) if coarse else range(1, n)
        rises = [np.arange(n) >= at for at in steps_at]
        if not coarse:
            centers = np.quantile(u, np.linspace(0.05, 0.95, N_GRADUAL))
            gradual = [(u - at) / (2 * width) for width in WIDTHS for at in centers]
            rises.extend(0.5 * (1 + np.tanh(each)) for each in gradual)
        for rise in rises:
            yield (
                Family("ceiling", np.column_stack([ones, rise]), precision),
                (PRIOR["ceiling"] / len(rises)),
            )
    if shape == "auto" and not coarse:
        precision = np.diag([constant, SD_STEP**-2])
        ends = np.unique(np.linspace(1, n - 1, N_REGION).astype(np.intp))
        pairs = [(low, high) for low in ends for high in ends if low < high]
        for low, high in pairs:
            inside = (np.arange(n) >= low) & (np.arange(n) < high)
            yield (
                Family("region", np.column_stack([ones, inside]), precision),
                (PRIOR["region"] / len(pairs)),
            )
    if shape in ("auto", "smooth"):
        steps = (np.arange(n)[:, None] >= np.arange(1, n)).astype(np.float64)
        for sd in SD_SMOOTH[-1:] if coarse else SD_SMOOTH:
            precision = np.diag([constant, *np.full(n - 1, sd**-2)])
            family = Family("smooth", np.column_stack([ones, steps]), precision)
            yield family, PRIOR["smooth"] / len(SD_SMOOTH)


def fit_families(
    p_obs: Floats,
    missing: Bools | Floats,
    bins: Bins,
    shape: Shape = "auto",
    *,
    ordered: bool = True,
    slope: Slope | None = None,
    sign: Literal["high", "low"] | None = None,
    others: Floats | None = None,
    coarse: bool = False,
    weight: Floats | None = None,
) -> Posterior:
    """Fit all candidates to the masks and weight them.

    Parameters
    ----------
    p_obs : ndarray of shape (n_rows, n_bins)
        Distribution of the cell among rows where it is observed, given the other columns.
    missing : ndarray of shape (n_rows,)
        True where the cell is missing; with ``weight``, the share of missing cells.
    bins : Bins
        Bins of the column.
    shape : {"auto", "straight", "ceiling", "smooth"}, default="auto"
        Which candidates are fitted.
    ordered : bool, default=True
        False for levels without an order.
    slope : Slope, optional
        What is known of the slope. γ is then straight.
    sign : {"high", "low"}, optional
        Which values go missing more often. γ is then monotone. Levels without an order have none.
    others : ndarray of shape (n_rows, n_features), optional
        Functions of the other columns that are added to the log odds.
    coarse : bool, default=False
        Fit few candidates, for a first comparison.
    weight : ndarray of shape (n_rows,), optional
        Number of rows of the table that each row stands for. Default: 1.

    Returns
    -------
    Posterior
        The candidates that have weight.
    """
    fits, log_prior = [], []
    for family, prior in candidates(bins, shape, ordered=ordered, slope=slope, coarse=coarse):
        fit = _monotone(p_obs, missing, family, sign if ordered else None, others, weight)
        if fit is not None:
            fits.append(fit)
            log_prior.append(np.log(prior))
    log_weight = np.array(log_prior) + [fit.evidence for fit in fits]
    varies = [k for k, fit in enumerate(fits) if fit.family.name != "constant"]
    evidence = np.nan
    if varies:
        log_priors = logsumexp(np.array(log_prior)[varies])
        evidence = float(logsumexp(log_weight[varies]) - log_priors)
    share = np.exp(log_weight - log_weight.max())
    share /= share.sum()
    kept = np.flatnonzero(share >= min(MIN_WEIGHT, share.max()))
    return Posterior(tuple(fits[k] for k in kept), share[kept] / share[kept].sum(), evidence)


def _monotone(
    p_obs: Floats,
    missing: Bools | Floats,
    family: Family,
    sign: Literal["high", "low"] | None,
    others: Floats | None,
    weight: Floats | None,
) -> OddsFit | None:
    """Fit a family; with a sign, leave out increments of the other sign until none is left."""
    if sign is None:
        return fit_collapsed(p_obs, missing, family, others, weight=weight)
    if family.name == "region":
        return None
    direction = -1.0 if sign == "low" else 1.0
    family = replace(family, direction=direction)
    while True:
        fit = fit_collapsed(p_obs, missing, family, others, weight=weight)
        wrong = direction * fit.theta[1:] < 0
        if not wrong.any():
            return fit
        kept = np.append(True, ~wrong)
        if not kept[1:].any():
            return None
        family = replace(
            family, design=family.design[:, kept], precision=family.precision[np.ix_(kept, kept)]
        )


def refit_straight(
    posterior: Posterior,
    missing: Bools,
    bins: Bins,
    values: Floats,
    probability: Floats,
    others: Floats | None = None,
) -> Posterior:
    """Fit straight candidates again to values ``(row, value)`` that are not grouped into bins.

    Rows with high predictions have higher values in the same bin, above all in the outermost one.
    With one value for all of them the rows seem to differ less than they do, and the slope is too
    steep.
    """
    fits = []
    for found in posterior.fits:
        fit, family = found, found.family
        if family.name == "straight" and family.design.shape[1] == 2:
            slope, base = (
                np.polyfit(bins.value, each, 1) for each in (family.design[:, 1], family.base)
            )
            design = np.stack([np.ones_like(values), np.polyval(slope, values)], -1)
            own = replace(family, design=design, base=np.float64(1) * np.polyval(base, values))
            start = np.append(fit.theta, fit.offset_coef)
            fit = replace(fit_odds(probability, missing, own, others, start=start), family=family)
        fits.append(fit)
    return replace(posterior, fits=tuple(fits))


def fit_collapsed(
    p_obs: Floats,
    missing: Bools | Floats,
    family: Family,
    others: Floats | None,
    start: Floats | None = None,
    weight: Floats | None = None,
) -> OddsFit:
    """Fit a family after joining the bins that it treats alike, which saves most of the time."""
    small, joins = family.collapsed
    joined = p_obs if joins is None else p_obs @ joins
    fit = fit_odds(joined, missing, small, others, start=start, weight=weight)
    return replace(fit, family=family)
