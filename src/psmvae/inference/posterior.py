"""Imputation: passes over the rows of a table in chunks that fit a memory budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.inference.adaptive_draws import AdaptiveSampler
from psmvae.inference.importance import (
    Running,
    log_weights,
    normalised,
    resample,
    tempered,
)
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.columns import Cells
from psmvae.nn.noise import Noise, told_by_row

# Bytes that a chunk of rows may take: on a CPU about what its caches like, on a GPU enough to keep
# it busy.
MEMORY_BUDGET = {"cpu": 256 * 2**20, "cuda": 8 * 2**30}
# Draws made at once; more come in blocks of as many. Where a row may stop early, the first blocks
# are smaller.
BLOCK, FIRST_BLOCKS = 250, (20, 80)
# Where draws are of pairs of a row and a set, the rows of several chunks are worked on together, so
# that the last pairs of many rows fill a chunk; what is kept of a row takes less than 16 draws do.
A_ROW_IN_DRAWS = 16
# The least probability that a value is drawn at.
TINY = 1e-7
# Sets with a smaller share of a row are not decoded where q(r | ·) alone weighs them.
MIN_SHARE = 1e-4


@dataclass(frozen=True)
class Posterior:
    """Questions about rows ``x, m`` (``(row, column)``, model order) under a trained model.

    Parameters
    ----------
    model : GMVAE
        The trained model.
    n_draws : int
        Importance draws of z for each row, set and member. One draw has nothing to be weighed
        against: sets then count as q(r | ·) says, and each set of each row has a draw of its own.
    seed : int
        The draws' seed. All rows share the draws, or have one that is told by the row (equal rows
        have the same), so a row's result does not depend on which rows come with it.
    memory : int, optional
        Bytes a chunk of rows may take.
    enough : float, optional
        Effective sample size at which a row needs no further block of draws; None gives every row
        all draws.
    """

    model: GMVAE
    n_draws: int
    seed: int
    memory: int | None = None
    enough: float | None = None

    def expected(self, x: Tensor, m: Tensor) -> Tensor:
        """E[statistics(x_mis) | x_obs, m], averaged over members, ``(row, statistic)``."""
        return self.impute(x, m)[0]

    def impute(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """The expected statistics and the effective sample size of each row behind them."""
        if not bool(self._weight_power.any()) and not self.model.p_m.depends_on_x:
            return self._impute_by_q(x, m)
        config = self.model.config
        one_of_many = config.n_members == 1 and config.n_sets > 1
        if self.enough is not None and one_of_many and self.model.knows_pairs:
            return self._impute_by_pairs(x, m, self.enough)
        found = [
            (running.expected.mean(0), running.effective_sample_size.mean(0))
            for running in self._run(x, m, self.model.inputs.n_statistics, point=True)
        ]
        return torch.cat([one for one, _ in found]), torch.cat([two for _, two in found])

    def _impute_by_q(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """`impute` where weights are not trusted at all: draws of q(z, r | ·) that count alike.

        What `_run` comes to then, without the likelihoods and masks that it would not use. Where
        draws add nothing to the middle of q(z | ·), it stands for all of them.
        """
        use_posterior_mean = bool(self.model.use_posterior_mean.all())
        if use_posterior_mean and self.model.regression is not None and not self.model.from_second:
            found = [self.model.predict(batch).mean(0) for batch in self._chunks(x, m, 1)]
            return torch.cat(found), x.new_full((x.shape[0],), float(self.n_draws))
        if use_posterior_mean:
            config = self.model.config
            blocks = [x.new_zeros(config.n_members, 1, 1, 1, config.n_latent)]
            n_draws, counted = 1, self.n_draws
        elif self.n_draws == 1:
            found = [
                expected_by_q(self.model, batch, self._one_draw(batch)).mean(0)
                for batch in self._chunks(x, m, 1)
            ]
            return torch.cat(found), x.new_ones(x.shape[0])
        else:
            blocks = self._enough_noise(x.device)
            n_draws = counted = sum(block.shape[2] for block in blocks)
        found = []
        for batch in self._chunks(x, m, min(BLOCK, n_draws)):
            means = [expected_by_q(self.model, batch, block) * block.shape[2] for block in blocks]
            found.append(torch.stack(means).sum(0).mean(0) / n_draws)
        return torch.cat(found), x.new_full((x.shape[0],), float(counted))

    def _impute_by_pairs(self, x: Tensor, m: Tensor, enough: float) -> tuple[Tensor, Tensor]:
        """`impute` where sets that a row is surely not in can be left out."""
        model, n_sets = self.model, self.model.config.n_sets
        proposal, noise = self._proposal_scale(model.weight_power), Noise(self.seed, x.device)
        blocks = [
            paired_noise(model, size, noise, n_sets)[0, 0].transpose(0, 1) * proposal
            for size in self._block_sizes()
        ]
        block = min(BLOCK, self.n_draws)
        at_once = self.rows_at_once(block) * n_sets
        sampler = AdaptiveSampler(model, blocks, proposal, model.weight_power, enough, at_once)
        times = max(1, block // A_ROW_IN_DRAWS)
        found = [sampler(batch) for batch in self._chunks(x, m, block, times)]
        return torch.cat([one for one, _ in found]), torch.cat([two for _, two in found])

    def _enough_noise(self, device: torch.device) -> list[Tensor]:
        """Blocks of noise, as many as draws that count alike are needed."""
        noise, blocks = Noise(self.seed, device), []
        for size in self._block_sizes():
            blocks.append(paired_noise(self.model, size, noise))
            if self.enough is not None and sum(b.shape[2] for b in blocks) >= self.enough:
                break
        return blocks

    def diagnostics(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """The log-likelihood bound and the effective sample size of each row, ``(row,)``.

        The bound is of the members' equal mixture, the sample size the members' mean.
        """
        bounds, sizes = [], []
        for running in self._run(x, m, 0, point=False):
            per_member = running.bound
            bounds.append(torch.logsumexp(per_member, 0) - math.log(len(per_member)))
            sizes.append(running.effective_sample_size.mean(0))
        return torch.cat(bounds), torch.cat(sizes)

    def _block_sizes(self) -> list[int]:
        """How many draws each block has."""
        sizes, left = [], self.n_draws
        first = list(FIRST_BLOCKS) if self.enough is not None else []
        while left > 0:
            sizes.append(min(first.pop(0) if first else BLOCK, left))
            left -= sizes[-1]
        return sizes

    def _run(self, x: Tensor, m: Tensor, n_values: int, *, point: bool) -> Iterator[Running]:
        """All draws of each chunk of rows; all rows share the noise, unless there is one draw.

        For a ``point`` estimate, weights are as far trusted as predicts best; otherwise fully.
        """
        model, config = self.model, self.model.config
        trust = self._weight_power if point else torch.ones_like(model.weight_power)
        proposal = self._proposal_scale(trust)
        wide = proposal[:, None, None, None, None]
        noise, other = Noise(self.seed, x.device), Noise(self.seed + 1, x.device)
        blocks = []
        for size in self._block_sizes():
            shape = (config.n_members, 1, size, 1)
            uniform = other.uniform(*shape, x.shape[-1]) if model.joint else None
            blocks.append((paired_noise(model, size, noise) * wide, uniform))
        for batch in self._chunks(x, m, min(BLOCK, self.n_draws)):
            running = Running(batch.x.shape[0], batch.x.shape[1], n_values, like=batch.x)
            rows: Tensor | slice = slice(None)
            if self.n_draws == 1:
                uniform = self._one_draw_of_x(batch) if model.joint else None
                blocks = [(self._one_draw(batch) * wide, uniform)]
            for epsilon, uniform in blocks:
                densities = model.log_densities(batch, epsilon, uniform=uniform)
                values = model.expected(densities) if n_values else None
                log_w = tempered(log_weights(densities, proposal), densities.log_q_r, trust)
                running.add(rows, log_w, values)
                if self.enough is not None:
                    reached = running.effective_sample_size.mean(0)[rows]
                    wanting = torch.nonzero(reached < self.enough)[:, 0]
                    if wanting.numel() == 0:
                        break
                    rows = wanting if isinstance(rows, slice) else rows[wanting]
                    batch = batch.rows(wanting)
            yield running

    def _one_draw(self, batch: Batch) -> Tensor:
        """Noise for one draw, ``(member, row, 1, set, latent)``, each row's told by its own cells.

        One draw that all rows shared would have all of them err in the same direction.
        """
        drawn: Tensor = torch.special.ndtri(self._told(batch, self.model.config.n_latent, 0))
        return drawn.to(batch.x.dtype)

    def _one_draw_of_x(self, batch: Batch) -> Tensor:
        """The same for the values of missing cells: uniform, ``(member, row, 1, set, column)``."""
        told = self._told(batch, batch.x.shape[-1], 1)
        return told.to(batch.x.dtype).clamp(TINY, 1 - TINY)

    def _told(self, batch: Batch, n: int, stream: int) -> Tensor:
        config, noise = self.model.config, Noise(self.seed + stream, batch.x.device)
        keys = noise.keys(config.n_members, 1, 1, config.n_sets, n)
        return told_by_row(torch.cat([batch.x * batch.m, batch.m], -1), keys, noise)

    @property
    def _weight_power(self) -> Tensor:
        """How far weights are trusted for point estimates, ``(member,)``."""
        # by one draw a set, weights tell the luck of the draws rather than the sets
        return (
            torch.zeros_like(self.model.weight_power)
            if self.n_draws == 1
            else self.model.weight_power
        )

    def _proposal_scale(self, trust: Tensor) -> Tensor:
        """How much wider than q(z | ·) draws are, ``(member,)``."""
        return torch.where(trust < 1, 1.0, self.model.proposal_scale)

    def set_probabilities(self, x: Tensor, m: Tensor) -> Tensor:
        """q(r | x_obs, m) of each member, ``(member, row, set)``."""
        chunks = self._chunks(x, m, 1)
        return torch.cat([self.model.log_q_r(batch).exp() for batch in chunks], 1)

    def sample(self, x: Tensor, m: Tensor, n: int) -> Tensor:
        """``n`` joint draws of the missing cells, ``(row, draw, column)``.

        Sampling-importance-resampling of (z, r), each row with noise of its own; then x_mis from
        its likelihood. Draws are dealt out to the members in turn.
        """
        noise = Noise(self.seed, x.device)
        per_member = -(-n // self.model.config.n_members)
        parts = []
        for batch in self._chunks(x, m, self.n_draws):
            drawn = draw(self.model, batch, per_member, self.n_draws, noise)
            # (member, row, k, column) -> (row, k · member, column): members alternate
            parts.append(drawn.permute(1, 2, 0, 3).flatten(1, 2)[:, :n])
        return torch.cat(parts)

    def _chunks(self, x: Tensor, m: Tensor, n_draws: int, times: int = 1) -> Iterator[Batch]:
        """Batches of as many rows as fit the memory with so many draws, or of ``times`` as many."""
        n_members = self.model.config.n_members
        size = times * self.rows_at_once(n_draws)
        for start in range(0, x.shape[0], size):
            rows = slice(start, start + size)
            yield Batch.of(x[rows].expand(n_members, -1, -1), m[rows].expand(n_members, -1, -1))

    def rows_at_once(self, n_draws: int) -> int:
        """Rows of a chunk that fits the memory budget."""
        device = self.model.observed_rate.device.type
        memory = MEMORY_BUDGET[device] if self.memory is None else self.memory
        return max(1, memory // (4 * self._floats_per_row(n_draws)))

    def _floats_per_row(self, n_draws: int) -> int:
        """A count of what one row holds at once, from the layers' sizes."""
        config, columns = self.model.config, self.model.inputs
        hidden = 4 * config.network.width
        cells = 6 * sum(self.model.p_x.n_outputs) + 4 * columns.n_columns
        if self.model.p_m.depends_on_x:
            # quadrature nodes of every cell, what is told of them and the mask model's scores
            cells += sum(
                8 * block.n_columns * block.n_nodes * max(block.n_features, block.n_statistics)
                for block in columns.blocks
            )
        grid = n_draws * config.n_sets * (hidden + cells + 4 * config.n_latent)
        once = 4 * config.n_latent**2
        if self.model.regression is not None and config.regression is not None:
            once += 4 * self.model.regression.places.n_features
            once += 4 * config.n_sets * config.regression.width
        return config.n_members * (grid + once)


