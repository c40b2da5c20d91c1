"""Training objectives of each row: the ELBO of Table 1 and the importance-weighted bound."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.importance import bound, log_weights
from psmvae.models.batch import LogDensities


def elbo(
    densities: LogDensities, *, weight_observed: Tensor | float = 1.0, beta: float = 1.0
) -> Tensor:
    r"""The ELBO of the paper's Table 1 for each row, with r summed out.

    .. math::
        \mathcal{L} = \sum_r q(r|\cdot) \Big[ E_{q(z|r,\cdot)}\big[
        w \log p(x_{obs}|z,r) + \log p(m|\cdot) + \ell_{mis} \big]
        - \beta\, KL(q(z|r,\cdot) \,\|\, p(z|r)) + \beta \log \frac{p(r)}{q(r|\cdot)} \Big]

    Its terms, in the order of Table 1, and where they are computed:

    - :math:`\log p(x_{obs}|r,z)`: ``densities.log_p_x_obs``
    - :math:`\log p(z|r) / q(z|r,x_{obs},m)`: ``-densities.kl_z``, in closed form
    - :math:`\log p(r) / q(r|x_{obs},m)`: ``densities.log_p_r - densities.log_q_r``
    - :math:`\pi \log p(m|\cdot) + (1 - \pi) \log p(m|\cdot) = \log p(m|\cdot)`:
      ``densities.log_p_m``
    - :math:`\ell_{mis} = \pi \log p(x_{mis}|r,z) / q(x_{mis}|\cdot)
      + (1 - \pi) \log p(x_{mis}|r,z)`: ``densities.auxiliary``, computed by
      `psmvae.models.psmvae.semi_supervised_log_likelihood`. In the DLGM it is the KL term of w, in
      the GMVAE it is 0.

    Axes: weight_observed ``(member, 1, 1, 1)``; returns ``(member, row)``.
    """
    inside = weight_observed * densities.log_p_x_obs + densities.log_p_m
    if densities.auxiliary is not None:
        inside = inside + densities.auxiliary
    # training uses one draw, for which squeeze is cheaper than a mean
    inside = inside.squeeze(2) if inside.shape[2] == 1 else inside.mean(2)
    log_ratio_r = densities.log_p_r - densities.log_q_r
    per_set = torch.add(inside, log_ratio_r - densities.kl_z, alpha=beta)
    return (torch.exp(densities.log_q_r) * per_set).sum(-1)


def iwae(densities: LogDensities, *, weight_observed: Tensor | float = 1.0) -> Tensor:
    r"""The importance-weighted bound of each row, over draws of z (and of x_mis, if it is drawn).

    .. math:: \log \frac{1}{K} \sum_{l=1}^K \sum_r
        \frac{p(x_{obs}|z_l,r)^w\, p(m|\cdot)\, p(z_l|r)\, p(r)}{q(z_l|r,\cdot)}

    With one set and K = 1 its expectation is the ELBO.

    Axes: weight_observed ``(member, 1, 1, 1)``; returns ``(member, row)``.
    """
    return bound(log_weights(densities) + (weight_observed - 1.0) * densities.log_p_x_obs)
