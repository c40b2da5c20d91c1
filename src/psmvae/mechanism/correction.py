"""Means of missing cells under the tilt.

The mean of a missing cell is that of observed cells weighted by exp γ(x). Four estimates of it are
combined: the model's prediction plus the difference that the tilt makes, the mean of the tilted
distribution, a ridge regression and a random forest, both fitted to the observed rows with the
weights exp γ. The combination minimises the error of the observed cells with the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import nnls

from psmvae.chained.trees import Trees

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

N_TREES, MIN_LEAF, FEATURE_FRACTION = 60, 3, 0.4
# Rows that the forest is grown on at most, and rows below which none is grown.
MAX_ROWS, MIN_ROWS = 8000, 100
ALPHAS = np.logspace(-2, 4, 10)
# Effective number of rows below which only the first estimate is used.
MIN_EFFECTIVE = 30


@dataclass(frozen=True, eq=False)
class Correction:
    """Fitted regressions and the coefficients of the estimates."""

    coef: Floats
    ridge_coef: Floats
    ridge_intercept: float
    trees: Trees | None

    @classmethod
    def fit(
        cls,
        features: Floats,
        estimates: Floats,
        values: Floats,
        weight: Floats,
        folds: Ints,
        *,
        seed: int,
        n_jobs: int | None,
    ) -> Self:
        """Fit to the observed rows.

        Parameters
        ----------
        features : ndarray of shape (n_observed, n_features)
            The other columns and the model's prediction.
        estimates : ndarray of shape (n_observed, 2)
            The first two estimates, from the model and from the tilted distribution.
        values, weight : ndarray of shape (n_observed,)
            Observed values and exp γ of them.
        folds : ndarray of int of shape (n_observed,)
            Folds of the ridge regression.
        seed : int
            Seed of the forest.
        n_jobs : int, optional
            Jobs that grow the forest.
        """
        from sklearn.linear_model import Ridge, RidgeCV

        weight = weight / weight.mean()
        none = cls(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(features.shape[1]), 0.0, None)
        if weight.sum() ** 2 / (weight**2).sum() < MIN_EFFECTIVE:
            return none
        ridge = RidgeCV(ALPHAS).fit(features, values, sample_weight=weight)
        predicted = np.empty(len(values))
        for k in np.unique(folds):
            train = folds != k
            part = Ridge(ridge.alpha_)
            part.fit(features[train], values[train], sample_weight=weight[train])
            predicted[~train] = part.predict(features[~train])
        parts = [*estimates.T, predicted]
        grown: Any = None
        if len(values) >= MIN_ROWS:
            rng = np.random.default_rng(seed)
            chosen = np.sort(rng.permutation(len(values))[:MAX_ROWS])
            inputs = np.column_stack([features, estimates[:, 1]])
            grown, found = _forest(inputs, values, weight, chosen, seed, n_jobs)
            parts.append(found)
        coef = np.zeros(4)
        coef[: len(parts)] = _combination(np.column_stack(parts), values, weight)
        intercept = float(np.ravel(ridge.intercept_)[0])
        return cls(coef, np.ravel(ridge.coef_), intercept, grown)

    def predict(self, features: Floats, estimates: Floats) -> Floats:
        """Return the means of missing cells."""
        total = estimates @ self.coef[:2]
        if self.coef[2]:
            total = total + self.coef[2] * (features @ self.ridge_coef + self.ridge_intercept)
        if self.coef[3] and self.trees is not None:
            inputs = np.column_stack([features, estimates[:, 1]])
            total = total + self.coef[3] * self.trees.predict(inputs)
        return np.asarray(total)


def _forest(
    inputs: Floats, values: Floats, weight: Floats, chosen: Ints, seed: int, n_jobs: int | None
) -> tuple[Trees, Floats]:
    """Grow a forest on the chosen rows; predictions of these are out of bag.

    Bootstrap samples do not depend on the weights. scikit-learn's forests draw rows with large
    weights for nearly all trees, so that they have no prediction out of bag.
    """
    x, y, w = inputs[chosen].astype(np.float32), values[chosen], weight[chosen]
    seeds = np.random.SeedSequence(seed).generate_state(N_TREES)
    grown = []
    total, count = np.zeros(len(y)), np.zeros(len(y))
    for tree, out_of_bag in Parallel(n_jobs, prefer="threads")(
        delayed(_tree)(x, y, w, int(each)) for each in seeds
    ):
        grown.append(tree)
        total[out_of_bag] += tree.predict(x[out_of_bag])
        count[out_of_bag] += 1
    trees = Trees.of(grown)
    found = np.empty(len(values))
    rest = np.ones(len(values), dtype=bool)
    rest[chosen] = False
    found[chosen] = np.where(count > 0, total, np.average(y, weights=w)) / np.maximum(count, 1)
    if rest.any():
        found[rest] = trees.predict(inputs[rest])
    return trees, found


def _tree(x: Any, y: Floats, weight: Floats, seed: int) -> tuple[Any, Bools]:
    """Grow one tree on a bootstrap sample; also return the rows that are not in it."""
    from sklearn.tree import DecisionTreeRegressor

    count = np.bincount(np.random.default_rng(seed).integers(len(y), size=len(y)), minlength=len(y))
    tree = DecisionTreeRegressor(
        min_samples_leaf=MIN_LEAF, max_features=FEATURE_FRACTION, random_state=seed
    )
    tree.fit(x, y, sample_weight=count * weight)
    return tree, np.asarray(count == 0)


def _combination(estimates: Floats, values: Floats, weight: Floats) -> Floats:
    """Return coefficients >= 0 with sum 1 that minimise the weighted squared error."""
    root = np.sqrt(weight)
    sum_is_one = np.full((1, estimates.shape[1]), 1e3 * np.sqrt(weight.sum()))
    center = np.average(values, weights=weight)
    design = np.concatenate([(estimates - center) * root[:, None], sum_is_one])
    target = np.concatenate([(values - center) * root, sum_is_one[0, :1]])
    coef = nnls(design, target)[0]
    return np.asarray(coef / max(coef.sum(), 1e-12))
