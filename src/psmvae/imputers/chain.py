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
from psmvae.chained.state import are_positions
from psmvae.chained.trees import Trees, TreesRegressor
from psmvae.imputers import checks
from psmvae.imputers.ridge import Ridge

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Cells of a table whose regressions are faster with one thread: threads of BLAS wait for one
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
    used. ``column`` is the target of each step, counted among the used columns, and ``steps`` are
    regressions on all other used columns. ``converged`` is whether the fit stopped by its
    tolerance.
    """

    estimator: Literal["ridge", "trees"]
    fill: Floats
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
    ) -> Self:
        """Fit ``x`` ``(row, column)`` by IterativeImputer, columns with few missing cells first.

        Columns of one group do not predict one another. ``allowed`` ``(group, group)`` says which
        groups (second axis) may predict a group.
        """
        checks.choice("estimator", estimator, STEPS)
        x = np.asarray(x, dtype=np.float64)
        fill = np.full(x.shape[1], np.nan)
        used = ~np.isnan(x).all(0)
        if not used.any():
            return cls(estimator, fill, np.zeros(0, dtype=np.int64), (), 0, True)
        ridge = estimator == "ridge"
        model = _MeanOrRidge() if ridge else TreesRegressor(n_estimators, seed, n_jobs)
        group = (np.arange(x.shape[1]) if groups is None else np.asarray(groups))[used]
        imputer = _GroupedImputer(
            model,
            # one group has no predictors
            max_iter=max_iter if len(np.unique(group)) > 1 else 0,
            tol=tol,
            random_state=seed,
        )
        imputer.group_, imputer.allowed_ = group, allowed
        converged = _fit_quietly(imputer, x[:, used])
        fill[used] = imputer.initial_imputer_.statistics_
        sequence = imputer.imputation_sequence_
        n_others = int(used.sum()) - 1
        steps: list[Step] = []
        for step in sequence:
            neighbours = np.asarray(step.neighbor_feat_idx)
            at = neighbours - (neighbours > step.feat_idx)
            found = step.estimator
            steps.append(Ridge.of(found, at, n_others) if ridge else found.trees_.moved(at))
        column = np.array([step.feat_idx for step in sequence], dtype=np.int64)
        return cls(estimator, fill, column, tuple(steps), imputer.n_iter_, converged)

    def transform(self, x: Floats) -> Floats:
        """Impute the conditional mean of each missing cell.

        A row does not depend on the other rows. (scikit-learn makes one exception: if all cells of
        a table are missing, it returns the means.)
        """
        return self._filled(x, lambda step, others: step.predict(others))

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Impute the prediction of one random tree for each missing cell.

        Trees have no predictive distribution. This resembles drawing a donor from the leaves, as
        the method "rf" of R's mice does, and has too little variance where the trees agree.
        """
        return self._filled(x, lambda step, others: cast("Trees", step).draw(others, rng))

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
                now[at, column] = predict(step, np.delete(now[at], column, axis=1))
        filled[np.ix_(rows, used)] = now
        return filled

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the chain for a model file; `facts` has the rest."""
        steps = STEPS[self.estimator].pack(self.steps) if self.steps else {}
        return {"fill": self.fill, "column": self.column, **steps}

    def facts(self) -> dict[str, Any]:
        """Return what is not an array, as plain values."""
        return {name: getattr(self, name) for name in ("estimator", "n_rounds", "converged")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """Restore a chain from `arrays` and `facts`."""
        estimator, fill, column = facts["estimator"], arrays["fill"], arrays["column"]
        n = int((~np.isnan(fill)).sum())
        steps = tuple(STEPS[estimator].unpack(arrays, n - 1)) if column.size else ()
        if column.shape != (len(steps),) or not are_positions(column, n):
            raise ValueError("The steps of the chain do not fit its columns.")
        return cls(estimator, fill, column, steps, int(facts["n_rounds"]), facts["converged"])


class _MeanOrRidge(BayesianRidge):  # type: ignore[misc]
    """BayesianRidge that predicts the mean if it has no predictors."""

    def fit(self, X: Floats, y: Floats) -> Self:
        if X.shape[1]:
            return cast("Self", super().fit(X, y))
        self.coef_, self.intercept_ = np.zeros(0), y.mean()
        return self

    def predict(self, X: Floats) -> Floats:
        return cast(
            "Floats", super().predict(X) if X.shape[1] else np.full(len(X), self.intercept_)
        )


class _GroupedImputer(IterativeImputer):  # type: ignore[misc]
    """IterativeImputer whose predictors are limited to other groups of columns."""

    group_: NDArray[np.int64]
    allowed_: Bools | None

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> NDArray[np.intp]:
        found: Any = super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        own, others = self.group_[feat_idx], self.group_[found]
        may = others != own
        if self.allowed_ is not None:
            may &= self.allowed_[own, others]
        kept: NDArray[np.intp] = found[may]
        return kept


def _fit_quietly(imputer: Any, x: Floats) -> bool:
    """Fit and return whether scikit-learn converged within the rounds."""
    few = one_blas_thread() if x.size <= MAX_SMALL else nullcontext()
    with recorded_warnings(ConvergenceWarning) as caught, few:
        imputer.fit(x)
    converged = True
    for one in caught:
        if issubclass(one.category, ConvergenceWarning):
            converged = False
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return converged
