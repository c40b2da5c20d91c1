"""Simulated tables, missing cells and analyses of the coverage study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Estimates = dict[str, tuple[float, float]]

# mean of y given x1 and x2, and whether the noise grows with x1
MEANS: dict[str, tuple[Callable[[Floats, Floats], Floats], bool]] = {
    "linear": (lambda a, b: 1 + a + 0.5 * b, False),
    "interaction": (lambda a, b: 1 + a + 0.5 * b + 0.7 * a * b, False),
    "square": (lambda a, b: 1 + a + 0.5 * b + 0.6 * a**2, False),
    "heteroscedastic": (lambda a, b: 1 + a + 0.5 * b, True),
    "nonlinear": (lambda a, b: 1 + a + 0.5 * b + 0.5 * a**2 + 0.5 * a * b, True),
    "sine": (lambda a, b: 1 + 2 * np.sin(1.5 * a) + 0.5 * b, False),
}
DESIGNS = {
    "linear, MCAR": "20 % of all cells",
    "linear, MAR": "y by x1 (about 40 %), 20 % of x2",
    "interaction, MCAR": "20 % of all cells",
    "square, MCAR": "20 % of all cells",
    "heteroscedastic, MCAR": "20 % of all cells",
    "nonlinear, MAR": "y by x1 (about 40 %), 20 % of x2",
    "sine, MAR": "y by x1 (about 40 %), 20 % of x2",
    "mixed, MCAR": "20 % of all cells",
}
LINEAR = ("linear, MCAR", "linear, MAR")
NAMES = ("y", "x1", "x2", "x3")
MIXED_NAMES = ("y", "binary", "ordinal", "count", "skewed")


def names(design: str) -> tuple[str, ...]:
    """Return the names of the columns."""
    return MIXED_NAMES if design.startswith("mixed") else NAMES


def make(design: str, rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Draw a complete table ``(row, column)`` and which cells are missing."""
    kind, mechanism = design.split(", ")
    if kind == "mixed":
        table = _mixed(rng, n)
        return table, rng.random(table.shape) < 0.2
    a, b, c = _correlated(rng, n, 3)
    mean, grows = MEANS[kind]
    y = mean(a, b) + np.exp(0.5 * a if grows else 0.0) * rng.normal(size=n)
    table = np.column_stack([y, a, b, c])
    missing = rng.random(table.shape) < 0.2
    if mechanism == "MAR":
        missing[:, [1, 3]] = False
        missing[:, 0] = rng.random(n) < 1 / (1 + np.exp(0.5 - 1.5 * a))
    return table, missing


def _correlated(rng: np.random.Generator, n: int, k: int) -> Floats:
    """Draw ``k`` Normal columns with correlations of .4, ``(column, row)``."""
    covariance = 0.4 + 0.6 * np.eye(k)
    # eigenvectors of equal eigenvalues, NumPy's default, would differ between machines
    return rng.multivariate_normal(np.zeros(k), covariance, n, method="cholesky").T


def _mixed(rng: np.random.Generator, n: int) -> Floats:
    z = _correlated(rng, n, 4)
    binary = (z[0] + rng.logistic(size=n) > 0).astype(float)
    ordinal = 1.0 + np.digitize(z[1] + 0.7 * rng.normal(size=n), [-1.0, 0.2, 1.1])
    count = rng.poisson(np.exp(0.5 + 0.4 * z[2])).astype(float)
    skewed = np.exp(0.6 * z[3] + 0.3 * z[0])
    mean = 1 + 0.8 * binary + 0.3 * ordinal + 0.2 * count + 0.5 * np.log(skewed)
    y = mean + rng.normal(size=n)
    return np.column_stack([y, binary, ordinal, count, skewed])


