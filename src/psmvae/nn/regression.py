"""Regression of x_mis on x_obs, without latent variables."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from psmvae.nn.architecture import Network
from psmvae.nn.columns import Columns
from psmvae.nn.factors import Sizes
from psmvae.nn.network import MLP
from psmvae.nn.noise import Noise

# Quantile intervals per numeric column: at most MAX_BINS, and at most MAX_FEATURES over all
# columns. If fewer than MIN_BINS per column remain, the encoding is not used.
MAX_BINS, MIN_BINS, MAX_FEATURES = 16, 4, 1024
# Maximum number of rows for computing quantiles, enough for two digits.
MAX_ROWS = 10_000


class QuantileEncoding(nn.Module):
    """Features of each number x: clamp((x − a) / (b − a), 0, 1) − ½ for quantile intervals [a, b].

    A linear layer on these features is a piecewise linear function of x with knots at the quantiles
    of the column. Networks learn steps and non-monotone functions from them in fewer steps than
    from x itself (Gorishniy, Rubachev and Babenko, On Embeddings for Numerical Features in Tabular
    Deep Learning, NeurIPS 2022). Few distinct values are themselves the knots.
    """

    at: Tensor
    # (member, row, numeric column, interval); unused intervals of a column have slope 0
    low: Tensor
    slope: Tensor

    def __init__(self, columns: Columns, n_members: int) -> None:
        super().__init__()
        numeric = [j for j, is_number in enumerate(columns.numbers) if is_number]
        at = torch.tensor(numeric, dtype=torch.int64)
        n_bins = min(MAX_BINS, MAX_FEATURES // max(1, len(at)))
        self.n_bins = n_bins if n_bins >= MIN_BINS else 0
        self.n_features = len(at) * self.n_bins
        self.register_buffer("at", at, persistent=False)
        for name in ("low", "slope"):
            self.register_buffer(
                name, torch.zeros(n_members, 1, len(at), self.n_bins, dtype=torch.float32)
            )

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
        """Features ``(member, row, feature)`` of x ``(member, row, column)``, 0 if not visible."""
        if len(self.at) < x.shape[-1]:
            x, visible = x[..., self.at], visible[..., self.at]
        encoded = ((x.unsqueeze(-1) - self.low) * self.slope).clamp(0.0, 1.0) - 0.5
        return (encoded * visible.unsqueeze(-1)).flatten(-2)


class Regression(nn.Module):
    """The conditional mean of x_mis given x_obs and r; z models the residuals around it.

    Its outputs are decoder outputs, the parameters of p(x | z, r).
    """

    def __init__(self, sizes: Sizes, columns: Columns, network: Network, noise: Noise) -> None:
        super().__init__()
        self.quantiles = QuantileEncoding(columns, sizes.n_members)
        n_in = sizes.n_features + sizes.n_columns + self.quantiles.n_features
        # with one set r is constant
        n_sets = sizes.n_sets if sizes.n_sets > 1 else 0
        shape = (sizes.n_members, n_in, columns.n_outputs)
        self.net = MLP(*shape, network, noise, n_sets=n_sets)

    def start(self, x: Tensor, m: Tensor) -> None:
        """Compute the quantiles of the observed cells of ``x, m`` ``(member, row, column)``."""
        self.quantiles.start(x, m)

    def forward(self, features: Tensor, x: Tensor, visible: Tensor, noise: Noise | None) -> Tensor:
        """Decoder outputs ``(member, row, 1, set, output)``; features are 0 where not visible."""
        inputs = torch.cat([features, visible, self.quantiles(x, visible)], -1)
        outputs: Tensor = self.net(inputs[:, :, None, None], noise)
        return outputs
