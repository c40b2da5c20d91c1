"""Latent class analysis of masks: sets r with p(m | r) = Π_j p(m_j | r), where sets start.

The error on held-out cells stops training when x is learned, which may be long before sets would
have formed from random weights. So they start as the classes the masks themselves show.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from psmvae.nn.noise import Noise

# Prior counts of a column's rate in a class, and of a class: keep both off 0 and 1.
RATE_COUNT = 0.5
CLASS_COUNT = 1.0
N_STARTS = 8
MAX_ITER = 200
# Rows that are looked at.
MAX_ROWS = 5000
# When the log-likelihood a row is level, for counting: far below what a class more must gain.
COUNT_TOL = 1e-4


class LatentClasses(NamedTuple):
    """Share of each class ``(..., set)`` and missing rate of its columns ``(..., set, column)``."""

    share: Tensor
    rate: Tensor


def log_joint(classes: LatentClasses, m: Tensor) -> Tensor:
    """Log p(r) p(m | r) for masks ``(member, row, column)``: ``(member, row, set)``."""
    missing, observed = classes.rate.log(), torch.log1p(-classes.rate)
    per_class = m @ (observed - missing).mT
    return per_class + (missing.sum(-1) + classes.share.log()).unsqueeze(1)


def fit_latent_classes(m: Tensor, n_sets: int, noise: Noise, *, tol: float = 1e-6) -> LatentClasses:
    """Classes of masks by EM, the best of several starts for each member.

    Parameters
    ----------
    m : Tensor
        Masks, 1 observed, ``(row, column)``, float64.
    n_sets : int
        Number of classes.
    noise : Noise
        Each start begins near a few of the masks.
    tol : float
        Stops when no start's log-likelihood a row rises by more than this.
    """
    n_rows = m.shape[0]
    overall = (1 - m).mean(0)
    # half of the starts take masks of random rows, half any masks there are: a class may be rare
    kinds, half = m.unique(dim=0), N_STARTS // 2
    some = noise.shuffles(half, len(kinds))[:, torch.arange(n_sets, device=m.device) % len(kinds)]
    first = torch.cat([m[noise.uniform(half, n_sets, n_rows).argmax(-1)], kinds[some]])
    # drawn towards the overall rates: classes that differ, none of them certain
    rate = 0.5 * (1 - first) + 0.5 * overall
    share = m.new_full((N_STARTS, n_sets), 1 / n_sets)

    def within(rate: Tensor) -> Tensor:
        return rate.clamp(1e-4, 1 - 1e-4)

    classes = LatentClasses(share, within(rate))
    previous = torch.full((N_STARTS,), -torch.inf, dtype=m.dtype, device=m.device)
    for _ in range(MAX_ITER):
        # one product with the classes of all starts side by side: the table is not copied for each
        together = LatentClasses(classes.share.flatten()[None], classes.rate.flatten(0, 1)[None])
        joint = log_joint(together, m[None])[0].unflatten(1, (N_STARTS, n_sets))
        total = torch.logsumexp(joint, -1)
        likelihood = total.mean(0)
        q = (joint - total.unsqueeze(-1)).exp()
        count = q.sum(0)
        observed = (q.flatten(1).mT @ m).unflatten(0, (N_STARTS, n_sets))
        missing = (count.unsqueeze(-1) - observed).clamp(min=0)
        rate = (missing + RATE_COUNT * overall) / (count + RATE_COUNT).unsqueeze(-1)
        share = (count + CLASS_COUNT) / (n_rows + CLASS_COUNT * n_sets)
        classes = LatentClasses(share, within(rate))
        if bool((likelihood - previous < tol).all()):
            break
        previous = likelihood
    best = int(previous.argmax())
    return LatentClasses(classes.share[best], classes.rate[best])


def count_classes(m: Tensor, most: int, noise: Noise) -> int:
    """How many classes the masks bear out: one more for as long as BIC falls, one at least.

    Cells that go missing by themselves, at whatever rates, are one class.

    Parameters
    ----------
    m : Tensor
        Masks, 1 observed, ``(row, column)``, of any type.
    most : int
        The largest number tried.
    noise : Noise
        Chooses among many rows, and where EM starts.

    Examples
    --------
    >>> from psmvae.nn.noise import Noise
    >>> noise = Noise(0)
    >>> alone = noise.uniform(1000, 6) < 0.8
    >>> together = noise.uniform(1000, 1).expand(-1, 6) < 0.8
    >>> [count_classes(m, 4, noise) for m in (alone, alone & together)]
    [1, 2]
    """
    if len(m) > MAX_ROWS:
        m = m[noise.shuffles(1, len(m))[0, :MAX_ROWS]]
    m = m.double()
    # a column that is always there, or never, says nothing
    rate = (1 - m).mean(0)
    m = m[:, (rate > 0) & (rate < 1)]
    n_rows, n_columns = m.shape
    if n_columns < 2:
        # nothing that could go missing together
        return 1
    chosen, least = 1, math.inf
    for n_classes in range(1, most + 1):
        classes = fit_latent_classes(m, n_classes, noise, tol=COUNT_TOL)
        fit = torch.logsumexp(log_joint(LatentClasses(*(c[None] for c in classes)), m[None]), -1)
        free = n_classes * n_columns + n_classes - 1
        bic = free * math.log(n_rows) - 2 * float(fit.sum())
        if bic >= least:
            break
        chosen, least = n_classes, bic
    return chosen


class ClassPosterior(nn.Module):
    """Log p(r | m) under the classes the sets started from, frozen, up to a constant."""

    share: Tensor
    rate: Tensor

    def __init__(self, n_members: int, n_sets: int, n_columns: int) -> None:
        super().__init__()
        self.register_buffer("share", torch.full((n_members, n_sets), 1 / n_sets))
        self.register_buffer("rate", torch.full((n_members, n_sets, n_columns), 0.5))

    def start(self, m: Tensor, noise: Noise) -> LatentClasses:
        """Fit to the masks ``(row, column)`` or a member's own, each from starts of its own."""
        n_members, n_sets = self.share.shape
        masks = m.double().expand(n_members, -1, -1)
        fits = [fit_latent_classes(mask, n_sets, noise) for mask in masks]
        self.share.copy_(torch.stack([fit.share for fit in fits]))
        self.rate.copy_(torch.stack([fit.rate for fit in fits]))
        return LatentClasses(self.share, self.rate)

    def forward(self, m: Tensor) -> Tensor:
        """Log p(r) p(m | r), ``(member, row, set)``."""
        return log_joint(LatentClasses(self.share, self.rate), m)
