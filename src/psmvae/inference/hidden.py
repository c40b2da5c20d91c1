"""Predictions of cells from the other cells of their rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from psmvae.inference.memory import rows_per_chunk
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE

# Predictions of hidden cells take this many passes at most: in tables of more columns, several
# columns are hidden at once.
MAX_PASSES = 256


def predict_hidden(
    model: GMVAE,
    x: Tensor,
    m: Tensor,
    held_out: Tensor | None,
    columns: Collection[int] | None = None,
) -> list[Tensor]:
    """Predict every cell of ``x, m`` ``(row, column)`` as if it was missing.

    Cells of columns that are not in ``columns`` are predicted only where they are missing. In
    tables of many columns, up to 1 in `MAX_PASSES` of the other cells of a row are hidden too.

    Returns for each column of the model the mean ``(row,)``, or the probabilities ``(row, level)``.
    Members are averaged; where a cell was held out from the training of some members, ``held_out``
    ``(member, row, column)``, only those are.
    """
    wanted = list(range(x.shape[1]) if columns is None else columns)
    found = dict(enumerate(predict_missing(model, x, m))) if len(wanted) < x.shape[1] else {}
    n_passes = min(len(wanted), MAX_PASSES)
    # neighbouring columns, which are often related, are hidden in different passes
    for together in (wanted[start::n_passes] for start in range(n_passes)):
        hidden = m.clone()
        hidden[:, together] = 0.0
        predicted = _of_columns(model, _expected(model, x, hidden), together)
        for j, each in zip(together, predicted, strict=True):
            found[j] = _average(each, None if held_out is None else held_out[:, :, j])
    return [found[j] for j in range(x.shape[1])]


def predict_missing(model: GMVAE, x: Tensor, m: Tensor) -> list[Tensor]:
    """Predict the missing cells of ``x, m``: as `predict_hidden`, for missing cells only."""
    return split_columns(model, _expected(model, x, m).mean(0))


def split_columns(model: GMVAE, expected: Tensor) -> list[Tensor]:
    """Split E[statistics] ``(row, statistic)`` into means or probabilities of the columns."""
    return _of_columns(model, expected, range(model.inputs.n_columns))


def _average(each: Tensor, held_out: Tensor | None) -> Tensor:
    """Average predictions ``(member, row, ...)``, over the members that did not see the cell."""
    weight = torch.ones_like(each)
    if held_out is not None:
        own = held_out.to(each)
        own = torch.where(own.any(0), own, 1.0)
        weight = own.view(*own.shape, *[1] * (each.ndim - 2)).expand(each.shape)
    return (each * weight).sum(0) / weight.sum(0)


def _expected(model: GMVAE, x: Tensor, m: Tensor) -> Tensor:
    size, n_members = rows_per_chunk(model, 1), model.config.n_members
    parts = [
        model.predict(Batch.of(*(part.expand(n_members, -1, -1) for part in pair)))
        for pair in zip(x.split(size), m.split(size), strict=True)
    ]
    return torch.cat(parts, 1)


def _of_columns(model: GMVAE, expected: Tensor, columns: Sequence[int]) -> list[Tensor]:
    """Return the means or the probabilities of columns from E[statistics]."""
    point = model.inputs.point(expected)
    is_number = model.inputs.is_number.tolist()
    # ends of the slices, to find that of a column
    parts, slices = model.inputs.split(expected, "statistics"), model.inputs.slices()
    stops = [at.stop for at in slices]
    found = []
    for j in columns:
        if is_number[j]:
            found.append(point[..., j])
        else:
            k = bisect_right(stops, j)
            found.append(parts[k][..., j - slices[k].start, :])
    return found
