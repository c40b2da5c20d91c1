"""The objectives of training, a number a row: Table 1, and the importance-weighted bound."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.importance import bound, log_weights
from psmvae.models.batch import LogDensities


def elbo(
    densities: LogDensities, *, weight_observed: Tensor | float = 1.0, beta: float = 1.0
) -> Tensor:
    r"""Evidence lower bound of each row, r integrated out.

    .. math::
        \sum_r q(r) \Big[ E_{q(z|r)}\big[ w \log p(x_{obs}|z,r) + \log p(m|\cdot) + \ell_{mis} \big]
        - \beta\, KL(q(z|r) \| p(z|r)) + \beta \log p(r) - \beta \log q(r) \Big]

    where :math:`\ell_{mis}` collects what further factors add: the terms of x_mis (semi-supervision
    and its KL), or those of w.

    Parameters
    ----------
    densities : LogDensities
        Log densities of a batch.
    weight_observed : float
        w, the paper's 1 / (1 − missing rate); 1 gives the bound itself.
    beta : float
        Weight of the KL terms of z and r; 1 gives the bound itself.

    Returns
    -------
    Tensor
        ``(member, row)``.
    """
    inside = weight_observed * densities.log_p_x_obs + densities.log_p_m
    if densities.auxiliary is not None:
        inside = inside + densities.auxiliary
    # one draw, as in training, needs no mean
    inside = inside.squeeze(2) if inside.shape[2] == 1 else inside.mean(2)
    log_ratio_r = densities.log_p_r - densities.log_q_r
    per_set = torch.add(inside, log_ratio_r - densities.kl_z, alpha=beta)
    return (torch.exp(densities.log_q_r) * per_set).sum(-1)


def iwae(densities: LogDensities, *, weight_observed: Tensor | float = 1.0) -> Tensor:
    r"""Importance-weighted bound of each row, over the draws of z (and, where drawn, of x_mis).

    .. math:: \log \frac{1}{K} \sum_{l=1}^K \sum_r
        \frac{p(x_{obs}|z_l,r)^w\, p(m|\cdot)\, p(z_l|r)\, p(r)}{q(z_l|r,\cdot)}

    With one set and K = 1 its expectation is the evidence lower bound.

    Parameters
    ----------
    densities : LogDensities
        Log densities of a batch.
    weight_observed : float
        w, the paper's 1 / (1 − missing rate); 1 gives the bound itself.

    Returns
    -------
    Tensor
        ``(member, row)``.
    """
    return bound(log_weights(densities) + (weight_observed - 1.0) * densities.log_p_x_obs)
