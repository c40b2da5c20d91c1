"""Real and integer columns: standardised, with a Normal likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.base import Column, Nodes, Scale

LOG_2PI = math.log(2 * math.pi)
# Below this standard deviation (on standardised data) a likelihood is so sharp that float32
# importance weights are ruled by rounding.
MIN_LOG_SCALE = math.log(0.01)
N_NODES = 15
N_FINE_NODES = 129
FINE_REACH = 6.0


@cache
def _gauss_hermite(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and log weights of the expectation under N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Normal:
    """N(mean, scale²) a cell; ``log_scale`` broadcasts against ``mean``."""

    mean: Tensor
    log_scale: Tensor

    def log_prob(self, x: Tensor) -> Tensor:
        """-½((x − μ)/σ)² − log σ − ½ log 2π."""
        standard = (x - self.mean) * torch.exp(-self.log_scale)
        return -0.5 * standard.square() - self.log_scale - 0.5 * LOG_2PI

    def expected_features(self) -> Tensor:
        """E[x] = μ."""
        return self.mean.unsqueeze(-1)

    def kl(self, other: Normal) -> Tensor:
        """log(σ₂/σ₁) + (σ₁² + (μ₁ − μ₂)²) / 2σ₂² − ½."""
        log_ratio = self.log_scale - other.log_scale
        shift = (self.mean - other.mean) * torch.exp(-other.log_scale)
        return -log_ratio + 0.5 * (torch.exp(2 * log_ratio) + shift.square() - 1)

    def nodes(self) -> Nodes:
        """Gauss–Hermite: exact for polynomials up to degree 29."""
        t, log_weight = _gauss_hermite(N_NODES)
        return self._at(torch.as_tensor(t), torch.as_tensor(log_weight))

    def fine_nodes(self) -> Nodes:
        """An even grid over ±6σ, weighted by the density."""
        t = torch.linspace(-FINE_REACH, FINE_REACH, N_FINE_NODES, dtype=torch.float64)
        nodes = self._at(t, torch.log_softmax(-0.5 * t.square(), dim=0))
        step = torch.exp(self.log_scale) * (2 * FINE_REACH / (N_FINE_NODES - 1))
        return nodes._replace(step=step.unsqueeze(-1))

    def sample(self, uniform: Tensor) -> Tensor:
        """μ + σ Φ⁻¹(u)."""
        inside = uniform.clamp(1e-7, 1 - 1e-7)
        standard: Tensor = torch.special.ndtri(inside)
        return self.mean + torch.exp(self.log_scale) * standard

    def _at(self, t: Tensor, log_weight: Tensor) -> Nodes:
        t = t.to(self.mean)
        x = self.mean.unsqueeze(-1) + torch.exp(self.log_scale).unsqueeze(-1) * t
        return Nodes(x, log_weight.to(self.mean).expand(x.shape))


class NormalBlock(nn.Module):
    """A group of numeric columns; a cell is one feature, the standardised value itself."""

    def __init__(self, n_columns: int, n_members: int, scale: Scale) -> None:
        super().__init__()
        self.n_columns = n_columns
        self.n_features = 1
        self.n_outputs = 2 if scale == "network" else 1
        self.scale = scale
        if scale == "learned":
            self.log_scale = nn.Parameter(torch.zeros(n_members, 1, 1, 1, n_columns))
        elif isinstance(scale, float):
            self.register_buffer("log_scale", torch.tensor(math.log(scale)), persistent=False)

    def forward(self, outputs: Tensor) -> Normal:
        """The Normal that a network's outputs stand for."""
        if isinstance(self.scale, float):
            return Normal(outputs[..., 0], self.log_scale)
        log_scale = outputs[..., 1] if self.scale == "network" else self.log_scale
        # softplus keeps a gradient where a hard bound would kill it
        above = nn.functional.softplus(log_scale - MIN_LOG_SCALE)
        return Normal(outputs[..., 0], MIN_LOG_SCALE + above)

    def features(self, x: Tensor) -> Tensor:
        """The value itself."""
        return x.unsqueeze(-1)

    def point(self, expected_features: Tensor) -> Tensor:
        """The mean."""
        return expected_features[..., 0]

    def error(self, expected_features: Tensor, x: Tensor) -> Tensor:
        """Squared error in standard deviations."""
        return (expected_features[..., 0] - x).square()

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """The identity: outputs are the mean."""
        pad = (0, self.n_outputs - 1)
        return nn.functional.pad(mean, pad), nn.functional.pad(loading, pad)

    @torch.no_grad()
    def start_scale(self, scale: Tensor) -> None:
        """Set the learned scales, ``(member, column)``."""
        if self.scale == "learned":
            above = (scale.log() - MIN_LOG_SCALE).clamp(min=1e-3)
            raw = above + torch.log(-torch.expm1(-above)) + MIN_LOG_SCALE
            self.log_scale.copy_(raw[:, None, None, None, :])


class Real:
    """Any real number, standardised by its observed mean and deviation."""

    name = "real"
    has_levels = False
    likelihood = "normal"

    def summarise(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Mean and standard deviation, at scales from 1e-300 to 1e300.

        A constant is scaled by its size, at most 1, so that draws stay close to it.
        """
        largest = float(np.abs(values).max())
        if largest == 0.0:
            return 0.0, 1.0
        unit = values / largest
        center = float(unit.mean())
        deviation = float(np.sqrt(np.mean((unit - center) ** 2)))
        # what is left of a constant after rounding is not a deviation
        if deviation <= 1e-14:
            return float(values[0]), min(1.0, largest)
        return center * largest, max(deviation * largest, np.finfo(np.float64).tiny)

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """(x − center) / scale."""
        return (values - column.center) / column.scale

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Center + scale · x."""
        return column.center + column.scale * x

    def log_jacobian(self, column: Column) -> float:
        """−log scale."""
        return -math.log(column.scale)

    def group(self, column: Column) -> int:
        """All numeric columns share one block."""
        del column
        return 0

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> NormalBlock:
        """A Normal block."""
        return NormalBlock(len(columns), n_members, scale)


class Integer(Real):
    """Whole numbers: modelled as real, rounded on the way out."""

    name = "integer"

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """The nearest whole number."""
        return np.rint(super().restore(x, column))
