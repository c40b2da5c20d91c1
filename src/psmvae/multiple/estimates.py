"""Estimates and variances of one analysis, read from the results of several libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.table.libraries import (
    is_lifelines_cox,
    is_pandas_frame,
    is_pandas_series,
    is_statsmodels_cox,
)
from psmvae.table.wording import quoted, repeated

Floats = NDArray[np.float64]
# Names of standard errors in R's mice and broom, and in other software.
STD_ERRORS = ("std_error", "std.error", "std_err", "se")


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
        if twice := repeated(self.terms):
            raise ValueError(
                f"an analysis needs terms with different names, got several of {quoted(twice)}; "
                "rename them."
            )


def read_estimates(result: Any) -> Estimates:
    """Read estimates from the result of an analysis.

    Parameters
    ----------
    result : object
        A result of statsmodels, a fitter of lifelines, a linear estimator of scikit-learn, a frame
        with columns ``estimate`` and ``variance`` or ``std_error`` (and ``term``, ``df``), a
        mapping from terms to numbers, to pairs (estimate, variance) or to triples (estimate,
        variance, df), a mapping of these column names to sequences, a pandas Series of numbers, or
        a number. ``std.error``, ``std_err`` and ``se`` are read as ``std_error``.

    Returns
    -------
    Estimates
        Terms, estimates, variances and, where known, covariances and degrees of freedom.

    Raises
    ------
    TypeError
        If no estimates can be read from the object.
    ValueError
        If the numbers of terms, estimates and variances differ, or a term occurs twice.

    Notes
    -----
    Terms of models with several outcomes, such as ``MNLogit`` of statsmodels, are named
    ``outcome:name``; those of classifiers of scikit-learn with several classes ``class:name``. An
    unknown number of degrees of freedom in the column ``df`` (NaN or None) is ignored; of the
    others, the smallest is that of all terms.

    Of ``MixedLM`` of statsmodels the fixed effects are read: its other parameters are variances
    divided by the residual variance, which are not Normal. The degrees of freedom of Cox models
    (``PHReg`` of statsmodels, ``CoxPHFitter`` of lifelines) are the number of events less the
    number of coefficients, as in R's mice.

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
    if is_pandas_series(result):
        return _from_mapping(dict(zip(map(_label, result.index), result, strict=True)))
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
    kind = type(result).__name__
    if hasattr(result, "named_steps"):
        kind += (
            "; return its last step, pipeline[-1], whose coefficients are those of the transformed "
            "columns"
        )
    elif isinstance(result, np.ndarray):
        kind += "; return a mapping from terms to numbers"
    raise TypeError(
        "an analysis must return a result of statsmodels, lifelines or scikit-learn, a frame or "
        f"mapping of estimates, a pandas Series, or a number, got {kind}."
    )


def check_same_terms(one: Estimates, other: Estimates, names: tuple[str, str]) -> None:
    """Raise if two analyses, named for the message, do not estimate the same terms."""
    if one.terms != other.terms:
        differing = sorted({*one.terms} ^ {*other.terms}) or list(other.terms)
        raise ValueError(
            f"{names[0]} and {names[1]} have different terms: {differing}. Every analysis must "
            "estimate the same terms in the same order."
        )


def check_numbers(each: Sequence[Estimates]) -> None:
    """Raise if an estimate is not finite, or a variance is not a number of at least 0.

    A term may have no variance at all: NaN in every imputation, as of a plain number.
    """
    for at, term in enumerate(each[0].terms):
        without = all(np.isnan(one.variance[at]) and one.covariance is None for one in each)
        for k, one in enumerate(each):
            estimate, variance = one.estimate[at], one.variance[at]
            if not np.isfinite(estimate):
                wrong, expected = f"estimate of {term!r} is {estimate}", "a finite number"
            elif not without and not 0 <= variance < np.inf:
                wrong = f"variance of {term!r} is {variance}"
                expected = "a finite number of at least 0 in every imputation"
            else:
                continue
            raise ValueError(
                f"{numbered(k, len(each))}: the {wrong}; it must be {expected}. Check the analysis "
                "of this table: it may be singular, or may not have converged."
            )


def check_number(name: str, value: object) -> None:
    """Raise if an argument is no number."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}.")


@contextmanager
def noting(text: str) -> Iterator[None]:
    """Add a note to an error that a block raises."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


