"""Chained equations: each column predicted from the others, in rounds.

scikit-learn fits the chain. The fitted regressions are kept as plain arrays for two reasons. They
are stored in the same safetensors files as the deep models, which hold data only; skops would add a
second format whose files depend on scikit-learn's version. And `draw` needs what scikit-learn's
forests do not offer: one tree for each cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (IterativeImputer needs it)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

from psmvae._blas import one_blas_thread
from psmvae._quiet import recorded_warnings
from psmvae.chained.nearest import nearest
from psmvae.chained.state import are_positions
from psmvae.chained.trees import Trees, TreesRegressor
from psmvae.imputers import checks
from psmvae.imputers.ridge import Ridge

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Cells of the largest regression for which one thread is faster: threads of BLAS wait for one
# another in decompositions of small matrices, many times as long on a busy machine.
MAX_SMALL = 1_000_000


class Step(Protocol):
    """Predicts one column from the others, ``(row, column)`` to ``(row,)``."""

    def predict(self, x: Floats) -> Floats:
        """Return the conditional mean."""


STEPS: dict[str, Any] = {"ridge": Ridge, "trees": Trees}


@dataclass(frozen=True, eq=False)
class Chain:
    """A fitted chain of equations.

    A missing cell starts at its column's mean. Every step then predicts the missing cells of one
    column from the current values of the other columns, in the order of the fit. So a row of the
    training table gets the values of the fit, and a new row is treated the same.

    ``fill`` is the mean of each column; NaN marks a column without observed cells, which is not
    used. ``predictors`` are the columns that predict each used column, counted among the used
    columns. ``column`` is the target of each step, counted in the same way, and ``steps`` are the
    regressions. ``converged`` is whether the fit stopped by its tolerance.
    """

    estimator: Literal["ridge", "trees"]
    fill: Floats
    predictors: tuple[NDArray[np.int32], ...]
    column: NDArray[np.int64]
    steps: tuple[Step, ...]
    n_rounds: int
    converged: bool

    @classmethod
    def fit(
        cls,
        x: Floats,
        *,
        estimator: Literal["ridge", "trees"],
        max_iter: int = 10,
        tol: float = 1e-3,
        n_estimators: int = 10,
        seed: int,
        n_jobs: int | None = None,
        groups: Sequence[int] | None = None,
        allowed: Bools | None = None,
        n_nearest_features: int | None = None,
    ) -> Self:
        """Fit ``x`` ``(row, column)`` by IterativeImputer, columns with few missing cells first.

        Columns of one group do not predict one another. ``allowed`` ``(group, group)`` says which
        groups (second axis) may predict a group. ``n_nearest_features`` is the number of columns
        that predict a column, those most correlated with it; None for all.
        """
        checks.choice("estimator", estimator, STEPS)
        x = np.asarray(x, dtype=np.float64)
        fill = np.full(x.shape[1], np.nan)
        used = ~np.isnan(x).all(0)
        if not used.any():
            return cls(estimator, fill, (), np.zeros(0, dtype=np.int64), (), 0, True)
        ridge = estimator == "ridge"
        model = _MeanOrRidge() if ridge else TreesRegressor(n_estimators, seed, n_jobs)
        group = (np.arange(x.shape[1]) if groups is None else np.asarray(groups))[used]
        imputer = _GivenPredictors(
            model,
            # one group has no predictors
            max_iter=max_iter if len(np.unique(group)) > 1 else 0,
            tol=tol,
            random_state=seed,
        )
        z, m = _standardised(x[:, used])
        chosen = nearest(z, group, z, m, group, n_nearest_features, allowed)
        imputer.predictors_ = chosen
        n_cells = len(x) * max(map(len, chosen))
        converged = _fit_quietly(imputer, x[:, used], one_thread=n_cells <= MAX_SMALL)
        fill[used] = imputer.initial_imputer_.statistics_
        found = [(step.feat_idx, step.estimator) for step in imputer.imputation_sequence_]
        column = np.array([j for j, _ in found], dtype=np.int64)
        steps: list[Step] = [Ridge.of(each) if ridge else each.trees_ for _, each in found]
        predictors = tuple(at.astype(np.int32) for at in chosen)
        return cls(estimator, fill, predictors, column, tuple(steps), imputer.n_iter_, converged)

    def transform(self, x: Floats) -> Floats:
        """Impute the conditional mean of each missing cell.

        A row does not depend on the other rows. (scikit-learn makes one exception: if all cells of
        a table are missing, it returns the means.)
        """
        return self._filled(x, lambda step, part: step.predict(part))

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Impute the prediction of one random tree for each missing cell.

        Trees have no predictive distribution. This resembles drawing a donor from the leaves, as
        the method "rf" of R's mice does, and has too little variance where the trees agree.
        """
        return self._filled(x, lambda step, part: cast("Trees", step).draw(part, rng))

    def _filled(self, x: Floats, predict: Callable[[Step, Floats], Floats]) -> Floats:
        filled = np.array(x, dtype=np.float64)
        if filled.ndim != 2 or filled.shape[1] != len(self.fill):
            raise ValueError(
                f"A table of {len(self.fill)} columns is needed, got shape {filled.shape}."
            )
        if np.isinf(filled).any():
            raise ValueError("Cells must be finite or NaN, got an infinite one.")
        used = np.flatnonzero(~np.isnan(self.fill))
        rows = np.flatnonzero(np.isnan(filled[:, used]).any(1))
        now = filled[np.ix_(rows, used)]
        missing = np.isnan(now)
        now = np.where(missing, self.fill[used], now)
        for column, step in zip(self.column, self.steps, strict=True):
            at = np.flatnonzero(missing[:, column])
            if at.size:
                now[at, column] = predict(step, now[np.ix_(at, self.predictors[column])])
        filled[np.ix_(rows, used)] = now
        return filled

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the chain for a model file; `facts` has the rest."""
        steps = STEPS[self.estimator].pack(self.steps) if self.steps else {}
        return {
            "fill": self.fill,
            "column": self.column,
            "predictors": np.concatenate([np.zeros(0, dtype=np.int32), *self.predictors]),
            "n_predictors": np.array([len(at) for at in self.predictors], dtype=np.int64),
            **steps,
        }

    def facts(self) -> dict[str, Any]:
        """Return what is not an array, as plain values."""
        return {name: getattr(self, name) for name in ("estimator", "n_rounds", "converged")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Restore a chain from `arrays` and `facts`."""
        estimator, fill, column = facts["estimator"], arrays["fill"], arrays["column"]
        n = int((~np.isnan(fill)).sum())
        n_predictors, listed = arrays["n_predictors"], arrays["predictors"]
        if not (
            n_predictors.shape == (n,)
            and are_positions(n_predictors, max(n, 1))
            and listed.shape == (int(n_predictors.sum()),)
            and are_positions(listed, n)
            and are_positions(column, n)
        ):
            raise ValueError("The predictors of the chain do not fit its columns.")
        predictors = tuple(np.split(listed, np.cumsum(n_predictors)[:-1])) if n else ()
        n_features = n_predictors[column].tolist()
        steps = tuple(STEPS[estimator].unpack(arrays, n_features)) if column.size else ()
        n_rounds, converged = int(facts["n_rounds"]), facts["converged"]
        return cls(estimator, fill, predictors, column, steps, n_rounds, converged)


