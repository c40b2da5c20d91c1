"""Shared by several likelihoods: scales, quadrature, and the root of an increasing function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from psmvae.kinds.block import Nodes

# Below this standard deviation (of standardised data) rounding errors of float32 dominate the
# importance weights.
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


def constants(values: list[float]) -> Tensor:
    """Return one number a column as float32, for a buffer."""
    return torch.tensor(values, dtype=torch.float32)


@cache
def gauss_hermite(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and log weights for expectations under N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights / math.sqrt(2 * math.pi))


def kl_by_nodes(p: Any, q: Any) -> Tensor:
    """Return KL(p || q) of each cell by quadrature at the nodes of p."""
    nodes = p.nodes()
    log_ratio: Tensor = p.at_nodes().log_prob(nodes.x) - q.at_nodes().log_prob(nodes.x)
    weight: Tensor = nodes.log_weight.exp()
    return (weight * log_ratio).sum(-1)


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
        step = at_index(nodes.step)
        x = x + (share.clamp(0, 1) - 0.5) * step
    if nodes.whole:
        x = x.round()
    return x.squeeze(-1)


def normal_mean(f: Callable[[Tensor], Tensor], center: Tensor, spread: Tensor) -> Tensor:
    """Return E[f(center + spread · Z)] for Z ~ N(0, 1), elementwise in float64."""
    t = torch.linspace(-EVEN_REACH, EVEN_REACH, N_EVEN, dtype=torch.float64, device=center.device)
    weight = torch.softmax(-0.5 * t.square(), 0)
    return (weight * f(center.unsqueeze(-1) + spread.unsqueeze(-1) * t)).sum(-1)


def solve_increasing(
    f: Callable[[Tensor], Tensor], target: Tensor, low: float, high: float
) -> Tensor:
    """Return where each element of an increasing f equals its target, by bisection of [low, high]."""
    below, above = torch.full_like(target, low), torch.full_like(target, high)
    for _ in range(N_BISECTIONS):
        midpoint = (below + above) / 2
        less = f(midpoint) < target
        below, above = torch.where(less, midpoint, below), torch.where(less, above, midpoint)
    return (below + above) / 2
