"""Importance sampling that spends draws on pairs of a row and a set that carry weight.

Each pair is a sampler of its own: its mean weight estimates p(x_obs, m, r), so that pairs with
different numbers of draws still add up. Sets have draws of their own, so that their errors are
independent. Of ten sets most are soon seen to have no share in a row, and are not drawn from again.
"""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.importance import Running, log_weights, tempered
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE


class AdaptiveSampler:
    """Draws for pairs of a row and a set until each row has enough.

    Parameters
    ----------
    model : GMVAE
        A trained model of one member that `knows_pairs`.
    blocks : list of Tensor
        Noise of the draws, blocks of ``(set, draw, latent)`` for all rows.
    proposal, trust : Tensor
        As in `log_weights` and `tempered`, ``(1,)``.
    enough : float
        Effective sample size that each row is to have.
    pairs_at_once : int
        Pairs that fit the memory with a block of draws.
    """

    def __init__(
        self,
        model: GMVAE,
        blocks: list[Tensor],
        proposal: Tensor,
        trust: Tensor,
        enough: float,
        pairs_at_once: int,
    ) -> None:
        self.model, self.blocks, self.enough = model, blocks, enough
        self.proposal_scale, self.weight_power = proposal, trust
        self.pairs_at_once = pairs_at_once

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The expected statistics of rows and their effective sample size."""
        model, n_sets = self.model, self.model.config.n_sets
        n_rows, encoded = batch.x.shape[1], self.model.encode(batch)
        running = Running(1, n_rows * n_sets, model.inputs.n_statistics, like=batch.x)
        wanting = torch.arange(n_rows * n_sets, device=batch.x.device)
        for epsilon in self.blocks:
            for pairs in wanting.split(self.pairs_at_once):
                row, set_ = pairs // n_sets, pairs % n_sets
                own = epsilon[set_][None, :, :, None]
                densities = model.log_densities_of_pairs(batch, encoded, row, set_, own)
                log_w = log_weights(densities, self.proposal_scale)
                log_w = tempered(log_w, densities.log_q_r, self.weight_power)
                running.add(pairs, log_w, model.expected(densities))
            share, size = self._of_sets(running, n_sets)
            wanting = torch.nonzero((size < wanted(share, self.enough)).flatten())[:, 0]
            if wanting.numel() == 0:
                break
        # a set without any weight has no expectation either
        some = share > 0
        expected = running.expected.reshape(n_rows, n_sets, -1)
        expected = torch.where(some.unsqueeze(-1), expected, 0.0)
        noise = torch.where(some, share.square() / size, 0.0).sum(1)
        return (share.unsqueeze(-1) * expected).sum(1), 1 / noise

    @staticmethod
    def _of_sets(running: Running, n_sets: int) -> tuple[Tensor, Tensor]:
        """The share of each set in a row and the effective sample size behind it: (row, set)."""
        share = torch.softmax(running.bound.reshape(-1, n_sets), -1)
        return share, running.effective_sample_size.reshape(-1, n_sets)


def wanted(share: Tensor, enough: float) -> Tensor:
    """Effective sample size that a set needs, given its share in a row.

    The row's own is 1 / Σ_r (share_r² / size_r): with size_r ≥ enough · share_r it would be enough.
    The root asks more of small shares, since these are estimates too.
    """
    return enough * share.sqrt()
