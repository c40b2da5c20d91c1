"""Blocks of importance draws, and estimates from them for a batch of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from psmvae.inference.importance import RunningEstimate, log_weights, tempered
from psmvae.inference.noise import antithetic_noise, row_normal, row_uniform
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise

# Draws of a block. With a target for the effective sample size the first blocks are smaller,
# because many rows then need no more.
BLOCK, FIRST_BLOCKS = 250, (20, 80)


class DrawBlock(NamedTuple):
    """Numbers for one block of draws, ``(member, row or 1, draw, set or 1, latent or column)``."""

    # for z, and for missing values if the mask model is joint
    epsilon: Tensor
    uniform: Tensor | None


def block_sizes(n_draws: int, target_ess: float | None) -> list[int]:
    """Number of draws of each block."""
    sizes, left = [], n_draws
    first = [] if target_ess is None else list(FIRST_BLOCKS)
    while left > 0:
        sizes.append(min(first.pop(0) if first else BLOCK, left))
        left -= sizes[-1]
    return sizes


def shared_blocks(
    model: GMVAE, sizes: Sequence[int], seed: int, proposal_scale: Tensor
) -> list[DrawBlock]:
    """Blocks that all rows and sets share, with ε scaled by ``proposal_scale (member,)``."""
    noise, noise_x = (Noise(number, proposal_scale.device) for number in (seed, seed + 1))
    scale = proposal_scale[:, None, None, None, None]
    blocks = []
    for size in sizes:
        shape = (model.config.n_members, 1, size, 1, model.inputs.n_columns)
        uniform = noise_x.uniform(*shape) if model.joint else None
        blocks.append(DrawBlock(antithetic_noise(model, size, noise) * scale, uniform))
    return blocks


def row_block(model: GMVAE, batch: Batch, seed: int, proposal_scale: Tensor) -> DrawBlock:
    """One draw for each row and set, which depends on the row's own cells only."""
    uniform = row_uniform(model, batch, seed + 1) if model.joint else None
    epsilon = row_normal(model, batch, seed) * proposal_scale[:, None, None, None, None]
    return DrawBlock(epsilon, uniform)


def estimate(
    model: GMVAE,
    batch: Batch,
    blocks: Sequence[DrawBlock],
    proposal_scale: Tensor,
    weight_power: Tensor,
    target_ess: float | None,
    *,
    with_values: bool,
) -> RunningEstimate:
    """Importance sampling for a batch of rows; rows with the target ESS get no more blocks."""
    n_members, n_rows, _ = batch.x.shape
    n_values = model.inputs.n_statistics if with_values else 0
    running = RunningEstimate(n_members, n_rows, n_values, like=batch.x)
    rows: Tensor | slice = slice(None)
    for epsilon, uniform in blocks:
        densities = model.log_densities(batch, epsilon, uniform=uniform)
        values = model.expected(densities) if with_values else None
        log_w = tempered(log_weights(densities, proposal_scale), densities.log_q_r, weight_power)
        running.add(rows, log_w, values)
        if target_ess is not None:
            reached = running.effective_sample_size.mean(0)[rows]
            active = torch.nonzero(reached < target_ess)[:, 0]
            if active.numel() == 0:
                break
            rows = active if isinstance(rows, slice) else rows[active]
            batch = batch.rows(active)
    return running
