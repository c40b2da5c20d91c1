"""Held-out observed cells: what is learned from, and the error that stops training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise

if TYPE_CHECKING:
    from psmvae.training.recipe import Trainable

# Rows that measure the held-out error: enough for three digits, little next to an epoch.
MAX_HELD_OUT_ROWS = 4096
ROWS_AT_ONCE = 512
# Of a column where what is hidden is to be like what is missing: enough must stay to see.
MOST_HIDDEN = 0.5


class Table:
    """The training table on the device: ``x``, and for each member what it may learn from.

    ``x`` is ``(1, row, column)`` where members learn from one table and ``(member, row, column)``
    where each has its own. ``m`` ``(member, row, column)`` is 1 on observed cells that are not held
    out for that member; ``known`` is 0 on held-out cells.

    With ``bootstrap`` each member has rows drawn with replacement; ``picks`` ``(member, row)`` says
    which. Cells are held out before that: in all copies of a row or in none. Cells are held out in
    the first ``validation_rows`` rows only, where given.
    """

    picks: Tensor | None = None

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
        # copies of a row may be anywhere
        self.validation_rows = None if bootstrap else validation_rows
        seen = m.expand(n_members, -1, -1)
        held = (
            noise.keep(seen.shape, validation_fraction) & (seen > 0)
            if validation_fraction > 0
            else seen < 0
        )
        if validation_rows is not None:
            held[:, validation_rows:] = False
        # a column must keep an observed value to learn from
        alone = (seen * ~held).sum(1, keepdim=True) == 0
        held = held & ~alone
        observed = torch.where(m > 0, x, 0.0)
        self.x = observed if observed.ndim == 3 else observed.unsqueeze(0)
        self.m = seen * ~held
        self.known = (~held).to(m.dtype)
        self.held = held
        if bootstrap:
            picks = noise.picks(n_members, seen.shape[1])
            # a member whose rows leave a column without a value has the table itself
            lost = (picked(self.m, picks).sum(1) == 0).any(1, keepdim=True)
            self.picks = picks.where(~lost, torch.arange(seen.shape[1], device=picks.device))
            for name in ("x", "m", "known", "held"):
                setattr(self, name, picked(getattr(self, name), self.picks))

    @property
    def n_rows(self) -> int:
        """Rows of a member's table."""
        return self.x.shape[1]

    @property
    def measures(self) -> bool:
        """Whether every member has held-out cells where the error is measured."""
        return bool(self.held[:, :MAX_HELD_OUT_ROWS].flatten(1).any(1).all())

    def measured(self) -> Iterator[tuple[Batch, Tensor]]:
        """Rows that the error is measured by, and which cells of theirs are held out."""
        n_rows = min(self.n_rows, MAX_HELD_OUT_ROWS, self.validation_rows or self.n_rows)
        for start in range(0, n_rows, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, n_rows))
            yield self.all_rows(rows), self.held[:, rows]

    def like_missing(self, input_mask_rate: float) -> Tensor:
        """Shares of columns to hide, so that hidden cells are where cells are missing.

        In proportion to what is missing of a column, ``input_mask_rate`` of all cells unless that is more than
        MOST_HIDDEN of a column's: ``(member, 1, column)``.
        """
        observed = (self.m + self.held).mean(1, keepdim=True)
        both = ((1 - observed) * observed).sum(-1, keepdim=True)
        share = input_mask_rate * observed.sum(-1, keepdim=True) * (1 - observed) / both
        return torch.where(both > 0, share, input_mask_rate).clamp(max=MOST_HIDDEN)

    def batch(
        self, rows: Tensor, input_mask_rate: float, noise: Noise, *, columns: Tensor | None = None
    ) -> Batch:
        """Rows ``(member, k)`` with a random share of each hidden from the encoder.

        The share is at most ``input_mask_rate``. With ``columns``, shares ``(member, 1, column)``, half of the
        rows have these hidden, and the others ``input_mask_rate`` of all columns.
        """
        index = rows.unsqueeze(-1).expand(-1, -1, self.x.shape[-1])
        x = self.x[0][rows] if self.x.shape[0] == 1 else self.x.gather(1, index)
        m = self.m.gather(1, index)
        visible = m
        if input_mask_rate > 0:
            share = noise.uniform(*rows.shape, 1)
            share = (
                input_mask_rate * share
                if columns is None
                else torch.where(share < 0.5, columns, input_mask_rate)
            )
            visible = m * (noise.uniform(*m.shape) >= share)
        return Batch(x, m, visible, self.known.gather(1, index))

    def all_rows(self, rows: slice) -> Batch:
        """Rows of every member with all they may see."""
        m = self.m[:, rows]
        return Batch(self.x[:, rows].expand(m.shape), m, m, self.known[:, rows])


def picked(values: Tensor, picks: Tensor) -> Tensor:
    """``values[e, picks[e, i]]``, ``(member, row, column)``; members may share their values."""
    if values.ndim == 2 or values.shape[0] == 1:
        return values.reshape(values.shape[-2:])[picks]
    return values.gather(1, picks.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


@torch.no_grad()
def validation_error(model: Trainable, table: Table) -> Tensor:
    """Root mean squared error of the held-out cells of each member, in standard deviations."""
    total = table.x.new_zeros(table.m.shape[0])
    n_cells = torch.zeros_like(total)
    for batch, held in table.measured():
        total += (model.inputs.error(model.predict(batch), batch.x) * held).sum((1, 2))
        n_cells += held.sum((1, 2))
    return (total / n_cells).sqrt()
