"""Trees that predict what a trained model has missed, where few columns are incomplete.

Networks fit smooth functions. Steps, and extreme values of skewed columns, are left in their
residuals, where trees find them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.trees import Trees

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Kinds whose mean is a mean of model values.
KINDS = ("real", "integer")
# Tables with more incomplete columns of these kinds have none: the time is that of as many forests.
MAX_COLUMNS = 3
# Rows that are used at most, and observed cells of a column at least.
MAX_ROWS, MIN_CELLS = 20_000, 500
# Each fold has a forest that is grown without it. Chosen, with the number of trees and of features
# that a split looks at, by the error of missing cells in columns of wine, letter, spam, adult and
# credit, with seeds that no result uses.
N_FOLDS, TREES_PER_FOLD, MAX_FEATURES = 3, 20, 0.5
# Time of one core for each observed cell and predictor.
SECONDS_PER_CELL = 3e-5


@dataclass(frozen=True, eq=False)
class ResidualTrees:
    """Forests of the residuals of a model, one for each numeric column with missing cells.

    The predictors of a column are the values of the others and the model's prediction.

    Attributes
    ----------
    fill : ndarray of shape (n_columns,)
        Value of a missing cell as a predictor: the mean of the observed ones. A prediction would
        depend on the value that is to be predicted wherever that is observed.
    trees : dict of int to Trees
        The forests by column.
    weight : ndarray of shape (n_columns,)
        Factor of the predicted residuals, from 0 to 1; 0 in columns without a forest.
    """

    fill: Floats
    trees: Mapping[int, Trees]
    weight: Floats

    @classmethod
    def fit(
        cls,
        x: Floats,
        m: Bools,
        predictions: Mapping[int, Floats],
        columns: Collection[int],
        seed: int,
    ) -> tuple[Self, dict[int, Floats]]:
        """Fit to a table; also return the corrected predictions of all its cells.

        An observed cell is corrected by the trees of the fold that were grown without it, as if it
        was missing. These corrections also give the weight, which minimises the squared error.

        Parameters
        ----------
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.
        predictions : mapping of int to ndarray of shape (n_rows,)
            Predictions of all cells of ``columns``, each from the other cells of its row.
        columns : collection of int
            Numeric columns with missing cells.
        seed : int
            Seed of the folds and the trees.
        """
        n_observed = np.maximum(m.sum(0), 1)
        fill = np.where(m, x, 0.0).sum(0) / n_observed
        forests, weight, found = {}, np.zeros(x.shape[1]), dict(predictions)
        for j in columns:
            if m[:, j].sum() < MIN_CELLS:
                continue
            features = _features(x, m, fill, j, predictions[j])
            residual = np.where(m[:, j], x[:, j] - predictions[j], 0.0)
            trees, step = _cross_fit(features, residual, np.flatnonzero(m[:, j]), seed + j)
            size = (step[m[:, j]] ** 2).sum()
            best = (residual * step).sum() / max(size, np.finfo(float).tiny)
            if best <= 0:
                continue
            forests[j], weight[j] = trees, min(best, 1.0)
            found[j] = predictions[j] + weight[j] * step
        return cls(fill, forests, weight), found

    def correct(self, predictions: Mapping[int, Any], x: Floats, m: Bools) -> dict[int, Floats]:
        """Return predictions with those of missing cells corrected.

        Parameters
        ----------
        predictions : mapping of int to ndarray
            Predictions of the model by column.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.
        """
        found = dict(predictions)
        for j, step in self.steps(predictions, x, m).items():
            found[j] = found[j] + step
        return found

    def steps(self, predictions: Mapping[int, Any], x: Floats, m: Bools) -> dict[int, Floats]:
        """Return what is added to the predictions of missing cells; 0 for observed ones."""
        found = {}
        for j, trees in self.trees.items():
            rows = np.flatnonzero(~m[:, j])
            step = np.zeros(len(x))
            if len(rows):
                own = np.asarray(predictions[j], dtype=np.float64)[rows]
                features = _features(x[rows], m[rows], self.fill, j, own)
                step[rows] = self.weight[j] * trees.predict(features)
            found[j] = step
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file; `restore` is the inverse."""
        packed = Trees.pack(list(self.trees.values())) if self.trees else {}
        return {"fill": self.fill, "weight": self.weight, **packed}

    @classmethod
    def restore(cls, n_columns: int, arrays: Mapping[str, Any], columns: list[int]) -> Self:
        """Return what ``arrays`` holds; ``columns`` are those with a forest.

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        known = range(n_columns)
        if type(columns) is not list or not all(type(j) is int and j in known for j in columns):
            raise ValueError("The residual trees of the file name columns that it does not have.")
        try:
            fill, weight = arrays["fill"], arrays["weight"]
            forests = Trees.unpack(arrays, [n_columns] * len(columns)) if columns else []
        except (KeyError, TypeError) as error:
            raise ValueError(f"The residual trees of the file are damaged ({error!r}).") from error
        if fill.shape != (n_columns,) or weight.shape != (n_columns,):
            raise ValueError("The residual trees of the file are not those of its columns.")
        if not ((weight >= 0) & (weight <= 1)).all():
            raise ValueError("The weights of the residual trees must be from 0 to 1.")
        return cls(fill, dict(zip(columns, forests, strict=True)), weight)


def fit_seconds(m: Bools, columns: Collection[int]) -> float:
    """Return an upper estimate of the seconds that fitting takes."""
    n_cells = sum(min(int(m[:, j].sum()), MAX_ROWS) for j in columns)
    return float(SECONDS_PER_CELL * n_cells * m.shape[1])


def _features(x: Floats, m: Bools, fill: Floats, j: int, prediction: Floats) -> Floats:
    """Return the values of the other columns, and in column j its prediction."""
    features = np.where(m, x, fill)
    features[:, j] = prediction
    return features


def _cross_fit(
    features: Floats, residual: Floats, rows: NDArray[np.intp], seed: int
) -> tuple[Trees, Floats]:
    """Grow the trees of each fold of ``rows``; return all, and the residuals that they predict."""
    from sklearn.ensemble import ExtraTreesRegressor

    fold = np.random.default_rng(seed).permutation(len(rows)) % N_FOLDS
    step, grown = np.zeros(len(features)), []
    for k in range(N_FOLDS):
        forest = ExtraTreesRegressor(
            TREES_PER_FOLD, max_features=MAX_FEATURES, random_state=seed + k, n_jobs=-1
        )
        forest.fit(features[rows[fold != k]], residual[rows[fold != k]])
        own = rows[fold == k]
        step[own] = Trees.of(forest.estimators_).predict(features[own])
        grown += forest.estimators_
    trees = Trees.of(grown)
    others = np.setdiff1d(np.arange(len(features)), rows)
    if len(others):
        step[others] = trees.predict(features[others])
    return trees, step
