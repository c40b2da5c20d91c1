"""Quantities of a latent variable model that are estimated after its weights are trained.

All are buffers of the model with an axis for members:

- ``regression_weight``: weight of the regression in the conditional mean of each column;
- ``proposal_scale``: standard deviation of the importance proposal, in units of that of q(z | ·);
- ``weight_power``: power of the importance weights in point estimates;
- ``use_posterior_mean``: whether point estimates use the mean of q(z | ·) instead of draws;
- ``draw_scale``: factor on the standard deviation of the draws of each numeric column.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from psmvae.inference.draws import draw_observed
from psmvae.inference.importance import log_weights, normalised, tempered
from psmvae.inference.memory import rows_per_chunk
from psmvae.inference.noise import antithetic_noise
from psmvae.models.batch import Batch
from psmvae.models.gmvae import GMVAE
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData

# Fewest rows that a choice is based on, however short the time.
MIN_ROWS = 16

# Candidates for the weight of the regression, and the pseudo-count that shrinks a column's choice
# towards the pooled one.
REGRESSION_WEIGHTS, PSEUDO_COUNT = (1.0, 0.75, 0.5, 0.25, 0.0), 200
# Relative reduction of the squared error below which the regression is not used at all. Choosing
# the best of several weights can reduce the error by about this much by chance.
MIN_RELATIVE_GAIN = 0.01

# Candidates for the scale of the proposal, and the rows and draws that compare them.
PROPOSAL_SCALES = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
PROPOSAL_ROWS, PROPOSAL_DRAWS = 64, 40
# Cost of all choices but the regression weight, in evaluations of one proposal scale.
COST_IN_PROPOSALS = 50.0

# Candidates for the power of importance weights, and the rows and draws that compare them.
WEIGHT_POWERS = (1.0, 0.5, 0.25, 0.1, 0.0)
POWER_ROWS, POWER_DRAWS = 512, 20
# Relative tolerance within which the mean of q(z | ·) is used instead of draws. It is larger under
# a time limit, since draws make imputation many times slower. It is smaller where the best power is
# 1, since more than POWER_DRAWS draws would reduce the error of that power further.
RELATIVE_TOLERANCE, RELATIVE_TOLERANCE_MAX_TIME, RELATIVE_TOLERANCE_FULL_POWER = 0.01, 0.03, 0.002
# Fewest validation cells that can justify not drawing.
MIN_VALIDATION_CELLS = 100

# Rows and draws that estimate the scale of draws, and the pseudo-count that shrinks it towards 1.
DRAW_SCALE_ROWS, DRAW_SCALE_DRAWS, DRAW_SCALE_PSEUDO_COUNT, MAX_DRAW_SCALE = 1024, 30, 20, 3.0


@torch.no_grad()
def choose_regression_weight(model: GMVAE, data: TrainingData) -> Tensor:
    """Set the weight of the regression in each column's conditional mean; return who uses it.

    The weight minimises the squared error ``(candidate, member, column)`` of validation cells. A
    column's squared errors are divided by their mean over the candidates and shrunk towards those
    of all columns, since it may have few validation cells. After very short training, or with few
    rows, the regression may be no better than factor analysis: if the total gain of a member is too
    small, all its weights are 0.
    """
    n_cells = torch.zeros_like(model.regression_weight.fill_(1.0))
    error = n_cells.new_zeros(len(REGRESSION_WEIGHTS), *n_cells.shape)
    for batch, validation in data.validation_batches():
        for i, predicted in enumerate(predict_by_regression_weight(model, batch)):
            squares = model.inputs.error(predicted, batch.x)
            error[i] += torch.where(validation, squares, 0.0).sum(1)
        n_cells += validation.sum(1)
    relative = error / error.mean(0).clamp(min=torch.finfo(error.dtype).tiny)
    pooled = (n_cells * relative).sum(-1, keepdim=True) / n_cells.sum(-1, keepdim=True)
    best = (n_cells * relative + PSEUDO_COUNT * pooled).argmin(0)
    # the last candidate is 0: the error without the regression
    least, without = error.gather(0, best.unsqueeze(0)).squeeze(0).sum(-1), error[-1].sum(-1)
    used = least < (1 - MIN_RELATIVE_GAIN) * without
    weight = error.new_tensor(REGRESSION_WEIGHTS)[best]
    model.regression_weight.copy_(torch.where(used.unsqueeze(-1), weight, 0.0))
    return used


def predict_by_regression_weight(model: GMVAE, batch: Batch) -> Iterator[Tensor]:
    """Predict with each candidate for the weight of the regression, from one encoding."""
    code, p_x = model.encode(batch), model.p_x
    q_r, decoded = code.log_q_r.exp().unsqueeze(-1), p_x.outputs(code.q_z.mean, None)
    for weight in REGRESSION_WEIGHTS:
        # a diverged regression is infinite, and 0 times infinity is not 0
        outputs = decoded if code.shift is None or weight == 0 else decoded + weight * code.shift
        expected = p_x.x_obs(outputs[..., : p_x.n_outputs[0]]).expected().squeeze(2)
        yield (q_r * expected).sum(2)


@torch.no_grad()
def choose_proposal_scale(
    model: GMVAE, data: TrainingData, noise: Noise, fraction: float = 1.0
) -> None:
    """Set the scale of the importance proposal that gives the largest effective sample size.

    q(z | ·) is narrower than p(z | x_obs, m), because it is amortised and β < 1, so its draws miss
    regions where the importance weights w are large. The median over rows of the effective sample
    size 1 / Σ w² is compared.
    """
    batch = data.unmasked_batch(slice(0, _n_rows(PROPOSAL_ROWS, fraction)))
    epsilon = antithetic_noise(model, PROPOSAL_DRAWS, noise)
    uniform = _uniform(model, epsilon, batch, noise)
    best, chosen = torch.zeros_like(model.proposal_scale), torch.ones_like(model.proposal_scale)
    for scale in PROPOSAL_SCALES:
        densities = model.log_densities(batch, scale * epsilon, uniform=uniform)
        weight = normalised(log_weights(densities, torch.full_like(chosen, scale)))
        sample_size = (1 / weight.sum(-1).square().sum(-1)).median(1).values
        chosen = torch.where(sample_size > best, scale, chosen)
        best = torch.maximum(sample_size, best)
    model.proposal_scale.copy_(chosen)


@torch.no_grad()
def evaluate_one_proposal(model: GMVAE, data: TrainingData) -> None:
    """Do the work of one candidate of `choose_proposal_scale`, to time it."""
    batch, config = data.unmasked_batch(slice(0, PROPOSAL_ROWS)), model.config
    epsilon = batch.x.new_zeros(config.n_members, 1, PROPOSAL_DRAWS, 1, config.n_latent)
    uniform = 0.5 + epsilon.new_zeros(*epsilon.shape[:-1], batch.x.shape[-1])
    model.log_densities(batch, epsilon, uniform=uniform if model.joint else None)


@torch.no_grad()
def choose_weight_power(
    model: GMVAE, data: TrainingData, noise: Noise, fraction: float = 1.0
) -> None:
    """Set the power of importance weights that predicts validation cells best.

    Power 1 is the posterior mean under the model, by draws from the scaled proposal. Below 1 draws
    are from q(z | ·), with a little bias and much less variance; at 0 they are not weighted. If the
    mean of q(z | ·) predicts validation cells as well, no draws are made at all. Members that share
    a table are averaged, and make that last choice together.
    """
    n_rows = min(data.n_rows, _n_rows(POWER_ROWS, fraction))
    error, error_of_mean = _errors_by_weight_power(model, data, n_rows, noise)
    model.weight_power.copy_(error.new_tensor(WEIGHT_POWERS)[error.argmin(0)])
    if model.p_m.depends_on_x:
        return
    max_time = model.config.max_time
    tolerance = RELATIVE_TOLERANCE if max_time is None else RELATIVE_TOLERANCE_MAX_TIME
    # tolerances are of root mean squared errors, and these are sums of squares
    use_mean = error_of_mean <= error.amin(0) * (1 + tolerance) ** 2
    use_mean &= (model.weight_power < 1) | (
        error_of_mean <= error[0] * (1 + RELATIVE_TOLERANCE_FULL_POWER) ** 2
    )
    use_mean &= data.validation_mask[:, :n_rows].sum((1, 2)) >= MIN_VALIDATION_CELLS
    if data.shared:
        use_mean = use_mean.all().expand(use_mean.shape)
    model.use_posterior_mean.copy_(use_mean)
    model.weight_power.masked_fill_(use_mean, 0.0)


def _errors_by_weight_power(
    model: GMVAE, data: TrainingData, n_rows: int, noise: Noise
) -> tuple[Tensor, Tensor]:
    """Sum the squared errors of each power, and those of the mean of q(z | ·), by member."""
    standard = antithetic_noise(model, POWER_DRAWS, noise)
    error = data.x.new_zeros(len(WEIGHT_POWERS), model.config.n_members)
    error_of_mean = torch.zeros_like(error[0])
    size = rows_per_chunk(model, POWER_DRAWS)
    for batch, validation in data.validation_batches(n_rows, size):
        uniform = _uniform(model, standard, batch, noise)

        def squares(predicted: Tensor, batch: Batch = batch, cells: Tensor = validation) -> Tensor:
            return (model.inputs.error(predicted, batch.x) * cells).sum((1, 2))

        error_of_mean += squares(model.predict(batch))
        # the scaled proposal with power 1, q(z | ·) itself with the others
        for scale, powers in ((model.proposal_scale, WEIGHT_POWERS[:1]), (None, WEIGHT_POWERS[1:])):
            epsilon = standard if scale is None else scale[:, None, None, None, None] * standard
            densities = model.log_densities(batch, epsilon, uniform=uniform)
            log_w = log_weights(densities, scale)
            # validation cells are observed: the mask model does not tilt their distribution
            p_x_obs = model.p_x(densities.z, None, both=False, shift=densities.shift)[0]
            expected = p_x_obs.expected()
            for power in powers:
                exponent = torch.full_like(model.weight_power, power)
                weight = normalised(tempered(log_w, densities.log_q_r, exponent))
                mean = torch.einsum("eils,eilsf->eif", weight, expected)
                error[WEIGHT_POWERS.index(power)] += squares(mean)
    return error, error_of_mean


@torch.no_grad()
def choose_draw_scale(
    model: GMVAE, data: TrainingData, noise: Noise, fraction: float = 1.0
) -> None:
    """Set the factor that widens draws of numeric columns to the errors of validation cells.

    For squared errors e² and predictive variances v of a column's n validation cells,

        scale = sqrt((Σ e² + c Σ v / n) / (Σ v + c Σ v / n)),

    where the pseudo-count c shrinks the scale towards 1. Draws are never narrowed.
    """
    if not bool(model.inputs.is_number.any()):
        return
    n_rows, n_draws = min(data.n_rows, _n_rows(DRAW_SCALE_ROWS, fraction)), DRAW_SCALE_DRAWS
    error, variance, n_cells = (torch.zeros_like(model.draw_scale) for _ in range(3))
    for batch, validation in data.validation_batches(n_rows, rows_per_chunk(model, n_draws)):
        drawn = draw_observed(model, batch, n_draws, n_draws, noise)
        error += ((batch.x - drawn.mean(2)).square() * validation).sum(1)
        # of a cell around the mean of the draws, which is itself random
        variance += (drawn.var(2) * (1 + 1 / n_draws) * validation).sum(1)
        n_cells += validation.sum(1)
    prior = DRAW_SCALE_PSEUDO_COUNT * variance / n_cells.clamp(min=1) + 1e-12
    scale = ((error + prior) / (variance + prior)).sqrt().clamp(1.0, MAX_DRAW_SCALE)
    model.draw_scale.copy_(torch.where(model.inputs.is_number, scale, 1.0))


def _uniform(model: GMVAE, epsilon: Tensor, batch: Batch, noise: Noise) -> Tensor | None:
    """Draw the uniform numbers of a joint mask model, one for each draw and column."""
    return noise.uniform(*epsilon.shape[:-1], batch.x.shape[-1]) if model.joint else None


def _n_rows(limit: int, fraction: float) -> int:
    """A fraction of the rows, and at least MIN_ROWS of them."""
    return min(limit, max(MIN_ROWS, int(fraction * limit)))
