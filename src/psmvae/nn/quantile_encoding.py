"""Where a number lies among the numbers of its column, as an encoder is shown it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from psmvae.nn.columns import Columns

# Intervals of a column, fewer where there are many columns; below the fewest there are none.
MOST_BINS, FEWEST_BINS, MOST_FEATURES = 16, 4, 1024
# Rows that quantiles are taken of: enough for two digits.
MAX_ROWS = 10_000


class Places(nn.Module):
    """A ramp for each interval between quantiles: 0 below it, 1 above, linear inside.

    A layer of ramps is a piecewise linear function of each number with its bends where the numbers
    are. Networks learn jumps and humps from it in a fraction of the steps that they need to bend a
    straight line (Gorishniy, Rubachev and Babenko, NeurIPS 2022). A column with few distinct values
    has a ramp between any two neighbours.

    Parameters
    ----------
    columns : Columns
        The columns of the table; those with levels have no ramps.
    n_members : int
        Members stacked.
    """

    at: Tensor
    # of axes (member, row, number, interval); an interval that a column does not need has slope 0
    low: Tensor
    slope: Tensor

    def __init__(self, columns: Columns, n_members: int) -> None:
        super().__init__()
        at = torch.nonzero(columns.is_number)[:, 0]
        n_bins = min(MOST_BINS, MOST_FEATURES // max(1, len(at)))
        self.n_bins = n_bins if n_bins >= FEWEST_BINS else 0
        self.n_features = len(at) * self.n_bins
        self.register_buffer("at", at, persistent=False)
        shape = (n_members, 1, len(at), self.n_bins)
        self.register_buffer("low", torch.zeros(shape))
        self.register_buffer("slope", torch.zeros(shape))

    @torch.no_grad()
    def start(self, x: Tensor, m: Tensor) -> None:
        """Take the quantiles of the observed cells of ``x, m`` ``(member, row, column)``."""
        x, m = (part[:, :MAX_ROWS, self.at].cpu() for part in (x, m))
        shares = torch.linspace(0, 1, self.n_bins + 1, dtype=torch.float64)
        for member in range(x.shape[0]):
            for j in range(x.shape[2]):
                values = x[member, m[member, :, j] > 0, j].double()
                distinct = values.unique()
                if len(distinct) > self.n_bins + 1:
                    distinct = values.quantile(shares).unique()
                n = max(0, len(distinct) - 1)
                self.low[member, 0, j, :n] = distinct[:n].to(self.low)
                self.slope[member, 0, j, :n] = (1 / distinct.diff()).to(self.slope)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """Flat ramps in [-1/2, 1/2], 0 where a cell is not visible: ``(member, row, feature)``."""
        if len(self.at) < x.shape[-1]:
            x, visible = x[..., self.at], visible[..., self.at]
        x, visible = x.unsqueeze(-1), visible.unsqueeze(-1)
        ramps = ((x - self.low) * self.slope).clamp(0.0, 1.0) - 0.5
        return (ramps * visible).flatten(-2)
