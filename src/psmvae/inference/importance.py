r"""Importance sampling of (z, r) given (x_obs, m).

r is enumerated and z is drawn from q(z | r, ·). The weight of draw l and set r,

.. math:: w_{lr} = p(x_{obs}|z_l,r)\, p(m|\cdot)\, p(z_l|r)\, p(r) / q(z_l|r,\cdot),

has the target p(z, r | x_obs, m). The weight printed in the paper has p(x_mis | z, r) in place of
the first two factors and does not have this target.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from psmvae.models.batch import LogDensities


def log_weights(densities: LogDensities, proposal_scale: Tensor | None = None) -> Tensor:
    """Log importance weights, ``(member, row, draw, set)``, of draws from N(μ, c² Σ)."""
    log_w = densities.log_p_x_obs + densities.log_p_m + densities.log_p_z
    log_w = log_w + densities.log_p_r.unsqueeze(2) - densities.log_q_z
    if proposal_scale is None:
        return log_w
    c = proposal_scale[:, None, None, None]
    square, n_latent = densities.epsilon.square().sum(-1), densities.epsilon.shape[-1]
    # log N(z; μ, Σ) − log N(z; μ, c² Σ)
    return log_w + n_latent * torch.log(c) - 0.5 * (1 - c**-2) * square


def tempered(log_w: Tensor, log_q_r: Tensor, weight_power: Tensor) -> Tensor:
    """Log of q(r | ·)^(1 − a) · w^a, from q(z, r | ·) at a = 0 to the posterior at a = 1."""
    a = weight_power[:, None, None, None]
    return torch.where(a < 1, a * log_w + (1 - a) * log_q_r.unsqueeze(2), log_w)


def normalised(log_w: Tensor) -> Tensor:
    """Weights ``(member, row, draw, set)`` that sum to one over draws and sets."""
    return torch.softmax(log_w.flatten(2), -1).reshape(log_w.shape)


def bound(log_w: Tensor) -> Tensor:
    """Log of the mean over draws of Σ_r w: a lower bound of log p(x_obs, m), ``(member, row)``."""
    return torch.logsumexp(log_w.flatten(2), -1) - math.log(log_w.shape[2])


def resample(log_w: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw pairs (l, r), each ``(member, row, n)``, with probabilities ∝ their weights."""
    cumulative = normalised(log_w).flatten(2).cumsum(-1)
    # the last cumulative weight may be rounded to less than 1
    flat = torch.searchsorted(cumulative, uniform.contiguous(), right=True)
    flat = flat.clamp(max=cumulative.shape[-1] - 1)
    return flat // log_w.shape[-1], flat % log_w.shape[-1]


class RunningEstimate:
    """Self-normalised importance sampling estimates from draws that arrive in blocks.

    Keeps Σ w, Σ_l (Σ_r w)² and Σ w · value of each row, relative to its largest weight so that
    nothing overflows. The result does not depend on the sizes of the blocks, except for rounding.
    """

    def __init__(self, n_members: int, n_rows: int, n_values: int, like: Tensor) -> None:
        self.largest = like.new_full((n_members, n_rows), -torch.inf)
        self.total = like.new_zeros(n_members, n_rows)
        self.squares = like.new_zeros(n_members, n_rows)
        self.values = like.new_zeros(n_members, n_rows, n_values)
        self.n_draws = like.new_zeros(n_rows)

    def add(self, rows: Tensor | slice, log_w: Tensor, values: Tensor | None) -> None:
        """Add a block of draws of ``rows``, with values ``(member, row, draw, set, value)``."""
        before = self.largest[:, rows]
        largest = torch.maximum(before, log_w.amax((2, 3)))
        # if all weights are 0, −inf − (−inf) would be NaN
        shift = torch.where(largest.isneginf(), 0.0, largest)
        w = torch.exp(log_w - shift[..., None, None])
        # rescale the sums of earlier draws, of which there may be none
        rescale = torch.where(before.isneginf(), 0.0, torch.exp(before - largest))
        self.largest[:, rows] = largest
        per_draw = w.sum(-1)
        self.total[:, rows] = self.total[:, rows] * rescale + per_draw.sum(-1)
        self.squares[:, rows] = self.squares[:, rows] * rescale**2 + per_draw.square().sum(-1)
        if values is not None:
            w_flat, value_flat = w.flatten(0, 1).flatten(1), values.flatten(0, 1).flatten(1, 2)
            added = torch.bmm(w_flat.unsqueeze(1), value_flat).reshape(*w.shape[:2], -1)
            self.values[:, rows] = self.values[:, rows] * rescale.unsqueeze(-1) + added
        self.n_draws[rows] += log_w.shape[2]

    @property
    def expected(self) -> Tensor:
        """Weighted mean of the values, ``(member, row, value)``."""
        return self.values / self.total.unsqueeze(-1)

    @property
    def bound(self) -> Tensor:
        """Log of the mean over draws of Σ_r w, ``(member, row)``."""
        return self.largest + torch.log(self.total / self.n_draws)

    @property
    def effective_sample_size(self) -> Tensor:
        """(Σ_l w_l)² / Σ_l w_l² with w_l = Σ_r w_lr, ``(member, row)``."""
        return self.total.square() / self.squares
