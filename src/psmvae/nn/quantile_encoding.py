"""Piecewise linear encoding of numbers by the quantiles of their column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from psmvae.nn.columns import Columns

# Number of intervals of a column: MAX_BINS, fewer if all columns together would have more than
# MAX_FEATURES, and none if that leaves fewer than MIN_BINS.
MAX_BINS, MIN_BINS, MAX_FEATURES = 16, 4, 1024
# Quantiles are computed from so many rows, which determines them to two digits.
MAX_ROWS = 10_000


class QuantileEncoding(nn.Module):
    """Features of each number x: clamp((x − a) / (b − a), 0, 1) − ½ for quantile intervals [a, b].

    A linear layer on these features is a piecewise linear function of x with knots at the quantiles
    of the column. Networks learn steps and non-monotone functions from them in fewer steps than
    from x itself (Gorishniy, Rubachev and Babenko, On Embeddings for Numerical Features in Tabular
    Deep Learning, NeurIPS 2022). In a column with few distinct values the intervals lie between
    neighbouring values.

    Parameters
    ----------
    columns : Columns
        The columns of the table. Only numeric columns are encoded.
    n_members : int
        Members of the ensemble.
    """

    at: Tensor
    # (member, row, numeric column, interval); unused intervals of a column have slope 0
    low: Tensor
    slope: Tensor

    def __init__(self, columns: Columns, n_members: int) -> None:
        super().__init__()
        at = torch.nonzero(columns.is_number)[:, 0]
        n_bins = min(MAX_BINS, MAX_FEATURES // max(1, len(at)))
        self.n_bins = n_bins if n_bins >= MIN_BINS else 0
        self.n_features = len(at) * self.n_bins
        self.register_buffer("at", at, persistent=False)
        shape = (n_members, 1, len(at), self.n_bins)
        self.register_buffer("low", torch.zeros(shape))
        self.register_buffer("slope", torch.zeros(shape))

    @torch.no_grad()
    def start(self, x: Tensor, m: Tensor) -> None:
        """Compute quantiles of the observed cells of ``x, m`` ``(member, row, column)``."""
        x, m = (part[:, :MAX_ROWS, self.at].cpu() for part in (x, m))
        levels = torch.linspace(0, 1, self.n_bins + 1, dtype=torch.float64)
        for member in range(x.shape[0]):
            for j in range(x.shape[2]):
                values = x[member, m[member, :, j] > 0, j].double()
                distinct = values.unique()
                if len(distinct) > self.n_bins + 1:
                    distinct = values.quantile(levels).unique()
                n = max(0, len(distinct) - 1)
                self.low[member, 0, j, :n] = distinct[:n].to(self.low)
                self.slope[member, 0, j, :n] = (1 / distinct.diff()).to(self.slope)

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        """Features ``(member, row, feature)``, 0 for cells that are not visible.

        ``x`` and ``visible`` are ``(member, row, column)``.
        """
        if len(self.at) < x.shape[-1]:
            x, visible = x[..., self.at], visible[..., self.at]
        x, visible = x.unsqueeze(-1), visible.unsqueeze(-1)
        encoded = ((x - self.low) * self.slope).clamp(0.0, 1.0) - 0.5
        return (encoded * visible).flatten(-2)
