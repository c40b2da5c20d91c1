"""Real and integer columns: standardised, with a Normal or a Student-t likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.base import X_LIMIT, Column, Floats, Nodes, Scale
from psmvae.kinds.student import MIN_DF, N_STUDENT_NODES, Student
from psmvae.kinds.tools import floored, kl_by_nodes, unfloored

LOG_2PI = math.log(2 * math.pi)
N_NODES, N_FINE_NODES, FINE_REACH = 15, 129, 6.0
UNDERFLOW = 40.0
# Nodes already copied to a device: a captured CUDA graph cannot copy them. A plain dictionary,
# because PyTorch's compiler would call a `functools.cache` function again.
NODES_ON_DEVICE: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}


def hermite_nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    """Return Gauss–Hermite nodes and log weights for expectations under N(0, 1)."""
    key = (like.dtype, like.device)
    if key not in NODES_ON_DEVICE:
        t, weight = np.polynomial.hermite_e.hermegauss(N_NODES)
        log_weight = np.log(weight / math.sqrt(2 * math.pi))
        NODES_ON_DEVICE[key] = (torch.tensor(t).to(like), torch.tensor(log_weight).to(like))
    return NODES_ON_DEVICE[key]


@overload
def exp(value: Tensor) -> Tensor: ...
@overload
def exp(value: float) -> float: ...
def exp(value: Tensor | float) -> Tensor | float:
    """Return the exponential of a tensor or of a plain number."""
    return math.exp(value) if isinstance(value, float) else torch.exp(value)


@dataclass(frozen=True)
class Normal:
    """N(mean, scale²) for each cell; ``log_scale`` broadcasts, or is a number if it is fixed."""

    mean: Tensor
    log_scale: Tensor | float

    def log_prob(self, x: Tensor) -> Tensor:
        """Return −½((x − μ)/σ)² − log σ − ½ log 2π."""
        # computed at the shape of the scale, which is smaller than that of x
        constant = -self.log_scale - 0.5 * LOG_2PI
        standard = (self.mean - x) * exp(-self.log_scale)
        return constant - 0.5 * standard.square()

    @property
    def scale(self) -> Tensor:
        """σ, as a tensor."""
        if isinstance(self.log_scale, float):
            return self.mean.new_full((1,), math.exp(self.log_scale))
        return torch.exp(self.log_scale)

    def expected(self) -> Tensor:
        """Return E[x] = μ."""
        return self.mean.unsqueeze(-1)

    def kl(self, other: Normal | Student) -> Tensor:
        """Return log(σ₂/σ₁) + (σ₁² + (μ₁ − μ₂)²) / 2σ₂² − ½; a Student-t needs quadrature."""
        if isinstance(other, Student):
            return kl_by_nodes(self, other)
        log_ratio = self.log_scale - other.log_scale
        shift = (self.mean - other.mean) * exp(-other.log_scale)
        return 0.5 * (shift.square() + exp(2 * log_ratio)) - (log_ratio + 0.5)

    def nodes(self) -> Nodes:
        """Return Gauss–Hermite nodes, exact for polynomials up to degree 29."""
        return self._at(*hermite_nodes(self.mean))

    def fine_nodes(self) -> Nodes:
        """Return an even grid over ±6σ, weighted by the density."""
        t = torch.linspace(-FINE_REACH, FINE_REACH, N_FINE_NODES, dtype=torch.float64)
        nodes = self._at(t, torch.log_softmax(-0.5 * t.square(), dim=0))
        step = self.scale * (2 * FINE_REACH / (N_FINE_NODES - 1))
        return nodes._replace(step=step.unsqueeze(-1))

    def sample(self, uniform: Tensor) -> Tensor:
        """Return μ + σ Φ⁻¹(u)."""
        standard: Tensor = torch.special.ndtri(uniform.clamp(1e-7, 1 - 1e-7))
        return self.mean + exp(self.log_scale) * standard

    def at_nodes(self) -> Normal:
        """Return the same distribution with a last axis for nodes."""
        fixed = isinstance(self.log_scale, float)
        log_scale = self.log_scale if fixed else self.scale.log().unsqueeze(-1)
        return Normal(self.mean.unsqueeze(-1), log_scale)

    def log_mean_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return log E[sigmoid(slope · x + offset)] with the weights of `nodes`."""
        shift, at_nodes = self.sigmoid(slope, offset)
        _, log_weight = hermite_nodes(self.mean)
        return shift + torch.log(at_nodes @ log_weight.exp())

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return E[statistics(x)] under the density times sigmoid(slope · x + offset)."""
        _, at_nodes = self.sigmoid(slope, offset)
        t, log_weight = hermite_nodes(self.mean)
        weight = log_weight.exp()
        shift = (at_nodes @ (weight * t)) / (at_nodes @ weight)
        return (self.mean + self.scale * shift).unsqueeze(-1)

    def sigmoid(self, slope: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        """Return a shift s ``(..., column)`` and exp(−s) sigmoid(slope · x + offset) at the nodes.

        The shift prevents underflow where a sigmoid is below e⁻⁴⁰ at all nodes.
        """
        t, _ = hermite_nodes(self.mean)
        center, spread = torch.addcmul(offset, self.mean, slope), self.scale * slope
        largest = center.detach() + spread.detach().abs() * t[-1]
        shift = (largest + UNDERFLOW).clamp(max=0.0)
        score = torch.addcmul((center - shift).unsqueeze(-1), spread.unsqueeze(-1), t)
        return shift, torch.sigmoid(score)

    def _at(self, t: Tensor, log_weight: Tensor) -> Nodes:
        x = self.mean.unsqueeze(-1) + self.scale.unsqueeze(-1) * t.to(self.mean)
        return Nodes(x, log_weight.to(self.mean).expand(x.shape))


class NormalBlock(nn.Module):
    """A group of numeric columns; the one feature of a cell is its standardised value."""

    n_nodes = N_NODES

    def __init__(self, n_columns: int, n_members: int, scale: Scale) -> None:
        super().__init__()
        self.n_columns = n_columns
        self.n_features = self.n_statistics = 1
        self.n_outputs = 2 if scale == "network" else 1
        self.scale = scale
        if scale == "learned":
            self.log_scale = nn.Parameter(
                torch.zeros(n_members, 1, 1, 1, n_columns, dtype=torch.float32)
            )
        elif isinstance(scale, float):
            self.fixed = math.log(scale)

    def forward(self, outputs: Tensor) -> Normal:
        """Return the Normal with the outputs as parameters."""
        if self.scale == "network":
            mean, log_scale = outputs.unbind(-1)
            return Normal(mean, floored(log_scale))
        fixed = isinstance(self.scale, float)
        return Normal(outputs.squeeze(-1), self.fixed if fixed else floored(self.log_scale))

    def features(self, x: Tensor) -> Tensor:
        """Return x itself."""
        return x.unsqueeze(-1)

    statistics = features

    def point(self, expected: Tensor) -> Tensor:
        """Return the mean."""
        return expected[..., 0]

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error in standard deviations."""
        return (expected[..., 0] - x).square()

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and loading: the output is the mean."""
        pad = (0, self.n_outputs - 1)
        return nn.functional.pad(mean, pad), nn.functional.pad(loading, pad)

    @torch.no_grad()
    def start_scale(self, scale: Tensor) -> None:
        """Set the learned scales to ``(member, column)``."""
        if self.scale == "learned":
            self.log_scale.copy_(unfloored(scale)[:, None, None, None, :])


class StudentBlock(NormalBlock):
    """Numeric columns with a Student-t likelihood; the output scales the column's learned scale."""

    n_nodes = N_STUDENT_NODES

    def __init__(self, n_columns: int, n_members: int) -> None:
        super().__init__(n_columns, n_members, "learned")
        self.n_outputs = 3

    def forward(self, outputs: Tensor) -> Student:  # type: ignore[override]
        """Return the Student-t with the outputs as parameters."""
        df = MIN_DF + nn.functional.softplus(outputs[..., 2])
        return Student(outputs[..., 0], floored(self.log_scale + outputs[..., 1]), df)

    def start_scale(self, scale: Tensor) -> None:
        """Set the learned scales so that outputs of 0 give these standard deviations."""
        df = MIN_DF + math.log(2.0)
        super().start_scale(scale * math.sqrt((df - 2) / df))


