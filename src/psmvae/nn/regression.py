"""Regression of x_mis on x_obs, without latent variables."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from psmvae.nn.architecture import Network
from psmvae.nn.columns import Columns
from psmvae.nn.factors import Sizes
from psmvae.nn.network import MLP
from psmvae.nn.noise import Noise
from psmvae.nn.quantile_encoding import QuantileEncoding


class Regression(nn.Module):
    """The conditional mean of x_mis given x_obs and r; z models the residuals around it.

    Its outputs are decoder outputs, the parameters of p(x | z, r).

    Parameters
    ----------
    sizes : Sizes
        Sizes of the model.
    columns : Columns
        The columns of x.
    network : Network
        The architecture.
    noise : Noise
        Random numbers for initial weights.
    """

    def __init__(self, sizes: Sizes, columns: Columns, network: Network, noise: Noise) -> None:
        super().__init__()
        self.quantiles = QuantileEncoding(columns, sizes.n_members)
        self.net = MLP(
            sizes.n_members,
            sizes.n_features + sizes.n_columns + self.quantiles.n_features,
            columns.n_outputs,
            network=network,
            noise=noise,
            # with one set r is constant
            n_sets=sizes.n_sets if sizes.n_sets > 1 else 0,
        )

    def start(self, x: Tensor, m: Tensor) -> None:
        """Compute the quantiles of the observed cells of ``x, m`` ``(member, row, column)``."""
        self.quantiles.start(x, m)

    def forward(self, features: Tensor, x: Tensor, visible: Tensor, noise: Noise | None) -> Tensor:
        """Decoder outputs ``(member, row, 1, set, output)``.

        ``features`` ``(member, row, feature)`` are 0 where not visible; ``x`` and ``visible`` are
        ``(member, row, column)``. ``noise`` is given in training, for dropout.
        """
        inputs = self.inputs(features, x, visible)
        outputs: Tensor = self.net(inputs[:, :, None, None], noise)
        return outputs

    def inputs(self, features: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """Network inputs, ``(member, row, input)``."""
        return torch.cat([features, visible, self.quantiles(x, visible)], -1)
