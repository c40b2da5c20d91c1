"""Mask models p(m_j | x): missingness that depends on the values of all columns."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from psmvae.nn.mask import MaskShape, log_odds
from psmvae.nn.network import MLP, Linear
from psmvae.nn.noise import Noise
from psmvae.nn.settings import JointMask, Network


class JointMaskModule(nn.Module):
    """What `JointMask` builds: a linear layer or a small network from all of x to log odds."""

    depends_on_x = True
    joint = True
    as_input = True

    def __init__(self, settings: JointMask, shape: MaskShape, noise: Noise) -> None:
        super().__init__()
        self.columns = shape.columns
        sizes = (shape.n_members, shape.columns.n_features, shape.columns.n_columns)
        self.net: Linear | MLP
        if settings.hidden:
            network = Network(width=settings.hidden, depth=1, residual=False, linear=False)
            self.net = MLP(*sizes, network=network, noise=noise, start=0.1)
        else:
            self.net = Linear(*sizes, noise, gain=0.1)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        self.odds = nn.Parameter(log_odds(shape.missing_rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Each set at its own rates."""
        self.odds.copy_(log_odds(rate)[:, None, None])

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log sigmoid of the log odds, for all columns."""
        del z, at
        if x is None:
            raise ValueError("a mask model of x needs x")
        score = self.net(self.columns.features(x)) + self.odds
        return logsigmoid(score), logsigmoid(-score)
