"""Estimate, interval and p-value of each term, from analyses of one table or of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from psmvae.multiple import Analyses, Estimates, rubin
from psmvae.multiple.pooling import warn_of_missing_information

# Names that libraries give to an intercept.
INTERCEPTS = ("Intercept", "(Intercept)", "intercept", "const")


class Inference(NamedTuple):
    """Inference about one term.

    Parameters
    ----------
    estimate, std_error : float
        Estimate and its standard error.
    conf_low, conf_high : float
        Limits of the confidence interval.
    p_value : float
        Two-sided p-value of the null hypothesis.
    """

    estimate: float
    std_error: float
    conf_low: float
    conf_high: float
    p_value: float


def pooled_inference(
    fits: Analyses, *, alpha: float, null: float, dfcom: float | None, warn: bool = True
) -> dict[str, Inference]:
    """Pool analyses by Rubin's rules; with `warn`, warn of much missing information."""
    terms, estimate, variance, freedom = fits.arrays(dfcom)
    p = rubin.pool_scalars(estimate, variance, freedom)
    if warn:
        warn_of_missing_information(terms, p.fmi)
    return _inference(terms, p.estimate, np.sqrt(p.t), p.df, alpha, null)


def only_term(fits: Analyses, term: str | None) -> Analyses:
    """Return analyses of the term of interest alone, so that no other is warned of."""
    terms, estimate, variance, dfcom = fits.arrays()
    chosen = choose_term(terms, term)
    at = [terms.index(chosen)]
    pairs = zip(estimate[:, at], variance[:, at], strict=True)
    each = [Estimates((chosen,), one, of_one, None, dfcom) for one, of_one in pairs]
    return Analyses(each, backend=fits.backend)


def single_inference(
    result: Estimates, *, alpha: float, null: float, dfcom: float | None
) -> dict[str, Inference]:
    """Return the inference of one table, with the degrees of freedom of the analysis."""
    given = result.dfcom if dfcom is None else dfcom
    df = np.full(len(result.terms), np.inf if given is None else given)
    return _inference(result.terms, result.estimate, np.sqrt(result.variance), df, alpha, null)


def choose_term(terms: Sequence[str], term: str | None) -> str:
    """Return the given term, or the only one beside an intercept."""
    if term is not None and term not in terms:
        raise ValueError(f"unknown term {term!r}; the analysis has {list(terms)}.")
    slopes = [one for one in terms if one not in INTERCEPTS]
    if term is None and len(terms) > 1 and len(slopes) != 1:
        raise ValueError(
            f"the analysis has the terms {list(terms)}: choose the one of interest, "
            f"term={slopes[0] if slopes else terms[0]!r}."
        )
    return term or (slopes or list(terms))[0]


def check_result(term: str, one: Inference, where: str) -> None:
    """Raise if an analysis gives no estimate, or an estimate only."""
    if not np.isfinite(one.estimate):
        raise ValueError(
            f"the estimate of {term!r} is {one.estimate:g} {where}: the analysis must give a "
            "number for every completed table."
        )
    if np.isnan(one.p_value):
        raise ValueError(
            f"the analysis gives no standard error of {term!r} {where}: return estimates with "
            "variances, or use bootstrap=200."
        )


def check_alpha(alpha: float) -> None:
    """Raise if a significance level is not between 0 and 1."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}.")


def _inference(
    terms: Sequence[str],
    estimate: rubin.Floats,
    error: rubin.Floats,
    df: rubin.Floats,
    alpha: float,
    null: float,
) -> dict[str, Inference]:
    width = stats.t.ppf(1 - alpha / 2, df) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stats.t.sf(np.abs(estimate - null) / error, df)
    columns = (estimate, error, estimate - width, estimate + width, p)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {term: Inference(*row) for term, row in zip(terms, rows, strict=True)}
