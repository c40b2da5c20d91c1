"""Posterior draws of x by sampling-importance-resampling."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.importance import log_weights, normalised, resample
from psmvae.models.batch import Batch, LogDensities
from psmvae.models.gmvae import GMVAE
from psmvae.nn.columns import Cells
from psmvae.nn.noise import Noise


def draw_missing(model: GMVAE, batch: Batch, n: int, n_draws: int, noise: Noise) -> Tensor:
    """Draw every cell from p(x_j | m_j = 0, x_obs, m), ``(member, row, n, column)``.

    (z, r) is resampled from importance draws, then x_j is drawn from its distribution given
    m_j = 0, z and r. Draws of numeric columns are widened about their posterior mean by the model's
    ``draw_scale``.
    """
    densities, log_w = _importance_draws(model, batch, n_draws, noise)
    draw, set_, z, uniform = _resampled(densities, log_w, n, batch, noise)
    if model.joint and densities.x_drawn is not None:
        # the importance weights are those of these values of x
        drawn = _select(densities.x_drawn, draw, set_)
    elif model.tilts:
        drawn = _select_set(model.tilted_sample(z, densities.shift, uniform), set_)
    else:
        # the decoder has been evaluated at all draws and sets: select instead of decoding again
        drawn = _select_cells(densities.p_x, log_w.shape, draw, set_).sample(uniform).squeeze(3)
    expected = torch.einsum("eils,eilsf->eif", normalised(log_w), model.expected(densities))
    mean = model.inputs.point(expected).unsqueeze(2)
    widened = mean + model.draw_scale[:, None, None] * (drawn - mean)
    return torch.where(model.inputs.is_number, widened, drawn)


def draw_observed(model: GMVAE, batch: Batch, n: int, n_draws: int, noise: Noise) -> Tensor:
    """Draw every cell from p(x_j | m_j = 1, x_obs, m), ``(member, row, n, column)``.

    Validation cells are observed cells, so ``draw_scale`` is estimated from these draws.
    """
    densities, log_w = _importance_draws(model, batch, n_draws, noise)
    _, set_, z, uniform = _resampled(densities, log_w, n, batch, noise)
    p_x: Cells = model.p_x(z, None, both=False, shift=densities.shift)[0]
    return _select_set(p_x.sample(uniform), set_)


def _importance_draws(
    model: GMVAE, batch: Batch, n_draws: int, noise: Noise
) -> tuple[LogDensities, Tensor]:
    """Importance draws of (z, r), independent for each row and set, and their log weights."""
    n_members, n_rows, n_columns = batch.x.shape
    shape = (n_members, n_rows, n_draws, model.config.n_sets)
    scale = model.proposal_scale[:, None, None, None, None]
    epsilon = noise.normal(*shape, model.config.n_latent) * scale
    uniform = noise.uniform(*shape, n_columns) if model.joint else None
    densities = model.log_densities(batch, epsilon, uniform=uniform)
    return densities, log_weights(densities, model.proposal_scale)


def _resampled(
    densities: LogDensities, log_w: Tensor, n: int, batch: Batch, noise: Noise
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Resample n pairs (draw, set) in proportion to the weights.

    Also returns z ``(member, row, n, set, latent)``, repeated for all sets, and uniform numbers.
    """
    n_members, n_rows, n_columns = batch.x.shape
    draw, set_ = resample(log_w, noise.uniform(n_members, n_rows, n))
    z = _select(densities.z, draw, set_).unsqueeze(3).expand(-1, -1, -1, log_w.shape[-1], -1)
    return draw, set_, z, noise.uniform(n_members, n_rows, n, 1, n_columns)


def _select(values: Tensor, draw: Tensor, set_: Tensor) -> Tensor:
    """``values[e, i, draw[e, i, k], set_[e, i, k]]``, ``(member, row, k, ...)``."""
    flat = (draw * values.shape[3] + set_).unsqueeze(-1).expand(-1, -1, -1, values.shape[-1])
    return values.flatten(2, 3).gather(2, flat)


def _select_set(values: Tensor, set_: Tensor) -> Tensor:
    """``values[e, i, k, set_[e, i, k]]``, ``(member, row, k, column)``."""
    index = set_[..., None, None].expand(-1, -1, -1, 1, values.shape[-1])
    return values.gather(3, index).squeeze(3)


def _select_cells(p_x: Cells, shape: torch.Size, draw: Tensor, set_: Tensor) -> Cells:
    """p(x | z, r) at the selected draws and sets, with axes ``(member, row, k, 1, column)``."""

    def select(parameter: Tensor) -> Tensor:
        if parameter.ndim < 5 or parameter.shape[2:4] == (1, 1):
            return parameter
        last = parameter.shape[4:]
        whole = parameter.expand(*shape, *last).flatten(4)
        selected: Tensor = _select(whole, draw, set_).unflatten(-1, last)
        return selected.unsqueeze(3)

    return p_x.map(select)
