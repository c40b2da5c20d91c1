"""The Gaussian-mixture VAE, the base of every latent variable model of the package."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from psmvae.models.batch import Batch, Encoding, LogDensities
from psmvae.models.config import LatentConfig
from psmvae.models.mask_likelihood import log_missing, log_p_m_given_x, log_p_m_given_z
from psmvae.nn.columns import Cells, Columns, Layout
from psmvae.nn.factors import PR, PX, PZ, QR, QZ, GaussianZ, Sizes
from psmvae.nn.latent_classes import ClassPosterior
from psmvae.nn.linear_gaussian import LinearPosterior
from psmvae.nn.mask import MaskModule, MaskShape, check_mask_module
from psmvae.nn.noise import Noise
from psmvae.nn.regression import Regression
from psmvae.nn.streams import fork

Heads = tuple[Cells, Cells | None]
"""p(x_obs | z, r), and the second output of the decoder if it was computed."""


class TrainingTerms(NamedTuple):
    """Quantities that only the training objective needs."""

    # the term of x_mis or w in the ELBO, (member, row, draw, set)
    auxiliary: Tensor | None = None
    # draws of x_mis at which p(m | x) is evaluated, (member, row, draw, set, column)
    x_drawn: Tensor | None = None


class GMVAE(nn.Module):
    """p(r) p(z|r) p(x|z,r) p(m|·) with q(r|·) q(z|r,·).

    With one set this is a VAE; trained on the importance-weighted bound it is MIWAE, and with
    p(m | x) not-MIWAE.

    ``second`` are the columns of a second decoder output beside x_obs: x_mis or w.
    """

    # buffers that depend on the table; their first axis is 1, or the member if members are fitted
    # to different tables
    per_table: tuple[str, ...] = ("weight_observed",)
    observed_rate: Tensor
    # 1 / (1 − missing rate), the paper's weight of log p(x_obs | z, r)
    weight_observed: Tensor
    # factor by which posterior draws are wider than the model's, (member, column)
    draw_scale: Tensor
    # factor by which the proposal of importance draws is wider than q(z | r, ·), (member,)
    proposal_scale: Tensor
    # power of the importance weights of point estimates, (member,)
    weight_power: Tensor
    # 1 if point estimates use the mean of q(z | r, ·) instead of draws, (member,)
    use_posterior_mean: Tensor
    # weight of the regression in the mean of a column, from 0 to 1, (member, column)
    regression_weight: Tensor

    def __init__(
        self,
        layout: Layout,
        config: LatentConfig,
        missing_rate: Tensor,
        noise: Noise,
        *,
        second: Layout | None = None,
    ) -> None:
        super().__init__()
        self.config, network = config, config.network
        self.inputs = Columns(layout, config.n_members, 1.0)
        n_features, n_columns = self.inputs.n_features, self.inputs.n_columns
        sizes = Sizes(config.n_members, config.n_sets, config.n_latent, n_features, n_columns)
        self.sizes = sizes
        shape = MaskShape(
            n_members=config.n_members,
            n_sets=config.n_sets,
            n_latent=config.n_latent,
            columns=self.inputs,
            names=tuple(layout.columns[position].name for position in layout.order),
            missing_rate=missing_rate,
            network=network.light(),
        )
        self.p_m: MaskModule = config.mask_model.build(shape, noise)
        check_mask_module(self.p_m, config.n_members)
        self.sees_mask = self.p_m.as_input if config.mask_input is None else bool(config.mask_input)
        self.n_in = n_features + (n_columns if self.sees_mask else 0)
        linear = LinearPosterior(config.n_members, n_features, config.n_latent)
        uses_classes = network.linear and self.sees_mask and config.n_sets > 1
        classes = ClassPosterior(config.n_members, config.n_sets, n_columns)
        self.q_r = QR(sizes, self.n_in, network, noise, classes if uses_classes else None)
        self.q_z = QZ(sizes, self.n_in, network, noise, linear if network.linear else None)
        self.p_r = PR(sizes)
        # larger initial distances between sets assign rows to sets for the rest of the training:
        # the error of the paper's model on the letter data was then 10 % higher
        self.p_z = PZ(sizes, noise, spread=0.1 if network.linear else 0.2)
        self.p_x = PX(sizes, layout, network, noise, config.scale, second=second)
        self.regression: Regression | None = None
        if config.regression is not None:
            self.regression = Regression(sizes, self.inputs, config.regression, noise)
        self._register_buffers(missing_rate)

    def _register_buffers(self, missing_rate: Tensor) -> None:
        """Register rates of the table, and settings that are chosen on validation cells."""
        n_members, n_columns = self.sizes.n_members, self.sizes.n_columns
        self.register_buffer("observed_rate", 1 - missing_rate)
        # with axes for members, rows, draws and sets
        weight = (1 / (1 - missing_rate).mean().clamp(min=1e-3)).view(1, 1, 1, 1)
        self.register_buffer("weight_observed", weight, persistent=False)
        self.register_buffer("draw_scale", torch.ones(n_members, n_columns, dtype=torch.float32))
        self.register_buffer("proposal_scale", torch.ones(n_members, dtype=torch.float32))
        self.register_buffer("weight_power", torch.ones(n_members, dtype=torch.float32))
        self.register_buffer("use_posterior_mean", torch.zeros(n_members, dtype=torch.float32))
        self.register_buffer(
            "regression_weight", torch.ones(n_members, n_columns, dtype=torch.float32)
        )

    @property
    def joint(self) -> bool:
        """Whether the mask of a cell depends on the values of other columns."""
        return self.p_m.joint

    @property
    def draws_x(self) -> bool:
        """Whether training draws missing values for p(m | x), rather than integrating them out."""
        return self.p_m.depends_on_x and (self.p_m.joint or self.p_m.draws_x)

    @property
    def tilts(self) -> bool:
        """Whether missing cells are imputed from p(x_j | z, r) · p(m_j missing | x_j, ·)."""
        return self.p_m.depends_on_x and self.p_m.tilts

    @property
    def imputes_from_x_mis(self) -> bool:
        """Whether missing cells are imputed from p(x_mis | z, r), rather than p(x_obs | z, r)."""
        return self.config.impute_from == "x_mis" or self.p_m.depends_on_x

    @property
    def supports_pairs(self) -> bool:
        """Whether `log_densities_of_pairs` is available: p(m | z, r) can be evaluated for one r."""
        return self.p_m.takes_sets and not self.p_m.depends_on_x

    def heads(
        self, z: Tensor, sets: Tensor | None = None, shift: Tensor | None = None
    ) -> tuple[Cells, Cells]:
        """p(x_obs | z, r), and the distribution from which missing cells are imputed."""
        both = self.imputes_from_x_mis
        p_x_obs, p_second = self.p_x(z, None, both=both, sets=sets, shift=shift)
        return p_x_obs, self.x_mis(p_x_obs, p_second) if both else p_x_obs

    def x_mis(self, p_x_obs: Cells, p_second: Cells | None) -> Cells:
        """p(x_mis | z, r). The GMVAE has one x, so this is p(x_obs | z, r)."""
        del p_second
        return p_x_obs

    def encode(self, batch: Batch) -> Encoding:
        """q(r | x_obs, m), q(z | r, x_obs, m) and the shift of the decoder outputs."""
        inputs = self.visible_input(batch)
        q_z = self._q_z(batch, inputs, None)
        return Encoding(self.log_q_r(batch, inputs), q_z, self._shift(batch, q_z, None))

    def log_q_r(
        self, batch: Batch, inputs: Tensor | None = None, noise: Noise | None = None
    ) -> Tensor:
        """Log q(r | x_obs, m), ``(member, row, set)``."""
        inputs = self.visible_input(batch) if inputs is None else inputs
        # q(r | ·) has the mask m as input, even where observed cells are masked in training
        if self.sees_mask and batch.visible is not batch.m:
            inputs = torch.cat([inputs[..., : self.inputs.n_features], batch.m], -1)
        log_q_r: Tensor = self.q_r(inputs, batch.m, noise)
        return log_q_r

    def visible_input(self, batch: Batch) -> Tensor:
        """Encoder inputs from the visible cells, ``(member, row, input)``."""
        features = self.visible_features(batch)
        return torch.cat([features, batch.visible], -1) if self.sees_mask else features

    def visible_features(self, batch: Batch) -> Tensor:
        """Features of the visible cells, 0 for the others, ``(member, row, feature)``."""
        return self.inputs.features(batch.x) * self.inputs.per_feature(batch.visible)

    def _q_z(self, batch: Batch, inputs: Tensor, noise: Noise | None) -> GaussianZ:
        features = inputs[..., : self.inputs.n_features]
        q_z: GaussianZ = self.q_z(inputs, features, self.inputs.per_feature(batch.visible), noise)
        return q_z

    def _shift(self, batch: Batch, q_z: GaussianZ, noise: Noise | None) -> Tensor | None:
        """Move the decoder outputs at the mean of q(z | r, ·) to those of the regression."""
        if self.regression is None:
            return None
        weight = self.regression_weight.unsqueeze(1) * (1 - batch.visible)
        return self.p_x.shift(q_z.mean, self.regression_outputs(batch, noise), weight)

    def regression_outputs(self, batch: Batch, noise: Noise | None) -> Tensor:
        """Outputs of the regression on the visible cells, ``(member, row, 1, set, output)``."""
        if self.regression is None:
            raise ValueError("The model has no regression.")
        features = self.visible_features(batch)
        outputs: Tensor = self.regression(features, batch.x, batch.visible, noise)
        return outputs

    def log_p_by_regression(self, batch: Batch, noise: Noise | None) -> Tensor:
        """Log density of the masked cells under the regression alone, ``(member, row)``.

        Numeric columns have standard deviation 1. Sets are weighted by p(r | m) of the latent class
        analysis of the masks, or equally.
        """
        cells = self.inputs(self.regression_outputs(batch, noise))
        masked = (batch.m - batch.visible)[:, :, None, None]
        log_p = (cells.log_prob(batch.x[:, :, None, None]) * masked).sum(-1).squeeze(2)
        p_r: Tensor | float = 1 / log_p.shape[-1]
        if self.q_r.classes is not None:
            p_r = torch.softmax(self.q_r.classes(batch.m), -1)
        total: Tensor = (p_r * log_p).sum(-1)
        return total

    def log_densities(
        self,
        batch: Batch,
        epsilon: Tensor,
        noise: Noise | None = None,
        *,
        auxiliary: bool = False,
        uniform: Tensor | None = None,
    ) -> LogDensities:
        """Evaluate all factors at z = μ + A (s · ε), for every set.

        With ``uniform`` ``(member, row, draw, set, column)`` missing values are drawn for p(m | x).
        ``auxiliary`` adds the terms that only the training objective needs.
        """
        inputs = self.visible_input(batch)
        log_q_r = fork("q(r)", lambda: self.log_q_r(batch, inputs, noise), inputs, batch.m)
        q_z = self._q_z(batch, inputs, noise)
        z, shift = q_z.at(epsilon), self._shift(batch, q_z, noise)
        x, m, known = batch.cells()
        log_p_m = None
        if not self.p_m.depends_on_x:
            log_p_m = fork("p(m)", lambda: log_p_m_given_z(self.p_m, m, known, z), z, m, known)
        from_x_mis = self.imputes_from_x_mis
        p_x: Heads = self.p_x(z, noise, both=from_x_mis or auxiliary, shift=shift)
        p_x_obs, p_x_mis = p_x[0], self.x_mis(*p_x)
        terms = TrainingTerms()
        if auxiliary:
            terms = self.training_terms(batch, inputs, z, p_x, noise)
        elif self.p_m.depends_on_x and uniform is not None:
            terms = TrainingTerms(x_drawn=p_x_mis.sample(uniform))
        x_drawn = None if terms.x_drawn is None else torch.where(m > 0, x, terms.x_drawn)
        if log_p_m is None:
            given_x = log_p_m_given_x(self.p_m, x, m, known, z, p_x_mis, x_drawn)
        return LogDensities(
            log_q_r=log_q_r(),
            log_p_r=self.p_r(),
            q_z=q_z,
            p_z=self.p_z,
            epsilon=epsilon,
            z=z,
            log_p_x_obs=(p_x_obs.log_prob(x) * m).sum(-1),
            log_p_m=given_x if log_p_m is None else log_p_m(),
            p_x=p_x_mis if from_x_mis else p_x_obs,
            shift=shift,
            x_drawn=x_drawn,
            auxiliary=terms.auxiliary,
        )

    def log_densities_of_pairs(
        self, batch: Batch, encoding: Encoding, row: Tensor, set_: Tensor, epsilon: Tensor
    ) -> LogDensities:
        """Evaluate all factors for pairs ``row, set_`` ``(pair,)``, which become rows with one set.

        Axes: epsilon ``(member, pair, draw, 1, latent)``.
        """
        pairs = encoding.of(row, set_)
        z = pairs.q_z.at(epsilon)
        x, m, known = (part[:, row, None, None] for part in (batch.x, batch.m, batch.known))
        p_x_obs, p_x = self.heads(z, set_, pairs.shift)
        return LogDensities(
            log_q_r=pairs.log_q_r,
            log_p_r=self.p_r()[:, 0, set_].unsqueeze(-1),
            q_z=pairs.q_z,
            p_z=self.p_z,
            epsilon=epsilon,
            z=z,
            log_p_x_obs=(p_x_obs.log_prob(x) * m).sum(-1),
            log_p_m=log_p_m_given_z(self.p_m, m, known, z, set_),
            p_x=p_x,
            shift=pairs.shift,
            sets=set_,
        )

    def training_terms(
        self, batch: Batch, inputs: Tensor, z: Tensor, p_x: Heads, noise: Noise | None
    ) -> TrainingTerms:
        """Compute what only the training objective needs."""
        del batch, inputs
        if not self.draws_x or noise is None:
            return TrainingTerms()
        uniform = noise.uniform(*z.shape[:-1], self.inputs.n_columns)
        return TrainingTerms(x_drawn=self.x_mis(*p_x).sample(uniform))

    def predict(self, batch: Batch) -> Tensor:
        """Estimate E[statistics(x_obs)] without draws, ``(member, row, statistic)``.

        The decoder is evaluated at the mean of q(z | r, ·), and sets are weighted by q(r | ·). If
        the regression has weight 1 for all columns, its outputs are used. Validation cells are
        observed cells, so their distribution is p(x_obs | z, r) for every mask model.
        """
        inputs = self.visible_input(batch)
        if self.regression is not None and bool((self.regression_weight == 1).all()):
            p_x: Cells = self.p_x.x_obs(self.regression_outputs(batch, None))
        else:
            q_z = self._q_z(batch, inputs, None)
            shift = self._shift(batch, q_z, None)
            p_x = self.p_x(q_z.mean, None, both=False, shift=shift)[0]
        q_r = self.log_q_r(batch, inputs).exp()
        return (q_r.unsqueeze(-1) * p_x.expected().squeeze(2)).sum(2)

    def expected(self, densities: LogDensities) -> Tensor:
        """E[statistics(x_j) | m_j = 0, z, r], ``(member, row, draw, set, statistic)``."""
        if self.joint and densities.x_drawn is not None:
            return self.inputs.statistics(densities.x_drawn)
        if self.tilts:
            return densities.p_x.tilted(log_missing(self.p_m, densities.z), self.p_m.logistics)
        return densities.p_x.expected()

    def tilted_sample(self, z: Tensor, shift: Tensor | None, uniform: Tensor) -> Tensor:
        """Draw x_j ∝ p(x_j | z, r) p(m_j = 0 | x_j, ·), ``(member, row, draw, set, column)``."""
        p_x_mis = self.heads(z, shift=shift)[1]
        return p_x_mis.tilted_sample(log_missing(self.p_m, z), uniform)
