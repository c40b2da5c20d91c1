"""Linear predictions that are averaged with those of a model trained on few rows.

Networks trained on a few hundred rows predict numbers hardly better than linear regressions, and
extrapolate worse. The errors of the two differ, so that an average has a smaller error than either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae._blas import one_blas_thread
from psmvae.chained.predictors import MAX_INDICATORS, Predictors
from psmvae.chained.state import STANDARDISATION, restore_predictors
from psmvae.mechanism.gaussian import Gaussian

if TYPE_CHECKING:
    from psmvae.chained.chains import Learned
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Kinds whose mean is a mean of model values.
KINDS = ("real", "integer")
# The weight is shrunk towards one half: validation cells also chose when training stopped, and
# prefer the model for it. A column's weight is shrunk towards that of all columns.
PRIOR_WEIGHT, PSEUDO_COUNT, PSEUDO_COUNT_COLUMN = 0.5, 250.0, 25.0
# EM starts with the rows without missing cells if there are this many for each encoded column.
MIN_COMPLETE_ROWS = 2
# Patterns that are counted at least: tables that are imputed later may have more.
MIN_PATTERNS = 200


@dataclass(frozen=True, eq=False)
class LinearMean:
    """A multivariate Normal, and the weight of its predictions in each column.

    Attributes
    ----------
    predictors : Predictors
        Encoding of the columns.
    gaussian : Gaussian
        Multivariate Normal of the encoded columns, fitted by EM.
    weight : ndarray of shape (n_columns,)
        Weight of its prediction of a missing cell, from 0 to 1. It is 0 in columns of levels and in
        those that have a logarithm.
    """

    predictors: Predictors
    gaussian: Gaussian
    weight: Floats

    @classmethod
    def fit(
        cls,
        columns: tuple[Column, ...],
        x: Floats,
        m: Bools,
        learned: Mapping[int, Learned],
        seed: int,
    ) -> Self:
        """Fit to the training table, with weights by the validation cells.

        Parameters
        ----------
        columns : tuple of Column
            The columns.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.
        learned : mapping of int to Learned
            Predictions of the numeric columns by the trained model.
        seed : int
            Seed of the rows that are used of a long table.
        """
        predictors = Predictors.fit(columns, x, m)
        held_out = np.zeros_like(m)
        for j, one in learned.items():
            if one.held_out is not None:
                held_out[:, j] = one.held_out & m[:, j]
        # EM that starts with all rows takes many steps to the regression of the rows without
        # missing cells, where few columns are incomplete
        complete = np.asarray(m.all(1))
        enough = complete.sum() >= MIN_COMPLETE_ROWS * len(predictors.group)
        with one_blas_thread():
            partly = Gaussian.fit(
                predictors, x, m & ~held_out, seed, masks=False, first=complete if enough else None
            )
            linear = partly.predict(predictors, x, m, dict.fromkeys(learned, ()), observed=True)
            gaussian = Gaussian.fit(predictors, x, m, seed, masks=False, start=partly)
        weight = np.zeros(len(columns))
        weight[list(learned)] = weights(
            [
                (x[rows, j], learned[j].prediction[rows], linear[j][rows])
                for j, rows in ((j, held_out[:, j]) for j in learned)
            ]
        )
        return cls(predictors, gaussian, weight)

    @classmethod
    def restore(
        cls, columns: tuple[Column, ...], arrays: Mapping[str, Any], levels: Sequence[Sequence[int]]
    ) -> Self:
        """Return what `arrays` holds; ``levels`` are those of the predictors.

        Raises
        ------
        ValueError
            If the arrays do not fit together.
        """
        try:
            predictors = restore_predictors(columns, levels, arrays)
            n, weight = len(predictors.group), arrays["weight"]
            gaussian = Gaussian(arrays["mean"], arrays["covariance"], masks=False)
        except (KeyError, TypeError) as error:
            message = f"The linear predictions of the file are damaged ({error!r})."
            raise ValueError(message) from error
        shapes = (gaussian.mean.shape, gaussian.covariance.shape, weight.shape)
        if shapes != ((n,), (n, n), (len(columns),)):
            raise ValueError("The linear predictions of the file are not those of its columns.")
        numeric = np.array([column.kind in KINDS for column in columns])
        if not ((weight >= 0) & (weight <= np.where(numeric, 1.0, 0.0))).all():
            raise ValueError("The weights of the linear predictions must be from 0 to 1.")
        return cls(predictors, gaussian, weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file; `restore` is the inverse."""
        return {
            **{name: getattr(self.predictors, name) for name in STANDARDISATION},
            "mean": self.gaussian.mean,
            "covariance": self.gaussian.covariance,
            "weight": self.weight,
        }

    def average(
        self,
        predictions: Mapping[int, Any],
        x: Floats,
        m: Bools,
        columns: Collection[int],
        *,
        observed: bool = False,
    ) -> dict[int, Floats]:
        """Return predictions with those of ``columns`` averaged.

        Parameters
        ----------
        predictions : mapping of int to ndarray
            Predictions of the model by column.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.
        columns : collection of int
            Columns to predict.
        observed : bool, default=False
            Whether observed cells are predicted too, as if they were missing.
        """
        wanted = {j: () for j in columns if self.weight[j] > 0}
        if not wanted:
            return dict(predictions)
        with one_blas_thread():
            linear = self.gaussian.predict(self.predictors, x, m, wanted, observed=observed)
        return add_average(predictions, linear, self.weight, m, observed=observed)


