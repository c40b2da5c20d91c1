"""What is estimated from validation cells once the weights are trained."""

import pytest
import torch

from numeric.small_psmvae import initialised, make_model, make_table
from psmvae.nn.noise import Noise
from psmvae.training.calibration import (
    choose_draw_scale,
    choose_proposal_scale,
    choose_weight_power,
)
from psmvae.training.data import TrainingData
from psmvae.training.latent_recipe import LatentRecipe


@torch.no_grad()
def shift_q_z(model, *, member=None, mean=0.0, log_scale=0.0):
    """Move the mean and the log standard deviation of q(z | ·) away from the posterior."""
    # the outputs of the encoder are the mean and the log standard deviation of z
    bias = model.q_z.net.last.bias
    members = slice(None) if member is None else member
    n_latent = model.config.n_latent
    bias[members, :, :n_latent] += mean
    bias[members, :, n_latent:] += log_scale


@pytest.mark.parametrize("mask", ["latent", "logistic-ceiling"])
def test_a_fraction_of_the_work_still_sets_all_buffers_to_valid_values(mask):
    x, m = make_table(200)
    model = make_model(mask=mask)
    data = TrainingData(x, m, 2, 0.2, Noise(0))
    recipe = LatentRecipe(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert recipe.calibration_sample(data) > 0
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])
    recipe.calibrate(data, Noise(1), 0.05)
    assert bool((model.proposal_scale >= 1).all())
    assert bool(((model.weight_power >= 0) & (model.weight_power <= 1)).all())
    assert bool((model.draw_scale >= 1).all())


def test_draws_are_widened_if_the_model_underestimates_the_variance():
    """If the model's standard deviation is half of the true one, the scale is about 2."""
    generator = torch.Generator().manual_seed(99)
    x = torch.randn(2000, 4, generator=generator)
    model = make_model(1)
    data = TrainingData(x, torch.ones(2000, 4), 1, 0.5, Noise(0))
    # p(x | z) = N(0, 0.5²), independent of z; x is N(0, 1)
    model.p_x.start_linear(torch.zeros(1, 4), torch.zeros(1, 2, 4), torch.full((1, 4), 0.5))
    choose_draw_scale(model, data, Noise(1))
    torch.testing.assert_close(model.draw_scale, torch.full((1, 4), 2.0), atol=0.2, rtol=0)


def test_the_proposal_is_widened_only_if_q_z_is_too_narrow():
    model, data = initialised(2)
    choose_proposal_scale(model, data, Noise(1))
    assert model.proposal_scale.tolist() == [1.0, 1.0]
    shift_q_z(model, log_scale=-0.7)
    choose_proposal_scale(model, data, Noise(1))
    assert bool((model.proposal_scale > 1).all())


def test_importance_weights_are_used_in_full_if_q_z_is_far_from_the_posterior():
    model, data = initialised(1)
    shift_q_z(model, mean=1.0)
    choose_weight_power(model, data, Noise(1))
    assert float(model.weight_power) == 1.0
    assert float(model.use_posterior_mean) == 0.0


def test_no_draws_are_made_if_the_mean_of_q_z_predicts_as_well():
    # the decoder is linear, so E[x | z] averaged over q(z | ·) is its value at the mean
    model, data = initialised(1)
    choose_weight_power(model, data, Noise(1))
    assert float(model.use_posterior_mean) == 1.0
    assert float(model.weight_power) == 0.0


def test_draws_are_made_if_there_are_few_validation_cells():
    model, data = initialised(1)
    choose_weight_power(model, data, Noise(1), fraction=0.0)
    assert float(model.use_posterior_mean) == 0.0


def test_members_that_share_a_table_choose_together_whether_to_draw():
    model, data = initialised(2)
    shift_q_z(model, member=1, mean=1.0)
    choose_weight_power(model, data, Noise(1))
    assert model.use_posterior_mean.tolist() == [0.0, 0.0]
    assert float(model.weight_power[1]) == 1.0
    x, m = (each.expand(2, -1, -1) for each in make_table(400))
    choose_weight_power(model, TrainingData(x, m, 2, 0.2, Noise(0)), Noise(1))
    assert model.use_posterior_mean.tolist() == [1.0, 0.0]
