r"""Rubin's rules: pooled estimates, degrees of freedom and multivariate tests.

Notation, for m imputations with estimates :math:`\hat Q_l` and their variances :math:`U_l`:

.. math::

    \bar Q = \tfrac1m \sum_l \hat Q_l, \quad \bar U = \tfrac1m \sum_l U_l, \quad
    B = \tfrac1{m-1} \sum_l (\hat Q_l - \bar Q)(\hat Q_l - \bar Q)^\top, \quad
    T = \bar U + (1 + \tfrac1m) B.

Arrays have the axes ``(imputation, term)`` or ``(imputation, term, term)``.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
DegreesOfFreedom = Literal["barnard-rubin", "rubin"]
DEFAULT: DegreesOfFreedom = "barnard-rubin"


class Pooled(NamedTuple):
    """Pooled estimates of several terms, each field of shape ``(term,)``.

    ``ubar`` is the within-imputation variance, ``b`` the between-imputation variance, ``t`` their
    total, ``riv`` the relative increase in variance due to missing data, ``lambda_`` the proportion
    of the variance due to missing data, ``df`` the degrees of freedom of the t distribution and
    ``fmi`` the fraction of missing information.
    """

    estimate: Floats
    ubar: Floats
    b: Floats
    t: Floats
    riv: Floats
    lambda_: Floats
    df: Floats
    fmi: Floats


class PooledCovariance(NamedTuple):
    """Covariance matrices ``(term, term)`` of pooled estimates; see `Pooled`."""

    ubar: Floats
    b: Floats
    t: Floats


class PooledTest(NamedTuple):
    """Result of a test of several terms at once; made by `Analyses.test`.

    Parameters
    ----------
    statistic : float
        F statistic.
    df1, df2 : float
        Degrees of freedom of its F distribution.
    p_value : float
        Upper tail probability.
    riv : float
        Average relative increase in variance due to missing data.
    """

    statistic: float
    df1: float
    df2: float
    p_value: float
    riv: float


def pool_scalars(
    estimate: Floats, variance: Floats, dfcom: Any = np.inf, *, df: DegreesOfFreedom = DEFAULT
) -> Pooled:
    """Pool estimates and variances ``(imputation, term)`` of each term separately."""
    m = len(estimate)
    if m < 2:
        raise ValueError(f"Rubin's rules need at least 2 imputations, got {m}.")
    with np.errstate(invalid="ignore"):
        # an infinite estimate has no variance
        mean, ubar, b = estimate.mean(0), variance.mean(0), estimate.var(0, ddof=1)
    t = ubar + (1 + 1 / m) * b
    with np.errstate(divide="ignore", invalid="ignore"):
        riv = (1 + 1 / m) * b / ubar
        # an estimate without any variance has no missing information
        lambda_ = np.where(t > 0, (1 + 1 / m) * b / t, np.where(np.isnan(t), np.nan, 0.0))
    freedom = degrees_of_freedom(m, lambda_, dfcom, df=df)
    with np.errstate(invalid="ignore"):
        # (riv + 2 / (df + 3)) / (riv + 1), finite also where ubar = 0
        fmi = lambda_ + (1 - lambda_) * 2 / (freedom + 3)
    return Pooled(mean, ubar, b, t, riv, lambda_, freedom, fmi)


def pool_covariances(estimate: Floats, covariance: Floats) -> PooledCovariance:
    """Pool estimates ``(imputation, term)`` and covariances ``(imputation, term, term)``."""
    ubar, b = covariance.mean(0), np.atleast_2d(np.cov(estimate, rowvar=False))
    return PooledCovariance(ubar, b, ubar + (1 + 1 / len(estimate)) * b)


def p_value(pooled: Pooled) -> Floats:
    """Two-sided p-value ``(term,)`` of the hypothesis that a term is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = pooled.estimate / np.sqrt(pooled.t)
    p: Floats = 2 * stats.t.sf(np.abs(statistic), pooled.df)
    return p