def expected_by_q(model: GMVAE, batch: Batch, epsilon: Tensor) -> Tensor:
    """Σ_r q(r | ·) times the mean over draws of E[statistics(x) | z, r]: (member, row, statistic).

    One member decodes only the sets that a row may be in; several decode all, since they may differ
    in which these are.
    """
    code = model.encode(batch)
    q_r = code.log_q_r.exp()
    if model.config.n_members > 1:
        p_x = model.heads(code.q_z.at(epsilon), shift=code.shift)[1]
        return (q_r.unsqueeze(-1) * p_x.expected().mean(2)).sum(2)
    q_r = torch.where(q_r >= MIN_SHARE, q_r, 0.0)
    q_r = q_r / q_r.sum(-1, keepdim=True)
    _, row, set_ = torch.nonzero(q_r, as_tuple=True)
    code = code.of(row, set_)
    if epsilon.shape[1] > 1 or epsilon.shape[3] > 1:
        epsilon = epsilon.expand(-1, *q_r.shape[1:2], -1, q_r.shape[2], -1)
        epsilon = epsilon[:, row, :, set_].transpose(0, 1).unsqueeze(3)
    p_x = model.heads(code.q_z.at(epsilon), set_, code.shift)[1]
    expected = p_x.expected().mean(2).squeeze(2)
    # each in a place of its own: adding up by index would depend on a GPU's order of events
    placed = expected.new_zeros(*q_r.shape, expected.shape[-1])
    placed[:, row, set_] = expected
    return (q_r.unsqueeze(-1) * placed).sum(2)


