"""Predictions of cells from the other cells of their rows."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from psmvae.inference.memory import rows_per_chunk
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE


def predict_hidden(
    model: GMVAE,
    x: Tensor,
    m: Tensor,
    held_out: Tensor | None,
    columns: Collection[int] | None = None,
) -> list[Tensor]:
    """Predict every cell of ``x, m`` ``(row, column)`` as if it was missing.

    Cells of columns that are not in ``columns`` are predicted only where they are missing.

    Returns for each column of the model the mean ``(row,)``, or the probabilities ``(row, level)``.
    Members are averaged; where a cell was held out from the training of some members, ``held_out``
    ``(member, row, column)``, only those are.
    """
    found = [] if columns is None else predict_missing(model, x, m)
    for j in range(x.shape[1]) if columns is None else columns:
        hidden = m.clone()
        hidden[:, j] = 0.0
        each = _predict(model, x, hidden, j)
        weight = torch.ones_like(each)
        if held_out is not None:
            own = held_out[:, :, j].to(each)
            own = torch.where(own.any(0), own, 1.0)
            weight = own.view(*own.shape, *[1] * (each.ndim - 2)).expand(each.shape)
        mean = (each * weight).sum(0) / weight.sum(0)
        if columns is None:
            found.append(mean)
        else:
            found[j] = mean
    return found


def predict_missing(model: GMVAE, x: Tensor, m: Tensor) -> list[Tensor]:
    """Predict the missing cells of ``x, m``: as `predict_hidden`, for missing cells only."""
    expected = _expected(model, x, m).mean(0)
    return [_of_column(model, expected, j) for j in range(x.shape[1])]


def split_columns(model: GMVAE, expected: Tensor) -> list[Tensor]:
    """Split E[statistics] ``(row, statistic)`` into means or probabilities of the columns."""
    return [_of_column(model, expected, j) for j in range(model.inputs.n_columns)]


def _predict(model: GMVAE, x: Tensor, m: Tensor, j: int) -> Tensor:
    """Predictions of column j by each member, ``(member, row)`` or ``(member, row, level)``."""
    return _of_column(model, _expected(model, x, m), j)


def _expected(model: GMVAE, x: Tensor, m: Tensor) -> Tensor:
    size, n_members = rows_per_chunk(model, 1), model.config.n_members
    parts = [
        model.predict(Batch.of(*(part.expand(n_members, -1, -1) for part in pair)))
        for pair in zip(x.split(size), m.split(size), strict=True)
    ]
    return torch.cat(parts, 1)


def _of_column(model: GMVAE, expected: Tensor, j: int) -> Tensor:
    """Return the mean or the probabilities of column j from E[statistics]."""
    if bool(model.inputs.is_number[j]):
        return model.inputs.point(expected)[..., j]
    pairs = zip(model.inputs.split(expected, "statistics"), model.inputs.slices(), strict=True)
    for part, at in pairs:
        if at.start <= j < at.stop:
            return part[..., j - at.start, :]
    raise IndexError(j)
