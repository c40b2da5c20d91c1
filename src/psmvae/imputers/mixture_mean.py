"""Predictions of Gaussian mixtures that are averaged with those of a model.

A regression must have seen a pattern of missing cells, or similar ones, to use all observed cells
of a row. A mixture integrates the missing cells out. The errors of the two differ, so that an
average has a smaller error than either. EM ends in a local maximum that depends on the first means,
so that the average of several mixtures also has a smaller error than one of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from psmvae.chained.predictors import MAX_INDICATORS, Predictors
from psmvae.chained.state import STANDARDISATION, restore_predictors
from psmvae.imputers.linear_mean import KINDS as NUMERIC
from psmvae.imputers.linear_mean import add_average, relative_gain, weights
from psmvae.mechanism.gaussian import encode
from psmvae.models.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from psmvae.chained.chains import Learned
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Kinds whose mean is a mean of model values; that of a binary column is the probability of 1.
KINDS = (*NUMERIC, "binary")
# Number of mixtures: more lower the error by little, and a CPU takes a second for one.
N_MIXTURES = {"cpu": 2, "cuda": 8}
# Observed cells for each parameter of a mixture, and its numbers of components.
CELLS_PER_PARAMETER, MIN_COMPONENTS, MAX_COMPONENTS = 10, 2, 100
# Rows that the common covariance counts for in each component.
PRIOR_ROWS = 5.0
# Cycles of EM without the validation cells, divided by the observed fraction to this power, as EM
# converges the slower, the more cells are missing. Then iterations with the validation cells.
N_CYCLES, POWER, N_MORE_ITERATIONS = 5.0, 0.8, 3
# A mixture must lower the mean squared error of the validation cells by this fraction in most
# columns.
MIN_GAIN = -0.02
# Components of the small mixture that is compared with a multivariate Normal before training, the
# observed cells that both use at most, and the fraction of these that are hidden.
FEW_COMPONENTS, FEW_CELLS, HIDDEN_FRACTION = 16, 30_000, 0.2
# The weight is shrunk towards this one, which counts as many cells. A column's weight is shrunk
# towards that of all columns.
PRIOR_WEIGHT, PSEUDO_COUNT, PSEUDO_COUNT_COLUMN = 0.5, 30.0, 30.0
# Rows that are used at most, predictors of the columns, and operations of an iteration, which are
# as many as components, rows and squared predictors. Then operations of two cores in a second, and
# their time for `mixture_gain`.
MAX_ROWS, MAX_PREDICTORS, MAX_WORK = 20_000, 32, 3e8
OPERATIONS, GAIN_SECONDS = 7e8, 1.5
ARRAYS = ("log_weight", "mean", "covariance")
# Single precision takes less time; `MIN_VARIANCE` keeps the covariances invertible in it.
DTYPE = torch.float32


@dataclass(frozen=True, eq=False)
class MixtureMean:
    """Gaussian mixtures, and the weight of their mean prediction in each column.

    Attributes
    ----------
    predictors : Predictors
        Encoding of the columns.
    mixtures : tuple of GaussianMixture
        Mixtures of the encoded columns, which began from different means.
    weight : ndarray of shape (n_columns,)
        Weight of their prediction of a missing cell, from 0 to 1. It is 0 in columns of several
        levels and in those that have a logarithm.
    """

    predictors: Predictors
    mixtures: tuple[GaussianMixture, ...]
    weight: Floats

    @classmethod
    def fit(
        cls,
        predictors: Predictors,
        x: Floats,
        m: Bools,
        learned: Mapping[int, Learned],
        rows: NDArray[np.intp],
        wanted: Collection[int],
        n: int,
        seed: int,
        device: torch.device,
    ) -> Self | None:
        """Fit to the training table, with weights by the validation cells.

        Returns None if a mixture does not lower the error of the validation cells.

        Parameters
        ----------
        predictors : Predictors
            Encoding of the columns of the whole table.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask of the rows that are used.
        learned : mapping of int to Learned
            Predictions of columns by the trained model, in ``rows``.
        rows : ndarray of int
            Rows with validation cells.
        wanted : collection of int
            Columns whose predictions are averaged.
        n : int
            Number of components of each mixture.
        seed : int
            Seed of the first means.
        device : torch.device
            Where the mixtures are fitted.
        """
        held_out = np.zeros_like(m)
        for j, one in learned.items():
            if one.held_out is not None:
                held_out[rows, j] = one.held_out & m[rows, j]
        # a column with a single observed value has nothing to predict
        wanted = [j for j in wanted if len(predictors.of(j))]
        z, seen = _tensors(predictors, x, m, device)
        _, left = _tensors(predictors, x, m & ~held_out, device)

        def validation(*mixtures: GaussianMixture) -> list[tuple[Floats, Floats, Floats]]:
            found = _predict(predictors, mixtures, x[rows], m[rows], wanted, observed=True)
            return [
                (x[rows, j][own], _mean(learned[j].prediction[own]), found[j][own])
                for j, own in ((j, held_out[rows, j]) for j in wanted)
            ]

        generator = torch.Generator().manual_seed(seed)
        normal = GaussianMixture.normal(z, left)

        def fit() -> GaussianMixture:
            return GaussianMixture.fit(
                z, left, n, prior_rows=PRIOR_ROWS, n_cycles=n_cycles(m), generator=generator,
                normal=normal,
            )  # fmt: skip

        mixtures = [fit()]
        if relative_gain(validation(*mixtures)) < MIN_GAIN:
            return None
        mixtures += [fit() for _ in range(N_MIXTURES[device.type] - 1)]
        weight = np.zeros(len(predictors.columns))
        cells = validation(*mixtures)
        weight[wanted] = weights(cells, PRIOR_WEIGHT, PSEUDO_COUNT, PSEUDO_COUNT_COLUMN)
        mixtures = [
            each.update(z, seen, prior_rows=PRIOR_ROWS, n_iterations=N_MORE_ITERATIONS)
            for each in mixtures
        ]
        return cls(predictors, tuple(mixtures), weight)

    @classmethod
    def restore(
        cls,
        columns: tuple[Column, ...],
        arrays: Mapping[str, Any],
        levels: Sequence[Sequence[int]],
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
            parts = [torch.as_tensor(arrays[name], dtype=DTYPE) for name in ARRAYS]
            torch.linalg.cholesky(parts[-1])
        except (KeyError, TypeError, RuntimeError) as error:
            message = f"The Gaussian mixtures of the file are damaged ({error!r})."
            raise ValueError(message) from error
        first = tuple(parts[0].shape)
        shapes = [first, (*first, n), (*first, n, n)]
        if len(first) != 2 or 0 in first or [tuple(part.shape) for part in parts] != shapes:
            raise ValueError("The Gaussian mixtures of the file are not those of its columns.")
        numeric = np.array(
            [column.kind in KINDS and len(predictors.of(j)) > 0 for j, column in enumerate(columns)]
        )
        fits = weight.shape == (len(columns),)
        if not (fits and ((weight >= 0) & (weight <= np.where(numeric, 1.0, 0.0))).all()):
            raise ValueError("The weights of the Gaussian mixtures must be from 0 to 1.")
        mixtures = tuple(GaussianMixture(*each) for each in zip(*parts, strict=True))
        return cls(predictors, mixtures, weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file; `restore` is the inverse."""
        return {
            **{name: getattr(self.predictors, name) for name in STANDARDISATION},
            **{
                name: np.stack([getattr(each, name).cpu().numpy() for each in self.mixtures])
                for name in ARRAYS
            },
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
        wanted = [j for j in columns if self.weight[j] > 0]
        if not wanted or not len(x):
            return dict(predictions)
        found = _predict(self.predictors, self.mixtures, x, m, wanted, observed=observed)
        means = {j: _mean(predictions[j]) for j in wanted}
        averaged = dict(predictions)
        for j, mean in add_average(means, found, self.weight, m, observed=observed).items():
            binary = predictions[j].ndim > 1
            averaged[j] = np.column_stack([1 - mean, mean]) if binary else mean
        return averaged

    def average_points(
        self, points: Floats, predictions: Mapping[int, Floats], x: Floats, m: Bools
    ) -> Floats:
        """Return single imputations averaged, those of binary columns by their probability.

        Parameters
        ----------
        points : ndarray of shape (n_rows, n_columns)
            Single imputations by the model, as model values.
        predictions : mapping of int to ndarray
            Predictions of the model by column, for the probabilities of binary columns.
        x, m : ndarray of shape (n_rows, n_columns)
            Model values and mask.
        """
        binary = [column.kind == "binary" for column in self.predictors.columns]
        before = {j: predictions[j] if own else points[:, j] for j, own in enumerate(binary)}
        after = self.average(before, x, m, before)
        found = points.copy()
        for j, own in enumerate(binary):
            if self.weight[j] > 0:
                rows = ~m[:, j]
                found[rows, j] = after[j][rows].argmax(1) if own else after[j][rows]
        return found


def mixture_gain(columns: tuple[Column, ...], x: Floats, m: Bools, seed: int) -> float:
    """Return the fraction of a multivariate Normal's squared error that a mixture removes.

    Both are fitted to some rows without a part of their observed cells, which they then predict.
    The fraction is the median over numeric and binary columns.

    Parameters
    ----------
    columns : tuple of Column
        The columns.
    x, m : ndarray of shape (n_rows, n_columns)
        Model values and mask.
    seed : int
        Seed of the rows, the hidden cells and the first means.

    Returns
    -------
    float
        0 where a mixture does not help, negative where it predicts worse.
    """
    rng = np.random.default_rng(seed)
    # of the whole table: a column may have no observed cell in the rows that are used
    predictors = Predictors.fit(columns, x, m)
    n_rows = max(1, int(FEW_CELLS / max(m.sum(1).mean(), 1.0)))
    rows = np.sort(rng.permutation(len(x))[:n_rows])
    x, m = x[rows], m[rows]
    hidden = m & (rng.random(m.shape) < HIDDEN_FRACTION)
    used = [j for j, column in enumerate(columns) if column.kind in KINDS and hidden[:, j].any()]
    z, left = _tensors(predictors, x, m & ~hidden, torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    errors: list[list[float]] = []
    fitted = None
    for n in (1, min(FEW_COMPONENTS, n_components(columns, m))):
        fitted = GaussianMixture.fit(
            z, left, n, prior_rows=PRIOR_ROWS, n_cycles=n_cycles(m), generator=generator,
            normal=fitted,
        )  # fmt: skip
        found = _predict(predictors, [fitted], x, m & ~hidden, used, observed=False)
        errors.append([np.square((x[:, j] - found[j])[hidden[:, j]]).mean() for j in used])
    normal, mixture = np.array(errors)
    return float(1 - np.median(mixture / np.maximum(normal, 1e-300))) if used else 0.0


def n_components(columns: Sequence[Column], m: Bools, max_seconds: float = math.inf) -> int:
    """Return the number of components of the mixture of a table; 0 if it has too few cells.

    Parameters
    ----------
    columns : sequence of Column
        The columns.
    m : ndarray of shape (n_rows, n_columns)
        Mask.
    max_seconds : float, default=inf
        Time of the fit at most.
    """
    sizes = np.array([min(max(column.n_levels - 1, 1), MAX_INDICATORS) for column in columns])
    n = int(sizes.sum())
    if n > MAX_PREDICTORS:
        return 0
    by_cells = (m.sum(0) * sizes).sum() / (CELLS_PER_PARAMETER * n * (n + 3) / 2)
    work = min(len(m), MAX_ROWS) * n**2
    by_time = (max_seconds - GAIN_SECONDS) * OPERATIONS / (N_MIXTURES["cpu"] * _n_iterations(m))
    return max(0, int(min(by_cells, min(MAX_WORK, by_time) / work, MAX_COMPONENTS)))


def n_cycles(m: Bools) -> int:
    """Return the number of cycles of EM for a table with this mask."""
    slower: float = max(float(m.mean()), 0.1) ** POWER
    return round(N_CYCLES / slower)


def fit_seconds(columns: Sequence[Column], m: Bools) -> float:
    """Estimate the time of `MixtureMean.fit` on two cores."""
    n = sum(min(max(column.n_levels - 1, 1), MAX_INDICATORS) for column in columns)
    work = N_MIXTURES["cpu"] * n_components(columns, m) * min(len(m), MAX_ROWS) * n**2
    return GAIN_SECONDS + work * _n_iterations(m) / OPERATIONS


def _n_iterations(m: Bools) -> int:
    """Return the number of iterations of EM of one mixture."""
    return 2 * n_cycles(m) + 1 + N_MORE_ITERATIONS


def _tensors(
    predictors: Predictors, x: Floats, m: Bools, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return encoded columns and which of them are observed."""
    z, seen = encode(predictors, x, m, masks=False)
    return torch.as_tensor(z).to(device, DTYPE), torch.as_tensor(seen).to(device, DTYPE)


def _predict(
    predictors: Predictors,
    mixtures: Sequence[GaussianMixture],
    x: Floats,
    m: Bools,
    columns: Collection[int],
    *,
    observed: bool,
) -> dict[int, Floats]:
    """Predict missing cells of numeric columns, and observed ones as if they were missing."""
    tensors = _tensors(predictors, x, m, mixtures[0].mean.device)
    with torch.no_grad():
        each = [mixture.predict(*tensors, observed=observed) for mixture in mixtures]
        expected = torch.stack(each).double().mean(0).cpu().numpy()
    found = {}
    for j in columns:
        k = predictors.of(j)[0]
        # Normal components extrapolate beyond the values that were observed
        within = expected[:, k].clip(predictors.low[k], predictors.high[k])
        found[j] = within * predictors.scale[k] + predictors.center[k]
    return found


def _mean(prediction: Floats) -> Floats:
    """Return predicted means; those of a binary column are probabilities of 1."""
    return prediction[:, 1] if prediction.ndim > 1 else prediction