def _standardised(x: Floats) -> tuple[Floats, Bools]:
    """Return standardised columns with 0 for missing cells, and the mask."""
    m = ~np.isnan(x)
    # scaled by the largest value, so that no square overflows
    largest = np.nanmax(np.abs(x), axis=0)
    scaled = x / np.where(largest > 0, largest, 1.0)
    away = np.where(m, scaled - np.nanmean(scaled, axis=0), 0.0)
    deviation = np.sqrt((away**2).sum(0) / m.sum(0))
    return away / np.where(deviation > 0, deviation, 1.0), m


class _MeanOrRidge(BayesianRidge):  # type: ignore[misc]
    """BayesianRidge that predicts the mean if it has no predictors, and keeps no covariance.

    A chain has one regression for each column and round, and a covariance takes the square of the
    number of predictors.
    """

    def fit(self, X: Floats, y: Floats) -> Self:
        if X.shape[1]:
            super().fit(X, y)
            del self.sigma_
            return self
        self.coef_, self.intercept_ = np.zeros(0), y.mean()
        return self

    def predict(self, X: Floats) -> Floats:
        return cast(
            "Floats", super().predict(X) if X.shape[1] else np.full(len(X), self.intercept_)
        )


class _GivenPredictors(IterativeImputer):  # type: ignore[misc]
    """IterativeImputer with given predictors of each column.

    `IterativeImputer` has ``n_nearest_features`` too, but draws the predictors at random, and makes
    the matrix of all correlations.
    """

    predictors_: list[NDArray[np.intp]]

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> NDArray[np.intp]:
        del n_features, abs_corr_mat
        return self.predictors_[feat_idx]


def _fit_quietly(imputer: Any, x: Floats, *, one_thread: bool = True) -> bool:
    """Fit and return whether scikit-learn converged within the rounds."""
    few = one_blas_thread() if one_thread else nullcontext()
    with recorded_warnings(ConvergenceWarning) as caught, few:
        imputer.fit(x)
    converged = True
    for one in caught:
        if issubclass(one.category, ConvergenceWarning):
            converged = False
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return converged
