"""Point estimates under q(z, r | ·), without importance weights."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE

# Sets with a smaller q(r | ·) are not decoded.
MIN_PROBABILITY = 1e-4


def expected_under_q(model: GMVAE, batch: Batch, epsilon: Tensor) -> Tensor:
    r"""Estimate :math:`\sum_r q(r|\cdot) E_{q(z|r,\cdot)} E[statistics(x_{mis}) | z, r]`.

    A single member decodes only sets with a non-negligible q(r | ·). Several members decode all
    sets, because each would select different ones.

    Axes: epsilon ``(member, row, draw, set, latent)``; returns ``(member, row, statistic)``.
    """
    encoding = model.encode(batch)
    q_r = encoding.log_q_r.exp()
    if model.config.n_members > 1:
        p_x = model.heads(encoding.q_z.at(epsilon), shift=encoding.shift)[1]
        return (q_r.unsqueeze(-1) * p_x.expected().mean(2)).sum(2)
    q_r = torch.where(q_r >= MIN_PROBABILITY, q_r, 0.0)
    q_r = q_r / q_r.sum(-1, keepdim=True)
    _, row, set_ = torch.nonzero(q_r, as_tuple=True)
    pairs = encoding.of(row, set_)
    if epsilon.shape[1] > 1 or epsilon.shape[3] > 1:
        epsilon = epsilon.expand(-1, *q_r.shape[1:2], -1, q_r.shape[2], -1)
        epsilon = epsilon[:, row, :, set_].transpose(0, 1).unsqueeze(3)
    p_x = model.heads(pairs.q_z.at(epsilon), set_, pairs.shift)[1]
    expected = p_x.expected().mean(2).squeeze(2)
    # index_add would sum in an order that is not deterministic on a GPU
    dense = expected.new_zeros(*q_r.shape, expected.shape[-1])
    dense[:, row, set_] = expected
    return (q_r.unsqueeze(-1) * dense).sum(2)
