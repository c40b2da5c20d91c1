"""Imputation: passes over the rows of a table in chunks that fit a memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from psmvae.inference.importance import (
    bound,
    effective_sample_size,
    log_weights,
    normalised,
    resample,
)
from psmvae.models.batch import Batch
from psmvae.models.psmvae import PSMVAE
from psmvae.nn.noise import Noise

MEMORY_BUDGET = 256 * 2**20


@dataclass(frozen=True)
class Posterior:
    """Questions about rows ``x, m`` (``(row, column)``, model order) under a trained model.

    Parameters
    ----------
    model : PSMVAE
        The trained model.
    n_draws : int
        Importance draws of z for each row, set and member.
    seed : int
        The draws' seed. All rows share the draws, so a row's answer does not depend on which rows
        come with it.
    memory : int
        Bytes a chunk of rows may take.
    """

    model: PSMVAE
    n_draws: int
    seed: int
    memory: int = MEMORY_BUDGET

    def expected_features(self, x: Tensor, m: Tensor) -> Tensor:
        """E[features(x_mis) | x_obs, m], averaged over members, ``(row, feature)``."""
        return self.impute(x, m)[0]

    def impute(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """The expected features and the effective sample size of each row behind them."""
        epsilon = self._shared_noise(x.device)
        parts, sizes = [], []
        for batch in self._chunks(x, m, self.n_draws):
            answer = self.model.answer(batch, epsilon)
            log_w = log_weights(answer)
            weight = normalised(log_w)
            features = self.model.expected_features(answer)
            parts.append(torch.einsum("eils,eilsf->if", weight, features) / weight.shape[0])
            sizes.append(effective_sample_size(log_w).mean(0))
        return torch.cat(parts), torch.cat(sizes)

    def diagnostics(self, x: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """The log-likelihood bound and the effective sample size of each row, ``(row,)``.

        The bound is of the members' equal mixture, the sample size the members' mean.
        """
        epsilon = self._shared_noise(x.device)
        bounds, sizes = [], []
        for batch in self._chunks(x, m, self.n_draws):
            log_w = log_weights(self.model.answer(batch, epsilon))
            per_member = bound(log_w)
            bounds.append(torch.logsumexp(per_member, 0) - torch.log(torch.tensor(len(per_member))))
            sizes.append(effective_sample_size(log_w).mean(0))
        return torch.cat(bounds), torch.cat(sizes)

    def set_probabilities(self, x: Tensor, m: Tensor) -> Tensor:
        """q(r | x_obs, m) of each member, ``(member, row, set)``."""
        chunks = self._chunks(x, m, 1)
        return torch.cat([self.model.encode(batch)[0].exp() for batch in chunks], 1)

    def sample(self, x: Tensor, m: Tensor, n: int) -> Tensor:
        """``n`` joint draws of the missing cells, ``(row, draw, column)``.

        Sampling-importance-resampling of (z, r), each row with noise of its own; then x_mis from
        its likelihood. Draws are dealt out to the members in turn.
        """
        noise = Noise(self.seed, x.device)
        per_member = -(-n // self.model.settings.n_members)
        parts = []
        for batch in self._chunks(x, m, self.n_draws):
            drawn = draw(self.model, batch, per_member, self.n_draws, noise)
            # (member, row, k, column) -> (row, k · member, column): members alternate
            parts.append(drawn.permute(1, 2, 0, 3).flatten(1, 2)[:, :n])
        return torch.cat(parts)

    def _shared_noise(self, device: torch.device) -> Tensor:
        settings = self.model.settings
        noise = Noise(self.seed, device)
        return noise.normal(settings.n_members, 1, self.n_draws, 1, settings.n_latent)

    def _chunks(self, x: Tensor, m: Tensor, n_draws: int) -> Iterator[Batch]:
        n_members = self.model.settings.n_members
        size = self.rows_at_once(n_draws)
        for start in range(0, x.shape[0], size):
            rows = slice(start, start + size)
            yield Batch.of(x[rows].expand(n_members, -1, -1), m[rows].expand(n_members, -1, -1))

    def rows_at_once(self, n_draws: int) -> int:
        """Rows of a chunk that fits the memory budget."""
        return max(1, self.memory // (4 * self._floats_per_row(n_draws)))

    def _floats_per_row(self, n_draws: int) -> int:
        """A count of what one row holds at once, from the layers' sizes."""
        settings, columns = self.model.settings, self.model.inputs
        hidden = 4 * settings.network.width
        cells = 6 * self.model.p_x.x_obs.n_outputs + 4 * columns.n_columns
        if self.model.p_m.depends_on_x:
            # quadrature nodes of every cell, their features and the mask model's scores
            nodes = [max(15, block.n_features) for block in columns.blocks]
            cells += sum(
                8 * block.n_columns * n * block.n_features
                for block, n in zip(columns.blocks, nodes, strict=True)
            )
        grid = n_draws * settings.n_sets * (hidden + cells + 4 * settings.n_latent)
        return settings.n_members * (grid + 4 * settings.n_latent**2)


def draw(
    model: PSMVAE, batch: Batch, n: int, n_draws: int, noise: Noise, *, observed: bool = False
) -> Tensor:
    """``n`` draws of every cell from p(x_j | m_j = 0, x_obs, m), ``(member, row, n, column)``.

    Draws of numbers are widened about their expectation by the model's ``spread``. With
    ``observed`` they are from p(x_j | m_j = 1, ·) instead and as the model says, for the spread to
    be learned from.
    """
    n_members, n_rows, n_columns = batch.x.shape
    n_sets = model.settings.n_sets
    epsilon = noise.normal(n_members, n_rows, n_draws, n_sets, model.settings.n_latent)
    answer = model.answer(batch, epsilon)
    log_w = log_weights(answer)
    draw_, set_ = resample(log_w, noise.uniform(n_members, n_rows, n))
    z = _pick(answer.z, draw_, set_).unsqueeze(3).expand(-1, -1, -1, n_sets, -1)
    uniform = noise.uniform(n_members, n_rows, n, 1, n_columns)
    if observed:
        return _pick_set(model.p_x(z, None, mis=False)[0].sample(uniform), set_)
    drawn = _pick_set(model.sample_missing(z, uniform), set_)
    features = model.expected_features(answer)
    center = model.inputs.point(torch.einsum("eils,eilsf->eif", normalised(log_w), features))
    widened = center.unsqueeze(2) + model.spread[:, None, None] * (drawn - center.unsqueeze(2))
    return torch.where(model.inputs.is_number, widened, drawn)


def _pick(z: Tensor, draw: Tensor, set_: Tensor) -> Tensor:
    """``z[e, i, draw[e, i, k], set[e, i, k]]``, ``(member, row, k, latent)``."""
    flat = (draw * z.shape[3] + set_).unsqueeze(-1).expand(-1, -1, -1, z.shape[-1])
    return z.flatten(2, 3).gather(2, flat)


def _pick_set(values: Tensor, set_: Tensor) -> Tensor:
    """``values[e, i, k, set[e, i, k]]``, ``(member, row, k, column)``."""
    index = set_[..., None, None].expand(-1, -1, -1, 1, values.shape[-1])
    return values.gather(3, index).squeeze(3)