def numbered(k: int, m: int) -> str:
    """Name the imputation with index ``k`` as R does, where the first is imputation 1."""
    return f"imputation {k + 1} of {m}"


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
    if "estimate" in result and {"variance", *STD_ERRORS} & set(result):
        return _from_columns({str(name): np.ravel(v).tolist() for name, v in result.items()})
    # a number without a variance, with one, or with degrees of freedom, too
    triples = {name: _triple(value) for name, value in result.items()}
    if wrong := [name for name, triple in triples.items() if triple is None]:
        raise TypeError(
            "a mapping of estimates needs a number, a pair (estimate, variance) or a triple "
            f"(estimate, variance, df) for each term, got {result[wrong[0]]!r} for {wrong[0]!r}."
        )
    estimate, variance, df = np.array(list(triples.values()), dtype=np.float64).reshape(-1, 3).T
    return _make(result, estimate, variance, dfcom=min(df[~np.isnan(df)], default=None))


def _triple(value: Any) -> tuple[float, ...] | None:
    """Return estimate, variance and degrees of freedom, NaN where there are none."""
    if isinstance(value, str):
        return None
    try:
        given = tuple(map(float, value if np.ndim(value) else (value,)))
    except (TypeError, ValueError):
        return None
    return (*given, np.nan, np.nan)[:3] if 1 <= len(given) <= 3 else None


def _from_columns(columns: Mapping[str, list[Any]]) -> Estimates:
    if "estimate" not in columns:
        raise TypeError(f"a frame of estimates needs a column 'estimate', got {sorted(columns)}.")
    n = len(columns["estimate"])
    variance: Any = columns.get("variance")
    names = [name for name in STD_ERRORS if name in columns]
    if variance is None and names:
        errors = np.asarray(columns[names[0]], dtype=np.float64)
        # negative for a negative standard error, which `check_numbers` reports
        variance = errors * np.abs(errors)
    elif variance is None and (unknown := sorted({*columns} - {"term", "estimate", "df"})):
        raise TypeError(
            f"a frame of estimates has the columns {quoted(unknown)}, and none with variances; "
            "name it 'variance' or 'std_error', or leave these columns out."
        )
    terms = columns.get("term", ["estimate"] if n == 1 else [f"x{j}" for j in range(n)])
    # a missing value is NaN, None or pandas' NA
    known = [df for df in columns.get("df", []) if isinstance(df, Real) and df == df]
    return _make(terms, columns["estimate"], variance, dfcom=min(known, default=None))


def _from_statsmodels(result: Any) -> Estimates:
    params, covariance = result.params, result.cov_params()
    dfcom = getattr(result, "df_resid", None)
    if hasattr(result, "fe_params"):
        # the other parameters of mixed models are variances divided by the residual variance
        params = result.fe_params
        covariance = np.asarray(covariance)[: len(params), : len(params)]
    names = getattr(params, "index", None)
    terms = result.model.exog_names if names is None else names
    if np.ndim(params) == 2:
        terms, params = _by_outcome(result.model, terms, params, covariance)
    if is_statsmodels_cox(getattr(result, "model", None)):
        dfcom = _cox_dfcom(result.model.status, len(params))
    return _make(terms, params, covariance=covariance, dfcom=dfcom)


def _cox_dfcom(events: Any, n_coefficients: int) -> float:
    """Degrees of freedom of a Cox model of complete data, as in R's mice."""
    return max(1.0, float(np.sum(events)) - n_coefficients)


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
    params = result.params_
    dfcom = _cox_dfcom(result.event_observed, len(params)) if is_lifelines_cox(result) else None
    terms = map(_label, params.index)
    return _make(terms, params, covariance=result.variance_matrix_, dfcom=dfcom)


def _label(name: Any) -> str:
    """Return a label of an index as one text, also one of several levels."""
    return ":".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _from_sklearn(result: Any) -> Estimates:
    coef = np.atleast_2d(np.asarray(result.coef_, dtype=np.float64))
    # without an intercept, scikit-learn has one of 0
    fitted = getattr(result, "fit_intercept", True)
    intercept = np.ravel(getattr(result, "intercept_", [])) if fitted else np.zeros(0)
    names = getattr(result, "feature_names_in_", [f"x{j}" for j in range(coef.shape[-1])])
    # several outputs have a row of coefficients and an intercept each
    several = [f"{output}:" for output in _outputs(result, len(coef))] if len(coef) > 1 else [""]
    heads = [f"{output}intercept" for output in several]
    if len(intercept) != len(heads):
        heads = [f"{k}:intercept" for k in range(len(intercept))]
    heads = ["intercept"] if len(intercept) == 1 else heads
    terms = [*heads, *(f"{output}{name}" for output in several for name in names)]
    return _make(terms, np.concatenate([intercept, coef.ravel()]))


def _outputs(result: Any, n: int) -> list[Any]:
    """Name the rows of several outputs: classes, or numbers."""
    classes = list(getattr(result, "classes_", []))
    # a support vector classifier has a row for each pair of classes
    return classes if len(classes) == n and not hasattr(result, "n_support_") else list(range(n))
