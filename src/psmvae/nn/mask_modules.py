"""The modules of the mask models of `psmvae.nn.settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from psmvae.kinds.base import Block
from psmvae.nn.architecture import Network
from psmvae.nn.columns import Logistic
from psmvae.nn.mask import MaskModule, MaskShape
from psmvae.nn.network import MLP, Linear, select_sets
from psmvae.nn.noise import Noise

MIN_RATE = 1e-3


if TYPE_CHECKING:
    from psmvae.nn.settings import LogisticMask


class NoMaskModule(MaskModule):
    """log p(m) = 0, without parameters."""

    as_input = False
    takes_sets = True

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Zeros ``(member, row, draw, set, 1)``."""
        del x, at
        zeros = torch.zeros_like(z[..., :1])
        return zeros, zeros

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Zeros ``(member, row, draw, set, 1)``."""
        del m, sets
        return torch.zeros_like(z[..., :1])


class _WithRates(MaskModule):
    """A mask module with biases b_rj that are initially the logits of the missing rates."""

    def __init__(self, shape: MaskShape) -> None:
        super().__init__()
        rate = shape.missing_rate.clamp(MIN_RATE, 1 - MIN_RATE)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        self.logits = nn.Parameter(torch.logit(rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Set b to the logits of the rates ``(member, set, column)``."""
        self.logits.copy_(torch.logit(rate.clamp(MIN_RATE, 1 - MIN_RATE))[:, None, None])


class LatentMaskModule(_WithRates):
    """p(m_j missing | z, r) = sigmoid(f_j(z, r) + b_rj) with a network f."""

    takes_sets = True

    def __init__(self, shape: MaskShape, noise: Noise) -> None:
        super().__init__(shape)
        sizes = (shape.n_members, shape.n_latent, shape.columns.n_columns)
        self.net = MLP(*sizes, shape.network, noise, n_sets=shape.n_sets, set_at="first")

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed), ``(member, row, draw, set, column)``."""
        del x
        logits = (self.net(z) + self.logits)[..., at]
        return logsigmoid(logits), logsigmoid(-logits)

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(m_j | z, r) of a mask, ``(member, row, draw, set, column)``."""
        logits = self.logits if sets is None else select_sets(self.logits, sets)
        return logsigmoid((self.net(z, sets=sets) + logits) * (1 - 2 * m))


class JointMaskModule(_WithRates):
    """p(m_j missing | x, r) = sigmoid(f_j(x) + b_rj) with f linear or of one hidden layer."""

    depends_on_x = True
    joint = True

    def __init__(self, shape: MaskShape, noise: Noise, *, hidden: int) -> None:
        super().__init__(shape)
        self.columns = shape.columns
        sizes = (shape.n_members, shape.columns.n_features, shape.columns.n_columns)
        self.net: Linear | MLP
        if hidden:
            network = Network(width=hidden, depth=1, residual=False, linear=False)
            self.net = MLP(*sizes, network, noise, start=0.1)
        else:
            self.net = Linear(*sizes, noise, gain=0.1)

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed), of the shape of x: all columns, without nodes."""
        del z, at
        if x is None:
            raise ValueError("A mask model of x needs x.")
        logits = self.net(self.columns.features(x)) + self.logits
        return logsigmoid(logits), logsigmoid(-logits)


class LogisticMaskModule(MaskModule):
    """p(m_j missing | x_j, r) = c_rj · sigmoid(w_rj · f(x_j) + b_rj) with the features f of a cell.

    w = 0 in columns that the settings do not name.
    """

    depends_on_x = True
    active: Tensor

    def __init__(self, shape: MaskShape, noise: Noise, settings: LogisticMask) -> None:
        super().__init__()
        self.columns = shape.columns
        self.ceiling, self.tilts = settings.ceiling, settings.tilt
        self.draws_x = settings.integrate == "draw"
        named = settings.columns is not None
        self.train_jointly = named if settings.train_jointly is None else settings.train_jointly
        self.sign = {None: 0.0, "high": 1.0, "low": -1.0}[settings.sign]
        rate = shape.missing_rate.clamp(MIN_RATE, 1 - MIN_RATE)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        c = self._initial_ceiling(rate)
        self.bias = nn.Parameter(torch.logit(rate / c) + 0.1 * noise.normal(*sets, len(rate)))
        if self.ceiling:
            self.ceiling_logits = nn.Parameter(torch.logit(c).expand(*sets, -1).clone())
        self.weight = nn.Parameter(0.1 * noise.normal(*sets, shape.columns.n_features))
        chosen = [settings.columns is None or name in settings.columns for name in shape.names]
        self.register_buffer("active", torch.tensor(chosen, device=rate.device), persistent=False)

    def _initial_ceiling(self, rate: Tensor) -> Tensor:
        """Initial c: halfway between the missing rate and 1, or 1 if it is not learned."""
        return (1 + rate) / 2 if self.ceiling else torch.ones_like(rate)

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Set b and c from the rates ``(member, set, column)``, for w = 0."""
        rate = rate.clamp(MIN_RATE, 1 - MIN_RATE)[:, None, None]
        c = self._initial_ceiling(rate)
        self.bias.copy_(torch.logit(rate / c))
        if self.ceiling:
            self.ceiling_logits.copy_(torch.logit(c))

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log c + log sigmoid(s) and log(1 − c sigmoid(s)), both without cancellation."""
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
