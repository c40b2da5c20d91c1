"""Bayesian linear regression, for many chains at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

Floats = NDArray[np.float64]

# Candidates for the prior variance of the penalised terms together, as a multiple of the noise
# variance. 0 leaves them out and has this prior probability.
SIGNAL_TO_NOISE = np.concatenate([[0.0], 10.0 ** np.arange(-2.5, 1.6, 0.5)])
# The same where linear terms are penalised too: they may determine a column.
ANY_SIGNAL_TO_NOISE = np.concatenate([[0.0], 10.0 ** np.arange(-2.5, 6.1, 0.5)])
P_NONE = 0.5
# A flat term is left out if its standard deviation is a smaller fraction of the largest than
# MIN_SIZE, or if the others explain all but MIN_TOLERANCE of its variance.
MIN_SIZE, MIN_TOLERANCE = 1e-6, 1e-6
# Added to the precision of flat terms, as a multiple of the number of rows.
JITTER = 1e-9
# Prior precision of a term that is left out.
LEFT_OUT = 1e12
# Largest weight of a row in its own prediction: the residual without it is never infinite.
MAX_LEVERAGE = 0.99


class Design(NamedTuple):
    """The terms of a regression, for each chain.

    ``away`` ``(chain, row, term)`` are the terms minus their means ``center`` ``(chain, term)``,
    and ``gram`` ``(chain, term, term)`` are the sums of their products. Most of the time of a
    regression goes to these, and several regressions have the same terms.
    """

    center: Floats
    away: Floats
    gram: Floats

    @classmethod
    def of(cls, terms: Floats) -> Design:
        """Return the design of terms ``(chain, row, term)``, which are overwritten."""
        center = terms.mean(1)
        terms -= center[:, None]
        return cls(center, terms, transposed(terms) @ terms)

    def times(self, coef: Floats) -> Floats:
        """Return the sums of terms times coefficients ``(chain, term)``: ``(chain, row)``."""
        return _apply(self.away, coef)

    def leverage(self, covariance: Floats, rows: Any = slice(None)) -> Floats:
        """Return the leverage of some rows, at most .99: a derivative of fitted by observed values.

        ``covariance`` ``(chain, term, term)`` is that of the coefficients divided by sigma².
        """
        away, n_rows = self.away[:, rows], self.away.shape[1]
        found = np.einsum("crt,crt->cr", away @ covariance, away) + 1 / n_rows
        return np.asarray(np.minimum(found, MAX_LEVERAGE))


class Posterior(NamedTuple):
    """The posterior of a regression, for each chain.

    ``mean`` ``(chain, term)`` is that of the coefficients of terms minus their means, ``level``
    ``(chain,)`` that of the intercept. ``scale`` is the estimated and ``sigma`` the drawn standard
    deviation of the noise. ``precision`` ``(chain, term)`` is that of the prior of the
    coefficients, and ``root`` ``(chain, term, term)`` times its transpose the covariance of their
    posterior, both in units of sigma.
    """

    mean: Floats
    level: Floats
    scale: Floats
    sigma: Floats
    precision: Floats
    root: Floats

    def predict(self, design: Design) -> Floats:
        """Return the posterior mean of E[y], ``(chain, row)``."""
        return design.times(self.mean) + self.level[:, None]

    @property
    def covariance(self) -> Floats:
        """Covariance of the coefficients divided by sigma²."""
        return np.asarray(self.root @ transposed(self.root))

    def draw(
        self, design: Design, rng: Draws, noise: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Draw coefficients ``(chain, term)`` and the intercept ``(chain,)``.

        ``noise`` ``(chain, row)`` are standard deviations of the noise of the rows, relative to
        sigma and with a mean square of 1; None stands for equal ones. The estimates are those of
        equal weights for any noise, and are drawn with the variance that they have: C (AᵀSA + P) C,
        where A are the terms, S the variances of the noise, P the precision of the prior and C the
        posterior covariance for equal noise, which this is if S is constant.
        """
        n_rows, n_terms = design.away.shape[1:]
        sigma = self.sigma[:, None]
        if noise is None:
            coef = self.mean + sigma * _apply(self.root, rng.normal(n_terms))
            return coef, self.level + self.sigma / np.sqrt(n_rows) * rng.normal(1)[:, 0]
        errors = noise * rng.normal(n_rows)
        moved = _apply(transposed(design.away), errors)
        moved += np.sqrt(self.precision) * rng.normal(n_terms)
        moved = _apply(self.root, _apply(transposed(self.root), moved))
        return self.mean + sigma * moved, self.level + self.sigma * errors.mean(1)


