"""Little's test of values missing completely at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from psmvae.describe.masks import Patterns, distinct_patterns
from psmvae.describe.normal import MAX_ITER, TOLERANCE, NotIdentifiedError, fit_normal
from psmvae.describe.variables import Floats, Variable

MAX_LEVELS = 20
"""Columns with more levels without an order are left out: each level is a dimension."""
# standard deviation, relative to the largest value, below which a column is constant
_CONSTANT = 1e-12
# relative size of what is left of a column given the others, below which it is collinear
_COLLINEAR = 1e-8
# of standardised columns: the smallest weight of a column in a linear function of others, and the
# largest error of a function that holds
_NO_WEIGHT, _EXACT = 1e-9, 1e-6


@dataclass(frozen=True)
class LittleTest:
    """Little's test of values missing completely at random (MCAR); made by `psmvae.missingness`.

    Attributes
    ----------
    statistic : float
        d², the sum over patterns of the number of rows times the squared Mahalanobis distance
        between the means of the observed values and the means of all rows. NaN if the test is not
        available.
    df : int
        Degrees of freedom: the numbers of observed columns, summed over patterns, minus the number
        of columns, after coding.
    p_value : float
        Of the χ² distribution with `df` degrees of freedom.
    ratio : float
        ``statistic / df``; 1 is expected under the null hypothesis.
    distance : float
        Effect size that does not depend on the number of rows: √max(0, (d² − df) / n), the root
        mean square distance between the means of a pattern and those of all rows in standard
        deviations, corrected for chance.
    distance_low, distance_high : float
        95 % interval of `distance`, by the noncentral χ² distribution of the statistic.
    n_rows : int
        Number of rows used: those with an observed value, at most ``max_rows``.
    n_patterns : int
        Number of patterns among these rows.
    left_out : tuple of str
        Columns that are not in the test: constant or collinear ones, and those with more than 20
        levels without an order. Of a column with levels some may be left out: ``"city=Basel"``.
    reason : str
        Why the test is not available, or empty.

    Notes
    -----
    The null hypothesis is that values are missing completely at random. The test compares means
    only, and is derived for a multivariate Normal distribution, whose mean and covariance matrix
    are estimated by maximum likelihood (EM), as in R's naniar. Some implementations multiply the
    covariance matrix by n / (n − 1), which divides d² by the same factor. Binary and ordinal
    columns are coded by the positions of their levels, levels without an order by indicators.

    References
    ----------
    Little, R. J. A. (1988). A test of missing completely at random for multivariate data with
    missing values. Journal of the American Statistical Association 83, 1198-1202.

    Examples
    --------
    >>> import numpy as np, psmvae
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> x[x[:, 0] > 1, 1] = np.nan
    >>> test = psmvae.missingness(x).little
    >>> test.df, test.p_value < 0.001
    (1, True)
    """

    statistic: float
    df: int
    p_value: float
    n_rows: int
    n_patterns: int
    left_out: tuple[str, ...] = ()
    reason: str = ""

    @property
    def ratio(self) -> float:
        """The statistic divided by its degrees of freedom."""
        return self.statistic / self.df if self.df else float("nan")

    @property
    def distance(self) -> float:
        """The distance between pattern means in standard deviations, corrected for chance."""
        if self.reason:
            return float("nan")
        return float(np.sqrt(max(0.0, (self.statistic - self.df) / self.n_rows)))

    @property
    def distance_low(self) -> float:
        """The lower limit of the distance."""
        return self._distance_at(0.975)

    @property
    def distance_high(self) -> float:
        """The upper limit of the distance."""
        return self._distance_at(0.025)

    def _distance_at(self, probability: float) -> float:
        """Return the distance at which a statistic up to this one has the probability."""
        if self.reason:
            return float("nan")

        def above(noncentrality: float) -> float:
            return float(stats.ncx2.cdf(self.statistic, self.df, noncentrality)) - probability

        if above(0.0) <= 0:
            return 0.0
        # the mean plus ten standard deviations of the statistic
        most = self.statistic + 10 * np.sqrt(2 * self.df + 4 * self.statistic) + 10
        return float(np.sqrt(optimize.brentq(above, 0.0, most) / self.n_rows))

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as a dict.

        Returns
        -------
        dict
            The attributes by name.
        """
        derived = ("ratio", "distance", "distance_low", "distance_high")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def little_test(
    variables: Sequence[Variable],
    max_rows: int | None,
    rng: np.random.Generator,
    max_iter: int = MAX_ITER,
    tolerance: float = TOLERANCE,
) -> LittleTest:
    """Apply Little's test to the columns, or to `max_rows` of their rows drawn at random.

    EM stops at changes below `tolerance`. The test is not available if it takes more than
    `max_iter` iterations.
    """
    x, names, left_out = _coded(variables)
    x = _with_observed(x)
    if max_rows is not None and len(x) > max_rows:
        x = x[np.sort(rng.choice(len(x), max_rows, replace=False))]
    x, varying = _standardised(x)
    kept = _independent(x)
    used = set(varying[kept].tolist())
    left_out += [name for k, name in enumerate(names) if k not in used]
    if len(kept) == 0:
        reason = "no column with several values is left"
        return LittleTest(float("nan"), 0, float("nan"), 0, 0, tuple(left_out), reason)
    return _test(_with_observed(x[:, kept]), tuple(left_out), max_iter, tolerance)


