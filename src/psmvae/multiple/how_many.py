"""Number of imputations for stable standard errors, and Monte Carlo errors of pooled results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from psmvae.multiple import rubin
from psmvae.multiple.estimates import check_number
from psmvae.multiple.pooling import SCALES, Analyses, Backend, ScaleName

Floats = NDArray[np.float64]
# Coefficient of variation of standard errors, and level of the interval of γ, by default.
CV, CONF_LEVEL = 0.05, 0.95


@dataclass(frozen=True, repr=False)
class HowMany:
    """Number of imputations needed; made by `MultipleImputation.how_many`.

    Parameters
    ----------
    m : int
        Number of imputations for standard errors with coefficient of variation `cv`.
    m_now : int
        Number of imputations that were analysed.
    cv : float
        Coefficient of variation of the standard error between repeated multiple imputations.
    columns : dict
        For each term: fraction of missing information and its upper limit, number of imputations,
        and estimate, standard error and p-value with their Monte Carlo errors.
    backend : str
        Library of the frame that `summary` returns: "pandas", "polars" or "pyarrow".

    Notes
    -----
    The quadratic rule of von Hippel (2020) is m = 1 + (γ / cv)² / 2, for the fraction of missing
    information γ. Its estimate from few imputations varies, so the upper limit of its interval is
    used, expit(logit γ ± z √(2 / m)), and of all terms the largest number.

    A Monte Carlo error is the standard deviation of a pooled quantity over repeated multiple
    imputations of the same table. It is estimated by the jackknife over imputations (White,
    Royston and Wood 2011), as in ``mi estimate, mcerror`` of Stata.

    Examples
    --------
    >>> from psmvae.multiple.how_many import how_many
    >>> from psmvae.multiple import Analyses
    >>> print(how_many(Analyses([{"mean": (q, 1.0)} for q in (1.0, 2.0, 1.5, 1.2)])))
    4 imputations were analysed. 55 are needed for standard errors with a coefficient of variation
    of 0.05: the fraction of missing information is at most 0.21, with upper limit 0.52.
    Monte Carlo errors in brackets:
      term  estimate       std. error     p-value
      mean  1.425 (0.217)  1.112 (0.088)  0.2036 (0.0566)
    """

    m: int
    m_now: int
    cv: float
    columns: dict[str, list[Any]]
    backend: Backend = "pandas"

    def summary(self) -> Any:
        """Return a frame with one row for each term.

        Returns
        -------
        DataFrame
            Columns term, fmi, fmi_high, m, estimate, estimate_mce, std_error, std_error_mce,
            p_value and p_value_mce, where mce is the Monte Carlo error.
        """
        return nw.from_dict(self.columns, backend=self.backend).to_native()

    def __repr__(self) -> str:
        fmi, high = (np.nanmax(self.columns[name]) for name in ("fmi", "fmi_high"))
        names = ("estimate", "std_error", "p_value")
        rows = [["term", "estimate", "std. error", "p-value"]]
        for k, term in enumerate(self.columns["term"]):
            pairs = [(self.columns[name][k], self.columns[f"{name}_mce"][k]) for name in names]
            rows.append([term, *(f"{value:.4g} ({error:.3g})" for value, error in pairs)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows
        ]
        return "\n".join(
            [
                f"{self.m_now} imputations were analysed. {self.m} are needed for standard errors "
                "with a coefficient of variation",
                f"of {self.cv:g}: the fraction of missing information is at most {fmi:.2f}, with "
                f"upper limit {high:.2f}.",
                "Monte Carlo errors in brackets:",
                *(f"  {line.rstrip()}" for line in lines),
            ]
        )


def how_many(
    fits: Analyses,
    *,
    cv: float = CV,
    conf_level: float = CONF_LEVEL,
    dfcom: float | None = None,
    df: rubin.DegreesOfFreedom = rubin.DEFAULT,
    scale: ScaleName = "identity",
) -> HowMany:
    """Apply the quadratic rule to analyses; see `MultipleImputation.how_many`."""
    for name, value in (("cv", cv), ("conf_level", conf_level)):
        check_number(name, value)
    if not cv > 0:
        raise ValueError(f"cv must be above 0, got {cv!r}.")
    if not 0 < conf_level < 1:
        raise ValueError(f"conf_level must be between 0 and 1, got {conf_level!r}.")
    terms, estimate, variance, freedom = fits.arrays(dfcom, scale)
    m = len(estimate)
    if m < 3:
        raise ValueError(f"Monte Carlo errors need at least 3 imputations, got {m}.")
    pooled = rubin.pool_scalars(estimate, variance, freedom, df=df)
    if np.isnan(pooled.fmi).all():
        raise ValueError(
            "the number of imputations is for stable standard errors, and the analyses have none; "
            "see the parameter bootstrap of analyse."
        )
    high = fmi_upper_limit(pooled.fmi, m, conf_level)
    needed = imputations_needed(high, cv)
    names = ("estimate", "std_error", "p_value")

    def quantities(estimate: Floats, variance: Floats) -> Floats:
        """Pooled estimate, standard error and p-value of each term, as in a pooled summary."""
        found = rubin.pool_scalars(estimate, variance, freedom, df=df)
        back = SCALES[scale].inverse(found.estimate)
        return np.stack([back, np.sqrt(found.t), rubin.p_value(found)])

    left_out = [quantities(np.delete(estimate, k, 0), np.delete(variance, k, 0)) for k in range(m)]
    values = zip(names, quantities(estimate, variance), strict=True)
    errors = zip(names, jackknife_error(np.array(left_out)), strict=True)
    by_name = {**dict(values), **{f"{name}_mce": error for name, error in errors}}
    columns = {"fmi": pooled.fmi, "fmi_high": high, "m": needed} | {
        key: by_name[key] for name in names for key in (name, f"{name}_mce")
    }
    plain = {name: np.asarray(column).tolist() for name, column in columns.items()}
    plain["m"] = [None if np.isnan(number) else int(number) for number in needed]
    return HowMany(int(np.nanmax(needed)), m, cv, {"term": list(terms), **plain}, fits.backend)


def fmi_upper_limit(fmi: Floats, m: int, conf_level: float) -> Floats:
    """Upper confidence limit of the fraction of missing information, Normal on the logit scale."""
    limit: Floats = expit(logit(fmi) + ndtri(0.5 + conf_level / 2) * np.sqrt(2 / m))
    return limit


def imputations_needed(fmi: Floats, cv: float) -> Floats:
    """Quadratic rule 1 + (fmi / cv)² / 2, rounded up; Rubin's rules need at least 2."""
    return np.maximum(2.0, np.ceil(1 + (fmi / cv) ** 2 / 2))


def jackknife_error(left_out: Floats) -> Floats:
    """Jackknife standard error, from the values with each imputation left out on the first axis."""
    m = len(left_out)
    error: Floats = np.sqrt((m - 1) ** 2 / m * left_out.var(0, ddof=1))
    return error
