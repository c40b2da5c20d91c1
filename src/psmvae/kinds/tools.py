"""Shared by several likelihoods: scales, quadrature, and the root of an increasing function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from psmvae.kinds.base import Nodes

# At smaller scales of standardised data, rounding errors of float32 dominate importance weights.
MIN_LOG_SCALE = math.log(0.01)
N_BISECTIONS = 45
# An even grid over ±8 standard deviations, fine enough for functions that vary over 0.25 of one.
N_EVEN, EVEN_REACH = 129, 8.0


def floored(log_scale: Tensor) -> Tensor:
    """Return a log scale above `MIN_LOG_SCALE`; unlike a clamp, softplus keeps a gradient there."""
    return MIN_LOG_SCALE + nn.functional.softplus(log_scale - MIN_LOG_SCALE)


def unfloored(scale: Tensor) -> Tensor:
    """Return the number that `floored` maps to the log of a scale."""
    return inverse_softplus((scale.log() - MIN_LOG_SCALE).clamp(min=1e-3)) + MIN_LOG_SCALE


def inverse_softplus(y: Tensor) -> Tensor:
    """Return the number whose softplus is y, for y > 0."""
    return y + log1mexp(y)


def log1mexp(d: Tensor) -> Tensor:
    """Return log(1 − exp(−d)) for d > 0, accurate for small d."""
    return torch.log(-torch.expm1(-d))


def add_constants(module: nn.Module, **constants: Tensor | list[float]) -> None:
    """Register buffers that are not saved; a list, of one number a column, becomes float32."""
    for name, values in constants.items():
        buffer = values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.float32)
        module.register_buffer(name, buffer, persistent=False)


def kl_by_nodes(p: Any, q: Any) -> Tensor:
    """Return KL(p || q) of each cell by quadrature at the nodes of p."""
    nodes: Nodes = p.nodes()
    log_ratio: Tensor = p.at_nodes().log_prob(nodes.x) - q.at_nodes().log_prob(nodes.x)
    return (nodes.log_weight.exp() * log_ratio).sum(-1)


def invert(nodes: Nodes, weight: Tensor, uniform: Tensor) -> Tensor:
    """Return the node where the cumulative weight exceeds u, interpolated if x is continuous."""
    cumulative = weight.cumsum(-1)
    passed = (uniform.unsqueeze(-1) >= cumulative).sum(-1, keepdim=True)
    # rounding may leave the last cumulative weight below 1: do not pick a node of zero weight
    last = (weight > 0).long().cumsum(-1).argmax(-1, keepdim=True)
    index = torch.minimum(passed, last)

    def at_index(values: Tensor) -> Tensor:
        return values.expand(*index.shape[:-1], weight.shape[-1]).gather(-1, index)

    x = at_index(nodes.x)
    if nodes.step is not None:
        mass = at_index(weight)
        share = (uniform.unsqueeze(-1) - at_index(cumulative) + mass) / mass
        x = x + (share.clamp(0, 1) - 0.5) * at_index(nodes.step)
    return (x.round() if nodes.whole else x).squeeze(-1)


def normal_mean(f: Callable[[Tensor], Tensor], center: Tensor, spread: Tensor) -> Tensor:
    """Return E[f(center + spread · Z)] for Z ~ N(0, 1), elementwise in float64."""
    t = torch.linspace(-EVEN_REACH, EVEN_REACH, N_EVEN, dtype=torch.float64, device=center.device)
    weight = torch.softmax(-0.5 * t.square(), 0)
    return (weight * f(center.unsqueeze(-1) + spread.unsqueeze(-1) * t)).sum(-1)


def solve_increasing(
    f: Callable[[Tensor], Tensor], target: Tensor, low: float, high: float
) -> Tensor:
    """Return where each element of an increasing f equals its target, by bisection."""
    below, above = torch.full_like(target, low), torch.full_like(target, high)
    for _ in range(N_BISECTIONS):
        midpoint = (below + above) / 2
        less = f(midpoint) < target
        below, above = torch.where(less, midpoint, below), torch.where(less, above, midpoint)
    return (below + above) / 2
