r"""Importance sampling of (z, r) given (x_obs, m).

With sets enumerated and z drawn from q(z | r, ·), the weight of draw l and set r is

.. math:: w_{lr} = p(x_{obs}|z_l,r)\, p(m|\cdot)\, p(z_l|r)\, p(r) / q(z_l|r,\cdot),

which targets p(z, r | x_obs, m). The weight printed in the paper has p(x_mis | z, r) in place of
the first two factors and does not.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from psmvae.models.batch import Answer


def log_weights(answer: Answer) -> Tensor:
    """Log w, ``(member, row, draw, set)``."""
    joint = answer.log_p_x_obs + answer.log_p_m + answer.log_p_z + answer.log_p_r.unsqueeze(2)
    return joint - answer.log_q_z


def normalised(log_w: Tensor) -> Tensor:
    """Weights that sum to one over draws and sets."""
    return torch.softmax(log_w.flatten(2), -1).reshape(log_w.shape)


def bound(log_w: Tensor) -> Tensor:
    """Log of the mean over draws of Σ_r w: a lower bound of log p(x_obs, m), ``(member, row)``."""
    return torch.logsumexp(log_w.flatten(2), -1) - math.log(log_w.shape[2])


def effective_sample_size(log_w: Tensor) -> Tensor:
    """(Σ w_l)² / Σ w_l² with w_l = Σ_r w_lr, from 1 to the number of draws, ``(member, row)``."""
    w = normalised(log_w).sum(-1)
    return 1 / w.square().sum(-1)


def resample(log_w: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw (l, r) pairs in proportion to their weights.

    ``uniform`` is ``(member, row, n)``; the answers, draw and set indices, have its shape.
    """
    cumulative = normalised(log_w).flatten(2).cumsum(-1)
    # the last cumulative weight may round to just under 1
    flat = torch.searchsorted(cumulative, uniform.contiguous(), right=True)
    flat = flat.clamp(max=cumulative.shape[-1] - 1)
    n_sets = log_w.shape[-1]
    return flat // n_sets, flat % n_sets
