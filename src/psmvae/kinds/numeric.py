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

from psmvae.kinds.base import X_LIMIT, Column, Nodes, Scale
from psmvae.kinds.student import MIN_DF, N_STUDENT_NODES, Student
from psmvae.kinds.tools import floored, gauss_hermite, kl_by_nodes, unfloored

LOG_2PI = math.log(2 * math.pi)
N_NODES = 15
N_FINE_NODES = 129
FINE_REACH = 6.0
FAR_OUT = 40.0


# The nodes on each device, once they were asked for: a captured step may not fetch them. PyTorch's
# compiler looks things up in a dictionary; what `functools.cache` remembers it would run again.
KEPT_NODES: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor]] = {}


def hermite_nodes(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes and log weights on a device."""
    kept = KEPT_NODES.get((dtype, device))
    if kept is None:
        t, log_weight = (torch.tensor(part).to(device, dtype) for part in gauss_hermite(N_NODES))
        kept = KEPT_NODES[dtype, device] = (t, log_weight)
    return kept


@overload
def exp(value: Tensor) -> Tensor: ...
@overload
def exp(value: float) -> float: ...
def exp(value: Tensor | float) -> Tensor | float:
    """The exponential of a tensor or of a plain number."""
    return math.exp(value) if isinstance(value, float) else torch.exp(value)


@dataclass(frozen=True)
class Normal:
    """N(mean, scale²) a cell; ``log_scale`` broadcasts against ``mean``.

    A fixed scale is a plain number: arithmetic with it costs nothing.
    """

    mean: Tensor
    log_scale: Tensor | float

    def log_prob(self, x: Tensor) -> Tensor:
        """-½((x − μ)/σ)² − log σ − ½ log 2π."""
        # the constants are of the scale's size, which is small
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
        """E[x] = μ."""
        return self.mean.unsqueeze(-1)

    def kl(self, other: Normal | Student) -> Tensor:
        """log(σ₂/σ₁) + (σ₁² + (μ₁ − μ₂)²) / 2σ₂² − ½; by quadrature for a Student-t."""
        if isinstance(other, Student):
            return kl_by_nodes(self, other)
        log_ratio = self.log_scale - other.log_scale
        shift = (self.mean - other.mean) * exp(-other.log_scale)
        squares = shift.square() + exp(2 * log_ratio)
        return 0.5 * squares - (log_ratio + 0.5)

    def nodes(self) -> Nodes:
        """Gauss–Hermite: exact for polynomials up to degree 29."""
        t, log_weight = hermite_nodes(self.mean.dtype, self.mean.device)
        return self._at(t, log_weight)

    def fine_nodes(self) -> Nodes:
        """An even grid over ±6σ, weighted by the density."""
        t = torch.linspace(-FINE_REACH, FINE_REACH, N_FINE_NODES, dtype=torch.float64)
        nodes = self._at(t, torch.log_softmax(-0.5 * t.square(), dim=0))
        step = self.scale * (2 * FINE_REACH / (N_FINE_NODES - 1))
        return nodes._replace(step=step.unsqueeze(-1))

    def sample(self, uniform: Tensor) -> Tensor:
        """μ + σ Φ⁻¹(u)."""
        inside = uniform.clamp(1e-7, 1 - 1e-7)
        standard: Tensor = torch.special.ndtri(inside)
        return self.mean + exp(self.log_scale) * standard

    def at_nodes(self) -> Normal:
        """The same with an axis for nodes at the end."""
        fixed = isinstance(self.log_scale, float)
        log_scale = self.log_scale if fixed else self.scale.log().unsqueeze(-1)
        return Normal(self.mean.unsqueeze(-1), log_scale)

    def log_mean_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Log E[sigmoid(slope · x + offset)] by `nodes`, without values for each of them."""
        shift, at_nodes = self.sigmoid(slope, offset)
        _, log_weight = hermite_nodes(self.mean.dtype, self.mean.device)
        return shift + torch.log(at_nodes @ log_weight.exp())

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """E[statistics(x)] where the density is multiplied by sigmoid(slope · x + offset)."""
        _, at_nodes = self.sigmoid(slope, offset)
        t, log_weight = hermite_nodes(self.mean.dtype, self.mean.device)
        weight = log_weight.exp()
        mean = self.mean + self.scale * ((at_nodes @ (weight * t)) / (at_nodes @ weight))
        return mean.unsqueeze(-1)

    def sigmoid(self, slope: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
        """A shift s ``(..., column)`` and exp(−s) sigmoid(slope · x + offset) at the nodes.

        Where a sigmoid is below e⁻⁴⁰ at all nodes it is the exponential function for all that
        float64 can tell, and is shifted up so that it does not vanish.
        """
        t, _ = hermite_nodes(self.mean.dtype, self.mean.device)
        center, spread = torch.addcmul(offset, self.mean, slope), self.scale * slope
        largest = center.detach() + spread.detach().abs() * t[-1]
        shift = (largest + FAR_OUT).clamp(max=0.0)
        score = torch.addcmul((center - shift).unsqueeze(-1), spread.unsqueeze(-1), t)
        return shift, torch.sigmoid(score)

    def _at(self, t: Tensor, log_weight: Tensor) -> Nodes:
        t = t.to(self.mean)
        x = self.mean.unsqueeze(-1) + self.scale.unsqueeze(-1) * t
        return Nodes(x, log_weight.to(self.mean).expand(x.shape))


class NormalBlock(nn.Module):
    """A group of numeric columns; a cell is one feature, the standardised value itself."""

    n_nodes = N_NODES

    def __init__(self, n_columns: int, n_members: int, scale: Scale) -> None:
        super().__init__()
        self.n_columns = n_columns
        self.n_features = self.n_statistics = 1
        self.n_outputs = 2 if scale == "network" else 1
        self.scale = scale
        if scale == "learned":
            self.log_scale = nn.Parameter(torch.zeros(n_members, 1, 1, 1, n_columns))
        elif isinstance(scale, float):
            self.fixed = math.log(scale)

    def forward(self, outputs: Tensor) -> Normal:
        """The Normal that a network's outputs stand for."""
        if self.scale == "network":
            mean, log_scale = outputs.unbind(-1)
            return Normal(mean, floored(log_scale))
        if isinstance(self.scale, float):
            return Normal(outputs.squeeze(-1), self.fixed)
        return Normal(outputs.squeeze(-1), floored(self.log_scale))

    def features(self, x: Tensor) -> Tensor:
        """The value itself."""
        return x.unsqueeze(-1)

    def statistics(self, x: Tensor) -> Tensor:
        """The value itself."""
        return x.unsqueeze(-1)

    def point(self, expected: Tensor) -> Tensor:
        """The mean."""
        return expected[..., 0]

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Squared error in standard deviations."""
        return (expected[..., 0] - x).square()

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """The identity: outputs are the mean."""
        pad = (0, self.n_outputs - 1)
        return nn.functional.pad(mean, pad), nn.functional.pad(loading, pad)

    @torch.no_grad()
    def start_scale(self, scale: Tensor) -> None:
        """Set the learned scales, ``(member, column)``."""
        if self.scale == "learned":
            self.log_scale.copy_(unfloored(scale)[:, None, None, None, :])


class StudentBlock(NormalBlock):
    """A group of numeric columns with a Student-t likelihood.

    The network gives location, scale (as a factor of one learned for the column) and degrees of
    freedom of each cell.
    """

    n_nodes = N_STUDENT_NODES

    def __init__(self, n_columns: int, n_members: int) -> None:
        super().__init__(n_columns, n_members, "learned")
        self.n_outputs = 3

    def forward(self, outputs: Tensor) -> Student:  # type: ignore[override]
        """The Student-t that a network's outputs stand for."""
        df = MIN_DF + nn.functional.softplus(outputs[..., 2])
        return Student(outputs[..., 0], floored(self.log_scale + outputs[..., 1]), df)

    def start_scale(self, scale: Tensor) -> None:
        """Set the scales so that outputs of 0 have these standard deviations."""
        df = MIN_DF + math.log(2.0)
        super().start_scale(scale * math.sqrt((df - 2) / df))


class Real:
    """Any real number, standardised by its observed mean and deviation."""

    name = "real"
    has_levels = False
    likelihood = "normal"
    domain = "numbers"
    limit = X_LIMIT

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Any number will do."""
        return np.zeros(values.shape, dtype=bool)

    def learn(self, values: NDArray[np.float64], column: Column) -> Column:
        """Center and scale."""
        center, scale = self.summarise(values)
        return replace(column, center=center, scale=scale)

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

    def log_jacobian(
        self, column: Column, x: NDArray[np.floating] | float = 0.0
    ) -> NDArray[np.float64]:
        """−log scale."""
        return np.full(np.shape(x), -math.log(column.scale))

    def group(self, column: Column) -> int:
        """All numeric columns share one block."""
        del column
        return 0

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> NormalBlock:
        """A Normal block, or a Student-t one."""
        if scale == "student":
            return StudentBlock(len(columns), n_members)
        return NormalBlock(len(columns), n_members, scale)


class Integer(Real):
    """Whole numbers: modelled as real, rounded on the way out."""

    name = "integer"

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """The nearest whole number."""
        return np.rint(super().restore(x, column))
