"""The training table on the device, split into training cells and validation cells."""

from __future__ import annotations

from collections.abc import Iterator

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

    Parameters
    ----------
    x : Tensor
        Model values, ``(row, column)`` if the members share a table and ``(member, row, column)``
        if each has its own. Missing cells may hold any value.
    m : Tensor
        The mask, of the same shape: 1 observed, 0 missing.
    n_members : int
        Members of the model.
    validation_fraction : float
        Fraction of the observed cells that is held out to measure the validation error.
    noise : Noise
        Chooses validation cells and bootstrap rows.
    bootstrap : bool, default=False
        Draw the rows of each member with replacement. Validation cells are chosen before that: all
        copies of a row have the same ones.
    validation_rows : int, optional
        Choose validation cells in the first so many rows only.

    Attributes
    ----------
    x : Tensor
        ``(1, row, column)`` or ``(member, row, column)``; 0 on missing cells.
    m : Tensor
        ``(member, row, column)``: 1 on observed cells other than the member's validation cells.
    known : Tensor
        ``(member, row, column)``: 0 on validation cells, whose mask is not scored either.
    validation_mask : Tensor
        ``(member, row, column)``: True on validation cells.
    observed : Tensor
        The mask before validation cells were held out. Without bootstrap, ``m`` as it was given.
    bootstrap_rows : Tensor or None
        ``(member, row)``: the row of the given table that each row is a copy of.
    """

    def __init__(
        self,
        x: Tensor,
        m: Tensor,
        n_members: int,
        validation_fraction: float,
        noise: Noise,
        *,
        bootstrap: bool = False,
        validation_rows: int | None = None,
    ) -> None:
        observed = m.expand(n_members, -1, -1)
        validation_mask = _validation_cells(observed, validation_fraction, validation_rows, noise)
        values = torch.where(m > 0, x, 0.0)
        self.x = values if values.ndim == 3 else values.unsqueeze(0)
        self.m = observed * ~validation_mask
        self.known = (~validation_mask).to(m.dtype)
        self.validation_mask = validation_mask
        self.observed = m
        # after a bootstrap, copies of the first rows may be anywhere
        self.validation_rows = None if bootstrap else validation_rows
        self.bootstrap_rows: Tensor | None = None
        if bootstrap:
            self._resample(noise)

    @property
    def n_members(self) -> int:
        """Number of members."""
        return self.m.shape[0]

    @property
    def n_rows(self) -> int:
        """Rows of a member's table."""
        return self.x.shape[1]

    @property
    def shared(self) -> bool:
        """Whether all members have the same rows."""
        return self.x.shape[0] == 1

    @property
    def has_validation_cells(self) -> bool:
        """Whether the validation error of every member can be measured."""
        return bool(self.validation_mask[:, :MAX_VALIDATION_ROWS].flatten(1).any(1).all())

    def validation_batches(self) -> Iterator[tuple[Batch, Tensor]]:
        """Iterate over the rows that measure the validation error."""
        n_rows = min(self.n_rows, MAX_VALIDATION_ROWS, self.validation_rows or self.n_rows)
        for start in range(0, n_rows, VALIDATION_BATCH_SIZE):
            rows = slice(start, min(start + VALIDATION_BATCH_SIZE, n_rows))
            yield self.unmasked_batch(rows), self.validation_mask[:, rows]

    def column_mask_rates(self, input_mask_rate: float) -> Tensor:
        """Masking rates of the columns that mask cells where cells are missing."""
        observed = (self.m + self.validation_mask).mean(1, keepdim=True)
        both = ((1 - observed) * observed).sum(-1, keepdim=True)
        rates = input_mask_rate * observed.sum(-1, keepdim=True) * (1 - observed) / both
        return torch.where(both > 0, rates, input_mask_rate).clamp(max=MAX_COLUMN_RATE)

    def batch(
        self,
        rows: Tensor,
        input_mask_rate: float,
        noise: Noise,
        *,
        column_rates: Tensor | None = None,
    ) -> Batch:
        """Make a training batch with some observed cells masked in the encoder's input."""
        index = rows.unsqueeze(-1).expand(-1, -1, self.x.shape[-1])
        x = self.x[0][rows] if self.shared else self.x.gather(1, index)
        m = self.m.gather(1, index)
        visible = m
        if input_mask_rate > 0:
            uniform = noise.uniform(*rows.shape, 1)
            rate = (
                input_mask_rate * uniform
                if column_rates is None
                else torch.where(uniform < 0.5, column_rates, input_mask_rate)
            )
            visible = m * (noise.uniform(*m.shape) >= rate)
        return Batch(x, m, visible, self.known.gather(1, index))

    def unmasked_batch(self, rows: slice) -> Batch:
        """Make a batch of consecutive rows in which the encoder sees every training cell."""
        m = self.m[:, rows]
        return Batch(self.x[:, rows].expand(m.shape), m, m, self.known[:, rows])

    def _resample(self, noise: Noise) -> None:
        """Replace the rows of each member by rows drawn with replacement."""
        n_rows = self.m.shape[1]
        drawn = noise.picks(self.n_members, n_rows)
        # a member whose draw leaves a column without a value keeps the table itself
        lost = (take_rows(self.m, drawn).sum(1) == 0).any(1, keepdim=True)
        rows = drawn.where(~lost, torch.arange(n_rows, device=drawn.device))
        self.x = take_rows(self.x, rows)
        self.m = take_rows(self.m, rows)
        self.known = take_rows(self.known, rows)
        self.validation_mask = take_rows(self.validation_mask, rows)
        self.observed = take_rows(self.observed, rows)
        self.bootstrap_rows = rows


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
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
