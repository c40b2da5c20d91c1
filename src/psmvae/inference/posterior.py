"""Imputation with a trained model: point estimates, draws, set probabilities and diagnostics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.inference.adaptive_draws import AdaptiveSampler
from psmvae.inference.blocks import BLOCK, block_sizes, estimate, row_block, shared_blocks
from psmvae.inference.draws import draw_missing
from psmvae.inference.importance import RunningEstimate
from psmvae.inference.memory import chunks, rows_per_chunk
from psmvae.inference.noise import antithetic_noise, row_normal
from psmvae.inference.proposal_mean import expected_under_q
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise

# The adaptive sampler keeps for each row less than the memory of so many draws. Its chunks are
# larger by this ratio, so that the few active pairs of many rows are evaluated together.
ROW_MEMORY_IN_DRAWS = 16


@dataclass(frozen=True)
class Posterior:
    """The posterior p(x_mis, z, r | x_obs, m) of a trained model, by importance sampling.

    Tables ``x, m`` are ``(row, column)``, in the model's column order. All methods work on chunks
    of rows that fit into the memory budget. The result of a row does not depend on other rows,
    except for `sample`.

    Parameters
    ----------
    model : GMVAE
        The trained model.
    n_draws : int
        Importance draws of z for each row, set and member. All rows share them, unless there is
        only one: it is then drawn for each row and set, sets are weighted by q(r | ·), and equal
        rows have equal draws.
    seed : int
        Seed of the draws.
    memory : int, optional
        Memory budget in bytes. Default: that of the device.
    target_ess : float, optional
        Effective sample size at which a row gets no further block of draws. Default: every row gets
        all draws.
    """

    model: GMVAE
    n_draws: int
    seed: int
    memory: int | None = None
    target_ess: float | None = None

    def expected(self, x: Tensor, m: Tensor) -> Tensor:
        """E[statistics(x_mis) | x_obs, m], averaged over members, ``(row, statistic)``."""
        return self.impute(x, m)[0]

    def impute(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """Estimate the expected statistics of the missing cells.

        Axes: x, m ``(row, column)``; returns ``(row, statistic)``.
        """
        model, config = self.model, self.model.config
        if not bool(self._weight_power.any()) and not model.p_m.depends_on_x:
            return self._impute_under_q(x, m)
        one_member_many_sets = config.n_members == 1 and config.n_sets > 1
        if self.target_ess is not None and one_member_many_sets and model.supports_pairs:
            return self._impute_adaptively(x, m, self.target_ess)
        found = [
            (running.expected.mean(0), running.effective_sample_size.mean(0))
            for running in self._estimates(x, m, self._weight_power, with_values=True)
        ]
        return torch.cat([one for one, _ in found]), torch.cat([two for _, two in found])

    def diagnostics(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """Estimate log-likelihoods and effective sample sizes, with untempered weights.

        Axes: x, m ``(row, column)``; returns ``(row,)``.
        """
        bounds, sizes = [], []
        power = torch.ones_like(self.model.weight_power)
        for running in self._estimates(x, m, power, with_values=False):
            per_member = running.bound
            bounds.append(torch.logsumexp(per_member, 0) - math.log(len(per_member)))
            sizes.append(running.effective_sample_size.mean(0))
        return torch.cat(bounds), torch.cat(sizes)

    def set_probabilities(self, x: Tensor, m: Tensor) -> Tensor:
        """q(r | x_obs, m) of each member, ``(member, row, set)``."""
        batches = self._chunks(x, m, 1)
        return torch.cat([self.model.log_q_r(batch).exp() for batch in batches], 1)

    def sample(self, x: Tensor, m: Tensor, n: int) -> Tensor:
        """Draw the missing cells of each row jointly; see `draw_missing`.

        Axes: x, m ``(row, column)``; returns ``(row, n, column)``.
        """
        noise = Noise(self.seed, x.device)
        per_member = -(-n // self.model.config.n_members)
        parts = []
        for batch in self._chunks(x, m, self.n_draws):
            drawn = draw_missing(self.model, batch, per_member, self.n_draws, noise)
            # (member, row, k, column) -> (row, k · member, column): members alternate
            parts.append(drawn.permute(1, 2, 0, 3).flatten(1, 2)[:, :n])
        return torch.cat(parts)

    def _estimates(
        self, x: Tensor, m: Tensor, weight_power: Tensor, *, with_values: bool
    ) -> Iterator[RunningEstimate]:
        """Importance sampling of each chunk of rows."""
        model, scale = self.model, self._proposal_scale(weight_power)
        sizes = block_sizes(self.n_draws, self.target_ess)
        blocks = shared_blocks(model, sizes, self.seed, scale)
        for batch in self._chunks(x, m, min(BLOCK, self.n_draws)):
            if self.n_draws == 1:
                blocks = [row_block(model, batch, self.seed, scale)]
            yield estimate(
                model,
                batch,
                blocks,
                scale,
                weight_power,
                target_ess=self.target_ess,
                with_values=with_values,
            )

    def _impute_adaptively(self, x: Tensor, m: Tensor, target_ess: float) -> tuple[Tensor, Tensor]:
        """`impute` with numbers of draws that adapt to pairs of a row and a set."""
        model, n_sets = self.model, self.model.config.n_sets
        scale, noise = self._proposal_scale(model.weight_power), Noise(self.seed, x.device)
        blocks = [
            antithetic_noise(model, size, noise, n_sets)[0, 0].transpose(0, 1) * scale
            for size in block_sizes(self.n_draws, target_ess)
        ]
        block = min(BLOCK, self.n_draws)
        n_pairs = rows_per_chunk(model, block, self.memory) * n_sets
        sampler = AdaptiveSampler(model, blocks, scale, model.weight_power, target_ess, n_pairs)
        times = max(1, block // ROW_MEMORY_IN_DRAWS)
        found = [sampler(batch) for batch in self._chunks(x, m, block, times)]
        return torch.cat([one for one, _ in found]), torch.cat([two for _, two in found])

    def _impute_under_q(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """`impute` with weights raised to the power 0: draws of q(z, r | ·) with equal weights.

        Densities are not evaluated. If the mean of q(z | r, ·) replaces the draws, the effective
        sample size is ``n_draws``.
        """
        model, n_draws = self.model, self.n_draws
        if bool(model.use_posterior_mean.all()):
            if model.regression is not None and not model.imputes_from_x_mis:
                found = [model.predict(batch).mean(0) for batch in self._chunks(x, m, 1)]
            else:
                mean = x.new_zeros(model.config.n_members, 1, 1, 1, model.config.n_latent)
                found = self._means_under_q(x, m, [mean])
        elif n_draws == 1:
            found = [
                expected_under_q(model, batch, row_normal(model, batch, self.seed)).mean(0)
                for batch in self._chunks(x, m, 1)
            ]
        else:
            blocks = self._blocks_up_to_target(x.device)
            n_draws = sum(block.shape[2] for block in blocks)
            found = self._means_under_q(x, m, blocks)
        return torch.cat(found), x.new_full((x.shape[0],), float(n_draws))

    def _means_under_q(self, x: Tensor, m: Tensor, blocks: list[Tensor]) -> list[Tensor]:
        """Means over all draws and members of each chunk, ``(row, statistic)``."""
        n_draws, found = sum(block.shape[2] for block in blocks), []
        for batch in self._chunks(x, m, min(BLOCK, n_draws)):
            sums = [expected_under_q(self.model, batch, eps) * eps.shape[2] for eps in blocks]
            found.append(torch.stack(sums).sum(0).mean(0) / n_draws)
        return found

    def _blocks_up_to_target(self, device: torch.device) -> list[Tensor]:
        """Blocks of ε whose number of draws, the effective sample size, reaches the target."""
        noise, blocks = Noise(self.seed, device), []
        for size in block_sizes(self.n_draws, self.target_ess):
            blocks.append(antithetic_noise(self.model, size, noise))
            n_draws = sum(block.shape[2] for block in blocks)
            if self.target_ess is not None and n_draws >= self.target_ess:
                break
        return blocks

    @property
    def _weight_power(self) -> Tensor:
        """Power of the importance weights of point estimates, ``(member,)``."""
        # with one draw, importance weights are too noisy to rank sets
        power = self.model.weight_power
        return torch.zeros_like(power) if self.n_draws == 1 else power

    def _proposal_scale(self, weight_power: Tensor) -> Tensor:
        """Scale of the proposal ``(member,)``: tempered weights need draws from q(z | r, ·)."""
        return torch.where(weight_power < 1, 1.0, self.model.proposal_scale)

    def _chunks(self, x: Tensor, m: Tensor, n_draws: int, times: int = 1) -> Iterator[Batch]:
        """Batches of ``times`` as many rows as fit into the memory budget with these draws."""
        n_rows = times * rows_per_chunk(self.model, n_draws, self.memory)
        return chunks(self.model, x, m, n_rows)