def regress(
    design: Design,
    y: Floats,
    rng: Draws,
    *,
    n_flat: int,
    groups: NDArray[np.bool_] | None = None,
    signals: Floats = SIGNAL_TO_NOISE,
) -> Posterior:
    """Regress y ``(chain, row)`` on the terms of a design; the variances are drawn.

    The intercept, log sigma and the coefficients of the first ``n_flat`` terms have flat priors, as
    in the method "norm" of R's mice. The others are Normal with one variance, which is drawn from
    its posterior over ``signals``, a grid that starts with 0. ``groups`` ``(group, penalised
    term)`` are sets of terms that may be used together; one is drawn too. All but the grid is in
    closed form.
    """
    n_chains, n_rows, n_terms = design.away.shape
    level, gram = y.mean(1), design.gram
    t = y - level[:, None]
    xy = _apply(transposed(design.away), t)
    total = (t * t).sum(1)
    precision = np.zeros((n_chains, n_terms))
    dropped = dependent(gram[:, :n_flat, :n_flat].mean(0), n_rows)
    precision[:, :n_flat] = np.where(dropped, LEFT_OUT, JITTER * n_rows)
    if n_terms > n_flat:
        if groups is None:
            groups = np.ones((1, n_terms - n_flat), dtype=bool)
        # a set without terms would add to the prior probability of none
        groups = np.unique(groups[groups.any(1)], axis=0)
        used = np.concatenate([np.flatnonzero(~dropped), np.arange(n_flat, n_terms)])
        average = gram.mean(0)[np.ix_(used, used)]
        n_used = n_flat - int(np.count_nonzero(dropped))
        precision[:, n_flat:] = _draw_precision(
            average, xy.mean(0)[used], float(total.mean()), n_used, n_rows, groups, signals, rng
        )
        # otherwise their coefficients would be drawn from the prior
        precision[:, n_flat:][:, constant(gram.mean(0))[n_flat:]] = LEFT_OUT
    inner = gram + precision[:, None] * np.eye(n_terms)
    # if L Lᵀ is the precision, L⁻ᵀ times standard Normal numbers has its inverse as covariance
    root = transposed(np.linalg.inv(np.linalg.cholesky(inner)))
    mean = _apply(root, _apply(transposed(root), xy))
    freedom = max(n_rows - 1 - n_flat + np.count_nonzero(dropped), 1)
    squares = np.maximum(total - (mean * xy).sum(1), 1e-12 * np.maximum(total, 1e-12))
    scale = np.sqrt(squares / freedom)
    sigma = np.sqrt(squares / rng.chisquare(freedom))
    return Posterior(mean, level, scale, sigma, precision, root)


def transposed(matrices: Floats) -> Floats:
    """Return matrices with their last two axes swapped; ``mT`` of arrays came with NumPy 2."""
    return np.swapaxes(matrices, -1, -2)


def constant(gram: Floats) -> NDArray[np.bool_]:
    """Return which terms are constant."""
    size = np.sqrt(gram.diagonal())
    return np.asarray(size <= MIN_SIZE * max(float(size.max(initial=0.0)), 1e-300))


