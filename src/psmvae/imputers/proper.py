"""Proper draws of the imputers with latent variables."""

# ruff: noqa: SLF001 (works on the fitted model of an imputer)

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae._locks import ForkSafeLock
from psmvae.chained.chains import Chains, Learned, Tilts, settings_for
from psmvae.imputers.base import Bools, Floats

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.imputers.latent import LatentImputer
    from psmvae.table.codec import Encoded

# Operations per second of the chains, a low estimate, and the fraction of `max_time` for them.
OPERATIONS_PER_SECOND, FRACTION_OF_TIME = 5e9, 0.15
# Chains are fitted at first use, by one thread.
CHAINS_LOCK = ForkSafeLock()


@dataclass(frozen=True)
class UnfittedChains:
    """What the chains of an imputer are fitted to, kept until draws are needed.

    Single imputations do not use the chains, and fitting them takes as long as training.
    """

    encoded: Encoded
    # validation cells, (member, row, column)
    held_out: Tensor | None
    # seconds that `max_time` has left
    seconds: float | None

    @classmethod
    def of(
        cls, imputer: LatentImputer, encoded: Encoded, held_out: Tensor | None, began: float
    ) -> Self:
        """Keep the training table of an imputer whose `fit` was called at ``began``."""
        seconds = None
        if imputer.max_time is not None:
            left = float(imputer.max_time) - (time.perf_counter() - began)
            seconds = max(left, FRACTION_OF_TIME * float(imputer.max_time))
        return cls(encoded, held_out, seconds)

    def fit(self, imputer: LatentImputer) -> Chains:
        """Fit the chains with the predictions of the trained model."""
        import torch

        from psmvae.kinds.bounds import model_bounds
        from psmvae.nn.matmul_backend import use_blas

        columns, (n_rows, n_columns) = imputer.schema_.modelled, self.encoded.x.shape
        fraction = 1.0
        if self.seconds is not None:
            fraction = min(1.0, self.seconds * OPERATIONS_PER_SECOND / 2e11)
        with use_blas(), torch.inference_mode(mode=False):
            return Chains.fit(
                columns,
                self.encoded.x,
                self.encoded.m,
                bounds=[model_bounds(column) for column in columns],
                seed=imputer._seed(5),
                learned=learn(imputer, self.encoded, self.held_out),
                tilts=imputer._tilts(),
                settings=settings_for(n_rows, n_columns, imputer.numeric_draws, fraction=fraction),
            )


def sample_rows(
    encoded: Encoded, held_out: Tensor | None, n_rows: int, seed: int
) -> tuple[Encoded, Tensor | None]:
    """Return ``n_rows`` random rows of a table and of its validation cells, in their order."""
    if len(encoded.x) <= n_rows:
        return encoded, held_out
    rows = _random_rows(len(encoded.x), n_rows, seed)
    sample = replace(encoded, x=encoded.x[rows], m=encoded.m[rows])
    return sample, None if held_out is None else held_out[:, rows]


def sample_predictions(
    predictions: Mapping[int, Floats], n_rows: int, seed: int
) -> dict[int, Floats]:
    """Return the predictions of the rows that `sample_rows` returns."""
    return {
        j: each if len(each) <= n_rows else each[_random_rows(len(each), n_rows, seed)]
        for j, each in predictions.items()
    }


def _random_rows(n: int, n_rows: int, seed: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(seed).permutation(n)[:n_rows])


def learn(
    imputer: LatentImputer,
    encoded: Encoded,
    held_out: Tensor | None,
    columns: Collection[int] | None = None,
) -> dict[int, Learned]:
    """Return what the trained model says about each column of the training table.

    Observed cells are predicted too, in all columns or in those in ``columns``.
    """
    import torch

    from psmvae.inference.hidden import predict_hidden

    with torch.no_grad():
        x, m = imputer._tensors(encoded.x, encoded.m)
        order = imputer._layout().order
        wanted = None if columns is None else [order.index(j) for j in columns]
        predicted = predict_hidden(imputer.model_, x, m, held_out, wanted)
        shifts = _shifts(imputer, encoded.x, encoded.m)
    cells = None
    if held_out is not None:
        cells = imputer._in_table_order(held_out.any(0).cpu().numpy())
    return {
        j: Learned(prediction, None if cells is None else cells[:, j], shifts.get(j))
        for j, prediction in _by_table_column(imputer, predicted).items()
    }


def predictions(imputer: LatentImputer, x: Floats, m: Bools) -> dict[int, Floats]:
    """Return the model's predictions of the missing cells of each column."""
    import torch

    from psmvae.inference.hidden import predict_missing
    from psmvae.nn.matmul_backend import use_blas

    with use_blas(), torch.no_grad():
        predicted = predict_missing(imputer.model_, *imputer._tensors(x, m))
    return _by_table_column(imputer, predicted)


def draw_chains(
    imputer: LatentImputer,
    chains: Chains,
    tilts: Tilts,
    x: Floats,
    m: Bools,
    n: int,
    seed: int,
) -> Floats:
    """Draw the missing cells of ``x, m`` ``(row, column)``: ``(row, draw, column)``."""
    import torch

    from psmvae.nn.matmul_backend import use_blas

    with use_blas(), torch.no_grad():
        shifts = _shifts(imputer, x, m)
    learned = {
        j: Learned(prediction, None, shifts.get(j))
        for j, prediction in predictions(imputer, x, m).items()
    }
    return chains.draw(x, m, n, seed, learned, tilts)


def _shifts(imputer: LatentImputer, x: Floats, m: Bools) -> dict[int, NDArray[Any]]:
    """Return how missing cells differ from observed ones according to the mask model.

    Differences of means, or of log probabilities of levels; empty unless the mask model depends on
    x, or missing cells have a distribution of their own.
    """
    from psmvae.inference.hidden import predict_missing, split_columns

    model = imputer.model_
    if not model.imputes_from_x_mis:
        return {}
    tensors = imputer._tensors(x, m)
    missing = split_columns(model, imputer._posterior(imputer._seed(1)).expected(*tensors))
    observed = predict_missing(model, *tensors)
    shifts = {}
    for j, (of_missing, of_observed) in enumerate(zip(missing, observed, strict=True)):
        if of_missing.ndim > 1:
            shifts[j] = of_missing.clamp(min=1e-6).log() - of_observed.clamp(min=1e-6).log()
        else:
            shifts[j] = of_missing - of_observed
    return _by_table_column(imputer, [shifts[j] for j in range(len(shifts))])


def _by_table_column(imputer: LatentImputer, values: list[Tensor]) -> dict[int, Floats]:
    """Return tensors of the model's columns as arrays by the table's column."""
    order = imputer._layout().order
    columns = imputer.schema_.modelled
    found = {}
    for k, value in enumerate(values):
        column = columns[order[k]]
        array = value.double().cpu().numpy()
        found[order[k]] = array[:, : column.n_levels] if column.levels else array
    return found
