"""Standard normal and uniform numbers from which z and x_mis are drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise, hash_uniform

# Uniform numbers are clamped to [MIN_UNIFORM, 1 − MIN_UNIFORM] before a CDF is inverted.
MIN_UNIFORM = 1e-7


def antithetic_noise(model: GMVAE, n_draws: int, noise: Noise, n_sets: int = 1) -> Tensor:
    """Standard normal numbers ``(member, 1, draw, set, latent)``, which all rows share.

    They come in pairs ±ε: the mean over draws of a linear function of z is then exact.
    """
    config = model.config
    half = noise.normal(config.n_members, 1, -(-n_draws // 2), n_sets, config.n_latent)
    return torch.cat([half, -half], 2)[:, :, :n_draws]


def row_normal(model: GMVAE, batch: Batch, seed: int) -> Tensor:
    """One draw of ε for each row, ``(member, row, 1, set, latent)``, from the row's own cells.

    A single draw that all rows share would give them a common error.
    """
    epsilon: Tensor = torch.special.ndtri(_row_uniform(model, batch, seed, model.config.n_latent))
    return epsilon.to(batch.x.dtype)


def row_uniform(model: GMVAE, batch: Batch, seed: int) -> Tensor:
    """One uniform number for each cell, ``(member, row, 1, set, column)``; see `row_normal`."""
    uniform = _row_uniform(model, batch, seed, batch.x.shape[-1])
    return uniform.to(batch.x.dtype).clamp(MIN_UNIFORM, 1 - MIN_UNIFORM)


def _row_uniform(model: GMVAE, batch: Batch, seed: int, n: int) -> Tensor:
    config, noise = model.config, Noise(seed, batch.x.device)
    keys = noise.keys(config.n_members, 1, 1, config.n_sets, n)
    return hash_uniform(torch.cat([batch.x * batch.m, batch.m], -1), keys, noise)
