"""The module of `psmvae.nn.settings.NoMask`."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.nn.mask import MaskModule


class NoMaskModule(MaskModule):
    """log p(m) = 0, without parameters."""

    as_input = False
    takes_sets = True

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Return zeros ``(member, row, draw, set, 1)``."""
        del x, at
        zeros = torch.zeros_like(z[..., :1])
        return zeros, zeros

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Return zeros ``(member, row, draw, set, 1)``."""
        del m, sets
        return torch.zeros_like(z[..., :1])
