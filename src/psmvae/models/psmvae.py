"""The pattern-set mixture VAE: models (a) and (b) of the paper, and what lies between."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.models.config import LatentConfig
from psmvae.models.gmvae import GMVAE
from psmvae.nn.columns import Cells, Layout
from psmvae.nn.factors import QXMis
from psmvae.nn.noise import Noise


class PSMVAE(GMVAE):
    """p(r) p(z|r) p(x_obs|z,r) p(x_mis|z,r) p(m|·) with q(r|·) q(z|r,·) q(x_mis|z,r,·)."""

    config: LatentConfig
    per_table = ("weight_observed", "pi")
    # π' of each column: how likely an observed x_j says nothing about x_mis,j
    pi: Tensor

    def __init__(
        self, layout: Layout, config: LatentConfig, missing_rate: Tensor, noise: Noise
    ) -> None:
        super().__init__(layout, config, missing_rate, noise, second=layout)
        # of axes (member, row, draw, set, column)
        self.register_buffer("pi", self._pi().view(1, 1, 1, 1, -1), persistent=False)
        self.q_x_mis = QXMis(self.sizes, self.n_in, layout, config.network.light(), noise)

    def _pi(self) -> Tensor:
        if self.config.pi == "rate":
            return self.observed_rate / (1 + self.observed_rate)
        return torch.full_like(self.observed_rate, float(self.config.pi))

    def x_mis(self, p_x_obs: Cells, second: Cells | None) -> Cells:
        """The second head."""
        return p_x_obs if second is None else second

    def auxiliary(
        self,
        batch: Batch,
        shown: Tensor,
        z: Tensor,
        p_x_mis: Cells,
        second: Cells | None,
        noise: Noise | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """The terms of x_mis: semi-supervision by π' and the KL of q(x_mis | ·)."""
        del second
        q_x_mis = self.q_x_mis(shown, z, noise)
        x, m = batch.x[:, :, None, None, :], batch.m[:, :, None, None, :]
        x_drawn, tilts = None, self.p_m.depends_on_x
        if self.draws_x and noise is not None:
            x_drawn = q_x_mis.sample(noise.uniform(*z.shape[:-1], x.shape[-1]))
        # π is 1 on missing cells, π' on observed ones. Where quadrature integrates a missing x_j
        # out, its q is the exact posterior and has no term of its own.
        pi = torch.where(m > 0, self.pi, 0.0 if tilts and x_drawn is None else 1.0)
        pi = pi * batch.known[:, :, None, None, :]
        known = (1 - self.pi) * m
        semi = torch.addcmul(known * p_x_mis.log_prob(x), pi, q_x_mis.kl(p_x_mis), value=-1.0)
        return semi.sum(-1), x_drawn
