"""How the latent variable models are trained: where they start, their bound, their spread."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from psmvae.inference.objective import elbo, iwae
from psmvae.inference.posterior import Posterior, draw
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise
from psmvae.training.heldout import Table
from psmvae.training.settings import Training

# Rows that the simple models are fitted to.
MAX_LINEAR_ROWS = 3000
MAX_CLASS_ROWS = 20_000
MAX_CALIBRATION_ROWS = 1024
CALIBRATION_DRAWS, CALIBRATION_CELLS, MAX_SPREAD = 30, 20, 3.0


@dataclass(frozen=True)
class LatentRecipe:
    """Trains a GMVAE or what is built on it, on the bound that ``training`` names."""

    model: GMVAE
    training: Training

    @torch.no_grad()
    def start(self, table: Table, m: Tensor, noise: Noise) -> None:
        """Start from simple models fitted to the table: classes of masks, and factor analysis."""
        model = self.model
        if model.q_r.classes is not None:
            classes = model.q_r.classes.start(m[:MAX_CLASS_ROWS], noise)
            model.p_r.logits.copy_(classes.share.log().unsqueeze(1))
            if hasattr(model.p_m, "start"):
                model.p_m.start(classes.rate)
        if model.q_z.linear is None:
            return
        rows = slice(0, MAX_LINEAR_ROWS)
        batch = table.all_rows(rows)
        features = model.inputs.features(batch.x)
        visible = model.inputs.spread(batch.m)
        fa = model.q_z.linear.start(features, visible, max_rows=MAX_LINEAR_ROWS)
        model.p_x.start_linear(fa.mean, fa.loading.transpose(1, 2), fa.psi.sqrt())

    def warm_parameters(self) -> list[nn.Parameter]:
        """What a mask that depends on x is trained with before the networks move.

        The error on held-out cells cannot judge such a mask (they are all observed), so it must not
        wait for networks that may stop early. With ``trust_normal`` all that is linear in x moves
        with it.
        """
        model = self.model
        if model.q_z.linear is None or not model.p_m.depends_on_x:
            return []
        mask = [*model.p_m.parameters(), *model.p_r.parameters()]
        p_x = model.p_x
        if not getattr(model.p_m, "trust_normal", False) or p_x.loading is None:
            return mask
        x = [p_x.loading, *(parameter for head in p_x.heads for parameter in head.parameters())]
        return [*mask, *x, p_x.net.output_bias, *model.p_z.parameters()]

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Minus the bound."""
        training, settings = self.training, self.model.settings
        shape = (*batch.x.shape[:2], training.n_draws, settings.n_sets, settings.n_latent)
        answer = self.model.answer(batch, noise.normal(*shape), noise, auxiliary=True)
        weight = self.model.weight_observed if training.weight_observed else 1.0
        if training.objective == "iwae":
            return -iwae(answer, weight_observed=weight)
        return -elbo(answer, weight_observed=weight, beta=training.beta)

    def finish(self, table: Table, noise: Noise) -> None:
        """Set how much wider draws must be than the model says."""
        calibrate(self.model, table, noise)


@torch.no_grad()
def calibrate(model: GMVAE, table: Table, noise: Noise) -> None:
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
