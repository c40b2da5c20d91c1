"""The Gaussian-mixture VAE: what every latent variable model of the family is built on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from psmvae.models.batch import Batch, Encoding, LogDensities
from psmvae.models.config import LatentConfig
from psmvae.nn.columns import Cells, Columns, Layout, Logistics, LogTilt
from psmvae.nn.factors import PR, PX, PZ, QR, QZ, GaussianZ, Sizes
from psmvae.nn.latent_classes import ClassPosterior
from psmvae.nn.linear_gaussian import LinearPosterior
from psmvae.nn.mask import MaskModule, MaskShape
from psmvae.nn.noise import Noise
from psmvae.nn.regression import Regression
from psmvae.nn.streams import fork


class GMVAE(nn.Module):
    """p(r) p(z|r) p(x|z,r) p(m|·) with q(r|·) q(z|r,·).

    With one set this is the VAE, and trained on the importance-weighted bound MIWAE; with p(m | x)
    not-MIWAE.

    Parameters
    ----------
    layout : Layout
        The columns in the model's order.
    config : LatentConfig
        Sizes and parts.
    missing_rate : Tensor
        Share of missing cells of each column, in the model's order.
    noise : Noise
        Where first weights come from.
    second : Layout, optional
        The columns of a second head beside x_obs, in the models that have one.
    """

    # what depends on the table and is no weight, with an axis for members: they may each have one
    per_table: tuple[str, ...] = ("weight_observed",)
    observed_rate: Tensor
    # 1 / (1 − missing rate), the paper's weight of log p(x_obs | z, r)
    weight_observed: Tensor
    draw_scale: Tensor
    proposal_scale: Tensor
    weight_power: Tensor
    use_posterior_mean: Tensor
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
        self.config = config
        network = config.network
        self.inputs = Columns(layout, config.n_members, 1.0)
        n_features, n_columns = self.inputs.n_features, self.inputs.n_columns
        sizes = Sizes(config.n_members, config.n_sets, config.n_latent, n_features, n_columns)
        names = tuple(layout.columns[position].name for position in layout.order)
        shape = MaskShape(
            config.n_members,
            config.n_sets,
            config.n_latent,
            self.inputs,
            names,
            missing_rate,
            network.light(),
        )
        self.p_m: MaskModule = config.mask_model.build(shape, noise)
        self.sees_mask = self.p_m.as_input if config.mask_input is None else bool(config.mask_input)
        self.sizes = sizes
        self.n_in = n_features + (n_columns if self.sees_mask else 0)
        linear = LinearPosterior(config.n_members, n_features, config.n_latent)
        starts = network.linear and self.sees_mask and config.n_sets > 1
        classes = ClassPosterior(config.n_members, config.n_sets, n_columns)
        self.q_r = QR(sizes, self.n_in, network, noise, classes if starts else None)
        self.q_z = QZ(sizes, self.n_in, network, noise, linear if network.linear else None)
        self.p_r = PR(sizes)
        # wide apart at first, sets would split the rows for good: the paper's model on its table of
        # letters then errs by a tenth more
        self.p_z = PZ(sizes, noise, spread=0.1 if network.linear else 0.2)
        self.p_x = PX(sizes, layout, network, noise, config.scale, second=second)
        self.regression: Regression | None = None
        if config.regression is not None:
            self.regression = Regression(sizes, self.inputs, config.regression, noise)
        self.register_buffer("observed_rate", 1 - missing_rate)
        # of axes (member, row, draw, set)
        weight = (1 / (1 - missing_rate).mean().clamp(min=1e-3)).view(1, 1, 1, 1)
        self.register_buffer("weight_observed", weight, persistent=False)
        # what is learned from the table once the weights are: how much wider draws are than the
        # likelihood says, how much wider than q(z | ·) the proposal of importance draws is, the
        # power their weights are raised to for point estimates, and whether (1) or not (0) the
        # middle of q(z | ·) does as well as draws for these
        self.register_buffer("draw_scale", torch.ones(config.n_members, n_columns))
        self.register_buffer("proposal_scale", torch.ones(config.n_members))
        self.register_buffer("weight_power", torch.ones(config.n_members))
        self.register_buffer("use_posterior_mean", torch.zeros(config.n_members))
        # how far the regression is believed about a column, from 0 to 1, where there is one
        self.register_buffer("regression_weight", torch.ones(config.n_members, n_columns))

    @property
    def joint(self) -> bool:
        """Whether the mask of a cell depends on other columns' values too."""
        return bool(getattr(self.p_m, "joint", False))

    @property
    def draws_x(self) -> bool:
        """Whether training draws missing values for the mask model, rather than integrating."""
        integrate = getattr(self.config.mask_model, "integrate", "quadrature")
        return bool(self.p_m.depends_on_x) and (self.joint or integrate == "draw")

    @property
    def tilts(self) -> bool:
        """Whether imputations use what the mask model says of a value that went missing."""
        return bool(self.p_m.depends_on_x) and getattr(self.config.mask_model, "tilt", True)

    @property
    def from_second(self) -> bool:
        """Whether missing cells are imputed from the head of x_mis, rather than that of x_obs."""
        asked = getattr(self.config, "impute_from", "x_obs") == "x_mis"
        return asked or bool(self.p_m.depends_on_x)

    def heads(
        self, z: Tensor, sets: Tensor | None = None, shift: Tensor | None = None
    ) -> tuple[Cells, Cells]:
        """p(x_obs | z, r), and the distribution that missing cells are imputed from."""
        both = self.from_second
        found: tuple[Cells, Cells | None] = self.p_x(z, None, both=both, sets=sets, shift=shift)
        return found[0], self.x_mis(*found) if both else found[0]

    def encode(self, batch: Batch) -> Encoding:
        """Log q(r | x_obs, m), q(z | r, x_obs, m), and where cells not seen are moved to."""
        shown = self.visible_input(batch)
        q_z = self._q_z(batch, shown, None)
        return Encoding(self._log_q_r(batch, shown, None), q_z, self._shift(batch, q_z, None))

    def log_q_r(self, batch: Batch) -> Tensor:
        """Log q(r | x_obs, m), ``(member, row, set)``."""
        return self._log_q_r(batch, self.visible_input(batch), None)

    def visible_input(self, batch: Batch) -> Tensor:
        """What an encoder is shown of the visible cells, ``(member, row, input)``."""
        features = self.visible_features(batch)
        return torch.cat([features, batch.visible], -1) if self.sees_mask else features

    def visible_features(self, batch: Batch) -> Tensor:
        """Features of the visible cells, 0 of the others, ``(member, row, feature)``."""
        return self.inputs.features(batch.x) * self.inputs.per_feature(batch.visible)

    def _log_q_r(self, batch: Batch, shown: Tensor, noise: Noise | None) -> Tensor:
        # q(r) sees the whole mask, also of cells that are observed but hidden
        if self.sees_mask and batch.visible is not batch.m:
            shown = torch.cat([shown[..., : self.inputs.n_features], batch.m], -1)
        log_q_r: Tensor = self.q_r(shown, batch.m, noise)
        return log_q_r

    def _q_z(self, batch: Batch, shown: Tensor, noise: Noise | None) -> GaussianZ:
        features = shown[..., : self.inputs.n_features]
        q_z: GaussianZ = self.q_z(shown, features, self.inputs.per_feature(batch.visible), noise)
        return q_z

    def _shift(self, batch: Batch, q_z: GaussianZ, noise: Noise | None) -> Tensor | None:
        """What is added to the outputs of p(x | z, r), so that their middle is the regression's."""
        if self.regression is None:
            return None
        moves = self.regression_weight.unsqueeze(1) * (1 - batch.visible)
        return self.p_x.shift(q_z.mean, self.middle(batch, noise), moves)

    def middle(self, batch: Batch, noise: Noise | None) -> Tensor:
        """Outputs of the regression on the visible cells, ``(member, row, 1, set, output)``."""
        if self.regression is None:
            raise ValueError("the model has no regression.")
        features = self.visible_features(batch)
        outputs: Tensor = self.regression(features, batch.x, batch.visible, noise)
        return outputs

    def log_p_by_regression(self, batch: Batch, noise: Noise | None) -> Tensor:
        """Log density of the hidden cells by the regression alone, ``(member, row)``.

        Numbers have a standard deviation of one; sets count as often as classes of masks say.
        """
        cells = self.inputs(self.middle(batch, noise))
        hidden = (batch.m - batch.visible)[:, :, None, None]
        log_p = (cells.log_prob(batch.x[:, :, None, None]) * hidden).sum(-1).squeeze(2)
        share: Tensor | float = 1 / log_p.shape[-1]
        if self.q_r.classes is not None:
            share = torch.softmax(self.q_r.classes(batch.m), -1)
        total: Tensor = (share * log_p).sum(-1)
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
        """All log densities at z = q_z(ε), for ε ``(member, row, draw, set, latent)``.

        ``auxiliary`` asks for the factors that only the objective needs; ``noise`` is given while
        training. ``uniform`` ``(member, row, draw, set, column)`` draws the missing values where
        the mask model is `joint`; while training they are drawn from ``noise``.
        """
        shown = self.visible_input(batch)
        log_q_r = fork(lambda: self._log_q_r(batch, shown, noise), shown, batch.m)
        q_z = self._q_z(batch, shown, noise)
        z, shift = q_z.at(epsilon), self._shift(batch, q_z, noise)
        tilts = self.p_m.depends_on_x
        x, m = batch.x[:, :, None, None, :], batch.m[:, :, None, None, :]
        known = batch.known[:, :, None, None, :]
        # without x the mask has nothing to wait for
        log_p_m = None if tilts else fork(lambda: self._mask_of_z(m, known, z), z, m, known)
        from_second = self.from_second
        p_x_obs, p_second = self.p_x(z, noise, both=from_second or auxiliary, shift=shift)
        p_x_mis = self.x_mis(p_x_obs, p_second)
        extra, x_drawn = None, None
        if tilts and uniform is not None:
            x_drawn = p_x_mis.sample(uniform)
        if auxiliary:
            extra, x_drawn = self.auxiliary(batch, shown, z, p_x_mis, p_second, noise)
        if x_drawn is not None:
            x_drawn = torch.where(m > 0, x, x_drawn)
        if log_p_m is None:
            mask_of_x = self._mask_of_x(x, m, known, z, p_x_mis, x_drawn)
        return LogDensities(
            log_q_r=log_q_r(),
            log_p_r=self.p_r(),
            q_z=q_z,
            p_z=self.p_z,
            epsilon=epsilon,
            z=z,
            log_p_x_obs=(p_x_obs.log_prob(x) * m).sum(-1),
            log_p_m=mask_of_x if log_p_m is None else log_p_m(),
            p_x=p_x_mis if from_second else p_x_obs,
            shift=shift,
            x_drawn=x_drawn,
            auxiliary=extra,
        )

    @property
    def knows_pairs(self) -> bool:
        """Whether `log_densities_of_pairs` can be asked: not where a mask needs x, or all sets at once."""
        asks = getattr(self.p_m, "takes_sets", False) and hasattr(self.p_m, "log_prob")
        return bool(asks) and not self.p_m.depends_on_x

    def log_densities_of_pairs(
        self,
        batch: Batch,
        encoded: Encoding,
        row: Tensor,
        set_: Tensor,
        epsilon: Tensor,
    ) -> LogDensities:
        """What `log_densities` says of some pairs of a row and a set, as rows with one set.

        ``encoded`` is what `encode` said of the batch, ``row`` and ``set_`` are ``(pair,)``.
        """
        pairs = encoded.of(row, set_)
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
            log_p_m=self._mask_of_z(m, known, z, set_),
            p_x=p_x,
            shift=pairs.shift,
            sets=set_,
        )

    def x_mis(self, p_x_obs: Cells, second: Cells | None) -> Cells:
        """The distribution of x_mis: here that of x_obs, there is one x."""
        del second
        return p_x_obs

    def auxiliary(
        self,
        batch: Batch,
        shown: Tensor,
        z: Tensor,
        p_x_mis: Cells,
        second: Cells | None,
        noise: Noise | None,
    ) -> tuple[Tensor | None, Tensor | None]:
        """What further factors add to the objective, and the missing values drawn, if any are.

        ``shown`` is what `visible_input` gave of the batch.
        """
        del batch, shown, second
        if not self.draws_x or noise is None:
            return None, None
        return None, p_x_mis.sample(noise.uniform(*z.shape[:-1], self.inputs.n_columns))

    def predict(self, batch: Batch) -> Tensor:
        """E[statistics(x_obs)] from the middle of q(z | r, ·), sets weighted by q(r | ·).

        That is what a regression says, where there is one. The cheap estimate for held-out cells,
        ``(member, row, statistic)``. They are observed cells, so their distribution is that of
        x_obs whatever the mask model.
        """
        shown = self.visible_input(batch)
        if self.regression is not None and bool((self.regression_weight == 1).all()):
            p_x: Cells = self.p_x.x_obs(self.middle(batch, None))
        else:
            q_z = self._q_z(batch, shown, None)
            shift = self._shift(batch, q_z, None)
            p_x = self.p_x(q_z.mean, None, both=False, shift=shift)[0]
        q_r = self._log_q_r(batch, shown, None).exp()
        return (q_r.unsqueeze(-1) * p_x.expected().squeeze(2)).sum(2)

    def expected(self, densities: LogDensities) -> Tensor:
        """E[statistics(x_j) | m_j = 0, z, r], ``(member, row, draw, set, statistic)``."""
        if self.joint and densities.x_drawn is not None:
            return self.inputs.statistics(densities.x_drawn)
        if self.tilts:
            return densities.p_x.tilted(self._log_missing(densities.z), self._logistics)
        return densities.p_x.expected()

    def sample_missing(self, z: Tensor, shift: Tensor | None, uniform: Tensor) -> Tensor:
        """A draw of x_j given m_j = 0, z and r, ``(member, row, draw, set, column)``."""
        p_x_mis = self.heads(z, shift=shift)[1]
        if not self.tilts:
            return p_x_mis.sample(uniform)
        return p_x_mis.tilted_sample(self._log_missing(z), uniform)

    @property
    def _logistics(self) -> Logistics | None:
        return getattr(self.p_m, "logistics", None)

    def _log_missing(self, z: Tensor) -> LogTilt:
        return lambda x, at: self.p_m(x, z, at)[0]

    def _mask_of_z(self, m: Tensor, known: Tensor, z: Tensor, sets: Tensor | None = None) -> Tensor:
        """Log p(m | z, r), ``(member, row, draw, set)``."""
        if sets is not None:
            log_p_m: Tensor = self.p_m.log_prob(m, z, sets)  # type: ignore[attr-defined]
        elif hasattr(self.p_m, "log_prob"):
            log_p_m = self.p_m.log_prob(m, z)
        else:
            missing, observed = self.p_m(None, z, slice(0, m.shape[-1]))
            log_p_m = torch.where(m > 0, observed, missing)
        return (log_p_m * known).sum(-1)

    def _mask_of_x(
        self,
        x: Tensor,
        m: Tensor,
        known: Tensor,
        z: Tensor,
        p_x_mis: Cells,
        x_drawn: Tensor | None,
    ) -> Tensor:
        """Log p(m | x, ·), the missing x_j integrated out (or drawn)."""
        if self.joint:
            missing, observed = self.p_m(x_drawn, z, slice(0, x.shape[-1]))
        else:
            observed = self._per_cell(x, z, 1)
            if x_drawn is None:
                missing = p_x_mis.log_expectation(self._log_missing(z), self._logistics)
            else:
                missing = self._per_cell(x_drawn, z, 0)
        return (torch.where(m > 0, observed, missing) * known).sum(-1)

    def _per_cell(self, x: Tensor, z: Tensor, which: int) -> Tensor:
        """Log p(m_j | x_j, ·) at one x a cell: missing (0) or observed (1)."""
        parts = [
            self.p_m(x[..., at].unsqueeze(-1), z, at)[which].squeeze(-1)
            for at in self.inputs.slices()
        ]
        return torch.cat(parts, -1)
