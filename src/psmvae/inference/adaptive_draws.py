r"""Importance sampling with a number of draws that adapts to each pair of a row and a set.

The mean weight of a pair estimates p(x_obs, m, r), so pairs may have different numbers of draws.
The draws of different sets are independent. Most of many sets have a negligible posterior
probability in a row after the first block of draws, and get no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.inference.importance import RunningEstimate, log_weights, tempered
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE


@dataclass(frozen=True)
class AdaptiveSampler:
    """Draws z for pairs of a row and a set until each row has the target effective sample size."""

    # a model of one member that `supports_pairs`
    model: GMVAE
    # blocks of ε (set, draw, latent) that all rows share, with standard deviation proposal_scale
    blocks: list[Tensor]
    # as in `log_weights` and `tempered`, (member,)
    proposal_scale: Tensor
    weight_power: Tensor
    target_ess: float
    # pairs that are evaluated at once
    pairs_per_chunk: int

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Expected statistics of missing cells ``(row, statistic)``, and ESS ``(row,)``."""
        model, n_sets = self.model, self.model.config.n_sets
        n_rows, encoding = batch.x.shape[1], self.model.encode(batch)
        running = RunningEstimate(1, n_rows * n_sets, model.inputs.n_statistics, like=batch.x)
        active = torch.arange(n_rows * n_sets, device=batch.x.device)
        for epsilon in self.blocks:
            for pairs in active.split(self.pairs_per_chunk):
                row, set_ = pairs // n_sets, pairs % n_sets
                own = epsilon[set_][None, :, :, None]
                densities = model.log_densities_of_pairs(batch, encoding, row, set_, own)
                log_w = log_weights(densities, self.proposal_scale)
                log_w = tempered(log_w, densities.log_q_r, self.weight_power)
                running.add(pairs, log_w, model.expected(densities))
            probability = torch.softmax(running.bound.reshape(-1, n_sets), -1)
            ess = running.effective_sample_size.reshape(-1, n_sets)
            short = ess < required_ess(probability, self.target_ess)
            active = torch.nonzero(short.flatten())[:, 0]
            if active.numel() == 0:
                break
        # the estimate of a set with probability 0 is 0 / 0
        possible = probability > 0
        expected = running.expected.reshape(n_rows, n_sets, -1)
        expected = torch.where(possible.unsqueeze(-1), expected, 0.0)
        variance = torch.where(possible, probability.square() / ess, 0.0).sum(1)
        return (probability.unsqueeze(-1) * expected).sum(1), 1 / variance


def required_ess(probability: Tensor, target_ess: float) -> Tensor:
    r"""Effective sample size that a set needs for the row to reach its target.

    That of the row is :math:`1 / \sum_r (p_r^2 / ess_r)`, so :math:`ess_r \ge target \cdot p_r`
    suffices. Since p_r is an estimate, its square root is used: more draws of improbable sets.
    """
    return target_ess * probability.sqrt()
