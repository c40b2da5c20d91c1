"""Simulated tables of the study of self-masking, and which of their cells are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# y by x1 and x2, for each kind of column
KINDS: dict[str, Callable[[np.random.Generator, Floats, Floats], Floats]] = {
    "heavy tails": lambda rng, a, b: a + 0.7 * b + 0.7 * rng.standard_t(2, len(a)),
    "zero-inflated": lambda rng, a, b: np.where(
        a + 0.7 * rng.logistic(size=len(a)) > 0,
        np.exp(1 + 0.5 * b + 0.4 * rng.normal(size=len(a))),
        0,
    ),
    "integer": lambda rng, a, b: np.rint(4 * a + 3 * b + 3 * rng.normal(size=len(a))),
    "ordinal": lambda rng, a, b: (
        1.0 + np.digitize(a + 0.7 * b + 0.7 * rng.normal(size=len(a)), [-1.2, -0.4, 0.4, 1.2])
    ),
    "categorical": lambda rng, a, b: (
        (np.stack([1.5 * a, 1.5 * b, -1.0 * (a + b)]) + rng.gumbel(size=(3, len(a))))
        .argmax(0)
        .astype(np.float64)
    ),
    "count": lambda rng, a, b: rng.poisson(np.exp(1 + 0.5 * a + 0.4 * b)).astype(np.float64),
}
KIND_MASKS = {
    "MCAR": "30 % of y",
    "by x1": "60 % of y where x1 is above its median",
    "own value": "60 % of y above its median; 60 % of the first category, 10 % of the others",
}
CHECKS = {
    "two columns": "x1 and x2, 50 % above their medians",
    "all columns": "all five columns, 50 % above their medians",
    "both tails": "x1, 60 % where it is more than one standard deviation from its mean",
    "ceiling of 1": "x1, all cells above its 70 % quantile",
    "by another column": "x1, 60 % where x2 is above its median",
    "by two columns": "x1, 70 % where x2 and x3 are above their medians, otherwise 5 %",
    "by a product": "x1, with log odds 1.5 x2 x3 − .7",
}
LEVELS = np.array(["a", "b", "c"])


def linear(rng: np.random.Generator, n: int, mechanism: str) -> tuple[Floats, Bools]:
    """Draw y, x1, x2 with y = 1 + x1 + .5 x2 + e, and which cells of y are missing."""
    a, b, e = rng.normal(size=(3, n))
    y = 1 + a + 0.5 * b + e
    log_odds = y - 1.5 if mechanism == "own value" else 1.5 * a - 0.5
    missing = np.zeros((n, 3), dtype=bool)
    missing[:, 0] = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return np.column_stack([y, a, b]), missing


def of_kind(
    rng: np.random.Generator, n: int, kind: str, mechanism: str
) -> tuple[Floats, NDArray[np.bool_]]:
    """Draw y of a kind, x1 and x2, and which cells of y are missing; levels are codes."""
    a, b = rng.normal(size=(2, n))
    y = KINDS[kind](rng, a, b)
    own = 0.6 * (y > np.median(y))
    if kind == "categorical":
        # some of the others too: otherwise the first category is right for all missing cells
        own = np.where(y == 0, 0.6, 0.1)
    rate = {"MCAR": np.full(n, 0.3), "by x1": 0.6 * (a > np.median(a)), "own value": own}
    return np.column_stack([y, a, b]), rng.random(n) < rate[mechanism]


def kind_frame(kind: str, table: Floats, missing: Bools) -> Any:
    """Return the incomplete table of a kind as a pandas frame."""
    import pandas as pd

    data = pd.DataFrame(table, columns=["y", "x1", "x2"])
    if kind == "categorical":
        data["y"] = LEVELS[table[:, 0].astype(int)]
    elif kind in ("integer", "ordinal", "count"):
        data["y"] = data["y"].astype("Int64")
    data.loc[missing, "y"] = None
    return data


def check(rng: np.random.Generator, n: int, name: str) -> tuple[Floats, Bools]:
    """Draw five Normal columns with one common factor, and which cells are missing."""
    table = 0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, 5))
    above = table > np.median(table, axis=0)
    rate = np.zeros(table.shape)
    if name == "two columns":
        rate[:, :2] = 0.5 * above[:, :2]
    elif name == "all columns":
        rate = 0.5 * above
    elif name == "both tails":
        rate[:, 0] = 0.6 * (np.abs(table[:, 0]) > 1)
    elif name == "ceiling of 1":
        rate[:, 0] = table[:, 0] > np.quantile(table[:, 0], 0.7)
    elif name == "by two columns":
        rate[:, 0] = 0.05 + 0.65 * (above[:, 1] & above[:, 2])
    elif name == "by a product":
        rate[:, 0] = 1 / (1 + np.exp(0.7 - 1.5 * table[:, 1] * table[:, 2]))
    else:
        rate[:, 0] = 0.6 * above[:, 1]
    missing = rng.random(table.shape) < rate
    # a row keeps at least one cell
    missing[missing.all(1), -1] = False
    return table, missing