def add_average(
    predictions: Mapping[int, Any],
    others: Mapping[int, Floats],
    weight: Floats,
    m: Bools,
    *,
    observed: bool,
) -> dict[int, Floats]:
    """Return predictions with those of the columns in ``others`` averaged with them.

    Without ``observed`` only those of missing cells are.
    """
    found = dict(predictions)
    for j, each in others.items():
        rows = slice(None) if observed else ~m[:, j]
        averaged = np.array(found[j], dtype=np.float64)
        averaged[rows] += weight[j] * (each[rows] - averaged[rows])
        found[j] = averaged
    return found


def work(columns: Sequence[Column], m: Bools) -> float:
    """Return the number of operations that invert one matrix for each pattern of the masks."""
    n_encoded = sum(min(max(column.n_levels - 1, 1), MAX_INDICATORS) for column in columns)
    return float(max(len(np.unique(m, axis=0)), MIN_PATTERNS)) * n_encoded**3


def weights(
    cells: list[tuple[Floats, Floats, Floats]],
    prior: float = PRIOR_WEIGHT,
    pseudo_count: float = PSEUDO_COUNT,
    pseudo_count_column: float = PSEUDO_COUNT_COLUMN,
) -> Floats:
    """Return the weight of the second prediction that minimises the squared error, by column.

    ``cells`` are the values of a column and two predictions of them. Squared errors are divided by
    their mean in the column, so that columns count by their cells.
    """
    gain, size = _moments(cells)
    pooled = (gain.sum() + pseudo_count * prior) / (size.sum() + pseudo_count)
    pooled = min(max(pooled, 0.0), 1.0)
    found = (gain + pseudo_count_column * pooled) / (size + pseudo_count_column)
    return np.asarray(np.clip(found, 0.0, 1.0))


def relative_gain(cells: list[tuple[Floats, Floats, Floats]]) -> float:
    """Return by how much an average lowers the mean squared error, the median over columns.

    The weight in a column is that of all others, so that no cell judges a weight that it chose.
    Columns with heavy tails, in which a few cells decide, do not decide together.
    """
    gain, size = _moments(cells)
    weight = np.clip((gain.sum() - gain) / np.maximum(size.sum() - size, 1e-300), 0.0, 1.0)
    n_cells = np.array([max(len(value), 1) for value, *_ in cells])
    return float(np.median(weight * (2 * gain - weight * size) / n_cells))


def _moments(cells: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return the sums of products of errors and differences, and of squares of differences."""
    gain, size = np.zeros(len(cells)), np.zeros(len(cells))
    for k, (value, first, second) in enumerate(cells):
        if not len(value):
            continue
        error, step = value - first, second - first
        unit = max(0.5 * (np.mean(error**2) + np.mean((error - step) ** 2)), 1e-300)
        gain[k], size[k] = (error * step).sum() / unit, (step**2).sum() / unit
    return gain, size
