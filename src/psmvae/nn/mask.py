"""Mask models p(m | x, z, r): why a cell is observed (m = 1) or missing (m = 0).

A mask model is a small settings object with one method, ``build``, that makes the module to train.
Your own needs just that::

    class MyMask:
        def build(self, shape, noise):
            return MyModule(shape, noise)

where the module (an ``nn.Module``) has

- ``depends_on_x``: whether m_j depends on x_j itself (its missing values are then integrated out);
- optionally ``joint = True``: m_j depends on other columns too. Missing values are then drawn, and
  ``x`` is ``(member, row, draw, set, column)``, one value a cell, for all columns at once;
- ``as_input``: whether the encoders also see the mask;
- ``forward(x, z, at)``, which gives log p(m_j missing | ·) and log p(m_j observed | ·) of the
  columns ``at``. ``z`` is ``(member, row, draw, set, latent)``; ``x`` is ``(member, row, draw, set,
  column, node)``, values to try (axes may have size 1), or None where ``depends_on_x`` is False.
  Both answers are ``(member, row, draw, set, column[, node])``;
- optionally, where it depends on x, ``logistics(at)``: a `psmvae.nn.columns.Logistic` that says the
  same of p(m_j missing | ·) for a block of columns of numbers, or None for one where it cannot;
- parameters whose first axis is the members;
- optionally, where it does not depend on x, ``log_prob(m, z)``: log p(m_j | ·) of a mask ``(member,
  row, 1, 1, column)``, for all columns at once, where that is cheaper than both answers. With
  ``takes_sets = True`` it has a third argument ``sets``: None, or ``(row,)``, a set for each row,
  with a set axis of size one; imputation then leaves out sets that a row is surely not in;
- optionally ``start(rate)``, called before training with the missing rate of each column in each
  set that the masks suggest, ``(member, set, column)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from psmvae.kinds import Block
from psmvae.nn.columns import Columns, Logistic
from psmvae.nn.network import MLP, each_its_set
from psmvae.nn.noise import Noise
from psmvae.nn.settings import (
    MASK_MODELS,
    LatentMask,
    MaskModel,
    Network,
    NoMask,
    SelfMask,
    mask_model,
)

# The settings are here too: who writes a mask model has all of them at hand.
__all__ = [
    "MASK_MODELS",
    "LatentMask",
    "LatentMaskModule",
    "MaskModel",
    "MaskModule",
    "MaskShape",
    "NoMask",
    "NoMaskModule",
    "SelfMask",
    "SelfMaskModule",
    "log_odds",
    "mask_model",
]

MIN_RATE = 1e-3


@dataclass(frozen=True)
class MaskShape:
    """What a mask model is told about the table and the model around it.

    Columns are in the model's order: ``names`` and ``missing_rate`` (a number a column) say which
    is which.
    """

    n_members: int
    n_sets: int
    n_latent: int
    columns: Columns
    names: tuple[str, ...]
    missing_rate: Tensor
    network: Network


class MaskModule(Protocol):
    """The trained part of a mask model, an ``nn.Module``."""

    depends_on_x: bool
    as_input: bool

    def __call__(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log p(missing) and log p(observed) of the columns ``at``."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is trained."""
        ...


def log_odds(rate: Tensor) -> Tensor:
    """Log odds of a rate, held off 0 and 1."""
    return torch.logit(rate.clamp(MIN_RATE, 1 - MIN_RATE))


class NoMaskModule(nn.Module):
    """What `NoMask` builds: nothing is learned, and nothing said."""

    depends_on_x = False
    as_input = False
    takes_sets = True

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log 1."""
        del x, at
        nothing = torch.zeros_like(z[..., :1])
        return nothing, nothing

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log 1."""
        del m, sets
        return torch.zeros_like(z[..., :1])


