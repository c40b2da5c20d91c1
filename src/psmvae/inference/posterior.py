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
from psmvae.inference.memory import rows_per_chunk
from psmvae.inference.noise import antithetic_noise, row_normal
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise

# The adaptive sampler keeps for each row less than the memory of so many draws. Its chunks are
# larger by this ratio, so that the few active pairs of many rows are evaluated together.
ROW_MEMORY_IN_DRAWS = 16
# Sets with a smaller q(r | ·) are not decoded for estimates without importance weights.
MIN_PROBABILITY = 1e-4


@dataclass(frozen=True)
class Posterior:
    """The posterior p(x_mis, z, r | x_obs, m) of a trained model, by importance sampling.

    Tables ``x, m`` are ``(row, column)``, in the model's column order. All methods work on chunks
    of rows that fit into the memory budget. The result of a row does not depend on other rows,
    except for `sample`.
    """

    model: GMVAE
    # importance draws of z for each row, set and member; all rows share them, unless there is only
    # one: it is then drawn for each row and set, sets are weighted by q(r | ·), and equal rows have
    # equal draws
    n_draws: int
    seed: int
    # memory budget in bytes, None for that of the device
    memory: int | None = None
    # effective sample size at which a row gets no further block of draws
    target_ess: float | None = None

    def expected(self, x: Tensor, m: Tensor) -> Tensor:
        """E[statistics(x_mis) | x_obs, m], averaged over members, ``(row, statistic)``."""
        return self.impute(x, m)[0]

    def impute(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """Expected statistics of missing cells ``(row, statistic)``, and ESS ``(row,)``."""
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
        """Log-likelihoods and effective sample sizes ``(row,)``, with untempered weights."""
        power, n_members = torch.ones_like(self.model.weight_power), self.model.config.n_members
        found = list(self._estimates(x, m, power, with_values=False))
        bounds = [torch.logsumexp(running.bound, 0) - math.log(n_members) for running in found]
        return torch.cat(bounds), torch.cat([one.effective_sample_size.mean(0) for one in found])

    def set_probabilities(self, x: Tensor, m: Tensor) -> Tensor:
        """q(r | x_obs, m) of each member, ``(member, row, set)``."""
        return torch.cat([self.model.log_q_r(batch).exp() for batch in self._chunks(x, m, 1)], 1)

    def sample(self, x: Tensor, m: Tensor, n: int) -> Tensor:
        """Draw the missing cells of each row jointly, ``(row, n, column)``."""
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
                model, batch, blocks, scale, weight_power, self.target_ess, with_values=with_values
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
        """`impute` with draws of q(z, r | ·) of equal weights; the ESS is their number."""
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
            noise, blocks, n_draws = Noise(self.seed, x.device), [], 0
            for size in block_sizes(self.n_draws, self.target_ess):
                blocks.append(antithetic_noise(model, size, noise))
                n_draws += size
                if self.target_ess is not None and n_draws >= self.target_ess:
                    break
            found = self._means_under_q(x, m, blocks)
        return torch.cat(found), x.new_full((x.shape[0],), float(n_draws))

    def _means_under_q(self, x: Tensor, m: Tensor, blocks: list[Tensor]) -> list[Tensor]:
        """Means over all draws and members of each chunk, ``(row, statistic)``."""
        n_draws, found = sum(block.shape[2] for block in blocks), []
        for batch in self._chunks(x, m, min(BLOCK, n_draws)):
            sums = [expected_under_q(self.model, batch, eps) * eps.shape[2] for eps in blocks]
            found.append(torch.stack(sums).sum(0).mean(0) / n_draws)
        return found

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
        for parts in zip(x.split(n_rows), m.split(n_rows), strict=True):
            yield Batch.of(*(part.expand(self.model.config.n_members, -1, -1) for part in parts))


def expected_under_q(model: GMVAE, batch: Batch, epsilon: Tensor) -> Tensor:
    """Σ_r q(r | ·) E[statistics(x_mis) | r] under q(z | r, ·), ``(member, row, statistic)``.

    A single member decodes only sets with a non-negligible q(r | ·). Several members decode all
    sets, because each would select different ones.
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
