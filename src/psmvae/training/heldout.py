"""Held-out observed cells: what is learned from, the error, and how wide draws must be."""

from __future__ import annotations

import torch
from torch import Tensor

from psmvae.inference.posterior import Posterior, draw
from psmvae.models.batch import Batch
from psmvae.models.psmvae import PSMVAE
from psmvae.nn.noise import Noise

# Rows that measure the held-out error: enough for three digits, little next to an epoch.
MAX_HELD_OUT_ROWS = 4096
MAX_CALIBRATION_ROWS = 1024
CALIBRATION_DRAWS, CALIBRATION_CELLS, MAX_SPREAD = 30, 20, 3.0


class Table:
    """The training table on the device: ``x``, and for each member what it may learn from.

    ``m`` ``(member, row, column)`` is 1 on observed cells that are not held out for that member;
    ``known`` is 0 on held-out cells.
    """

    def __init__(self, x: Tensor, m: Tensor, n_members: int, held_out: float, noise: Noise) -> None:
        seen = m.expand(n_members, -1, -1)
        held = noise.keep(seen.shape, held_out) & (seen > 0) if held_out > 0 else seen < 0
        # a column must keep an observed value to learn from
        alone = (seen * ~held).sum(1, keepdim=True) == 0
        held = held & ~alone
        self.x = torch.where(m > 0, x, 0.0)
        self.m = seen * ~held
        self.known = (~held).to(m.dtype)
        self.held = held

    def batch(self, rows: Tensor, hide: float, noise: Noise) -> Batch:
        """Rows ``(member, k)`` with a random share of each hidden from the encoder."""
        x, index = self.x[rows], rows.unsqueeze(-1).expand(-1, -1, self.x.shape[-1])
        m = self.m.gather(1, index)
        visible = m
        if hide > 0:
            share = hide * noise.uniform(*rows.shape, 1)
            visible = m * (noise.uniform(*m.shape) >= share)
        return Batch(x, m, visible, self.known.gather(1, index))

    def all_rows(self, rows: slice) -> Batch:
        """Rows of every member with all they may see."""
        m = self.m[:, rows]
        return Batch(self.x[rows].expand(m.shape), m, m, self.known[:, rows])


@torch.no_grad()
def held_out_error(model: PSMVAE, table: Table) -> Tensor:
    """Root mean squared error of the held-out cells of each member, in standard deviations.

    Predicts from the middle of q(z | r, ·), sets weighted by q(r | ·): the cheap estimate. Held-out
    cells are observed ones, so their distribution is that of x_obs whatever the mask model.
    """
    n_rows = min(table.x.shape[0], MAX_HELD_OUT_ROWS)
    total = torch.zeros(table.m.shape[0], device=table.x.device)
    count = torch.zeros_like(total)
    for start in range(0, n_rows, 512):
        rows = slice(start, min(start + 512, n_rows))
        batch = table.all_rows(rows)
        epsilon = batch.x.new_zeros(1, 1, 1, 1, model.settings.n_latent)
        log_q_r, q_z = model.encode(batch)
        p_x_obs, _ = model.p_x(q_z.at(epsilon), None, mis=False)
        features = p_x_obs.expected_features().squeeze(2)
        expected = (log_q_r.exp().unsqueeze(-1) * features).sum(2)
        held = table.held[:, rows]
        total += (model.inputs.error(expected, batch.x) * held).sum((1, 2))
        count += held.sum((1, 2))
    return (total / count).sqrt()


@torch.no_grad()
def calibrate(model: PSMVAE, table: Table, noise: Noise) -> None:
    """Set how much wider draws must be than the model says, from the held-out cells.

    A column's factor is the root of the mean squared error over the mean predicted variance, drawn
    towards 1 as if CALIBRATION_CELLS more cells had fitted; draws are widened, never narrowed.
    """
    if not bool(model.inputs.is_number.any()):
        return
    n_rows = min(table.x.shape[0], MAX_CALIBRATION_ROWS)
    size = Posterior(model, CALIBRATION_DRAWS, seed=0).rows_at_once(CALIBRATION_DRAWS)
    error, variance = torch.zeros_like(model.spread), torch.zeros_like(model.spread)
    count = torch.zeros_like(model.spread)
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        batch, held = table.all_rows(rows), table.held[:, rows]
        drawn = draw(model, batch, CALIBRATION_DRAWS, CALIBRATION_DRAWS, noise, observed=True)
        mean, var = drawn.mean(2), drawn.var(2)
        error += ((batch.x - mean).square() * held).sum(1)
        variance += (var * (1 + 1 / CALIBRATION_DRAWS) * held).sum(1)
        count += held.sum(1)
    prior = CALIBRATION_CELLS * variance / count.clamp(min=1) + 1e-12
    factor = ((error + prior) / (variance + prior)).sqrt()
    numeric = model.inputs.is_number
    model.spread.copy_(torch.where(numeric, factor.clamp(1.0, MAX_SPREAD), 1.0))
