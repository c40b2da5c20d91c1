"""Fit the formula of a command to one completed table, with statsmodels."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from psmvae.cli.formula_check import parsed_formula
from psmvae.cli.terminal import UsageError

# Names of a formula, beside those of columns and of patsy.
_FUNCTIONS = {"np": np, "log": np.log, "exp": np.exp, "sqrt": np.sqrt}


def formula_analysis(formula: str, family: str, names: Sequence[str]) -> Callable[[Any], Any]:
    """Return the function that fits a formula to an Arrow table with these columns."""
    try:
        import patsy
        import statsmodels.api as sm
    except ImportError as error:
        message = "--formula needs statsmodels: pip install 'psmvae[stats]'"
        raise ImportError(message) from error

    environment = patsy.EvalEnvironment([_FUNCTIONS])
    try:
        described = parsed_formula(formula)
    except patsy.PatsyError as error:
        raise UsageError(_explain(formula, error, names)) from error

    def fit(table: Any) -> Any:
        frame = table.to_pandas()
        try:
            # what is not finite is an error below, and not a warning of NumPy
            with np.errstate(all="ignore"):
                y, x = patsy.dmatrices(
                    described, frame, environment, _left_out_rows(formula, frame), "dataframe"
                )
        except patsy.PatsyError as error:
            raise UsageError(_explain(formula, error, names)) from error
        y = _response(y, family)
        _check_design(formula, x)
        if family == "gaussian":
            return sm.OLS(y, x).fit()
        families = {"binomial": sm.families.Binomial, "poisson": sm.families.Poisson}
        model = sm.GLM(y, x, family=families[family]())
        # the covariance is that of the last but one iteration: let the coefficients converge, and
        # not only the deviance, as by default
        return model.fit(tol_criterion="params", tol=1e-8, rtol=1e-8)

    return fit


def _left_out_rows(formula: str, frame: Any) -> Any:
    """Return patsy's action for missing values: rows with a missing column are left out.

    A factor that is not finite where its columns have values, such as log(x) of a negative x, is an
    error: to leave out these rows would be another analysis.
    """
    import patsy

    class Action(patsy.NAAction):  # type: ignore[misc, unused-ignore]
        def is_numerical_NA(self, arr: Any) -> Any:  # noqa: N802 (a name of patsy)
            finite = np.isfinite(arr)
            return ~(finite.all(axis=1) if finite.ndim > 1 else finite)

        def handle_NA(self, values: Any, is_NAs: Any, origins: Any) -> Any:  # noqa: N802
            for left_out, origin in zip(is_NAs, origins, strict=True):
                if origin is not None:
                    _check_defined(formula, origin.relevant_code(), np.asarray(left_out), frame)
            return super().handle_NA(values, is_NAs, origins)

    return Action()


def _check_defined(formula: str, factor: str, left_out: Any, frame: Any) -> None:
    """Refuse a factor that is not finite in rows where its columns have values."""
    parts = list(ast.walk(ast.parse(factor.strip(), mode="eval")))
    # the names of columns, as they are or in Q('a name')
    names: set[Any] = {part.id for part in parts if isinstance(part, ast.Name)}
    names |= {part.value for part in parts if isinstance(part, ast.Constant)}
    columns = [name for name in frame.columns if name in names]
    rows = np.flatnonzero(left_out & frame[columns].notna().to_numpy().all(axis=1))
    if rows.size:
        example = {name: frame[name].iloc[rows[0]] for name in columns}
        values = ", ".join(
            f"{name} = {value:.6g}" if isinstance(value, Real) else f"{name} = {value}"
            for name, value in example.items()
        )
        raise ValueError(
            f"--formula {formula!r}: {factor!r} is not finite in {rows.size:,} of {len(frame):,} "
            f"rows, such as one with {values}"
        )


def _response(y: Any, family: str) -> Any:
    """Return the response as one column; of two levels, the second is modelled as in R."""
    name = y.columns[0].partition("[")[0]
    if y.shape[1] > 1:
        if family != "binomial":
            raise UsageError(
                f"--family {family}: the response {name!r} must be numeric; "
                "--family binomial is for two levels"
            )
        if y.shape[1] > 2:
            raise UsageError(
                f"--family binomial: the response {name!r} must have two levels, it has "
                f"{y.shape[1]}"
            )
        return y.iloc[:, 1]
    values = y.iloc[:, 0]
    if family == "binomial" and values.nunique() == 1:
        # of texts with one level, patsy makes a column of ones
        level = y.columns[0].partition("[")[2].removesuffix("]") or f"{values.iloc[0]:g}"
        raise ValueError(
            f"--family binomial: the response {name!r} must have two levels, all of its values are "
            f"{level!r}"
        )
    if family == "binomial" and not values.between(0, 1).all():
        found = f"from {values.min():g} to {values.max():g}"
        raise UsageError(
            f"--family binomial: the response {name!r} must be 0 or 1, it is {found}; "
            f"C({name}) models its second level"
        )
    if family == "poisson" and (values < 0).any():
        raise UsageError(f"--family poisson: the response {name!r} has negative values")
    return values


def _check_design(formula: str, x: Any) -> None:
    """Refuse terms whose coefficients cannot be told apart."""
    if len(x) <= x.shape[1]:
        raise ValueError(
            f"--formula {formula!r}: {x.shape[1]} coefficients need more than {len(x)} rows"
        )
    if np.linalg.matrix_rank(x.to_numpy()) < x.shape[1]:
        raise ValueError(
            f"--formula {formula!r}: some of the terms {', '.join(map(repr, x.columns))} are "
            "linear combinations of others; leave them out"
        )


def _explain(formula: str, error: Exception, names: Sequence[str]) -> str:
    """Word an error of patsy: its first line, or the columns if a name is unknown."""
    first = str(error).strip().splitlines()[0]
    unknown = re.search(r"name '(\w+)' is not defined", first)
    if unknown is None:
        return f"--formula {formula!r}: {first}"
    return (
        f"--formula {formula!r}: there is no column {unknown[1]!r}; the columns are "
        f"{', '.join(map(repr, names))}. A name that is not one of Python is written Q('name')"
    )
