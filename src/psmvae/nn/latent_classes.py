"""Latent class analysis of masks: p(m) = Σ_r p(r) Π_j p(m_j | r).

The sets of a model are initialised as these classes. Early stopping on the validation error ends
training when x is learned, which may be before sets have formed from random initial weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from psmvae.nn.noise import Noise

# Pseudo-counts of a column's missing rate in a class and of a class: keep both away from 0 and 1.
RATE_COUNT = 0.5
CLASS_COUNT = 1.0
MIN_RATE = 1e-4
# Random starts of EM, its maximum number of steps, and the maximum number of rows.
N_STARTS = 8
MAX_ITER = 200
MAX_ROWS = 5000
# Tolerance of EM in `count_classes`, far below the gain in log-likelihood that BIC requires.
COUNT_TOL = 1e-4


class LatentClasses(NamedTuple):
    """p(r) ``(..., set)`` and the missing rates p(m_j = 0 | r) ``(..., set, column)``."""

    share: Tensor
    rate: Tensor


def log_joint(classes: LatentClasses, m: Tensor) -> Tensor:
    """Log p(r) p(m | r) of masks ``(member, row, column)``: ``(member, row, set)``."""
    missing, observed = classes.rate.log(), torch.log1p(-classes.rate)
    constant = (missing.sum(-1) + classes.share.log()).unsqueeze(1)
    return m @ (observed - missing).mT + constant


def fit_latent_classes(m: Tensor, n_sets: int, noise: Noise, *, tol: float = 1e-6) -> LatentClasses:
    """Fit classes of masks ``(row, column)`` by EM and return the best of several starts."""
    classes = _starts(m, n_sets, noise)
    previous = torch.full((N_STARTS,), -torch.inf, dtype=m.dtype, device=m.device)
    for _ in range(MAX_ITER):
        classes, log_likelihood = _em_step(classes, m)
        if bool((log_likelihood - previous < tol).all()):
            break
        previous = log_likelihood
    best = int(previous.argmax())
    return LatentClasses(classes.share[best], classes.rate[best])


def _starts(m: Tensor, n_sets: int, noise: Noise) -> LatentClasses:
    """Initial classes of all starts, ``(start, set)`` and ``(start, set, column)``.

    The rates of a class are halfway between one mask and the overall rates. Half of the starts use
    masks of random rows, the others random distinct masks, because a class may be rare.
    """
    distinct, half = m.unique(dim=0), N_STARTS // 2
    cycle = torch.arange(n_sets, device=m.device) % len(distinct)
    chosen = noise.shuffles(half, len(distinct))[:, cycle]
    masks = torch.cat([m[noise.uniform(half, n_sets, len(m)).argmax(-1)], distinct[chosen]])
    rate = 0.5 * (1 - masks) + 0.5 * (1 - m).mean(0)
    share = m.new_full((N_STARTS, n_sets), 1 / n_sets)
    return LatentClasses(share, rate.clamp(MIN_RATE, 1 - MIN_RATE))


def _em_step(classes: LatentClasses, m: Tensor) -> tuple[LatentClasses, Tensor]:
    """One EM step of all starts, and the mean log-likelihood ``(start,)`` before it."""
    n_starts, n_sets = classes.share.shape
    # all starts in one matrix product, so the masks are not copied for each start
    stacked = LatentClasses(classes.share.flatten()[None], classes.rate.flatten(0, 1)[None])
    joint = log_joint(stacked, m[None])[0].unflatten(1, (n_starts, n_sets))
    total = torch.logsumexp(joint, -1)
    q = (joint - total.unsqueeze(-1)).exp()
    count = q.sum(0)
    observed = (q.flatten(1).mT @ m).unflatten(0, (n_starts, n_sets))
    missing = (count.unsqueeze(-1) - observed).clamp(min=0)
    rate = (missing + RATE_COUNT * (1 - m).mean(0)) / (count + RATE_COUNT).unsqueeze(-1)
    share = (count + CLASS_COUNT) / (len(m) + CLASS_COUNT * n_sets)
    return LatentClasses(share, rate.clamp(MIN_RATE, 1 - MIN_RATE)), total.mean(0)


def count_classes(m: Tensor, most: int, noise: Noise) -> int:
    """Choose the number of classes of masks ``(row, column)`` by BIC, adding while it falls.

    Columns that are missing independently of each other, at any rates, are one class.
    """
    if len(m) > MAX_ROWS:
        m = m[noise.shuffles(1, len(m))[0, :MAX_ROWS]]
    m = m.double()
    # columns that are always or never observed carry no information about classes
    m = m[:, m.amin(0) < m.amax(0)]
    n_rows, n_columns = m.shape
    if n_columns < 2:
        return 1
    chosen, lowest = 1, math.inf
    for n_classes in range(1, most + 1):
        classes = fit_latent_classes(m, n_classes, noise, tol=COUNT_TOL)
        batched = LatentClasses(*(c[None] for c in classes))
        log_likelihood = torch.logsumexp(log_joint(batched, m[None]), -1)
        n_parameters = n_classes * n_columns + n_classes - 1
        bic = n_parameters * math.log(n_rows) - 2 * float(log_likelihood.sum())
        if bic >= lowest:
            break
        chosen, lowest = n_classes, bic
    return chosen


class ClassPosterior(nn.Module):
    """log p(r | m) under fixed latent classes, up to a constant: the initial logits of q(r | m)."""

    share: Tensor
    rate: Tensor

    def __init__(self, n_members: int, n_sets: int, n_columns: int) -> None:
        super().__init__()
        self.register_buffer(
            "share", torch.full((n_members, n_sets), 1 / n_sets, dtype=torch.float32)
        )
        self.register_buffer(
            "rate", torch.full((n_members, n_sets, n_columns), 0.5, dtype=torch.float32)
        )

    def start(self, m: Tensor, noise: Noise) -> LatentClasses:
        """Fit to masks ``(row, column)`` or ``(member, row, column)``, each member separately."""
        n_members, n_sets = self.share.shape
        masks = m.double().expand(n_members, -1, -1)
        fits = [fit_latent_classes(mask, n_sets, noise) for mask in masks]
        self.share.copy_(torch.stack([fit.share for fit in fits]))
        self.rate.copy_(torch.stack([fit.rate for fit in fits]))
        return LatentClasses(self.share, self.rate)

    def forward(self, m: Tensor) -> Tensor:
        """Log p(r) p(m | r) of masks ``(member, row, column)``: ``(member, row, set)``."""
        return log_joint(LatentClasses(self.share, self.rate), m)