def _with_observed(x: Floats) -> Floats:
    """Return the rows with an observed value."""
    return x[~np.isnan(x).all(1)]


def _test(x: Floats, left_out: tuple[str, ...], max_iter: int, tolerance: float) -> LittleTest:
    patterns = distinct_patterns(np.isnan(x))
    df = int((~patterns.missing).sum()) - x.shape[1]
    shape = (len(x), len(patterns.counts))

    def unavailable(reason: str) -> LittleTest:
        return LittleTest(float("nan"), max(df, 0), float("nan"), *shape, left_out, reason)

    if df < 1:
        return unavailable("the rows have one pattern of observed values, and two are compared")
    try:
        mu, sigma = fit_normal(x, patterns, max_iter, tolerance)
    except NotIdentifiedError as error:
        return unavailable(str(error))
    statistic = _statistic(x, patterns, mu, sigma)
    return LittleTest(statistic, df, float(stats.chi2.sf(statistic, df)), *shape, left_out)


def _statistic(x: Floats, patterns: Patterns, mu: Floats, sigma: Floats) -> float:
    """Return d² = Σ_j n_j (x̄_j − μ_j)ᵀ Σ_j⁻¹ (x̄_j − μ_j), over patterns j."""
    sums = np.zeros(patterns.missing.shape)
    np.add.at(sums, patterns.of_row, np.where(np.isnan(x), 0.0, x))
    total = 0.0
    for lost, n, summed in zip(patterns.missing, patterns.counts, sums, strict=True):
        seen = ~lost
        away = summed[seen] / n - mu[seen]
        total += float(n * away @ np.linalg.solve(sigma[np.ix_(seen, seen)], away))
    return total


def _coded(variables: Sequence[Variable]) -> tuple[Floats, list[str], list[str]]:
    """Return the columns of the test with their names, and those that have too many levels."""
    columns: list[Floats] = []
    names: list[str] = []
    left_out: list[str] = []
    for one in variables:
        if not one.nominal:
            columns.append(one.values)
            names.append(one.name)
            continue
        lost = np.isnan(one.values)
        levels = np.unique(one.values[~lost])
        if len(levels) > MAX_LEVELS:
            left_out.append(one.name)
            continue
        # the first level is the reference
        columns += [np.where(lost, np.nan, one.values == level) for level in levels[1:]]
        names += [f"{one.name}={one.levels[int(level)]}" for level in levels[1:]]
        if len(levels) < 2:
            left_out.append(one.name)
    x = np.stack(columns, 1) if columns else np.empty((0, 0))
    return x, names, left_out


def _standardised(x: Floats) -> tuple[Floats, Any]:
    """Return the columns that are not constant, standardised, and their positions."""
    seen = ~np.isnan(x)
    n = np.maximum(seen.sum(0), 1)
    filled = np.where(seen, x, 0.0)
    # squares of very large or small values must not overflow or vanish
    filled = filled / np.maximum(np.abs(filled).max(0, initial=0.0), np.finfo(float).tiny)
    centred = np.where(seen, filled - filled.sum(0) / n, 0.0)
    deviation = np.sqrt((centred**2).sum(0) / n)
    kept = np.flatnonzero(deviation > _CONSTANT)
    return np.where(seen, centred, np.nan)[:, kept] / deviation[kept], kept


def _independent(z: Floats) -> Any:
    """Return the positions of columns that are no linear function of others.

    Dependent columns are found in the complete rows. A column is left out if its linear function of
    others holds in all rows where these are observed: among the complete rows it may be constant,
    or follow from others, by the choice of the rows.
    """
    complete = z[~np.isnan(z).any(1)]
    if z.shape[1] == 0 or len(complete) <= z.shape[1]:
        return np.arange(z.shape[1])
    center = complete.mean(0)
    away = complete - center
    # of columns that depend on each other, those with more missing cells are kept
    order = np.argsort(-np.isnan(z).sum(0), kind="stable")
    size = np.abs(np.diag(np.linalg.qr(away[:, order], mode="r")))
    is_free = size > _COLLINEAR * np.sqrt(len(complete))
    free, dependent = order[is_free], order[~is_free]
    coef = np.linalg.lstsq(away[:, free], away[:, dependent], rcond=None)[0]
    kept = np.array(
        [
            k
            for k, weight in zip(dependent, coef.T, strict=True)
            if not _holds(z - center, k, free[np.abs(weight) > _NO_WEIGHT], weight)
        ],
        dtype=np.intp,
    )
    if len(kept) < z.shape[1]:
        # they may depend on each other
        kept = kept[_independent(z[:, kept])]
    return np.sort(np.append(free, kept))


def _holds(away: Floats, k: int, others: Any, weight: Floats) -> bool:
    """Return whether column k is a linear function of others where all of them are observed."""
    columns, weight = away[:, others], weight[np.abs(weight) > _NO_WEIGHT]
    rows = ~(np.isnan(away[:, k]) | np.isnan(columns).any(1))
    rest = away[rows, k] - columns[rows] @ weight
    return bool(np.abs(rest).max() < _EXACT)
