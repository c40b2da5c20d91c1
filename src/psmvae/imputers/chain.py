"""Chained equations: each column predicted from the others, in rounds.

scikit-learn fits the chain. The fitted regressions are kept as plain arrays for two reasons. They
are stored in the same safetensors files as the deep models, which hold data only; skops would add a
second format whose files depend on scikit-learn's version. And `draw` needs what scikit-learn's
estimators do not offer: a joint draw of noise, coefficients and cells, or one tree for each cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (IterativeImputer needs it)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

from psmvae.imputers import checks
from psmvae.imputers.forest import Trees, TreesRegressor
from psmvae.imputers.ridge import Ridge

Floats = NDArray[np.float64]


class Step(Protocol):
    """Predicts one column from the others, ``(row, column)`` to ``(row,)``."""

    def predict(self, x: Floats) -> Floats:
        """Return the conditional mean."""

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Return a joint draw of the column."""

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Return independent draws of the cells."""


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
    tolerance; None if it sampled, since draws do not converge.
    """

    estimator: Literal["ridge", "trees"]
    fill: Floats
    column: NDArray[np.int64]
    steps: tuple[Step, ...]
    n_rounds: int
    converged: bool | None

    @classmethod
    def fit(
        cls,
        x: Floats,
        *,
        estimator: Literal["ridge", "trees"],
        max_iter: int = 10,
        tol: float = 1e-3,
        n_estimators: int = 10,
        sample: bool = False,
        seed: int,
        n_jobs: int | None = None,
        groups: Sequence[int] | None = None,
    ) -> Self:
        """Fit ``x`` ``(row, column)`` by IterativeImputer, columns with few missing cells first."""
        checks.choice("estimator", estimator, STEPS)
        if sample and estimator == "trees":
            raise ValueError("sample=True needs estimator='ridge': trees give no distribution.")
        x = np.asarray(x, dtype=np.float64)
        fill = np.full(x.shape[1], np.nan)
        used = ~np.isnan(x).all(0)
        if not used.any():
            return cls(estimator, fill, np.zeros(0, dtype=np.int64), (), 0, True)
        ridge = estimator == "ridge"
        model = BayesianRidge() if ridge else TreesRegressor(n_estimators, seed, n_jobs)
        group = np.arange(int(used.sum())) if groups is None else np.asarray(groups)[used]
        imputer = _GroupedImputer(
            model,
            sample_posterior=sample,
            # one group has no predictors
            max_iter=max_iter if len(np.unique(group)) > 1 else 0,
            tol=tol,
            random_state=seed,
        )
        imputer.group_ = group
        converged = _fit_quietly(imputer, x[:, used])
        fill[used] = imputer.initial_imputer_.statistics_
        sequence = imputer.imputation_sequence_
        n_others, n_seen = int(used.sum()) - 1, (~np.isnan(x[:, used])).sum(0)
        steps: list[Step] = []
        for step in sequence:
            neighbours = np.asarray(step.neighbor_feat_idx)
            at = neighbours - (neighbours > step.feat_idx)
            found, n_rows = step.estimator, int(n_seen[step.feat_idx])
            steps.append(Ridge.of(found, at, n_others, n_rows) if ridge else found.trees_.moved(at))
        column = np.array([step.feat_idx for step in sequence], dtype=np.int64)
        reached = None if sample else converged
        return cls(estimator, fill, column, tuple(steps), imputer.n_iter_, reached)

    def transform(self, x: Floats) -> Floats:
        """Impute the conditional mean of each missing cell.

        A row does not depend on the other rows. (scikit-learn makes one exception: if all cells of
        a table are missing, it returns the means.)
        """
        return self._filled(x, lambda step, others: step.predict(others))

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Impute independent draws of the cells, as scikit-learn does; see `draw`."""
        return self._filled(x, lambda step, others: step.draw_cells(others, rng))

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Impute one joint draw of all missing cells.

        Ridge regression draws its noise variance, its coefficients and then the cells at every
        step, so that all cells of a column share the drawn coefficients. Fit with ``sample=True``
        for this: means imputed during the fit overstate the association between columns. Draws of
        one chain share the imputations of its fit; chains with other seeds do not.

        Trees have no predictive distribution: the prediction of one random tree is used for each
        cell. This resembles drawing a donor from the leaves, as the method "rf" of R's mice does,
        and has too little variance where the trees agree.
        """
        return self._filled(x, lambda step, others: step.draw(others, rng))

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
        if column.shape != (len(steps),) or not ((column >= 0) & (column < n)).all():
            raise ValueError("The steps of the chain do not fit its columns.")
        return cls(estimator, fill, column, steps, int(facts["n_rounds"]), facts["converged"])


class _GroupedImputer(IterativeImputer):  # type: ignore[misc]
    """IterativeImputer whose columns of one group do not predict one another."""

    group_: NDArray[np.int64]

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> NDArray[np.intp]:
        found: Any = super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        kept: NDArray[np.intp] = found[self.group_[found] != self.group_[feat_idx]]
        return kept


def _fit_quietly(imputer: Any, x: Floats) -> bool:
    """Fit and return whether scikit-learn converged within the rounds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        imputer.fit(x)
    converged = True
    for one in caught:
        if issubclass(one.category, ConvergenceWarning):
            converged = False
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return converged