def analyse(design: str, table: Floats) -> Estimates:
    """Return the estimates of a complete table with their standard errors."""
    kind = design.split(", ")[0]
    if kind == "mixed":
        return _analyse_mixed(table)
    y, a, b, _ = table.T
    more = {
        "interaction": {"x1:x2": a * b},
        "square": {"x1²": a**2},
        "nonlinear": {"x1²": a**2, "x1:x2": a * b},
        "sine": {"sin 1.5 x1": np.sin(1.5 * a)},
    }.get(kind, {})
    found = {"mean": mean(y)}
    found |= slopes(y, {"x1": a, "x2": b, **more}, robust=kind != "linear")
    return found | {"corr(y, x1)": correlation(y, a), "90 % quantile": quantile(y)}


def _analyse_mixed(table: Floats) -> Estimates:
    y, binary, ordinal, count, skewed = table.T
    log = np.log(np.maximum(skewed, 1e-3))
    found = {"mean": mean(y), "mean of skewed": mean(skewed), "mean of count": mean(count)}
    found |= {"share of binary": mean(binary)}
    found |= slopes(y, {"binary": binary, "ordinal": ordinal, "count": count, "log skewed": log})
    found |= logistic_slopes(binary, {"logit y": y, "logit log skewed": log})
    return found | {"corr(y, skewed)": correlation(y, skewed), "90 % quantile": quantile(skewed)}


def mean(y: Floats) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(y.mean()), float(y.std(ddof=1) / np.sqrt(len(y)))


def slopes(y: Floats, predictors: dict[str, Floats], *, robust: bool = False) -> Estimates:
    """Return the slopes of a linear regression; robust standard errors are HC3."""
    x = np.column_stack([np.ones_like(y), *predictors.values()])
    inverse = np.linalg.inv(x.T @ x)
    coef = inverse @ (x.T @ y)
    residual = y - x @ coef
    if robust:
        residual = residual / (1 - ((x @ inverse) * x).sum(1))
        variance = inverse @ ((x * residual[:, None] ** 2).T @ x) @ inverse
    else:
        variance = inverse * (residual @ residual) / (len(y) - x.shape[1])
    pairs = zip(predictors, coef[1:], np.sqrt(variance.diagonal())[1:], strict=True)
    return {name: (float(b), float(s)) for name, b, s in pairs}


def logistic_slopes(y: Floats, predictors: dict[str, Floats]) -> Estimates:
    """Return the slopes of a logistic regression by Newton's method."""
    x = np.column_stack([np.ones_like(y), *predictors.values()])
    coef = np.zeros(x.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-x @ coef))
        inverse = np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x)
        coef = coef + inverse @ (x.T @ (y - p))
    pairs = zip(predictors, coef[1:], np.sqrt(inverse.diagonal())[1:], strict=True)
    return {name: (float(b), float(s)) for name, b, s in pairs}


def correlation(a: Floats, b: Floats) -> tuple[float, float]:
    """Return Fisher's z of a correlation and its standard error."""
    return float(np.arctanh(np.corrcoef(a, b)[0, 1])), 1 / np.sqrt(len(a) - 3)


def quantile(y: Floats, level: float = 0.9) -> tuple[float, float]:
    """Return a quantile; its standard error has a kernel estimate of the density."""
    at = np.quantile(y, level)
    iqr = np.subtract(*np.quantile(y, [0.75, 0.25])) / 1.34
    width = 0.9 * min(y.std(), iqr) * len(y) ** -0.2
    density = np.exp(-0.5 * ((y - at) / width) ** 2).mean() / (width * np.sqrt(2 * np.pi))
    return float(at), float(np.sqrt(level * (1 - level) / len(y)) / density)


def frame(design: str, table: Floats, missing: Bools) -> Any:
    """Return the incomplete table as a pandas frame, whole numbers as integers."""
    import pandas as pd

    data = pd.DataFrame(np.where(missing, np.nan, table), columns=list(names(design)))
    whole = [name for name in ("binary", "ordinal", "count") if name in data]
    return data.astype(dict.fromkeys(whole, "Int64"))
