"""How well all other columns together predict the holes of a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from psmvae._blas import one_blas_thread
from psmvae.describe.auc import MIN_CELLS, N_FOLDS, Area, folds_of, mean_area, score_area
from psmvae.describe.masks import Columns
from psmvae.describe.variables import Bools, Floats, Variable

MAX_COLUMNS = 100
"""Wider tables have no joint models, whose time grows with the cube of the number of columns."""
# indicators of a column without an order, those of its most frequent levels
_MAX_LEVELS = 20


def joint(
    variables: Sequence[Variable],
    missing: Bools,
    max_rows: int | None,
    rng: np.random.Generator,
    among: Sequence[int] | None = None,
) -> Columns:
    """Return the cross-validated area of a logistic regression for the mask of each column.

    ``among`` are the positions of the columns whose masks are predicted; by default all.
    """
    n_missing = missing.sum(0)
    holes = np.flatnonzero((n_missing > 0) & (n_missing < len(missing)))
    if among is not None:
        holes = np.intersect1d(holes, np.asarray(among, dtype=np.intp))
    few = 2 <= len(variables) <= MAX_COLUMNS
    features = [_features(one, lost) for one, lost in zip(variables, missing.T, strict=True) if few]
    found: Columns = {name: [] for name in ("column", "auc", "conf_low", "conf_high", "n_rows")}
    for j in holes.tolist() if few else ():
        rows = _balanced_rows(missing[:, j], max_rows, rng)
        others = [made[rows] for k, made in enumerate(features) if k != j]
        area = _joint_area(np.column_stack(others), missing[rows, j], rng)
        low, high = area.interval()
        values = (variables[j].name, float(area.auc), float(low), float(high), len(rows))
        for name, value in zip(found, values, strict=True):
            found[name].append(value)
    return found


def _features(variable: Variable, lost: Bools) -> Floats:
    """Return ranks and their squares, or indicators of levels, and the mask; 0 where missing."""
    columns = [lost.astype(np.float64)] if lost.any() else []
    observed = variable.values[~lost]
    if variable.nominal:
        counts = np.bincount(observed.astype(np.intp))
        levels = np.argsort(-counts, kind="stable")[:_MAX_LEVELS]
        columns += [(variable.values == level).astype(np.float64) for level in levels]
    elif observed.size:
        # between -1 and 1: not affected by outliers, as the areas of single columns
        ranks = (2 * rankdata(observed) - observed.size - 1) / observed.size
        for values in (ranks, ranks**2 - np.mean(ranks**2)):
            column = np.zeros(lost.size)
            column[~lost] = values
            columns.append(column)
    return np.stack(columns, 1) if columns else np.empty((lost.size, 0))


def _balanced_rows(
    positive: Bools, max_rows: int | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw rows, the rarer class up to half of them: the area does not depend on the shares."""
    if max_rows is None or len(positive) <= max_rows:
        return np.arange(len(positive))
    classes = sorted((np.flatnonzero(positive), np.flatnonzero(~positive)), key=len)
    n_rare = min(len(classes[0]), max_rows // 2)
    drawn = [
        rng.choice(rows, n, replace=False)
        for rows, n in zip(classes, (n_rare, max_rows - n_rare), strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def _joint_area(x: Floats, positive: Bools, rng: np.random.Generator) -> Area:
    x = x[:, x.std(0) > 0]
    if min(positive.sum(), len(positive) - positive.sum()) < MIN_CELLS or x.shape[1] == 0:
        return Area(np.array(np.nan), np.array(np.nan))
    # loads slowly
    from sklearn.linear_model import LogisticRegression

    x = (x - x.mean(0)) / x.std(0)
    folds = folds_of(positive, rng)
    areas = []
    for fold in range(N_FOLDS):
        inside = folds == fold
        model = LogisticRegression(solver="newton-cholesky")
        # matrices are too small for several threads
        with one_blas_thread():
            model.fit(x[~inside], positive[~inside])
        areas.append(score_area(model.decision_function(x[inside]), positive[inside]))
    return mean_area(areas)
