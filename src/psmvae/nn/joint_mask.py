"""The module of `psmvae.nn.settings.JointMask`: p(m_j | x)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from psmvae.nn.architecture import Network
from psmvae.nn.mask import MaskModule, MaskShape, rate_logits
from psmvae.nn.network import MLP, Linear
from psmvae.nn.noise import Noise


class JointMaskModule(MaskModule):
    """p(m_j missing | x, r) = sigmoid(f_j(x) + b_rj) with f linear or a network.

    Parameters
    ----------
    shape : MaskShape
        Sizes of the model.
    noise : Noise
        Random numbers for initial weights.
    hidden : int
        Units of the hidden layer of f. 0 makes f linear.
    """

    depends_on_x = True
    joint = True

    def __init__(self, shape: MaskShape, noise: Noise, *, hidden: int) -> None:
        super().__init__()
        self.columns = shape.columns
        sizes = (shape.n_members, shape.columns.n_features, shape.columns.n_columns)
        self.net: Linear | MLP
        if hidden:
            network = Network(width=hidden, depth=1, residual=False, linear=False)
            self.net = MLP(*sizes, network=network, noise=noise, start=0.1)
        else:
            self.net = Linear(*sizes, noise, gain=0.1)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        self.logits = nn.Parameter(rate_logits(shape.missing_rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Set b to the logits of the rates ``(member, set, column)``."""
        self.logits.copy_(rate_logits(rate)[:, None, None])

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed) of all columns.

        ``x`` and both results are ``(member, row, draw, set, column)``.
        """
        del z, at
        if x is None:
            raise ValueError("A mask model of x needs x.")
        logits = self.net(self.columns.features(x)) + self.logits
        return logsigmoid(logits), logsigmoid(-logits)
