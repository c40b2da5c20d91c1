"""The training recipe of the models with latent variables."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from psmvae.inference.objective import elbo, iwae
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.latent_classes import MAX_ROWS
from psmvae.nn.noise import Noise
from psmvae.training import calibration
from psmvae.training.data import TrainingData
from psmvae.training.recipe import Pretraining


@dataclass(frozen=True)
class LatentRecipe:
    """Train a GMVAE, or a model derived from it, on the objective of its configuration."""

    model: GMVAE

    @torch.no_grad()
    def initialise(self, data: TrainingData, noise: Noise) -> None:
        """Set initial weights from simple models of the table.

        q(r | m), p(r) and p(m | r) start from a latent class analysis of the masks; q(z | x_obs)
        and p(x | z) from a factor analysis of the training cells.
        """
        model, config = self.model, self.model.config
        if model.q_r.classes is not None:
            classes = model.q_r.classes.start(data.observed[..., :MAX_ROWS, :], noise)
            model.p_r.logits.copy_(classes.share.log().unsqueeze(1))
            model.p_m.start(classes.rate)
        if model.regression is not None:
            model.regression.start(data.x.expand(data.m.shape), data.m)
        if model.q_z.linear is None:
            return
        rows = slice(0, config.factor_analysis_rows)
        batch = data.unmasked_batch(rows)
        features, visible = model.inputs.features(batch.x), model.inputs.per_feature(batch.m)
        validation = model.inputs.per_feature(data.validation_mask[:, rows].to(visible.dtype))
        fa = model.q_z.linear.start(features, visible, validation, config.factor_analysis_steps)
        model.p_x.start_linear(fa.mean, fa.loading.transpose(1, 2), fa.psi.sqrt())

    def pretraining(self) -> Pretraining | None:
        """Return the pre-training of the regression on masked cells, if the model has one."""
        model, regression = self.model, self.model.regression
        if regression is None:
            return None
        return Pretraining(
            parameters=list(regression.parameters()),
            loss=lambda batch, noise: -model.log_p_by_regression(batch, noise),
            accept=lambda data: calibration.choose_regression_weight(model, data),
        )

    def warm_up_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of a mask model that depends on x.

        The error of validation cells, all observed, does not measure p(m | x), so early stopping
        could end training before the mask model has converged. With ``train_jointly``, everything
        linear in x is trained with it.
        """
        model = self.model
        if model.q_z.linear is None or not model.p_m.depends_on_x:
            return []
        mask, p_x = [*model.p_m.parameters(), *model.p_r.parameters()], model.p_x
        if not model.p_m.train_jointly or p_x.loading is None:
            return mask
        x = [p_x.loading, *(parameter for head in p_x.heads for parameter in head.parameters())]
        return [*mask, *x, p_x.net.output_bias, *model.p_z.parameters()]

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Return minus the bound (ELBO or IWAE) of each row, ``(member, row)``."""
        config = self.model.config
        shape = (*batch.x.shape[:2], config.n_train_draws, config.n_sets, config.n_latent)
        densities = self.model.log_densities(batch, noise.normal(*shape), noise, auxiliary=True)
        weight = self.model.weight_observed if config.weight_observed else 1.0
        if config.objective == "iwae":
            return -iwae(densities, weight_observed=weight)
        return -elbo(densities, weight_observed=weight, beta=config.beta)

    def calibration_sample(self, data: TrainingData) -> float:
        """Evaluate one proposal scale, and return the cost of `calibrate` in such evaluations."""
        calibration.evaluate_one_proposal(self.model, data)
        return calibration.COST_IN_PROPOSALS

    def calibrate(self, data: TrainingData, noise: Noise, fraction: float) -> None:
        """Choose the proposal, the power of importance weights and the scale of draws."""
        calibration.choose_proposal_scale(self.model, data, noise, fraction)
        calibration.choose_weight_power(self.model, data, noise, fraction)
        calibration.choose_draw_scale(self.model, data, noise, fraction)
