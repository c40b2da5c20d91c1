r"""The pattern-set mixture VAE: models (a) and (b) of the paper.

The paper models x_obs and x_mis as two vectors with a value for every column. An observed x_j is
also an observation of x_mis,j with probability 1 − π' (semi-supervision), so

.. math:: \pi_j = 1 \text{ if } m_j = 0, \qquad \pi_j = \pi' \text{ if } m_j = 1.

Integrating out this Bernoulli variable gives the term of x_mis in the ELBO (Table 1):

.. math::
    E_{q(z, r|\cdot)} \sum_j \Big[ (1 - \pi_j) \log p(x_{mis,j} = x_{obs,j} | z, r)
    - \pi_j\, KL\big(q(x_{mis,j} | z, r, \cdot) \,\|\, p(x_{mis,j} | z, r)\big) \Big]

`semi_supervised_log_likelihood` computes the sum over j, `pi_prime` the π' of each column.
"""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.models.config import LatentConfig
from psmvae.models.gmvae import GMVAE, Heads, TrainingTerms
from psmvae.nn.columns import Cells, Layout
from psmvae.nn.factors import QXMis
from psmvae.nn.noise import Noise


def pi_prime(config: LatentConfig, observed_rate: Tensor) -> Tensor:
    """π' of each column: a constant, or the paper's ρ_j / (1 + ρ_j) with the observed rate ρ_j."""
    if config.pi == "rate":
        return observed_rate / (1 + observed_rate)
    return torch.full_like(observed_rate, float(config.pi))


def semi_supervised_log_likelihood(
    x: Tensor, m: Tensor, pi_prime: Tensor, pi: Tensor, p_x_mis: Cells, q_x_mis: Cells
) -> Tensor:
    r"""The π' term of Table 1: the part of the ELBO that trains p(x_mis | z, r).

    .. math:: \sum_j (1 - \pi')\, m_j \log p(x_{mis,j} = x_j | z, r)
        - \pi_j\, KL\big(q(x_{mis,j} | z, r, \cdot) \,\|\, p(x_{mis,j} | z, r)\big)

    Axes: x, m, pi ``(member, row, 1, 1, column)``; returns ``(member, row, draw, set)``.
    """
    supervised = (1 - pi_prime) * m * p_x_mis.log_prob(x)
    return torch.addcmul(supervised, pi, q_x_mis.kl(p_x_mis), value=-1.0).sum(-1)


class PSMVAE(GMVAE):
    """p(r) p(z|r) p(x_obs|z,r) p(x_mis|z,r) p(m|·) with q(r|·) q(z|r,·) q(x_mis|z,r,·)."""

    per_table = ("weight_observed", "pi")
    # π', (1, 1, 1, 1, column)
    pi: Tensor

    def __init__(
        self, layout: Layout, config: LatentConfig, missing_rate: Tensor, noise: Noise
    ) -> None:
        super().__init__(layout, config, missing_rate, noise, second=layout)
        pi = pi_prime(config, self.observed_rate).view(1, 1, 1, 1, -1)
        self.register_buffer("pi", pi, persistent=False)
        self.q_x_mis = QXMis(self.sizes, self.n_in, layout, config.network.light(), noise)

    def x_mis(self, p_x_obs: Cells, p_second: Cells | None) -> Cells:
        """p(x_mis | z, r), the second output of the decoder."""
        return p_x_obs if p_second is None else p_second

    def training_terms(
        self, batch: Batch, inputs: Tensor, z: Tensor, p_x: Heads, noise: Noise | None
    ) -> TrainingTerms:
        """The π' term of Table 1, and x_mis drawn from q(x_mis | z, r, ·) where p(m | x) needs it.

        If a missing x_j is integrated out by quadrature, its q is the exact posterior and its KL
        term is 0.
        """
        q_x_mis = self.q_x_mis(inputs, z, noise)
        x, m, known = batch.cells()
        x_drawn = None
        if self.draws_x and noise is not None:
            x_drawn = q_x_mis.sample(noise.uniform(*z.shape[:-1], x.shape[-1]))
        integrated = self.p_m.depends_on_x and x_drawn is None
        pi = torch.where(m > 0, self.pi, 0.0 if integrated else 1.0) * known
        term = semi_supervised_log_likelihood(x, m, self.pi, pi, self.x_mis(*p_x), q_x_mis)
        return TrainingTerms(term, x_drawn)
