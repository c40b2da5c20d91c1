"""Estimates and variances of one analysis, read from the results of several libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

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
        return _plain(("estimate",), [float(result)])
    if isinstance(result, Mapping):
        return _from_mapping(result)
    if nw.dependencies.is_into_dataframe(result):
        frame = nw.from_native(result, eager_only=True)
        columns = {name: frame[name].to_list() for name in frame.columns}
        if "term" not in columns and nw.dependencies.is_pandas_dataframe(result):
            columns["term"] = list(result.index)
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


def _plain(terms: Any, estimate: Any, variance: Any = None) -> Estimates:
    values = np.asarray(estimate, dtype=np.float64).ravel()
    variances = np.full(values.shape, np.nan) if variance is None else np.asarray(variance, float)
    return Estimates(tuple(map(str, terms)), values, variances)


def _from_mapping(result: Mapping[Any, Any]) -> Estimates:
    if "estimate" in result and {"variance", "std_error"} & set(result):
        return _from_columns(
            {str(name): np.ravel(value).tolist() for name, value in result.items()}
        )
    pairs = [value if np.ndim(value) else (value, np.nan) for value in result.values()]
    wrong = [name for name, pair in zip(result, pairs, strict=True) if len(pair) != 2]
    if wrong:
        raise TypeError(
            f"a mapping of estimates needs a number or a pair (estimate, variance) for each term; "
            f"not so for {wrong}."
        )
    estimate, variance = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return _plain(result, estimate, variance)


def _from_columns(columns: Mapping[str, list[Any]]) -> Estimates:
    if "estimate" not in columns:
        raise TypeError(f"a frame of estimates needs a column 'estimate', got {sorted(columns)}.")
    estimate = np.asarray(columns["estimate"], dtype=np.float64)
    variance = None
    if "variance" in columns:
        variance = np.asarray(columns["variance"], dtype=np.float64)
    elif "std_error" in columns:
        variance = np.asarray(columns["std_error"], dtype=np.float64) ** 2
    single = ["estimate"] if len(estimate) == 1 else [f"x{j}" for j in range(len(estimate))]
    found = _plain(columns.get("term", single), estimate, variance)
    freedom = columns.get("df")
    if freedom is None:
        return found
    return Estimates(found.terms, found.estimate, found.variance, None, float(min(freedom)))


def _from_statsmodels(result: Any) -> Estimates:
    names = getattr(result.params, "index", None)
    terms = list(result.model.exog_names) if names is None else list(names)
    covariance = np.asarray(result.cov_params(), dtype=np.float64)
    dfcom = getattr(result, "df_resid", None)
    return Estimates(
        tuple(map(str, terms)),
        np.asarray(result.params, dtype=np.float64),
        covariance.diagonal().copy(),
        covariance,
        None if dfcom is None else float(dfcom),
    )


def _from_lifelines(result: Any) -> Estimates:
    covariance = np.asarray(result.variance_matrix_, dtype=np.float64)
    terms = [
        ":".join(map(str, name)) if isinstance(name, tuple) else str(name)
        for name in result.params_.index
    ]
    estimate = np.asarray(result.params_, dtype=np.float64)
    return Estimates(tuple(terms), estimate, covariance.diagonal().copy(), covariance)


def _from_sklearn(result: Any) -> Estimates:
    coef = np.asarray(result.coef_, dtype=np.float64)
    names = getattr(result, "feature_names_in_", [f"x{j}" for j in range(coef.shape[-1])])
    if coef.ndim == 2 and len(coef) > 1:
        terms = [f"{k}:{name}" for k in range(len(coef)) for name in names]
    else:
        terms = list(names)
    intercept = np.ravel(getattr(result, "intercept_", []))
    heads = (
        ["intercept"] if len(intercept) == 1 else [f"{k}:intercept" for k in range(len(intercept))]
    )
    return _plain([*heads, *terms], np.concatenate([intercept, coef.ravel()]))