def paired_noise(model: GMVAE, n_draws: int, noise: Noise, n_sets: int = 1) -> Tensor:
    """Noise that all rows share, ``(member, 1, draw, set, latent)``; sets too unless asked for.

    In pairs ±ε: what is linear in z is then averaged without error.
    """
    config = model.config
    half = noise.normal(config.n_members, 1, -(-n_draws // 2), n_sets, config.n_latent)
    return torch.cat([half, -half], 2)[:, :, :n_draws]


def draw(
    model: GMVAE, batch: Batch, n: int, n_draws: int, noise: Noise, *, observed: bool = False
) -> Tensor:
    """``n`` draws of every cell from p(x_j | m_j = 0, x_obs, m), ``(member, row, n, column)``.

    Draws of numbers are widened about their expectation by the model's ``spread``. With
    ``observed`` they are from p(x_j | m_j = 1, ·) instead and as the model says, for the spread to
    be learned from.
    """
    n_members, n_rows, n_columns = batch.x.shape
    n_sets = model.config.n_sets
    shape = (n_members, n_rows, n_draws, n_sets)
    epsilon = noise.normal(*shape, model.config.n_latent)
    epsilon = epsilon * model.proposal_scale[:, None, None, None, None]
    uniform = noise.uniform(*shape, n_columns) if model.joint else None
    densities = model.log_densities(batch, epsilon, uniform=uniform)
    log_w = log_weights(densities, model.proposal_scale)
    draw_, set_ = resample(log_w, noise.uniform(n_members, n_rows, n))
    z = _pick(densities.z, draw_, set_).unsqueeze(3).expand(-1, -1, -1, n_sets, -1)
    uniform = noise.uniform(n_members, n_rows, n, 1, n_columns)
    if observed:
        p_x: Cells = model.p_x(z, None, both=False, shift=densities.shift)[0]
        return _pick_set(p_x.sample(uniform), set_)
    if model.joint and densities.x_drawn is not None:
        # the weights are of these very values
        drawn = _pick(densities.x_drawn, draw_, set_)
    else:
        drawn = _pick_set(model.sample_missing(z, densities.shift, uniform), set_)
    expected = model.expected(densities)
    center = model.inputs.point(torch.einsum("eils,eilsf->eif", normalised(log_w), expected))
    widened = center.unsqueeze(2) + model.draw_scale[:, None, None] * (drawn - center.unsqueeze(2))
    return torch.where(model.inputs.is_number, widened, drawn)


def _pick(z: Tensor, draw: Tensor, set_: Tensor) -> Tensor:
    """``z[e, i, draw[e, i, k], set[e, i, k]]``, ``(member, row, k, ...)``."""
    flat = (draw * z.shape[3] + set_).unsqueeze(-1).expand(-1, -1, -1, z.shape[-1])
    return z.flatten(2, 3).gather(2, flat)


def _pick_set(values: Tensor, set_: Tensor) -> Tensor:
    """``values[e, i, k, set[e, i, k]]``, ``(member, row, k, column)``."""
    index = set_[..., None, None].expand(-1, -1, -1, 1, values.shape[-1])
    return values.gather(3, index).squeeze(3)
