r"""Importance sampling with a number of draws that adapts to each pair of a row and a set.

The mean weight of a pair estimates p(x_obs, m, r), so pairs may have different numbers of draws.
The draws of different sets are independent. Most of many sets have a negligible posterior
probability in a row after the first block of draws, and get no more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.importance import RunningEstimate, log_weights, tempered
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE


class AdaptiveSampler:
    """Draws z for pairs of a row and a set until each row has the target effective sample size.

    Parameters
    ----------
    model : GMVAE
        A model of one member that `supports_pairs`.
    blocks : list of Tensor of shape (set, draw, latent)
        Blocks of ε that all rows share, with standard deviation ``proposal_scale``.
    proposal_scale : Tensor of shape (1,)
        As in `log_weights`.
    weight_power : Tensor of shape (1,)
        As in `tempered`.
    target_ess : float
        Target effective sample size of each row.
    pairs_per_chunk : int
        Pairs that are evaluated at once.
    """

    def __init__(
        self,
        model: GMVAE,
        blocks: list[Tensor],
        proposal_scale: Tensor,
        weight_power: Tensor,
        target_ess: float,
        pairs_per_chunk: int,
    ) -> None:
        self.model, self.blocks, self.target_ess = model, blocks, target_ess
        self.proposal_scale, self.weight_power = proposal_scale, weight_power
        self.pairs_per_chunk = pairs_per_chunk

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Estimate the expected statistics of the missing cells.

        Axes: returns ``(row, statistic)``.
        """
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
            active = torch.nonzero((ess < required_ess(probability, self.target_ess)).flatten())
            active = active[:, 0]
            if active.numel() == 0:
                break
        return self._combine(running.expected.reshape(n_rows, n_sets, -1), probability, ess)

    @staticmethod
    def _combine(expected: Tensor, probability: Tensor, ess: Tensor) -> tuple[Tensor, Tensor]:
        """Average ``expected (row, set, statistic)`` over sets, and combine their ``ess``."""
        # the estimate of a set with probability 0 is 0 / 0
        possible = probability > 0
        expected = torch.where(possible.unsqueeze(-1), expected, 0.0)
        variance = torch.where(possible, probability.square() / ess, 0.0).sum(1)
        return (probability.unsqueeze(-1) * expected).sum(1), 1 / variance


def required_ess(probability: Tensor, target_ess: float) -> Tensor:
    r"""Effective sample size that a set needs for the row to reach its target.

    That of the row is :math:`1 / \sum_r (p_r^2 / ess_r)`, so :math:`ess_r \ge target \cdot p_r`
    suffices. The square root of p_r, itself an estimate, asks for more draws of improbable sets.

    Axes: probability ``(row, set)``; returns ``(row, set)``.
    """
    return target_ess * probability.sqrt()
