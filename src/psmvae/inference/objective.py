"""The objective of Table 1, a number a row."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.models.batch import Answer


def elbo(answer: Answer, *, weight_observed: Tensor | float = 1.0, beta: float = 1.0) -> Tensor:
    r"""Evidence lower bound of each row, r integrated out.

    .. math::
        \sum_r q(r) \Big[ E_{q(z|r)}\big[ w \log p(x_{obs}|z,r) + \log p(m|\cdot) + \ell_{mis} \big]
        - \beta\, KL(q(z|r) \| p(z|r)) + \beta \log p(r) - \beta \log q(r) \Big]

    where :math:`\ell_{mis}` collects the terms of x_mis (semi-supervision and its KL).

    Parameters
    ----------
    answer : Answer
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
    inside = weight_observed * answer.log_p_x_obs + answer.log_p_m
    if answer.log_p_x_mis is not None:
        inside = inside + answer.log_p_x_mis
    log_ratio_r = answer.log_p_r - answer.log_q_r
    per_set = inside.mean(2) + beta * (log_ratio_r - answer.kl_z)
    return (torch.exp(answer.log_q_r) * per_set).sum(-1)
