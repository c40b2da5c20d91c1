"""Predictions of cells by regressions that did not see them, for imputers without such a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.kinds import KINDS, Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

N_FOLDS, N_TREES, MIN_LEAF = 5, 60, 5
ALPHAS = np.logspace(-2, 4, 7)
# Share of the most probable level in the probabilities of levels; the rest is the marginal.
P_LEVEL = 0.7
MIN_ROWS = 2 * N_FOLDS


def from_points(
    columns: tuple[Column, ...], points: Floats, shares: Mapping[int, Floats]
) -> dict[int, Any]:
    """Return single imputations as predictions: means, or probabilities of levels.

    ``shares`` are the relative frequencies of the levels in the training table.
    """
    found = {}
    for j, column in enumerate(columns):
        found[j] = points[:, j]
        if column.levels:
            found[j] = _probabilities(points[:, j], shares[j], column)
    return found


def predict_observed(
    columns: tuple[Column, ...],
    x: Floats,
    m: Bools,
    points: Floats,
    wanted: Collection[int],
    shares: Mapping[int, Floats],
    *,
    linear: bool,
    seed: int,
    n_jobs: int | None,
) -> dict[int, Floats]:
    """Return predictions of all columns, of observed cells of ``wanted`` columns too.

    They are predicted from the completed other columns: by ridge regressions on the other folds, or
    out of bag by random forests. Missing cells have the predictions of the imputer, ``points``.
    The regressions are those of the imputers, in the units of the table: otherwise predictions of
    observed and missing cells would differ.
    """
    filled = np.where(m, x, points)
    for j, column in enumerate(columns):
        if column.kind == "positive":
            filled[:, j] = KINDS["positive"].restore(filled[:, j], column)
    predictions = from_points(columns, points, shares)
    for j in wanted:
        rows = np.flatnonzero(m[:, j])
        if len(rows) < MIN_ROWS:
            continue
        others = _opened(columns, filled, j)[rows]
        y = filled[rows, j]
        if _has_indicators(columns[j]):
            # as the imputers predict levels without an order
            y = (y[:, None] == np.arange(columns[j].n_levels)).astype(np.float64)
        guess = _ridge(others, y, seed) if linear else _forest(others, y, seed, n_jobs)
        if columns[j].levels:
            code = guess.argmax(1) if guess.ndim > 1 else np.rint(guess)
            code = np.clip(code, 0, columns[j].n_levels - 1)
            guess = _probabilities(code, shares[j], columns[j])
        elif columns[j].kind in ("positive", "count"):
            guess = KINDS[columns[j].kind].standardise(np.maximum(guess, y.min()), columns[j])
        predictions[j] = predictions[j].copy()
        predictions[j][rows] = guess
    return predictions


def _has_indicators(column: Column) -> bool:
    return column.n_levels > 2 and column.kind != "ordinal"


def _opened(columns: tuple[Column, ...], filled: Floats, j: int) -> Floats:
    """Return all columns but ``j``, categories as indicators."""
    parts = []
    for k, column in enumerate(columns):
        if k == j:
            continue
        if _has_indicators(column):
            parts.append((filled[:, [k]] == np.arange(column.n_levels)).astype(np.float64))
        else:
            parts.append(filled[:, [k]])
    return np.concatenate(parts, 1) if parts else np.zeros((len(filled), 1))


def _probabilities(code: Floats, share: Floats, column: Column) -> Floats:
    n, n_levels = column.n_observed, column.n_levels
    marginal = (n * share + 0.5) / (n + 0.5 * n_levels)
    is_level = code[:, None] == np.arange(n_levels)
    return np.asarray(P_LEVEL * is_level + (1 - P_LEVEL) * marginal)


def _ridge(others: Floats, y: Floats, seed: int) -> Floats:
    from sklearn.linear_model import RidgeCV

    folds = np.random.default_rng(seed).permutation(len(y)) % N_FOLDS
    found = np.empty_like(y)
    for k in range(N_FOLDS):
        train = folds != k
        found[~train] = RidgeCV(ALPHAS).fit(others[train], y[train]).predict(others[~train])
    return found


def _forest(others: Floats, y: Floats, seed: int, n_jobs: int | None) -> Floats:
    from sklearn.ensemble import RandomForestRegressor

    forest: Any = RandomForestRegressor(
        N_TREES, min_samples_leaf=MIN_LEAF, oob_score=True, n_jobs=n_jobs, random_state=seed
    )
    return np.asarray(forest.fit(others, y).oob_prediction_)
