"""The training table on the device, split into training cells and validation cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise

# Rows that measure the validation error: enough for three digits, and cheap next to an epoch.
MAX_VALIDATION_ROWS = 4096
VALIDATION_BATCH_SIZE = 512
# Upper limit of the masking rate of a column whose rate follows its missing rate.
MAX_COLUMN_RATE = 0.5


class TrainingData:
    """The training table of every member, and which cells each member may learn from.

    The given ``x`` and mask ``m`` (1 observed, 0 missing) are ``(row, column)`` if the members
    share a table, or ``(member, row, column)``; missing cells of ``x`` may hold any value. A
    fraction of the observed cells, in the first ``validation_rows`` rows only if that is given, is
    held out to measure the validation error.

    ``x`` is 0 on missing cells, ``(1, row, column)`` or ``(member, row, column)``. The others are
    ``(member, row, column)``: ``m`` is 1 on observed cells other than validation cells,
    ``validation_mask`` is True on validation cells and ``known`` is 0 there, since their mask is
    not scored either. ``observed`` is the mask before cells were held out;
    ``separate`` is whether each member was given its own table.
    """

    def __init__(
        self,
        x: Tensor,
        m: Tensor,
        n_members: int,
        validation_fraction: float,
        noise: Noise,
        *,
        validation_rows: int | None = None,
    ) -> None:
        observed = m.expand(n_members, -1, -1)
        validation_mask = _validation_cells(observed, validation_fraction, validation_rows, noise)
        values = torch.where(m > 0, x, 0.0)
        self.x = values.reshape(-1, *values.shape[-2:])
        self.separate = x.ndim == 3
        self.m = observed * ~validation_mask
        self.n_members, self.n_rows = self.m.shape[:2]
        self.known = (~validation_mask).to(m.dtype)
        self.validation_mask, self.observed = validation_mask, m
        self.validation_rows = validation_rows

    @property
    def shared(self) -> bool:
        """Whether all members have the same rows."""
        return self.x.shape[0] == 1

    @cached_property
    def has_validation_cells(self) -> bool:
        """Whether the validation error of every member can be measured."""
        return bool(self.validation_mask[:, :MAX_VALIDATION_ROWS].flatten(1).any(1).all())

    def validation_batches(
        self, n_rows: int | None = None, size: int = VALIDATION_BATCH_SIZE
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Iterate over the first rows; by default over those that measure the validation error."""
        if n_rows is None:
            n_rows = min(self.n_rows, MAX_VALIDATION_ROWS, self.validation_rows or self.n_rows)
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            yield self.unmasked_batch(rows), self.validation_mask[:, rows]

    def column_mask_rates(self, input_mask_rate: float) -> Tensor:
        """Masking rates of the columns that mask cells where cells are missing."""
        observed = (self.m + self.validation_mask).mean(1, keepdim=True)
        both = ((1 - observed) * observed).sum(-1, keepdim=True)
        rates = input_mask_rate * observed.sum(-1, keepdim=True) * (1 - observed) / both
        return torch.where(both > 0, rates, input_mask_rate).clamp(max=MAX_COLUMN_RATE)

    def batch(
        self, rows: Tensor, input_mask_rate: float, noise: Noise, column_rates: Tensor | None = None
    ) -> Batch:
        """Make a training batch with some observed cells masked in the encoder's input."""
        x, known = _take_rows(self.x, rows), _take_rows(self.known, rows)
        m = visible = _take_rows(self.m, rows)
        if input_mask_rate > 0:
            uniform = noise.uniform(*rows.shape, 1)
            rate = input_mask_rate * uniform
            if column_rates is not None:
                rate = torch.where(uniform < 0.5, column_rates, input_mask_rate)
            visible = m * (noise.uniform(*m.shape) >= rate)
        return Batch(x, m, visible, known)

    def unmasked_batch(self, rows: slice) -> Batch:
        """Make a batch of consecutive rows in which the encoder sees every training cell."""
        m = self.m[:, rows]
        return Batch(self.x[:, rows].expand(m.shape), m, m, self.known[:, rows])


def _take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Index the rows of each member."""
    if values.ndim == 2 or values.shape[0] == 1:
        return values.reshape(values.shape[-2:])[rows]
    return values.gather(1, rows.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def _validation_cells(
    observed: Tensor, fraction: float, n_rows: int | None, noise: Noise
) -> Tensor:
    """Choose the validation cells among the observed ones, ``(member, row, column)``."""
    chosen = noise.keep(observed.shape, fraction) & (observed > 0) if fraction > 0 else observed < 0
    if n_rows is not None:
        chosen[:, n_rows:] = False
    # every column keeps an observed value to learn from
    used_up = (observed * ~chosen).sum(1, keepdim=True) == 0
    return chosen & ~used_up