def dependent(gram: Floats, n_rows: int) -> NDArray[np.bool_]:
    """Return which terms are constant, or linear functions of the others, by pivoted Cholesky.

    ``gram`` may be the average of several chains, whose rank is higher than that of each. So no
    more terms are kept than leave a degree of freedom for the noise in a regression on ``n_rows``.
    """
    size, is_constant = np.sqrt(gram.diagonal()), constant(gram)
    correlation = gram / np.outer(*[np.where(is_constant, 1.0, size)] * 2)
    correlation[is_constant] = correlation[:, is_constant] = 0.0
    # exactly 1, so that of two equal terms the first is kept
    np.fill_diagonal(correlation, ~is_constant)
    if not correlation.size:
        return is_constant
    _, pivot, rank, _ = dpstrf(correlation, tol=MIN_TOLERANCE)
    dropped = np.ones(len(gram), dtype=bool)
    dropped[pivot[: min(rank, max(n_rows - 2, 0))] - 1] = False
    return np.asarray(dropped | is_constant)


def _draw_precision(
    gram: Floats,
    xy: Floats,
    total: float,
    n_flat: int,
    n_rows: int,
    groups: NDArray[np.bool_],
    signals: Floats,
    rng: Draws,
) -> Floats:
    """Draw the prior precision ``(chain, penalised term)``, in units of 1 / sigma².

    The flat terms are integrated out, and so is sigma. What remains is the marginal likelihood of
    the prior variance, which needs one eigendecomposition for a whole grid. All chains draw from
    the posterior of the average chain: decomposing every chain's matrix would take most of the
    time, and the chains differ in imputed cells only.
    """
    flat, cross = gram[:n_flat, :n_flat], gram[:n_flat, n_flat:]
    fitted = np.linalg.solve(flat + JITTER * n_rows * np.eye(n_flat), cross)
    within = gram[n_flat:, n_flat:] - cross.T @ fitted
    left = xy[n_flat:] - fitted.T @ xy[:n_flat]
    known = np.linalg.solve(flat + JITTER * n_rows * np.eye(n_flat), xy[:n_flat])
    rest, freedom = total - float(xy[:n_flat] @ known), n_rows - 1 - n_flat
    signals = signals[1:]
    logs = [-0.5 * freedom * np.log(max(rest, 1e-300)) + np.log(P_NONE)]
    precisions = [np.full(len(left), LEFT_OUT)]
    share = np.log((1 - P_NONE) / (len(groups) * len(signals)))
    for group in groups:
        s, v = np.linalg.eigh(within * np.outer(group, group))
        s = np.maximum(s, 0.0)
        part = (v.T @ (group * left)) ** 2
        variance = signals[:, None] / max(float(s.sum()) / n_rows, 1e-12)
        gain = 1 + variance * s
        squares = np.maximum(rest - (variance * part / gain).sum(1), 1e-300)
        logs.extend(share - 0.5 * np.log(gain).sum(1) - 0.5 * freedom * np.log(squares))
        precisions.extend(np.where(group, 1 / variance, LEFT_OUT))
    log = np.array(logs)
    weight = np.exp(log - log.max()).cumsum()
    chosen = np.searchsorted(weight / weight[-1], rng.uniform(1)[:, 0])
    return np.stack(precisions)[chosen]


class Draws:
    """Random numbers with one generator for each chain, so that no chain depends on another."""

    def __init__(self, generators: list[np.random.Generator]) -> None:
        self.generators = generators

    @classmethod
    def seeded(cls, seed: int, keys: list[int]) -> Draws:
        """Return generators that depend on the seed and on each chain's key only."""
        return cls([np.random.default_rng([seed, key]) for key in keys])

    def of(self, chains: Any) -> Draws:
        """Return the generators of some chains: a slice or a mask."""
        return Draws([self.generators[k] for k in np.arange(len(self.generators))[chains]])

    def normal(self, *shape: int) -> Floats:
        """Return standard Normal numbers ``(chain, *shape)``."""
        return np.stack([generator.normal(size=shape) for generator in self.generators])

    def uniform(self, *shape: int) -> Floats:
        """Return uniform numbers ``(chain, *shape)``."""
        return np.stack([generator.random(shape) for generator in self.generators])

    def chisquare(self, freedom: float) -> Floats:
        """Return one χ² number for each chain."""
        return np.array([generator.chisquare(freedom) for generator in self.generators])


def _apply(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray((matrix @ vector[..., None])[..., 0])
