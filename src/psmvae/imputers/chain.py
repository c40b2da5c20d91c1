"""Chained equations: each column predicted from the others, again and again.

scikit-learn fits the chain; what it found is kept as plain arrays, so that it can be written to
a file and read back without running anything the file says.
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
        """The best guess."""

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """One column that could have been."""

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Cells that could have been, each by itself."""


STEPS: dict[str, Any] = {"ridge": Ridge, "trees": Trees}


@dataclass(frozen=True, eq=False)
class Chain:
    """A fitted chain of equations.

    A missing cell starts at its column's mean; then every step predicts the missing cells of one
    column from the other columns as they stand. Rounds of steps follow one another as they did in
    the fit, so a row that was in the table gets what it got there, and a new row is treated alike.

    Attributes
    ----------
    estimator : {"ridge", "trees"}
        What predicts a column: Bayesian ridge regression, or extremely randomised trees.
    fill : ndarray of shape (column,)
        Mean of each column; NaN for a column with nothing observed, which takes no part.
    column : ndarray of shape (step,)
        The column a step predicts, counted among those that take part.
    steps : tuple of Ridge or of Trees
        The equations, from all other columns that take part.
    n_rounds : int
        How often the fit went over the columns.
    converged : bool or None
        Whether the last round changed so little that the fit stopped; None where the fit drew, as
        draws do not settle.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, np.nan], [np.nan, 2.0]])
    >>> chain = Chain.fit(x, estimator="ridge", seed=0)
    >>> chain.transform(x).round(2).tolist()
    [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0], [1.0, 2.0]]
    >>> drawn = chain.draw(x, np.random.default_rng(0))
    >>> again = Chain.from_arrays(chain.arrays(), chain.facts())
    >>> bool((again.draw(x, np.random.default_rng(0)) == drawn).all())
    True
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
        """Fit by scikit-learn's IterativeImputer; columns with few holes come first in a round.

        Parameters
        ----------
        x : ndarray of shape (row, column)
            The table, NaN where a cell is missing. Columns should be of like scale: one tolerance
            is for all of them.
        estimator : {"ridge", "trees"}
            What predicts a column.
        max_iter : int
            Rounds at most.
        tol : float
            Stops when no cell changes by more than this, relative to the largest cell.
        n_estimators : int
            Trees of each step, for ``"trees"``.
        sample : bool
            Fill in draws rather than means while fitting, for ``"ridge"``: what multiple imputation
            asks for. All rounds are then used.
        seed : int
            Of the trees and the draws.
        n_jobs : int or None
            Trees grown at the same time. It does not change the result.
        groups : sequence of int, optional
            Columns of one number do not predict one another: indicators of the levels of one
            column, which are missing together and sum to one.
        """
        checks.choice("estimator", estimator, STEPS)
        if sample and estimator == "trees":
            raise ValueError("sample=True needs estimator='ridge': trees give no distribution.")
        x = np.asarray(x, dtype=np.float64)
        fill = np.full(x.shape[1], np.nan)
        used = ~np.isnan(x).all(0)
        if not used.any():
            return cls(estimator, fill, np.zeros(0, dtype=np.int64), (), 0, True)
        model = (
            BayesianRidge() if estimator == "ridge" else TreesRegressor(n_estimators, seed, n_jobs)
        )
        group = np.arange(int(used.sum())) if groups is None else np.asarray(groups)[used]
        imputer = _GroupedImputer(
            model,
            sample_posterior=sample,
            # with one group there is nothing to predict from
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
            found = step.estimator
            ridge = estimator == "ridge"
            n_rows = int(n_seen[step.feat_idx])
            steps.append(Ridge.of(found, at, n_others, n_rows) if ridge else found.trees_.moved(at))
        column = np.array([step.feat_idx for step in sequence], dtype=np.int64)
        return cls(
            estimator, fill, column, tuple(steps), imputer.n_iter_, None if sample else converged
        )

    def transform(self, x: Floats) -> Floats:
        """The table with its missing cells predicted; the same bits each time.

        A row does not depend on the rows around it. (scikit-learn makes one exception: where all
        cells of a table are missing, it stops at the means.)

        Parameters
        ----------
        x : ndarray of shape (row, column)
            NaN where a cell is missing; not changed.

        Returns
        -------
        ndarray of shape (row, column)
            Observed cells as they were. A column that had nothing observed in the fit comes back
            as it is.
        """
        return self._filled(x, lambda step, others: step.predict(others))

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """As `transform`, but every step draws each cell by itself, as scikit-learn does.

        Each cell is as uncertain as it should be; means over many cells are not, see `draw`.
        """
        return self._filled(x, lambda step, others: step.draw_cells(others, rng))

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """One multiple imputation: as `transform`, but every step draws.

        Ridge regression draws its noise, its coefficients and then the cells, anew at every step:
        all cells of a column share a line that could have been. Fit with ``sample=True`` for this:
        means filled in while fitting make columns look more alike than they are. Draws of one chain
        share what the fit filled in; those of chains with seeds of their own differ in that too.

        Trees give no distribution: for each cell, the prediction of one tree is drawn. A fully
        grown tree predicts what was observed in one row like this one, so this is much like drawing
        a donor from the leaves, as the method "rf" of R's mice does. It is approximate, and too
        narrow where the trees agree.
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
        """All numbers of the chain, for a file; `facts` has the rest."""
        steps = STEPS[self.estimator].pack(self.steps) if self.steps else {}
        return {"fill": self.fill, "column": self.column, **steps}

    def facts(self) -> dict[str, Any]:
        """What is not an array, ready for JSON."""
        return {
            "estimator": self.estimator,
            "n_rounds": self.n_rounds,
            "converged": self.converged,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> Self:
        """The chain that `arrays` and `facts` came from.

        Raises
        ------
        LookupError, ValueError
            If they do not make a chain.
        """
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
        found: NDArray[np.intp] = np.asarray(
            super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        )
        kept: NDArray[np.intp] = found[self.group_[found] != self.group_[feat_idx]]
        return kept


def _fit_quietly(imputer: Any, x: Floats) -> bool:
    """Fit; whether scikit-learn did not warn that it ran out of rounds."""
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
