"""Estimates and variances of one analysis, read from the results of several libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.table.libraries import is_pandas_frame

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimates:
    """Estimates of one completed table.

    Parameters
    ----------
    terms : tuple of str
        Names of the estimated quantities.
    estimate : ndarray of shape (term,)
        Point estimates.
    variance : ndarray of shape (term,)
        Squared standard errors; NaN where the analysis gives none.
    covariance : ndarray of shape (term, term) or None
        Covariance matrix of the estimates, if the analysis gives one.
    dfcom : float or None
        Residual degrees of freedom of the analysis, if it gives them.
    """

    terms: tuple[str, ...]
    estimate: Floats
    variance: Floats
    covariance: Floats | None = None
    dfcom: float | None = None

    def __post_init__(self) -> None:
        sizes = len(self.terms), np.size(self.estimate), np.size(self.variance)
        if len(set(sizes)) > 1:
            raise ValueError(
                "an analysis needs one estimate and one variance for each term, got "
                f"{sizes[0]} terms, {sizes[1]} estimates and {sizes[2]} variances."
            )


def read_estimates(result: Any) -> Estimates:
    """Read estimates from the result of an analysis.

    Parameters
    ----------
    result : object
        A result of statsmodels, a fitter of lifelines, a linear estimator of scikit-learn, a frame
        with columns ``estimate`` and ``variance`` or ``std_error`` (and ``term``, ``df``), a
        mapping from terms to numbers or to pairs (estimate, variance), a mapping of these column
        names to sequences, or a number.

    Returns
    -------
    Estimates
        Terms, estimates, variances and, where known, covariances and degrees of freedom.

    Raises
    ------
    TypeError
        If no estimates can be read from the object.
    ValueError
        If the numbers of terms, estimates and variances differ.

    Notes
    -----
    Terms of models with several outcomes, such as ``MNLogit`` of statsmodels, are named
    ``outcome:name``. An unknown number of degrees of freedom in the column ``df`` (NaN or None) is
    ignored; of the others, the smallest is that of all terms.

    Examples
    --------
    >>> read_estimates({"mean": (1.5, 0.25)}).variance
    array([0.25])
    >>> read_estimates(3).terms
    ('estimate',)
    """
    if isinstance(result, Estimates):
        return result
    if isinstance(result, Real):
        return _make(("estimate",), [float(result)])
    if isinstance(result, Mapping):
        return _from_mapping(result)
    if nw.dependencies.is_into_dataframe(result):
        columns = nw.from_native(result, eager_only=True).to_dict(as_series=False)
        if is_pandas_frame(result):
            columns.setdefault("term", list(result.index))
        return _from_columns(columns)
    if hasattr(result, "params") and hasattr(result, "cov_params"):
        return _from_statsmodels(result)
    if hasattr(result, "params_") and hasattr(result, "variance_matrix_"):
        return _from_lifelines(result)
    if hasattr(result, "coef_"):
        return _from_sklearn(result)
    raise TypeError(
        "an analysis must return a result of statsmodels, lifelines or scikit-learn, a frame or "
        f"mapping of estimates, or a number, got {type(result).__name__}."
    )


def check_same_terms(one: Estimates, other: Estimates, names: tuple[str, str]) -> None:
    """Raise if two analyses, named for the message, do not estimate the same terms."""
    if one.terms != other.terms:
        differing = sorted({*one.terms} ^ {*other.terms}) or list(other.terms)
        raise ValueError(
            f"{names[0]} and {names[1]} have different terms: {differing}. Every analysis must "
            "estimate the same terms in the same order."
        )


def _make(
    terms: Any, estimate: Any, variance: Any = None, covariance: Any = None, dfcom: Any = None
) -> Estimates:
    """Convert to arrays; the variance is that of the covariance matrix if there is one."""
    values = np.asarray(estimate, dtype=np.float64).ravel()
    if covariance is not None:
        covariance = np.asarray(covariance, dtype=np.float64)
        variance = covariance.diagonal().copy()
    variance = np.full(values.shape, np.nan) if variance is None else np.asarray(variance, float)
    dfcom = None if dfcom is None else float(dfcom)
    return Estimates(tuple(map(str, terms)), values, variance, covariance, dfcom)


def _from_mapping(result: Mapping[Any, Any]) -> Estimates:
    if "estimate" in result and {"variance", "std_error"} & set(result):
        return _from_columns({str(name): np.ravel(v).tolist() for name, v in result.items()})
    pairs = [value if np.ndim(value) else (value, np.nan) for value in result.values()]
    wrong = [name for name, pair in zip(result, pairs, strict=True) if len(pair) != 2]
    if wrong:
        raise TypeError(
            f"a mapping of estimates needs a number or a pair (estimate, variance) for each term; "
            f"not so for {wrong}."
        )
    return _make(result, *np.array(pairs, dtype=np.float64).reshape(-1, 2).T)


def _from_columns(columns: Mapping[str, list[Any]]) -> Estimates:
    if "estimate" not in columns:
        raise TypeError(f"a frame of estimates needs a column 'estimate', got {sorted(columns)}.")
    n = len(columns["estimate"])
    variance: Any = columns.get("variance")
    if variance is None and "std_error" in columns:
        variance = np.asarray(columns["std_error"], dtype=np.float64) ** 2
    terms = columns.get("term", ["estimate"] if n == 1 else [f"x{j}" for j in range(n)])
    # a missing value is NaN, None or pandas' NA
    known = [df for df in columns.get("df", []) if isinstance(df, Real) and df == df]
    return _make(terms, columns["estimate"], variance, dfcom=min(known, default=None))


def _from_statsmodels(result: Any) -> Estimates:
    params, covariance = result.params, result.cov_params()
    dfcom = getattr(result, "df_resid", None)
    names = getattr(params, "index", None)
    terms = result.model.exog_names if names is None else names
    if np.ndim(params) == 2:
        terms, params = _by_outcome(result.model, terms, params, covariance)
    return _make(terms, params, covariance=covariance, dfcom=dfcom)


def _by_outcome(
    model: Any, names: Any, params: Any, covariance: Any
) -> tuple[list[str], NDArray[Any]]:
    """Return coefficients ``(name, outcome)`` in the order of their covariances, with terms.

    Covariances of multinomial models are ordered by outcome, those of vector autoregressions by
    name. Labels are those of the covariances: the coefficients have numbers for outcomes.
    """
    values, names = np.asarray(params), list(names)
    if hasattr(covariance, "index"):
        pairs = list(covariance.index)
    else:
        # arrays have no labels; the first outcome is the reference
        outcomes = list(getattr(model, "_ynames_map", {}).values())[1:]
        pairs = [(outcome, name) for outcome in outcomes for name in names]
    if [name for _, name in pairs[: len(names)]] == names:
        return [f"{outcome}:{name}" for outcome, name in pairs], values.ravel(order="F")
    return [f"{outcome}:{name}" for name, outcome in pairs], values.ravel()


def _from_lifelines(result: Any) -> Estimates:
    names = result.params_.index
    terms = [":".join(map(str, name)) if isinstance(name, tuple) else name for name in names]
    return _make(terms, result.params_, covariance=result.variance_matrix_)


def _from_sklearn(result: Any) -> Estimates:
    coef = np.atleast_2d(np.asarray(result.coef_, dtype=np.float64))
    intercept = np.ravel(getattr(result, "intercept_", []))
    names = getattr(result, "feature_names_in_", [f"x{j}" for j in range(coef.shape[-1])])
    # several outputs have a row of coefficients and an intercept each
    several = [f"{k}:" for k in range(len(coef))] if len(coef) > 1 else [""]
    heads = [f"{k}:intercept" for k in range(len(intercept))]
    heads = ["intercept"] if len(intercept) == 1 else heads
    terms = [*heads, *(f"{output}{name}" for output in several for name in names)]
    return _make(terms, np.concatenate([intercept, coef.ravel()]))
