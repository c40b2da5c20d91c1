"""The module of `psmvae.nn.settings.SelfMask`: p(m_j | x_j, r)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from psmvae.kinds import Block
from psmvae.nn.columns import Logistic
from psmvae.nn.mask import MIN_RATE, MaskModule, MaskShape
from psmvae.nn.noise import Noise


class SelfMaskModule(MaskModule):
    """p(m_j missing | x_j, r) = c_rj · sigmoid(w_rj · f(x_j) + b_rj) with the features f of a cell.

    Parameters
    ----------
    shape : MaskShape
        Sizes of the model and names of the columns.
    noise : Noise
        Random numbers for initial weights.
    columns : sequence of str or None
        Columns with w ≠ 0. None for all columns.
    ceiling : bool
        Whether c is learned. Otherwise c = 1.
    draws_x : bool
        Whether training uses a draw of each missing x_j instead of quadrature.
    train_jointly : bool
        Whether p(x | z, r) is trained together with this module from the start.
    sign : {"high", "low"} or None
        Known sign of w of numeric columns.
    tilts : bool
        Whether imputations are drawn from p(x_j | z, r) · p(m_j missing | x_j, r).
    """

    depends_on_x = True
    active: Tensor

    def __init__(
        self,
        shape: MaskShape,
        noise: Noise,
        *,
        columns: Sequence[str] | None,
        ceiling: bool,
        draws_x: bool,
        train_jointly: bool,
        sign: Literal["high", "low"] | None,
        tilts: bool,
    ) -> None:
        super().__init__()
        self.columns = shape.columns
        self.ceiling = ceiling
        self.draws_x = draws_x
        self.train_jointly = train_jointly
        self.tilts = tilts
        rate = shape.missing_rate.clamp(MIN_RATE, 1 - MIN_RATE)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        c = _initial_ceiling(rate, learned=ceiling)
        self.bias = nn.Parameter(torch.logit(rate / c) + 0.1 * noise.normal(*sets, len(rate)))
        if ceiling:
            self.ceiling_logits = nn.Parameter(torch.logit(c).expand(*sets, -1).clone())
        self.weight = nn.Parameter(0.1 * noise.normal(*sets, shape.columns.n_features))
        self.sign = {None: 0.0, "high": 1.0, "low": -1.0}[sign]
        chosen = [columns is None or name in columns for name in shape.names]
        self.register_buffer("active", torch.tensor(chosen, device=rate.device), persistent=False)

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Set b and c from the rates ``(member, set, column)``, for w = 0."""
        rate = rate.clamp(MIN_RATE, 1 - MIN_RATE)[:, None, None]
        c = _initial_ceiling(rate, learned=self.ceiling)
        self.bias.copy_(torch.logit(rate / c))
        if self.ceiling:
            self.ceiling_logits.copy_(torch.logit(c))

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log c + log sigmoid(s) and log(1 − c sigmoid(s)), both without cancellation.

        ``x`` and both results are ``(member, row, draw, set, column, node)``.
        """
        del z
        if x is None:
            raise ValueError("A self-masking model needs x.")
        block, weight = self._block(at)
        # (..., node, column, feature): Block.features takes the column as the last axis
        features = block.features(x.transpose(-1, -2))
        slope = (features * weight.unsqueeze(-3)).sum(-1).transpose(-1, -2)
        score = slope * self.active[at].unsqueeze(-1) + self.bias[..., at].unsqueeze(-1)
        log_missing, log_observed = logsigmoid(score), logsigmoid(-score)
        if self.ceiling:
            c = self.ceiling_logits[..., at].unsqueeze(-1)
            log_observed = torch.logaddexp(logsigmoid(-c) + log_missing, log_observed)
            log_missing = logsigmoid(c) + log_missing
        return log_missing, log_observed

    def logistics(self, at: slice) -> Logistic | None:
        """p(m_j missing | x_j, r) of numeric columns, None for columns with several features."""
        block, weight = self._block(at)
        if block.n_features > 1:
            return None
        log_c = logsigmoid(self.ceiling_logits[..., at]) if self.ceiling else 0.0
        return Logistic(weight.squeeze(-1) * self.active[at], self.bias[..., at], log_c)

    def _block(self, at: slice) -> tuple[Block, Tensor]:
        """A block of columns and its weights, ``(member, 1, 1, set, column, feature)``."""
        number = self.columns.slices().index(at)
        block = self.columns.blocks[number]
        weight = self.columns.split(self.weight, "features")[number]
        if self.sign and block.n_features == 1:
            weight = self.sign * softplus(weight)
        return block, weight


def _initial_ceiling(rate: Tensor, *, learned: bool) -> Tensor:
    """Initial c: halfway between the missing rate and 1, or 1 if it is not learned."""
    return (1 + rate) / 2 if learned else torch.ones_like(rate)
