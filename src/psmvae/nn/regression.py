"""What the visible cells say of the others directly, without a latent in between."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from psmvae.nn.columns import Columns
from psmvae.nn.factors import Sizes
from psmvae.nn.network import MLP
from psmvae.nn.noise import Noise
from psmvae.nn.quantile_encoding import Places
from psmvae.nn.settings import Network


class Regression(nn.Module):
    """The middle of p(x_mis | z, r, x_obs), as outputs of p(x | z, r): a regression on x_obs.

    Parameters
    ----------
    sizes : Sizes
        Those of the model.
    columns : Columns
        The columns of x.
    network : Network
        The architecture.
    noise : Noise
        Where first weights come from.
    """

    def __init__(self, sizes: Sizes, columns: Columns, network: Network, noise: Noise) -> None:
        super().__init__()
        self.places = Places(columns, sizes.n_members)
        self.net = MLP(
            sizes.n_members,
            sizes.n_features + sizes.n_columns + self.places.n_features,
            columns.n_outputs,
            network=network,
            noise=noise,
            # one set is none, and has no bias of its own
            n_sets=sizes.n_sets if sizes.n_sets > 1 else 0,
        )

    def forward(self, features: Tensor, x: Tensor, visible: Tensor, noise: Noise | None) -> Tensor:
        """Outputs ``(member, row, 1, set, output)``; ``features`` are 0 where not visible."""
        inputs = self.inputs(features, x, visible)
        outputs: Tensor = self.net(inputs[:, :, None, None], noise)
        return outputs

    def inputs(self, features: Tensor, x: Tensor, visible: Tensor) -> Tensor:
        """What the network sees, ``(member, row, input)``."""
        return torch.cat([features, visible, self.places(x, visible)], -1)
