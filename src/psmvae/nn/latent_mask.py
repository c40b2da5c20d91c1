"""The module of `psmvae.nn.settings.LatentMask`: p(m_j | z, r)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from psmvae.nn.mask import MaskModule, MaskShape, rate_logits
from psmvae.nn.network import MLP, select_sets
from psmvae.nn.noise import Noise


class LatentMaskModule(MaskModule):
    """p(m_j missing | z, r) = sigmoid(f_j(z, r) + b_rj) with a network f."""

    takes_sets = True

    def __init__(self, shape: MaskShape, noise: Noise) -> None:
        super().__init__()
        n_columns = shape.columns.n_columns
        self.net = MLP(
            shape.n_members,
            shape.n_latent,
            n_columns,
            network=shape.network,
            noise=noise,
            n_sets=shape.n_sets,
            set_at="first",
        )
        sets = (shape.n_members, 1, 1, shape.n_sets)
        self.logits = nn.Parameter(rate_logits(shape.missing_rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Set b to the logits of the rates ``(member, set, column)``."""
        self.logits.copy_(rate_logits(rate)[:, None, None])

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed), ``(member, row, draw, set, column)``."""
        del x
        logits = (self.net(z) + self.logits)[..., at]
        return logsigmoid(logits), logsigmoid(-logits)

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(m_j | z, r) of a mask, ``(member, row, draw, set, column)``."""
        logits = self.logits if sets is None else select_sets(self.logits, sets)
        return logsigmoid((self.net(z, sets=sets) + logits) * (1 - 2 * m))
