"""Proper draws of the imputers with latent variables."""

# ruff: noqa: SLF001 (works on the fitted model of an imputer)

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from psmvae.chained.chains import Chains, Learned, Settings, Tilts, settings_for
from psmvae.imputers.base import Bools, Floats

if TYPE_CHECKING:
    from torch import Tensor

    from psmvae.imputers.latent import LatentImputer
    from psmvae.table.codec import Encoded

# Operations per second of the chains, a low estimate, and the fraction of `max_time` for them.
OPERATIONS_PER_SECOND, FRACTION_OF_TIME = 5e9, 0.15


def fit_chains(
    imputer: LatentImputer,
    encoded: Encoded,
    learned: Mapping[int, Learned],
    tilts: Tilts,
    began: float,
) -> Chains:
    """Fit chained regressions to the training table, with the predictions of the trained model."""
    from psmvae.kinds.bounds import model_bounds

    return Chains.fit(
        imputer.schema_.modelled,
        encoded.x,
        encoded.m,
        bounds=[model_bounds(column) for column in imputer.schema_.modelled],
        seed=imputer._seed(5),
        learned=learned,
        tilts=tilts,
        settings=_settings(imputer, encoded.x.shape, began),
    )


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


def _settings(imputer: LatentImputer, shape: tuple[int, ...], began: float) -> Settings:
    """Choose numbers of chains and rounds that `max_time` allows."""
    fraction = 1.0
    if imputer.max_time is not None:
        left = float(imputer.max_time) - (time.perf_counter() - began)
        seconds = max(left, FRACTION_OF_TIME * float(imputer.max_time))
        fraction = min(1.0, seconds * OPERATIONS_PER_SECOND / 2e11)
    return settings_for(shape[0], shape[1], imputer.numeric_draws, fraction=fraction)


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
