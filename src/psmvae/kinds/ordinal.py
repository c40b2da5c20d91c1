"""Ordinal columns: levels in an order, with a cumulative logit likelihood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from psmvae.kinds import tools
from psmvae.kinds.base import Column, Floats, Scale
from psmvae.kinds.levels import Categorical, Levels
from psmvae.kinds.numeric import Real

# Smallest distance of thresholds, so that the level between them has a positive probability.
MIN_GAP = 1e-4
# Smallest initial share of a level. A bool column has both levels even if only one is observed.
MIN_SHARE = 1e-6
LOGISTIC_DEVIATION = math.pi / math.sqrt(3)
# Smallest noise variance of a feature in `linear_start`, as in the factor analysis.
MIN_PSI = 0.03
MAX_THRESHOLD = 200.0


def _shares(column: Column) -> Floats:
    """Return positive shares of the levels; equal ones if the column has none."""
    share: Floats = np.maximum(column.shares or np.ones(max(column.n_levels, 1)), MIN_SHARE)
    return np.asarray(share / share.sum())


def _scores(share: Floats) -> Floats:
    """Return normal scores: the Normal quantile of each level's mid-rank, standardised."""
    rank = np.cumsum(share) - share / 2
    score = np.array([NormalDist().inv_cdf(p) for p in np.clip(rank, 1e-9, 1 - 1e-9)])
    center = (share * score).sum()
    scale = np.sqrt((share * (score - center) ** 2).sum()) if len(share) > 1 else 1.0
    return np.asarray((score - center) / scale)


class OrdinalBlock(nn.Module):
    """A group of ordinal columns, padded to the largest number of levels among them.

    p(x ≤ k) = sigmoid(θ_k − location). The location is the output of the network. The thresholds θ
    are parameters of each column and member, initialised from the shares of the levels. The one
    feature is the normal score of the level.
    """

    exists: Tensor
    is_last: Tensor
    score: Tensor
    up_to: Tensor
    deviation: Tensor

    def __init__(self, columns: Sequence[Column], n_members: int) -> None:
        super().__init__()
        shares = [_shares(column) for column in columns]
        sizes = [len(share) for share in shares]
        width, n_levels = max(sizes), torch.tensor(sizes).unsqueeze(-1)
        self.n_columns = len(columns)
        self.n_features = self.n_outputs = 1
        self.n_statistics = self.n_nodes = width
        level = torch.arange(width)
        score, up_to = np.zeros((2, len(columns), width))
        for j, share in enumerate(shares):
            score[j, : len(share)] = _scores(share)
            up_to[j] = np.pad(np.cumsum(share)[:-1], (0, width - len(share) + 1))
        # p(x ≤ k); thresholds of padding levels are increasing too, and not used
        up_to = np.where(np.arange(width) < np.array(sizes)[:, None] - 1, up_to, 1 - MIN_SHARE)
        tools.add_constants(self, exists=level < n_levels, is_last=level == n_levels - 1)
        tools.add_constants(self, score=torch.tensor(score, dtype=torch.float32))
        tools.add_constants(self, up_to=torch.tensor(up_to[:, :-1]))
        tools.add_constants(self, deviation=[column.deviation for column in columns])
        self.threshold = nn.Parameter(
            torch.zeros(n_members, 1, 1, 1, self.n_columns, width - 1, dtype=torch.float32)
        )
        self._set_thresholds(torch.logit(self.up_to).expand(n_members, -1, -1))

    def forward(self, outputs: Tensor) -> Categorical:
        """Return log(σ(b) − σ(a)) = log σ(b) + log σ(−a) + log(1 − e^(a − b)), for a < b."""
        gap = MIN_GAP + nn.functional.softplus(self.threshold[..., 1:])
        threshold = torch.cat([self.threshold[..., :1], gap], -1).cumsum(-1)
        none = torch.zeros_like(outputs + threshold.new_zeros(*threshold.shape[:-1], 1))
        below = threshold - outputs
        upper = torch.cat([logsigmoid(below), none], -1)
        inside = (
            nn.functional.pad(tools.log1mexp(gap), (1, 1)) if gap.shape[-1] else none.new_zeros(1)
        )
        lower = torch.cat([none, logsigmoid(-below)], -1)
        log_p = torch.where(self.is_last, 0.0, upper + inside) + lower
        return Categorical(log_p.masked_fill(~self.exists, -torch.inf))

    def features(self, x: Tensor) -> Tensor:
        """Return the normal score of the level."""
        return self.score.to(x.dtype).expand(*x.shape, -1).gather(-1, x.long().unsqueeze(-1))

    def statistics(self, x: Tensor) -> Tensor:
        """Return one-hot codes, whose means are probabilities."""
        return nn.functional.one_hot(x.long(), self.n_statistics).to(x.dtype)

    def point(self, expected: Tensor) -> Tensor:
        """Return the level nearest to the mean code."""
        return self._mean_code(expected).round()

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error of the mean code, in standard deviations of the codes."""
        return ((self._mean_code(expected) - x) / self.deviation).square()

    @torch.no_grad()
    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return locations whose share of variance from z is |loading|², and set thresholds."""
        psi = (1 - loading.square().sum(1)).clamp(min=MIN_PSI)
        slope = LOGISTIC_DEVIATION * psi.rsqrt()
        weight = loading * slope.unsqueeze(1)
        self._set_thresholds(self._thresholds(weight.square().sum((1, 3)).sqrt()))
        return mean * slope, weight

    def start_scale(self, scale: Tensor) -> None:
        """Do nothing: a cumulative logit has no scale."""

    def _mean_code(self, probability: Tensor) -> Tensor:
        return (probability * torch.arange(self.n_statistics, device=probability.device)).sum(-1)

    def _thresholds(self, spread: Tensor) -> Tensor:
        """Return thresholds that give the observed shares if the location is N(0, spread²)."""
        spread = spread.double().unsqueeze(-1)
        target = self.up_to.to(spread).expand(*spread.shape[:-1], -1)
        spread = spread.expand(target.shape)

        def share(threshold: Tensor) -> Tensor:
            return tools.normal_mean(torch.sigmoid, threshold, spread)

        return tools.solve_increasing(share, target, -MAX_THRESHOLD, MAX_THRESHOLD)

    @torch.no_grad()
    def _set_thresholds(self, threshold: Tensor) -> None:
        gap = (threshold.diff(dim=-1) - MIN_GAP).clamp(min=MIN_GAP)
        raw = torch.cat([threshold[..., :1], tools.inverse_softplus(gap)], -1)
        self.threshold.copy_(raw[:, None, None, None])


class Ordinal(Levels):
    """Ordered levels: in the order of the data type, numerical or alphabetical."""

    name = "ordinal"
    likelihood = "ordinal"

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column with mean and deviation of the codes, and shares of the levels."""
        mean, deviation = Real().summarise(values)
        counts = np.bincount(values.astype(np.intp), minlength=column.n_levels)
        shares = tuple((counts / counts.sum()).tolist())
        return replace(column, mean=mean, deviation=deviation, shares=shares)

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> OrdinalBlock:  # type: ignore[override]
        """Return a cumulative logit block."""
        del scale
        return OrdinalBlock(columns, n_members)
