"""How much nonlinear terms add to linear regressions of the columns of a table on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psmvae._blas import one_blas_thread
from psmvae.chained.basis import Basis
from psmvae.chained.nearest import nearest
from psmvae.chained.predictors import Predictors

if TYPE_CHECKING:
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Rows and numeric columns at most, which are random ones of a larger table, and fewest observed
# cells of a column.
MAX_ROWS, MAX_COLUMNS, MIN_CELLS = 1000, 8, 100
# Precisions of the prior of the coefficients; the best for the held-out cells counts.
RIDGES = (1.0, 10.0, 100.0)
# Predictors of a regression at most: those most correlated with the column.
MAX_PREDICTORS = 100
N_FOLDS = 2


def nonlinear_gain(
    columns: tuple[Column, ...],
    x: Floats,
    m: Bools,
    seed: int,
    *,
    max_rows: int = MAX_ROWS,
    max_columns: int = MAX_COLUMNS,
) -> float:
    """Return the fraction of linear regressions' squared error that nonlinear terms remove.

    Each numeric column is regressed on the other columns, linearly and with the terms of `Basis`.
    The squared errors are those of held-out cells, in units of the variance of the column. Missing
    cells of predictors are replaced by their means.

    Parameters
    ----------
    columns : tuple of Column
        The columns.
    x, m : ndarray of shape (n_rows, n_columns)
        Model values and mask.
    seed : int
        Seed of rows, columns, folds and terms.
    max_rows, max_columns : int
        Rows to use, and numeric columns to regress on the others, at most.

    Returns
    -------
    float
        0 where nonlinear terms do not help, 1 where they remove all of the error.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(x))[:max_rows]
    x, m = x[rows], m[rows]
    used = [j for j in range(len(columns)) if m[:, j].any()]
    numeric = [j for j in used if not columns[j].levels and m[:, j].sum() >= MIN_CELLS]
    if not numeric:
        return 0.0
    kept = tuple(columns[j] for j in used)
    predictors = Predictors.fit(kept, x[:, used], m[:, used])
    z = np.concatenate(
        [np.where(m[:, [j]], predictors.encode(k, x[:, j]), 0.0) for k, j in enumerate(used)], 1
    )
    fold = np.arange(len(x)) % N_FOLDS
    linear = nonlinear = 0.0
    with one_blas_thread():
        for j in rng.permutation(numeric)[:max_columns]:
            own, k = m[:, j], used.index(j)
            y = z[:, predictors.group == k][:, :1]
            at = nearest(z, predictors.group, y, m[:, [j]], np.array([k]), MAX_PREDICTORS)[0]
            y, others = y[own, 0], z[own][:, at]
            basis = Basis.make(others, y, predictors.low[at], predictors.high[at], rng)
            terms = np.empty((len(y), basis.n_terms))
            basis.write(others, terms)
            without = _held_out_error(others, y, fold[own])
            linear += without
            both = np.concatenate([others, terms], 1)
            nonlinear += min(without, _held_out_error(both, y, fold[own]))
    return 1 - nonlinear / linear if linear > 0 else 0.0


def _held_out_error(design: Floats, y: Floats, fold: NDArray[np.intp]) -> float:
    """Return the mean squared error of ridge regressions, each on the other folds."""
    error = np.zeros(len(RIDGES))
    for k in range(N_FOLDS):
        train, test = fold != k, fold == k
        mean, center = design[train].mean(0), y[train].mean()
        centred = design[train] - mean
        gram, cross = centred.T @ centred, centred.T @ (y[train] - center)
        for i, ridge in enumerate(RIDGES):
            coef = np.linalg.solve(gram + ridge * np.eye(len(gram)), cross)
            residual = y[test] - center - (design[test] - mean) @ coef
            error[i] += residual @ residual
    return float(error.min() / len(y))
