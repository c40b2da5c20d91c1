"""How the latent variable models are trained: where they start, their bound, their spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from psmvae.inference.importance import log_weights, normalised, tempered
from psmvae.inference.objective import elbo, iwae
from psmvae.inference.posterior import Posterior, draw, paired_noise
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.latent_classes import MAX_ROWS
from psmvae.nn.mse_gradient import MSEGradient
from psmvae.nn.noise import Noise
from psmvae.training.recipe import First
from psmvae.training.validation import Table

# How far a regression may be believed, and with how many cells of all columns a column's own are
# heard, which may be few.
BELIEFS, COMPANY = (1.0, 0.75, 0.5, 0.25, 0.0), 200
# How much less the sum of squares must be; a hundredth can be the luck of the choice.
LEAST_GAIN = 0.01
MAX_CALIBRATION_ROWS = 1024
CALIBRATION_DRAWS, CALIBRATION_CELLS, MAX_SPREAD = 30, 20, 3.0
PROPOSALS, PROPOSAL_ROWS, PROPOSAL_DRAWS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0), 64, 40
# What is done with these takes about as long as the draws of so many proposals, and no fewer rows
# are worth looking at.
FINISH, FEWEST_ROWS = 50.0, 16
TRUSTS, TRUST_ROWS, TRUST_DRAWS = (1.0, 0.5, 0.25, 0.1, 0.0), 512, 20
# An error that is larger by this share at most is as good, if so many cells say so; more where a
# user set a limit to the time, since draws make imputation many times slower, and less where
# weights are best trusted fully: there more draws than TRUST_DRAWS would be better still.
AS_WELL, AS_WELL_IN_A_HURRY, AS_WELL_AS_FULL_TRUST, FEWEST_CELLS = 0.01, 0.03, 0.002, 100


@dataclass(frozen=True)
class LatentRecipe:
    """Trains a GMVAE or what is built on it, on the bound that ``training`` names."""

    model: GMVAE

    @torch.no_grad()
    def start(self, table: Table, m: Tensor, noise: Noise) -> None:
        """Start from simple models fitted to the table: classes of masks, and factor analysis."""
        model = self.model
        if model.q_r.classes is not None:
            classes = model.q_r.classes.start(m[..., :MAX_ROWS, :], noise)
            model.p_r.logits.copy_(classes.share.log().unsqueeze(1))
            if hasattr(model.p_m, "start"):
                model.p_m.start(classes.rate)
        if model.regression is not None:
            model.regression.places.start(table.x.expand(table.m.shape), table.m)
        if model.q_z.linear is None:
            return
        rows = slice(0, self.model.config.factor_analysis_rows)
        batch = table.all_rows(rows)
        features = model.inputs.features(batch.x)
        visible = model.inputs.per_feature(batch.m)
        held = model.inputs.per_feature(table.held[:, rows].to(visible.dtype))
        fa = model.q_z.linear.start(
            features, visible, held, self.model.config.factor_analysis_steps
        )
        model.p_x.start_linear(fa.mean, fa.loading.transpose(1, 2), fa.psi.sqrt())

    def warm_parameters(self) -> list[nn.Parameter]:
        """What a mask that depends on x is trained with before the networks move.

        The error on held-out cells cannot judge such a mask (they are all observed), so it must not
        wait for networks that may stop early. With ``train_jointly`` all that is linear in x moves
        with it.
        """
        model = self.model
        if model.q_z.linear is None or not model.p_m.depends_on_x:
            return []
        mask = [*model.p_m.parameters(), *model.p_r.parameters()]
        p_x = model.p_x
        if not getattr(model.p_m, "train_jointly", False) or p_x.loading is None:
            return mask
        x = [p_x.loading, *(parameter for head in p_x.heads for parameter in head.parameters())]
        return [*mask, *x, p_x.net.output_bias, *model.p_z.parameters()]

    def first(self) -> First | None:
        """The regression, by the density of hidden cells."""
        model, regression = self.model, self.model.regression
        if regression is None:
            return None

        def by_hand(batch: Batch, into: Sequence[Tensor]) -> None:
            features, hidden = model.visible_features(batch), batch.m - batch.visible
            error.gradient(features, batch.x, batch.visible, hidden, into)

        fits = MSEGradient.fits(regression, model.inputs)
        error = MSEGradient(regression)
        return First(
            list(regression.parameters()),
            lambda *given: -model.log_p_by_regression(*given),
            lambda table: choose_regression_weight(model, table),
            by_hand if fits else None,
        )

    def loss(self, batch: Batch, noise: Noise) -> Tensor:
        """Minus the bound."""
        config = self.model.config
        shape = (*batch.x.shape[:2], config.n_train_draws, config.n_sets, config.n_latent)
        densities = self.model.log_densities(batch, noise.normal(*shape), noise, auxiliary=True)
        weight = self.model.weight_observed if config.weight_observed else 1.0
        if config.objective == "iwae":
            return -iwae(densities, weight_observed=weight)
        return -elbo(densities, weight_observed=weight, beta=config.beta)

    @torch.no_grad()
    def rehearse(self, table: Table) -> float:
        """Weigh the draws of one proposal."""
        batch = table.all_rows(slice(0, PROPOSAL_ROWS))
        epsilon = batch.x.new_zeros(
            self.model.config.n_members, 1, PROPOSAL_DRAWS, 1, self.model.config.n_latent
        )
        uniform = 0.5 + epsilon.new_zeros(*epsilon.shape[:-1], batch.x.shape[-1])
        self.model.log_densities(batch, epsilon, uniform=uniform if self.model.joint else None)
        return FINISH

    def finish(self, table: Table, noise: Noise, share: float) -> None:
        """Set the proposal of importance draws, how far to trust them, and how wide draws are."""
        choose_proposal_scale(self.model, table, noise, share)
        as_well = AS_WELL if self.model.config.max_time is None else AS_WELL_IN_A_HURRY
        choose_weight_power(self.model, table, noise, share, as_well)
        calibrate(self.model, table, noise, share)


def some_rows(most: int, share: float) -> int:
    """A share of rows, enough of them to learn something."""
    return min(most, max(FEWEST_ROWS, int(share * most)))


@torch.no_grad()
def choose_regression_weight(model: GMVAE, table: Table) -> Tensor:
    """Believe the regression as far as held-out cells of each column bear it out.

    Some columns may be linear in the others, and for many the truth is between the regression and
    factor analysis. In very little time, or from few rows, it may not have learned anything that
    factor analysis does not know from the start: where all columns together gain next to nothing,
    it is not believed at all. Returns which members believe it.
    """
    model.regression_weight.fill_(1.0)
    error = model.regression_weight.new_zeros(len(BELIEFS), *model.regression_weight.shape)
    n_cells = torch.zeros_like(model.regression_weight)
    for batch, held in table.measured():
        for of_belief, predicted in zip(error, predict_by_belief(model, batch), strict=True):
            squares = model.inputs.error(predicted, batch.x)
            of_belief += torch.where(held, squares, 0.0).sum(1)
        n_cells += held.sum(1)
    # relative to a column's own, so that no column is louder than its cells are many
    profile = error / error.mean(0).clamp(min=torch.finfo(error.dtype).tiny)
    of_all = (n_cells * profile).sum(-1, keepdim=True) / n_cells.sum(-1, keepdim=True)
    best = (n_cells * profile + COMPANY * of_all).argmin(0)
    least = error.gather(0, best.unsqueeze(0)).squeeze(0)
    believed = least.sum(-1) < (1 - LEAST_GAIN) * error[-1].sum(-1)
    beliefs = torch.tensor(BELIEFS, device=error.device)[best]
    model.regression_weight.copy_(torch.where(believed.unsqueeze(-1), beliefs, 0.0))
    return believed


def predict_by_belief(model: GMVAE, batch: Batch) -> Iterator[Tensor]:
    """What a model that believes its regression fully would `predict` with each of BELIEFS."""
    code, p_x = model.encode(batch), model.p_x
    q_r, own = code.log_q_r.exp().unsqueeze(-1), p_x.outputs(code.q_z.mean, None)
    for belief in BELIEFS:
        # a regression that is not believed may be infinite
        outputs = own if code.shift is None or belief == 0 else own + belief * code.shift
        expected = p_x.x_obs(outputs[..., : p_x.n_outputs[0]]).expected().squeeze(2)
        yield (q_r * expected).sum(2)


@torch.no_grad()
def choose_proposal_scale(model: GMVAE, table: Table, noise: Noise, share: float = 1.0) -> None:
    """Set how much wider than q(z | ·) importance draws are made: where their weights are evenest.

    Trained with β < 1, and by amortisation at any β, q(z | ·) is narrower than p(z | x_obs, m), and
    draws from it never reach where weights are large.
    """
    batch = table.all_rows(slice(0, some_rows(PROPOSAL_ROWS, share)))
    epsilon = paired_noise(model, PROPOSAL_DRAWS, noise)
    uniform = noise.uniform(*epsilon.shape[:-1], batch.x.shape[-1]) if model.joint else None
    best = torch.zeros_like(model.proposal_scale)
    chosen = torch.ones_like(model.proposal_scale)
    for width in PROPOSALS:
        densities = model.log_densities(batch, width * epsilon, uniform=uniform)
        weight = normalised(log_weights(densities, torch.full_like(chosen, width)))
        size = (1 / weight.sum(-1).square().sum(-1)).median(1).values
        chosen = torch.where(size > best, width, chosen)
        best = torch.maximum(size, best)
    model.proposal_scale.copy_(chosen)


@torch.no_grad()
def choose_weight_power(
    model: GMVAE, table: Table, noise: Noise, share: float = 1.0, as_well: float = AS_WELL
) -> None:
    """Set the power of importance weights that predicts held-out cells best.

    1 is the posterior itself, with the proposal chosen for it; below, draws are from q(z | ·), all
    there is at 0: with few and uneven draws this trades much noise for a little bias. Where the
    middle of q(z | ·) predicts these cells as well, there is no need to draw. Members of one table
    are averaged, and decide this together.
    """
    standard = paired_noise(model, TRUST_DRAWS, noise)
    n_rows = min(table.n_rows, some_rows(TRUST_ROWS, share))
    error = torch.zeros(len(TRUSTS), model.config.n_members, device=table.x.device)
    of_middle = torch.zeros_like(error[0])
    size = max(1, Posterior(model, TRUST_DRAWS, seed=0).rows_at_once(TRUST_DRAWS))
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        batch, held = table.all_rows(rows), table.held[:, rows]
        shape = (*standard.shape[:-1], batch.x.shape[-1])
        uniform = noise.uniform(*shape) if model.joint else None
        of_middle += (model.inputs.error(model.predict(batch), batch.x) * held).sum((1, 2))
        for proposal, trusts in ((model.proposal_scale, TRUSTS[:1]), (None, TRUSTS[1:])):
            wide = 1.0 if proposal is None else proposal[:, None, None, None, None]
            densities = model.log_densities(batch, wide * standard, uniform=uniform)
            log_w = log_weights(densities, proposal)
            # held-out cells are observed ones: no tilt by the mask model
            expected = model.p_x(densities.z, None, both=False, shift=densities.shift)[0].expected()
            for trust in trusts:
                power = torch.full_like(model.weight_power, trust)
                weight = normalised(tempered(log_w, densities.log_q_r, power))
                mean = torch.einsum("eils,eilsf->eif", weight, expected)
                found = (model.inputs.error(mean, batch.x) * held).sum((1, 2))
                error[TRUSTS.index(trust)] += found
    model.weight_power.copy_(torch.tensor(TRUSTS, device=error.device)[error.argmin(0)])
    if not model.p_m.depends_on_x:
        # errors are squares
        does = of_middle <= error.amin(0) * (1 + as_well) ** 2
        does &= (model.weight_power < 1) | (
            of_middle <= error[0] * (1 + AS_WELL_AS_FULL_TRUST) ** 2
        )
        does &= table.held[:, :n_rows].sum((1, 2)) >= FEWEST_CELLS
        if table.x.shape[0] == 1:
            does = does.all().expand(does.shape)
        model.use_posterior_mean.copy_(does)
        model.weight_power.masked_fill_(does, 0.0)


@torch.no_grad()
def calibrate(model: GMVAE, table: Table, noise: Noise, share: float = 1.0) -> None:
    """Set how much wider draws must be than the model says, from the held-out cells.

    A column's factor is the root of the mean squared error over the mean predicted variance, drawn
    towards 1 as if CALIBRATION_CELLS more cells had fitted; draws are widened, never narrowed.
    """
    if not bool(model.inputs.is_number.any()):
        return
    n_rows = min(table.n_rows, some_rows(MAX_CALIBRATION_ROWS, share))
    size = Posterior(model, CALIBRATION_DRAWS, seed=0).rows_at_once(CALIBRATION_DRAWS)
    error, variance = torch.zeros_like(model.draw_scale), torch.zeros_like(model.draw_scale)
    count = torch.zeros_like(model.draw_scale)
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
    model.draw_scale.copy_(torch.where(numeric, factor.clamp(1.0, MAX_SPREAD), 1.0))