class LatentMaskModule(nn.Module):
    """What `LatentMask` builds: a network from z and r to log odds."""

    depends_on_x = False
    as_input = True
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
        self.odds = nn.Parameter(log_odds(shape.missing_rate).expand(*sets, -1).clone())

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Each set at its own rates."""
        self.odds.copy_(log_odds(rate)[:, None, None])

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log sigmoid of the network's log odds."""
        del x
        score = (self.net(z) + self.odds)[..., at]
        return logsigmoid(score), logsigmoid(-score)

    def log_prob(self, m: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(m_j | z, r) of a mask, ``(member, row, draw, set, column)``."""
        odds = self.odds if sets is None else each_its_set(self.odds, sets)
        return logsigmoid((self.net(z, sets=sets) + odds) * (1 - 2 * m))


class SelfMaskModule(nn.Module):
    """What `SelfMask` builds: a logistic regression for each set and column."""

    depends_on_x = True
    as_input = True
    active: Tensor

    def __init__(self, settings: SelfMask, shape: MaskShape, noise: Noise) -> None:
        super().__init__()
        self.columns = shape.columns
        self.ceiling = settings.ceiling
        self.train_jointly = (
            settings.columns is not None
            if settings.train_jointly is None
            else settings.train_jointly
        )
        rate = shape.missing_rate.clamp(MIN_RATE, 1 - MIN_RATE)
        sets = (shape.n_members, 1, 1, shape.n_sets)
        ceiling = (1 + rate) / 2 if settings.ceiling else torch.ones_like(rate)
        self.bias = nn.Parameter(torch.logit(rate / ceiling) + 0.1 * noise.normal(*sets, len(rate)))
        if settings.ceiling:
            self.ceiling_odds = nn.Parameter(torch.logit(ceiling).expand(*sets, -1).clone())
        self.weight = nn.Parameter(0.1 * noise.normal(*sets, shape.columns.n_features))
        self.sign = {None: 0.0, "high": 1.0, "low": -1.0}[settings.sign]
        chosen = [settings.columns is None or name in settings.columns for name in shape.names]
        self.register_buffer("active", torch.tensor(chosen, device=rate.device), persistent=False)

    @torch.no_grad()
    def start(self, rate: Tensor) -> None:
        """Each set at its own rates, half way to the ceiling."""
        rate = rate.clamp(MIN_RATE, 1 - MIN_RATE)[:, None, None]
        ceiling = (1 + rate) / 2 if self.ceiling else torch.ones_like(rate)
        self.bias.copy_(torch.logit(rate / ceiling))
        if self.ceiling:
            self.ceiling_odds.copy_(torch.logit(ceiling))

    def forward(self, x: Tensor | None, z: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """Log c + log sigmoid(s), and log(1 − c sigmoid(s)), both without cancellation."""
        del z
        if x is None:
            raise ValueError("a self-masking model needs x")
        block, weight = self._of(at)
        # (..., node, column, feature): a block's features need the column axis last
        features = block.features(x.transpose(-1, -2))
        pull = (features * weight.unsqueeze(-3)).sum(-1).transpose(-1, -2)
        score = pull * self.active[at].unsqueeze(-1) + self.bias[..., at].unsqueeze(-1)
        log_missing, log_observed = logsigmoid(score), logsigmoid(-score)
        if self.ceiling:
            odds = self.ceiling_odds[..., at].unsqueeze(-1)
            log_observed = torch.logaddexp(logsigmoid(-odds) + log_missing, log_observed)
            log_missing = logsigmoid(odds) + log_missing
        return log_missing, log_observed

    def logistics(self, at: slice) -> Logistic | None:
        """What `forward` says of p(missing), for columns of numbers."""
        block, weight = self._of(at)
        if block.n_features > 1:
            return None
        ceiling = logsigmoid(self.ceiling_odds[..., at]) if self.ceiling else 0.0
        return Logistic(weight.squeeze(-1) * self.active[at], self.bias[..., at], ceiling)

    def _of(self, at: slice) -> tuple[Block, Tensor]:
        """A block of columns and its weights, ``(member, 1, 1, set, column, feature)``."""
        number = self.columns.slices().index(at)
        block = self.columns.blocks[number]
        weight = self.columns.split(self.weight, "features")[number]
        if self.sign and block.n_features == 1:
            weight = self.sign * softplus(weight)
        return block, weight
