"""Count columns: 0, 1, 2, … with a negative binomial or a Poisson likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from psmvae.kinds.base import Column, Floats, Nodes, Scale
from psmvae.kinds.numeric import Real
from psmvae.kinds.tools import add_constants, invert, log1mexp, normal_mean, solve_increasing

N_COUNT_NODES, N_FINE_COUNT_NODES = 32, 64
# Bounds of the mean of a cell: almost never, and more than float32 resolves to one.
MIN_LOG1P_MEAN, MAX_COUNT = 1e-6, 1e9
# Bounds of the size: nearly all counts are zero; 0.1 % more than the variance of a Poisson.
MIN_SIZE, MAX_SIZE_OF_MEAN = 0.01, 1000.0
# Sharpness of the softplus that keeps log(1 + mean) positive, per standard deviation; the largest
# factor by which initial loadings compensate for its slope.
SHARPNESS, MAX_GAIN = 2.0, 3.0


@dataclass(frozen=True)
class NegativeBinomial:
    """Mean μ and size r of each cell: the variance is μ + μ²/r. Without a size, a Poisson."""

    log_mean: Tensor
    log_size: Tensor | None

    def log_prob(self, x: Tensor) -> Tensor:
        """Return log Γ(x+r)/(Γ(r) x!) + r log r/(r+μ) + x log μ/(r+μ); or x log μ − μ − log x!."""
        count = x.double()
        return (self.log_kernel(count) - torch.lgamma(count + 1)).to(self.log_mean.dtype)

    def log_kernel(self, count: Tensor) -> Tensor:
        """Return log p(x) + log x!, in float64 because large terms cancel."""
        log_mean = self.log_mean.double()
        if self.log_size is None:
            return count * log_mean - torch.exp(log_mean)
        log_size = self.log_size.double()
        size, log_odds = torch.exp(log_size), log_mean - log_size
        ways = torch.lgamma(count + size) - torch.lgamma(size)
        return ways - size * softplus(log_odds) - count * softplus(-log_odds)

    def expected(self) -> Tensor:
        """Return E[x] = μ."""
        return torch.exp(self.log_mean).unsqueeze(-1)

    def kl(self, other: NegativeBinomial) -> Tensor:
        """Return μ₁ log μ₁/μ₂ − μ₁ + μ₂ between Poissons; quadrature otherwise."""
        if self.log_size is None and other.log_size is None:
            log_ratio = self.log_mean - other.log_mean
            # in this form large means do not cancel
            return torch.exp(self.log_mean) * (log_ratio + torch.expm1(-log_ratio))
        x, log_width = self._bins(N_COUNT_NODES)
        log_p, log_q = self.at_nodes().log_kernel(x), other.at_nodes().log_kernel(x)
        weight = torch.softmax(log_p - torch.lgamma(x + 1) + log_width, -1)
        return (weight * (log_p - log_q)).sum(-1).to(self.log_mean.dtype)

    def nodes(self) -> Nodes:
        """Return all counts if they are few, and midpoints of bins otherwise."""
        return self._grid(N_COUNT_NODES)

    def fine_nodes(self) -> Nodes:
        """Return the same with more bins."""
        return self._grid(N_FINE_COUNT_NODES)

    def sample(self, uniform: Tensor) -> Tensor:
        """Return the count where the cumulative probability exceeds u; exact if counts are few."""
        nodes = self.fine_nodes()
        return invert(nodes, nodes.log_weight.exp(), uniform)

    def at_nodes(self) -> NegativeBinomial:
        """Return the same distribution with a last axis for nodes."""
        log_size = None if self.log_size is None else self.log_size.unsqueeze(-1)
        return NegativeBinomial(self.log_mean.unsqueeze(-1), log_size)

    def _grid(self, n: int) -> Nodes:
        x, log_width = self._bins(n)
        log_p = self.at_nodes().log_kernel(x) - torch.lgamma(x + 1)
        log_weight, dtype = torch.log_softmax(log_p + log_width, -1), self.log_mean.dtype
        return Nodes(x.to(dtype), log_weight.to(dtype), log_width.exp().to(dtype), whole=True)

    @torch.no_grad()
    def _bins(self, n: int) -> tuple[Tensor, Tensor]:
        """Return midpoints and log widths of ``n`` bins that cover all but about 1e-6; float64.

        Edges of bins are evenly spaced in 2 √r asinh √(x/r), the variance-stabilising transform,
        rounded, and at least 1 apart.
        """
        mean = torch.exp(self.log_mean.double()).unsqueeze(-1)
        size = 1e6 * (1 + mean)
        if self.log_size is not None:
            size = torch.exp(self.log_size.double()).unsqueeze(-1)
        root = 2 * size.sqrt()

        def even(count: Tensor) -> Tensor:
            return root * torch.asinh((count / size).sqrt())

        def count(even: Tensor) -> Tensor:
            return size * torch.sinh(even / root).square()

        # 6 standard deviations, and more for the tails: exponential above, a power of x below
        high = mean + 6 * (mean + mean.square() / size).sqrt() + 8 * (1 + mean / size)
        first = count((even(mean) - 6 - 32 / root).clamp(min=0)).floor()
        share = torch.linspace(0, 1, n + 1, dtype=torch.float64, device=mean.device)
        low = even(first)
        edges = (count(low + (even(high) - low) * share) - first).round()
        edges = torch.maximum(edges, torch.arange(n + 1, device=mean.device))
        width = edges.diff(dim=-1)
        return first + edges[..., :-1] + 0.5 * (width - 1), width.log()


class CountBlock(nn.Module):
    """A group of count columns; a model value is the count itself.

    The feature is the standardised log(1 + x). The mean is on the same scale: log(1 + mean) is the
    softplus of center + scale · output. So the mean of rare events is about linear in the output,
    and that of large counts log-linear. The size is a parameter of each column or an output of the
    network. A fixed scale gives a Poisson, because counts have no such scale.
    """

    n_nodes = N_COUNT_NODES
    center: Tensor
    width: Tensor
    mean: Tensor
    deviation: Tensor
    start_size: Tensor
    log_sizes: Tensor

    def __init__(self, columns: Sequence[Column], n_members: int, scale: Scale) -> None:
        super().__init__()
        self.n_columns = len(columns)
        self.n_features = self.n_statistics = 1
        from_network = scale in ("network", "student")
        self.n_outputs = 2 if from_network else 1
        self.scale = "network" if from_network else scale
        # a column of zeros has a mean of half a count in all rows
        mean = [max(c.mean, 0.5 / max(c.n_observed, 1)) for c in columns]
        bounds = [[math.log(MIN_SIZE), math.log(MAX_SIZE_OF_MEAN * max(m, 1.0))] for m in mean]
        center, width = [c.center for c in columns], [c.scale for c in columns]
        deviation, log_sizes = (
            [c.deviation for c in columns],
            torch.tensor(bounds, dtype=torch.float32).T,
        )
        add_constants(self, center=center, width=width, mean=mean)
        add_constants(self, deviation=deviation, log_sizes=log_sizes)
        add_constants(
            self, start_size=self._raw_size(torch.ones(self.n_columns, dtype=torch.float32))
        )
        if scale == "learned":
            self.size = nn.Parameter(self.start_size.expand(n_members, 1, 1, 1, -1).clone())

    def forward(self, outputs: Tensor) -> NegativeBinomial:
        """Return the distribution with the outputs as parameters."""
        log_mean = self._log_mean(outputs[..., 0])
        if isinstance(self.scale, float):
            return NegativeBinomial(log_mean, None)
        raw = self.start_size + outputs[..., 1] if self.scale == "network" else self.size
        low, high = self.log_sizes
        return NegativeBinomial(log_mean, low + (high - low) * torch.sigmoid(raw))

    def features(self, x: Tensor) -> Tensor:
        """Return the standardised log(1 + x)."""
        return ((torch.log1p(x) - self.center) / self.width).unsqueeze(-1)

    def statistics(self, x: Tensor) -> Tensor:
        """Return the count itself."""
        return x.unsqueeze(-1)

    def point(self, expected: Tensor) -> Tensor:
        """Return the mean, which `Count.restore` rounds."""
        return expected[..., 0]

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error in standard deviations."""
        return ((expected[..., 0] - x) / self.deviation).square()

    @torch.no_grad()
    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs with the slope of log(1 + mean) and the observed mean over z ~ N(0, I)."""
        slope = -torch.expm1(-SHARPNESS * torch.log1p(self.mean) / self.width)
        loading = loading / slope.clamp(min=1 / MAX_GAIN).unsqueeze(-1)
        spread = loading[..., 0].double().square().sum(1).sqrt()
        target = self.mean.to(spread).log().expand(spread.shape)

        def log_mean(bias: Tensor) -> Tensor:
            return normal_mean(lambda o: self._log_mean(o.mT).mT.exp(), bias, spread).log()

        bias = solve_increasing(log_mean, target, -100.0, 100.0)
        more = (0, self.n_outputs - 1)
        return pad(mean + bias.to(mean.dtype).unsqueeze(-1), more), pad(loading, more)

    @torch.no_grad()
    def start_scale(self, scale: Tensor) -> None:
        """Set the size so that z leaves the same share of variance as of the feature."""
        if self.scale == "learned":
            self.size.copy_(self._raw_size(scale.square().clamp(max=1.0))[:, None, None, None, :])

    def _log_mean(self, output: Tensor) -> Tensor:
        positive = softplus(self.center / self.width + output, beta=SHARPNESS)
        log1p_mean = (MIN_LOG1P_MEAN + self.width * positive).clamp(max=math.log(MAX_COUNT))
        return log1p_mean + log1mexp(log1p_mean)

    def _raw_size(self, share: Tensor) -> Tensor:
        """Return the logit of r with share · variance = E[μ + μ²/r], the rest being Var μ."""
        variance, mean = self.deviation.square(), self.mean
        excess = share * variance - mean
        log_size = (mean.square() + (1 - share) * variance).log() - excess.clamp(min=1e-30).log()
        low, high = self.log_sizes
        # away from the bounds, where the sigmoid has no gradient
        return torch.logit(((log_size - low) / (high - low)).clamp(0.05, 0.95))


class Count(Real):
    """Counts, which are whole numbers from 0."""

    name = "count"
    likelihood = "count"
    domain = "whole numbers from 0"
    limit = MAX_COUNT

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Return where a value is negative or not whole."""
        return (values < 0) | (values % 1 > 0)

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column with center and scale of log(1 + x), mean and deviation of x."""
        center, scale = self.summarise(np.log1p(values))
        mean, deviation = self.summarise(values)
        return replace(column, center=center, scale=scale, mean=mean, deviation=deviation)

    def standardise(self, values: Floats, column: Column) -> Floats:
        """Return the count itself."""
        del column
        return values

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return the nearest count."""
        del column
        return np.maximum(np.rint(x), 0.0)

    def log_jacobian(self, column: Column, x: NDArray[np.floating] | float = 0.0) -> Floats:
        """Return 0: probabilities have no units."""
        del column
        return np.zeros(np.shape(x))

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> CountBlock:  # type: ignore[override]
        """Return a negative binomial block, or a Poisson block if the scale is fixed."""
        return CountBlock(columns, n_members, scale)
