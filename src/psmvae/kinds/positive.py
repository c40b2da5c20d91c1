"""Positive columns: the logarithm is standardised and has a Normal likelihood (log-normal)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.base import X_LIMIT, Column, Scale
from psmvae.kinds.numeric import Normal, NormalBlock, Real
from psmvae.kinds.tools import constants

# exp of this and its reciprocal are far inside float32.
MAX_EXPONENT = 80.0
# Logs have a deviation of 1 in all; given z, a learned one may be this at most, since E[x] grows
# with the exponential of its square. The bend is sharp, so that smaller ones are as they are.
MAX_LOG_SCALE, SHARPNESS = math.log(3.0), 5.0


def _exp(exponent: Tensor, less_one: Tensor) -> Tensor:
    """Exp, less one where told to be: e^x − 1 has all its digits near x = 0."""
    held = exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT)
    return torch.where(less_one, torch.expm1(held), torch.exp(held))


@dataclass(frozen=True)
class LogNormal(Normal):
    """Normal in standardised logs; ``width`` is the standard deviation of the logs, a column."""

    width: Tensor
    less_one: Tensor

    def expected(self) -> Tensor:
        """E[x] over the median of the column (− 1): exp(w μ + ½ (w σ)²)."""
        variance = (self.width * self.scale).square()
        return _exp(self.width * self.mean + 0.5 * variance, self.less_one).unsqueeze(-1)

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """E[x] over the median of the column (− 1), the density times a sigmoid of the logs."""
        _, at_nodes = self.sigmoid(slope, offset)
        nodes = self.nodes()
        weight = at_nodes * nodes.log_weight.exp()
        x = _exp(self.width.unsqueeze(-1) * nodes.x, self.less_one.unsqueeze(-1))
        tilted = (weight * x).sum(-1, keepdim=True) / weight.sum(-1, keepdim=True)
        # nodes fall short of the mean of a very wide distribution, which is known where no tilt is
        return torch.where((slope == 0).unsqueeze(-1), self.expected(), tilted)


class PositiveBlock(NormalBlock):
    """A group of positive columns.

    Networks see the standardised logarithm. What is averaged is x itself, so that the point
    estimate is E[x] and not exp E[log x]: as a multiple of e^center, the column's geometric mean,
    and less one where logs vary by less than 1, so that float32 keeps the digits in either case.
    """

    width: Tensor
    less_one: Tensor
    unit: Tensor

    def __init__(self, columns: Sequence[Column], n_members: int, scale: Scale) -> None:
        # the mean of a log-t does not exist: a Normal stands in
        super().__init__(len(columns), n_members, "network" if scale == "student" else scale)
        self.register_buffer("width", constants([c.scale for c in columns]), persistent=False)
        self.register_buffer("less_one", self.width < 1, persistent=False)
        unit = [math.exp(min(c.center - math.log(c.deviation), MAX_EXPONENT)) for c in columns]
        self.register_buffer("unit", constants(unit), persistent=False)

    def forward(self, outputs: Tensor) -> LogNormal:
        """The log-normal that a network's outputs stand for."""
        normal = super().forward(outputs)
        log_scale = normal.log_scale
        if not isinstance(log_scale, float):
            room = nn.functional.softplus(MAX_LOG_SCALE - log_scale, beta=SHARPNESS)
            log_scale = MAX_LOG_SCALE - room
        return LogNormal(normal.mean, log_scale, self.width, self.less_one)

    def statistics(self, x: Tensor) -> Tensor:
        """The table's value over the column's geometric mean (− 1)."""
        return _exp(self.width * x, self.less_one).unsqueeze(-1)

    def point(self, expected: Tensor) -> Tensor:
        """The model value of E[x]."""
        mean = expected[..., 0]
        near = torch.log1p(mean.clamp(min=-1 + 1e-6))
        far = torch.log(mean.clamp(min=math.exp(-MAX_EXPONENT)))
        return torch.where(self.less_one, near, far) / self.width

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Squared error in standard deviations of the table's own units."""
        off = self.unit * (expected - self.statistics(x))[..., 0]
        return off.clamp(-X_LIMIT, X_LIMIT).square()


class Positive(Real):
    """A number above zero: a price, a size, a time."""

    name = "positive"
    likelihood = "lognormal"
    domain = "numbers above 0"

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Zero and below have no logarithm."""
        return values <= 0

    def learn(self, values: NDArray[np.float64], column: Column) -> Column:
        """Center and scale of the logs; mean and deviation of the values."""
        center, scale = self.summarise(np.log(values))
        mean, deviation = self.summarise(values)
        return replace(column, center=center, scale=scale, mean=mean, deviation=deviation)

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """(log x − center) / scale."""
        return super().standardise(np.log(values), column)

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """exp(center + scale · x), which stays above zero where it is to be rounded too."""
        whole = column.dtype.startswith(("Int", "UInt"))
        smallest = 1.0 if whole else np.finfo(np.float64).tiny
        with np.errstate(over="ignore", under="ignore"):
            return np.maximum(np.exp(super().restore(x, column)), smallest)

    def log_jacobian(
        self, column: Column, x: NDArray[np.floating] | float = 0.0
    ) -> NDArray[np.float64]:
        """−log scale − log of the table's value, which is center + scale · x."""
        log_value = column.center + column.scale * np.asarray(x, dtype=np.float64)
        return -math.log(column.scale) - log_value

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> PositiveBlock:
        """A log-normal block; "student" is a Normal with a scale from the network."""
        return PositiveBlock(columns, n_members, scale)
