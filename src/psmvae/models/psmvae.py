"""The pattern-set mixture VAE: models (a) and (b) of the paper, and what lies between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from psmvae.models.batch import Answer, Batch
from psmvae.nn.columns import Cells, Columns, Layout, LogTilt
from psmvae.nn.factors import PR, PX, PZ, QR, QZ, GaussianZ, QXMis, Sizes
from psmvae.nn.latent_classes import ClassPosterior
from psmvae.nn.linear_gaussian import LinearPosterior
from psmvae.nn.mask import MaskModel, MaskModule, MaskShape
from psmvae.nn.network import Network
from psmvae.nn.noise import Noise


@dataclass(frozen=True)
class Settings:
    """What a PSMVAE is made of.

    ``scale`` is the standard deviation of numeric likelihoods on standardised data, None to learn
    one a column.
    """

    n_members: int
    n_sets: int
    n_latent: int
    network: Network
    mask: MaskModel
    scale: float | None
    pi: float | Literal["rate"]


class PSMVAE(nn.Module):
    """p(r) p(z|r) p(x_obs|z,r) p(x_mis|z,r) p(m|·) with q(r|·) q(z|r,·) q(x_mis|z,r,·).

    Parameters
    ----------
    layout : Layout
        The columns in the model's order.
    settings : Settings
        Sizes and parts.
    missing_rate : Tensor
        Share of missing cells of each column, in the model's order.
    noise : Noise
        Where first weights come from.
    """

    observed_rate: Tensor
    spread: Tensor

    def __init__(
        self, layout: Layout, settings: Settings, missing_rate: Tensor, noise: Noise
    ) -> None:
        super().__init__()
        self.settings = settings
        network = settings.network
        self.inputs = Columns(layout, settings.n_members, 1.0)
        n_features, n_columns = self.inputs.n_features, self.inputs.n_columns
        sizes = Sizes(settings.n_members, settings.n_sets, settings.n_latent, n_features, n_columns)
        names = tuple(layout.columns[position].name for position in layout.order)
        shape = MaskShape(
            settings.n_members,
            settings.n_sets,
            settings.n_latent,
            self.inputs,
            names,
            missing_rate,
            network.light(),
        )
        self.p_m: MaskModule = settings.mask.build(shape, noise)
        n_in = n_features + (n_columns if self.p_m.as_input else 0)
        linear = LinearPosterior(settings.n_members, n_features, settings.n_latent)
        starts = network.linear and self.p_m.as_input and settings.n_sets > 1
        classes = ClassPosterior(settings.n_members, settings.n_sets, n_columns)
        self.q_r = QR(sizes, n_in, network, noise, classes if starts else None)
        self.q_z = QZ(sizes, n_in, network, noise, linear if network.linear else None)
        self.q_x_mis = QXMis(sizes, n_in, layout, network.light(), noise)
        self.p_r = PR(sizes)
        self.p_z = PZ(sizes, noise, spread=0.1 if network.linear else 1.0)
        self.p_x = PX(sizes, layout, network, noise, settings.scale)
        self.register_buffer("observed_rate", 1 - missing_rate)
        # how much wider draws are than the likelihood says; learned from held-out cells
        self.register_buffer("spread", torch.ones(settings.n_members, n_columns))

    @property
    def pi(self) -> Tensor:
        """π' of each column: how likely an observed x_j says nothing about x_mis,j."""
        if self.settings.pi == "rate":
            return self.observed_rate / (1 + self.observed_rate)
        return torch.full_like(self.observed_rate, self.settings.pi)

    @property
    def weight_observed(self) -> Tensor:
        """1 / (1 − missing rate), the paper's weight of log p(x_obs | z, r)."""
        return 1 / self.observed_rate.mean().clamp(min=1e-3)

    def encode(self, batch: Batch, noise: Noise | None = None) -> tuple[Tensor, GaussianZ]:
        """Log q(r | x_obs, m) ``(member, row, set)`` and q(z | r, x_obs, m)."""
        features = self.inputs.features(batch.x)
        seen = self.inputs.spread(batch.visible)
        features = features * seen
        log_q_r = self.q_r(self._input(features, batch.m), batch.m, noise)
        return log_q_r, self.q_z(self._input(features, batch.visible), features, seen, noise)

    def answer(
        self, batch: Batch, epsilon: Tensor, noise: Noise | None = None, *, x_mis: bool = False
    ) -> Answer:
        """All log densities at z = q_z(ε), for ε ``(member, row, draw, set, latent)``.

        ``x_mis`` asks for the x_mis factors, which only the objective needs; ``noise`` is given
        while training.
        """
        log_q_r, q_z = self.encode(batch, noise)
        z = q_z.at(epsilon)
        tilts = self.p_m.depends_on_x
        p_x_obs, p_x_mis = self.p_x(z, noise, mis=x_mis or tilts)
        x, m = batch.x[:, :, None, None, :], batch.m[:, :, None, None, :]
        known = batch.known[:, :, None, None, :]
        semi = None
        x_drawn = None
        if x_mis and p_x_mis is not None:
            q_in = self._input(
                self.inputs.features(batch.x) * self.inputs.spread(batch.visible), batch.visible
            )
            q_x_mis = self.q_x_mis(q_in, z, noise)
            draws = getattr(self.settings.mask, "integrate", "quadrature") == "draw"
            if tilts and draws and noise is not None:
                x_drawn = q_x_mis.sample(noise.uniform(*z.shape[:-1], x.shape[-1]))
            # π is 1 on missing cells, π' on observed ones. Where quadrature integrates a missing
            # x_j out, its q is the exact posterior and has no term of its own.
            pi = torch.where(m > 0, self.pi, 0.0 if tilts and x_drawn is None else 1.0) * known
            semi = (1 - self.pi) * m * p_x_mis.log_prob(x) - pi * q_x_mis.kl(p_x_mis)
            semi = semi.sum(-1)
        return Answer(
            log_q_r=log_q_r,
            log_p_r=self.p_r(),
            kl_z=q_z.kl(self.p_z),
            log_q_z=q_z.log_prob_at(epsilon),
            log_p_z=self.p_z.log_prob(z),
            log_p_x_obs=(p_x_obs.log_prob(x) * m).sum(-1),
            log_p_m=self._log_p_m(x, m, known, z, p_x_mis, x_drawn),
            z=z,
            p_x=p_x_mis if tilts and p_x_mis is not None else p_x_obs,
            log_p_x_mis=semi,
        )

    def expected_features(self, answer: Answer) -> Tensor:
        """E[features(x_j) | m_j = 0, z, r] of every cell, ``(member, row, draw, set, feature)``."""
        if self.p_m.depends_on_x:
            return answer.p_x.tilted_features(self._log_missing(answer.z))
        return answer.p_x.expected_features()

    def sample_missing(self, z: Tensor, uniform: Tensor) -> Tensor:
        """A draw of x_j given m_j = 0, z and r, ``(member, row, draw, set, column)``."""
        p_x: tuple[Cells, Cells | None] = self.p_x(z, None, mis=self.p_m.depends_on_x)
        p_x_obs, p_x_mis = p_x
        if p_x_mis is None:
            return p_x_obs.sample(uniform)
        return p_x_mis.tilted_sample(self._log_missing(z), uniform)

    def _input(self, features: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([features, mask], -1) if self.p_m.as_input else features

    def _log_missing(self, z: Tensor) -> LogTilt:
        return lambda x, at: self.p_m(x, z, at)[0]

    def _log_p_m(
        self,
        x: Tensor,
        m: Tensor,
        known: Tensor,
        z: Tensor,
        p_x_mis: Cells | None,
        x_drawn: Tensor | None,
    ) -> Tensor:
        """Log p(m | ·), the missing x_j integrated out (or drawn), ``(member, row, draw, set)``."""
        if p_x_mis is None or not self.p_m.depends_on_x:
            missing, observed = self.p_m(None, z, slice(0, x.shape[-1]))
            return (torch.where(m > 0, observed, missing) * known).sum(-1)
        observed = self._per_cell(x, z, 1)
        if x_drawn is None:
            missing = p_x_mis.log_expectation(self._log_missing(z))
        else:
            missing = self._per_cell(x_drawn, z, 0)
        return (torch.where(m > 0, observed, missing) * known).sum(-1)

    def _per_cell(self, x: Tensor, z: Tensor, which: int) -> Tensor:
        """Log p(m_j | x_j, ·) at one x a cell: missing (0) or observed (1)."""
        parts = [
            self.p_m(x[..., at].unsqueeze(-1), z, at)[which].squeeze(-1)
            for at in self.inputs.slices()
        ]
        return torch.cat(parts, -1)
