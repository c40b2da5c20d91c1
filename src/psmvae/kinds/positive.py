"""Positive columns: the logarithm is standardised and has a Normal likelihood (log-normal)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from psmvae.kinds.base import X_LIMIT, Column, Floats, Scale
from psmvae.kinds.numeric import Normal, NormalBlock, Real
from psmvae.kinds.tools import add_constants

# exp(±80) is inside the range of float32.
MAX_EXPONENT = 80.0
# Upper bound of a learned log scale given z (the marginal scale of standardised logs is 1), since
# E[x] grows with exp(scale²). The softplus is sharp, so that smaller scales are unchanged.
MAX_LOG_SCALE, SHARPNESS = math.log(3.0), 5.0


def _exp(exponent: Tensor, less_one: Tensor) -> Tensor:
    """Return e^x, or e^x − 1 where `less_one`, which keeps all digits near x = 0."""
    held = exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT)
    return torch.where(less_one, torch.expm1(held), torch.exp(held))


@dataclass(frozen=True)
class LogNormal(Normal):
    """Normal in standardised logs; ``width`` is the standard deviation of each column's logs."""

    width: Tensor
    less_one: Tensor

    def expected(self) -> Tensor:
        """Return E[x] / geometric mean of the column (− 1): exp(w μ + ½ (w σ)²)."""
        variance = (self.width * self.scale).square()
        return _exp(self.width * self.mean + 0.5 * variance, self.less_one).unsqueeze(-1)

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return `expected` under the density times a sigmoid of the standardised logs."""
        nodes = self.nodes()
        weight = self.sigmoid(slope, offset)[1] * nodes.log_weight.exp()
        x = _exp(self.width.unsqueeze(-1) * nodes.x, self.less_one.unsqueeze(-1))
        tilted = (weight * x).sum(-1, keepdim=True) / weight.sum(-1, keepdim=True)
        # quadrature underestimates the mean of a very wide distribution; without a tilt it is known
        return torch.where((slope == 0).unsqueeze(-1), self.expected(), tilted)


class PositiveBlock(NormalBlock):
    """A group of positive columns.

    The feature is the standardised logarithm. The statistic is x itself, so that the point estimate
    is E[x] and not exp E[log x]. It is divided by e^center, the column's geometric mean, and
    reduced by one where the standard deviation of the logs is below 1, for accuracy in float32.
    """

    width: Tensor
    less_one: Tensor
    unit: Tensor

    def __init__(self, columns: Sequence[Column], n_members: int, scale: Scale) -> None:
        # a log-t distribution has no mean, so "student" is a Normal
        super().__init__(len(columns), n_members, "network" if scale == "student" else scale)
        unit = [math.exp(min(c.center - math.log(c.deviation), MAX_EXPONENT)) for c in columns]
        add_constants(self, width=[c.scale for c in columns], unit=unit)
        add_constants(self, less_one=self.width < 1)

    def forward(self, outputs: Tensor) -> LogNormal:
        """Return the log-normal with the outputs as parameters."""
        normal = super().forward(outputs)
        log_scale = normal.log_scale
        if not isinstance(log_scale, float):
            log_scale = MAX_LOG_SCALE - softplus(MAX_LOG_SCALE - log_scale, beta=SHARPNESS)
        return LogNormal(normal.mean, log_scale, self.width, self.less_one)

    def statistics(self, x: Tensor) -> Tensor:
        """Return the table value / geometric mean of the column (− 1)."""
        return _exp(self.width * x, self.less_one).unsqueeze(-1)

    def point(self, expected: Tensor) -> Tensor:
        """Return the model value of E[x]."""
        mean = expected[..., 0]
        near = torch.log1p(mean.clamp(min=-1 + 1e-6))
        far = torch.log(mean.clamp(min=math.exp(-MAX_EXPONENT)))
        return torch.where(self.less_one, near, far) / self.width

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error in standard deviations of the table values."""
        off = self.unit * (expected - self.statistics(x))[..., 0]
        return off.clamp(-X_LIMIT, X_LIMIT).square()


class Positive(Real):
    """A number above zero: a price, a size, a time."""

    name = "positive"
    likelihood = "lognormal"
    domain = "numbers above 0"

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Return where a value is zero or negative."""
        return values <= 0

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column with center and scale of the logs, mean and deviation of the values."""
        center, scale = self.summarise(np.log(values))
        mean, deviation = self.summarise(values)
        return replace(column, center=center, scale=scale, mean=mean, deviation=deviation)

    def standardise(self, values: Floats, column: Column) -> Floats:
        """Return (log x − center) / scale."""
        return super().standardise(np.log(values), column)

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return exp(center + scale · x), at least 1 in a column of integers."""
        whole = column.dtype.startswith(("Int", "UInt"))
        smallest = 1.0 if whole else np.finfo(np.float64).tiny
        with np.errstate(over="ignore", under="ignore"):
            return np.maximum(np.exp(super().restore(x, column)), smallest)

    def log_jacobian(self, column: Column, x: NDArray[np.floating] | float = 0.0) -> Floats:
        """Return −log scale − log of the table value, which is center + scale · x."""
        log_value = column.center + column.scale * np.asarray(x, dtype=np.float64)
        return -math.log(column.scale) - log_value

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> PositiveBlock:
        """Return a log-normal block; for "student" with a scale from the network."""
        return PositiveBlock(columns, n_members, scale)