def degrees_of_freedom(
    m: int, lambda_: Floats, dfcom: Any = np.inf, *, df: DegreesOfFreedom = DEFAULT
) -> Floats:
    r"""Compute the degrees of freedom ``(term,)`` of pooled estimates.

    .. math::

        \frac1\nu = \frac{\lambda^2}{m - 1}
            + \frac{\nu_{com} + 3}{(\nu_{com} + 1)\,\nu_{com}\,(1 - \lambda)}

    The reciprocal form is finite for λ = 0 (no between-imputation variance) and for infinite
    complete-data degrees of freedom, where one of the terms vanishes. With the latter, λ = 1 (no
    within-imputation variance) gives ν = m - 1. ``df="rubin"`` keeps the first term only.
    """
    if df not in ("barnard-rubin", "rubin"):
        raise ValueError(f"df must be 'barnard-rubin' or 'rubin', got {df!r}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        reciprocal = lambda_**2 / (m - 1)
        if df == "barnard-rubin":
            v = np.asarray(dfcom, dtype=np.float64)
            # the reciprocal, because infinity times 1 - λ = 0 is no number
            observed = np.where(np.isinf(v), 0.0, (v + 3) / ((v + 1) * v) / (1 - lambda_))
            reciprocal = reciprocal + observed
        found: Floats = 1 / reciprocal
    return found


def wald_d1(estimate: Floats, covariance: Floats, dfcom: float = np.inf) -> PooledTest:
    """Test that all terms are zero, by the pooled Wald test D1 of Li et al. (1991)."""
    m, k = estimate.shape
    mean, (ubar, b, _) = estimate.mean(0), pool_covariances(estimate, covariance)
    riv = float((1 + 1 / m) * np.trace(np.linalg.solve(ubar, b)) / k)
    statistic = float(mean @ np.linalg.solve(ubar, mean) / (k * (1 + riv)))
    df2 = reiter_df(k, m, riv, dfcom) if np.isfinite(dfcom) else li_df(k, m, riv)
    return PooledTest(statistic, float(k), df2, f_tail(statistic, k, df2), riv)


def pool_d2(statistic: Floats, k: int) -> PooledTest:
    """Pool the χ² statistics ``(imputation,)`` of one test, by D2 of Li et al. (1991)."""
    m = len(statistic)
    riv = float((1 + 1 / m) * np.var(np.sqrt(statistic), ddof=1))
    value = float((statistic.mean() / k - (m + 1) / (m - 1) * riv) / (1 + riv))
    df2 = float(k ** (-3 / m) * (m - 1) * (1 + 1 / riv) ** 2) if riv > 0 else np.inf
    # a negative statistic is no evidence against the null hypothesis
    return PooledTest(value, float(k), df2, f_tail(max(value, 0.0), k, df2), riv)


def pool_d3(at_own: Floats, at_pooled: Floats, k: int) -> PooledTest:
    r"""Pool likelihood ratio statistics, by D3 of Meng and Rubin (1992).

    ``at_own`` are the statistics ``(imputation,)`` with the likelihoods at the estimates of each
    imputation, :math:`\bar d` their mean, ``at_pooled`` those at the pooled estimates,
    :math:`\tilde d` their mean.

    .. math::

        D_3 = \frac{\tilde d}{k (1 + r)}, \quad
        r = \frac{m + 1}{k (m - 1)} (\bar d - \tilde d)

    A negative r is set to zero, as with ``ariv="positive"`` of R's mitml.
    """
    m = len(at_own)
    riv = max(0.0, float((m + 1) / (k * (m - 1)) * (at_own.mean() - at_pooled.mean())))
    statistic = float(at_pooled.mean() / (k * (1 + riv)))
    df2 = li_df(k, m, riv)
    return PooledTest(statistic, float(k), df2, f_tail(statistic, k, df2), riv)


def f_tail(statistic: float, df1: float, df2: float) -> float:
    """Upper tail probability of an F distribution; with infinite ``df2``, of χ² / ``df1``."""
    if np.isinf(df2):
        return float(stats.chi2.sf(df1 * statistic, df1))
    return float(stats.f.sf(statistic, df1, df2))


def li_df(k: int, m: int, riv: float) -> float:
    """Denominator degrees of freedom of Li et al. (1991), for D1 and D3."""
    if riv <= 0:
        return float("inf")
    t = k * (m - 1)
    if t > 4:
        return float(4 + (t - 4) * (1 + (1 - 2 / t) / riv) ** 2)
    return float(t * (1 + 1 / k) * (1 + 1 / riv) ** 2 / 2)


def reiter_df(k: int, m: int, riv: float, dfcom: float) -> float:
    r"""Denominator degrees of freedom of D1 with those of complete data, by Reiter (2007).

    They come from a series for :math:`k (m - 1) > 4` and :math:`\nu^* / (1 + a) > 4`, where
    :math:`\nu^* = (\nu_{com} + 1) \nu_{com} / (\nu_{com} + 3)`, and are above 4. Outside this range
    the series is not defined, negative, or diverges. The degrees of freedom of Li et al. (1991) are
    combined with those of complete data there, as Barnard and Rubin (1999) do for one term:

    .. math::

        \frac1\nu = \frac1{\nu_{Li}} + \frac{1 + a}{\nu^*}.

    The result is positive and below :math:`\nu^*`, and for a = 0 both are :math:`\nu^*`. For
    :math:`t = k (m - 1) > 4`, a is r t / (t - 2) as in the degrees of freedom of Li et al.; for
    smaller t both use r itself. So with one term and at most five imputations the test is the t
    test of the pooled estimate.
    """
    t = k * (m - 1)
    a = riv * t / (t - 2) if t > 4 else riv
    v = (dfcom + 1) / (dfcom + 3) * dfcom
    c1, c2 = v - 2 * (1 + a), v - 4 * (1 + a)
    if t <= 4 or c2 <= 0:
        return float(1 / (1 / li_df(k, m, riv) + (1 + a) / v))
    series = (
        a**2 * c1 / ((1 + a) ** 2 * c2)
        + 8 * a**2 * c1 / ((1 + a) * c2**2)
        + 4 * a**2 / ((1 + a) * c2)
        + 4 * a**2 / (c2 * c1)
        + 16 * a**2 * c1 / c2**3
        + 8 * a**2 / c2**2
    )
    return float(4 + 1 / (1 / c2 + series / (t - 4)))