def standardised(values: Floats, center: float | Floats, scale: float | Floats) -> Floats:
    """Return (x − center) / scale, infinity only where the quotient overflows."""
    with np.errstate(over="ignore"):
        found: Floats = np.asarray((values - center) / scale)
        if (far := np.isinf(found)).any():
            # the difference of two large numbers may overflow, that of their halves does not
            center, scale = np.broadcast_to(center, far.shape), np.broadcast_to(scale, far.shape)
            found[far] = (values[far] / 2 - center[far] / 2) / scale[far] * 2
    return found


class Real:
    """Any real number, standardised by the observed mean and standard deviation."""

    name = "real"
    has_levels = False
    likelihood = "normal"
    domain = "numbers"
    limit = X_LIMIT

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Return False: every number is valid."""
        return np.zeros(values.shape, dtype=bool)

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column with center and scale."""
        center, scale = self.summarise(values)
        return replace(column, center=center, scale=scale)

    def summarise(self, values: Floats) -> tuple[float, float]:
        """Return mean and standard deviation (or, if it is 0, |x| up to 1), accurate to 1e±300."""
        largest = float(np.abs(values).max())
        if largest == 0.0:
            return 0.0, 1.0
        unit = values / largest
        center = float(unit.mean())
        deviation = float(np.sqrt(np.mean((unit - center) ** 2)))
        # a constant column has a deviation of a rounding error
        if deviation <= 1e-14:
            return float(values[0]), min(1.0, largest)
        return center * largest, max(deviation * largest, np.finfo(np.float64).tiny)

    def standardise(self, values: Floats, column: Column) -> Floats:
        """Return (x − center) / scale."""
        return standardised(values, column.center, column.scale)

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return center + scale · x."""
        return column.center + column.scale * x

    def log_jacobian(self, column: Column, x: NDArray[np.floating] | float = 0.0) -> Floats:
        """Return −log scale."""
        return np.full(np.shape(x), -math.log(column.scale))

    def group(self, column: Column) -> int:
        """Return 0: all numeric columns share one block."""
        del column
        return 0

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> NormalBlock:
        """Return a Normal or Student-t block."""
        if scale == "student":
            return StudentBlock(len(columns), n_members)
        return NormalBlock(len(columns), n_members, scale)


class Integer(Real):
    """Whole numbers: modelled as real, and rounded in `restore`."""

    name = "integer"

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return the nearest whole number."""
        return np.rint(super().restore(x, column))
