"""Mask models p(m_j | x): missingness that depends on the values of all columns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from psmvae.nn.mask import MaskModule, MaskShape, log_odds
from psmvae.nn.network import MLP, Linear, Network
from psmvae.nn.noise import Noise


@dataclass(frozen=True)
class JointMask:
    """p(m_j missing | x) = sigmoid(f_j(x)), where f sees all columns: not-MIWAE's general case.

    Missing values are drawn, in training and at imputation: with f of all columns there is no
    integral over one cell at a time.

    Parameters
    ----------
    hidden : int
        Units of a hidden layer; 0 makes f linear.

    Examples
    --------
    >>> from psmvae import JointMask
    >>> JointMask(hidden=32)
    JointMask(hidden=32)
    """

    hidden: int = 0

    def __post_init__(self) -> None:
        """Check the setting."""
        # a bool or a float would pass for a width
        if type(self.hidden) is not int or self.hidden < 0:
            raise ValueError(f"JointMask needs a whole number hidden >= 0, got {self.hidden!r}.")

    def build(self, shape: MaskShape, noise: Noise) -> MaskModule:
        """A linear layer or a small network from the features of x to log odds."""
        return _JointMask(self, shape, noise)


class _JointMask(nn.Module):
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
