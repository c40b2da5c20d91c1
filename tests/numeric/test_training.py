"""The training loop: what it may see, what it keeps."""

import dataclasses

import pytest
import torch
from torch import nn

from numeric.helpers import RESIDUAL, TRAINING, real_columns
from psmvae.models.batch import Batch
from psmvae.models.psmvae import PSMVAE, PSMVAESettings
from psmvae.nn.columns import Layout
from psmvae.nn.mask import mask_model
from psmvae.nn.noise import Noise
from psmvae.training import Training
from psmvae.training.latent_recipe import (
    LatentRecipe,
    calibrate,
    choose_proposal_scale,
    choose_weight_power,
)
from psmvae.training.loop import train as train_recipe
from psmvae.training.validation import Table, validation_error
from psmvae.training.weights import Weights


def train(built, x, m, settings, noise, callback=None):
    recipe = LatentRecipe(built, settings)
    return train_recipe(recipe, x, m, built.settings.n_members, settings, noise, callback)


def table(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=generator) + 0.3 * torch.randn(n, 4, generator=generator)
    m = (torch.rand(n, 4, generator=generator) < 0.8).float()
    return x * m, m


def model(n_members=2, seed=0, mask="latent"):
    settings = PSMVAESettings(n_members, 2, 2, RESIDUAL, mask_model(mask), "learned")
    return PSMVAE(Layout.of(real_columns(4)), settings, torch.full((4,), 0.2), Noise(seed))


def started(n_members):
    """A model at its linear start, and the table it was started from."""
    x, m = table(400)
    built = model(n_members=n_members)
    split = Table(x, m, n_members, 0.2, Noise(0))
    LatentRecipe(built, TRAINING).start(split, m, Noise(0))
    return built, split


def test_held_out_cells_are_observed_and_seen_by_nobody():
    x, m = table()
    split = Table(x, m, 3, 0.2, Noise(0))
    assert bool((m.expand(3, -1, -1)[split.held] == 1).all())
    assert float(split.m[split.held].max()) == 0.0
    assert float(split.known[split.held].max()) == 0.0
    batch = split.batch(torch.arange(10).expand(3, -1), 0.5, Noise(1))
    assert bool((batch.visible <= batch.m).all())
    # members hold out different cells
    assert not bool((split.held[0] == split.held[1]).all())


def test_cells_are_hidden_where_cells_are_missing():
    noise = Noise(0)
    x = torch.zeros(2000, 4)
    even = (noise.uniform(2000, 4) < 0.8).float()
    one = torch.ones(2000, 4)
    one[:300, 2] = 0.0
    whole = torch.ones(2000, 4)
    rows = torch.arange(2000).expand(1, -1)
    for m, shares in ((even, [0.25] * 4), (one, [0.0, 0.0, 0.5, 0.0]), (whole, [0.25] * 4)):
        split = Table(x, m, 1, 0.1, noise)
        asked = split.like_missing(0.25)
        assert asked.flatten().tolist() == pytest.approx(shares, abs=0.03)
        batch = split.batch(rows, 0.25, noise, columns=asked)
        hidden = 1 - batch.visible.sum((0, 1)) / batch.m.sum((0, 1))
        # half of the rows have as much of all columns hidden
        expected = [(share + 0.25) / 2 for share in shares]
        assert hidden.tolist() == pytest.approx(expected, abs=0.05)


def test_a_column_keeps_a_value_to_learn_from():
    m = torch.zeros(50, 1)
    m[7] = 1.0
    for seed in range(20):
        assert float(Table(torch.zeros(50, 1), m, 1, 0.5, Noise(seed)).m.sum()) == 1.0


class TestBootstrap:
    def test_copies_of_a_row_hold_out_the_same_cells(self):
        x, m = table()
        plain = Table(x, m, 3, 0.2, Noise(0))
        split = Table(x, m, 3, 0.2, Noise(0), bootstrap=True)
        assert split.picks.shape == (3, len(x))
        assert not bool((split.picks[0] == split.picks[1]).all())
        for e in range(3):
            rows = split.picks[e]
            # 1 − 1/e of the rows are there
            assert len(rows.unique()) / len(x) == pytest.approx(0.632, abs=0.08)
            torch.testing.assert_close(split.x[e], plain.x[0][rows])
            for name in ("m", "known", "held"):
                assert bool((getattr(split, name)[e] == getattr(plain, name)[e][rows]).all())

    def test_members_with_tables_of_their_own_keep_them(self):
        x, m = (torch.stack([each, each.flip(0)]) for each in table())
        split = Table(x, m, 2, 0.2, Noise(0), bootstrap=True)
        for e in range(2):
            torch.testing.assert_close(split.x[e], x[e][split.picks[e]])

    def test_a_column_keeps_a_value_to_learn_from(self):
        m = torch.ones(50, 2)
        m[:, 0] = 0.0
        m[7, 0] = 1.0
        split = Table(torch.zeros(50, 2), m, 40, 0.5, Noise(0), bootstrap=True)
        assert bool((split.m.sum(1) > 0).all())
        itself = (split.picks == torch.arange(50)).all(1)
        assert 0.1 < float(itself.float().mean()) < 0.7

    def test_members_start_as_far_apart_as_means_of_samples_are(self):
        """Of a row of which nothing is seen the start says the mean: over members σ² / n."""
        x, _ = table(100)
        m, n = torch.ones_like(x), 300
        spreads = {}
        for bootstrap in (True, False):
            built = model(n_members=n)
            split = Table(x, m, n, 0.0, Noise(1), bootstrap=bootstrap)
            LatentRecipe(built, TRAINING).start(split, m, Noise(0))
            nothing = torch.zeros(n, 1, 4)
            said = built.predict(Batch.of(nothing, nothing))[:, 0]
            spreads[bootstrap] = said.detach().var(0)
        expected = x.var(0, correction=0) / 100
        torch.testing.assert_close(spreads[True], expected, rtol=0.3, atol=0.0)
        assert float((spreads[False] / expected).max()) < 0.05

    def test_the_classes_of_masks_are_of_a_members_rows(self):
        """Shares of two kinds of rows vary over members as those of samples do."""
        x, _ = table(200)
        m = torch.ones_like(x)
        m[:60, 2:] = 0.0
        built = model(n_members=100)
        settings = dataclasses.replace(TRAINING, bootstrap=True, max_epochs=1, learning_rate=1e-12)
        train(built, x * m, m, settings, Noise(0))
        share = built.p_r.logits.detach().flatten(1).softmax(-1).min(1).values
        assert float(share.mean()) == pytest.approx(0.3, abs=0.02)
        assert float(share.std()) == pytest.approx((0.3 * 0.7 / 200) ** 0.5, rel=0.3)


def test_held_out_values_do_not_reach_the_weights():
    """Changing a held-out value changes the error measured, not what is learned."""
    x, m = table()
    held = Table(x, m, 1, TRAINING.validation_fraction, Noise(3)).held[0]
    changed = torch.where(held, x + 1.0, x)
    settings = Training(**{**TRAINING.__dict__, "patience": 1000})
    weights = []
    for values in (x, changed):
        built = model(n_members=1)
        # the last weights, not the best: which are best depends on the error
        last = []
        train(
            built,
            values,
            m,
            settings,
            Noise(3),
            lambda _, b=built, k=last: k.append(
                torch.cat([p.detach().flatten() for p in b.parameters()])
            ),
        )
        weights.append(last[-1])
    torch.testing.assert_close(weights[0], weights[1])


@pytest.mark.parametrize("mask", ["latent", "self"])
def test_the_best_weights_come_back(mask):
    x, m = table()
    built = model(mask=mask)
    seen = []
    result = train(built, x, m, TRAINING, Noise(1), seen.append)
    assert [p.epoch for p in seen] == [1, 2, 3, 4]
    split = Table(x, m, 2, TRAINING.validation_fraction, Noise(1))
    assert float(validation_error(built, split).mean()) == pytest.approx(
        result.history[-1].best_validation_error, rel=1e-4
    )


def test_training_raises_the_objective():
    x, m = table(400)
    built = model(n_members=1)
    settings = Training(**{**TRAINING.__dict__, "max_epochs": 15, "average": 0.0})
    errors = [p.validation_error for p in train(built, x, m, settings, Noise(0)).history]
    assert min(errors) < 0.6


def test_no_held_out_cells_trains_to_the_end():
    x, m = table()
    settings = Training(**{**TRAINING.__dict__, "validation_fraction": 0.0})
    result = train(model(), x, m, settings, Noise(0))
    assert len(result.history) == 4
    assert result.history[-1].validation_error is None


def members(*gradients):
    """A module of one weight of three members, with gradients."""
    module = nn.Module()
    module.weight = nn.Parameter(torch.zeros(3, 4))
    module.other = nn.Parameter(torch.ones(3, 2, 1))
    weights = Weights(module.parameters(), 0.9)
    module.weight.grad = torch.tensor([[g] * 4 for g in gradients])
    return module, weights


def test_clipping_keeps_members_apart():
    _, weights = members(1.0, 1000.0, torch.nan)
    weights.take_gradients(limit=10.0)
    grad = weights.now.grad[:, :4]
    torch.testing.assert_close(grad[0], torch.ones(4))
    assert float(grad[1].norm()) == pytest.approx(10.0, rel=1e-4)
    assert float(weights.now.grad[2].abs().sum()) == 0.0


def test_only_the_chosen_weights_get_a_gradient():
    module, weights = members(1.0, 2.0, 3.0)
    module.other.grad = torch.ones(3, 2, 1)
    weights.take_gradients(100.0, weights.columns([module.other]))
    assert float(weights.now.grad[:, :4].abs().sum()) == 0.0
    assert bool((weights.now.grad[:, 4:] == 1).all())


def test_parameters_are_views_until_they_are_released():
    module, weights = members(1.0, 1.0, 1.0)
    with torch.no_grad():
        weights.now.fill_(5.0)
    assert bool((module.weight == 5).all())
    assert bool((module.other == 5).all())
    weights.release()
    with torch.no_grad():
        weights.now.fill_(6.0)
    assert bool((module.weight == 5).all())


def test_the_average_follows_the_weights():
    module, weights = members(1.0, 1.0, 1.0)
    with torch.no_grad():
        module.weight.fill_(3.0)
    for _ in range(400):
        weights.update_mean()
    weights.swap()
    torch.testing.assert_close(module.weight.detach(), torch.full((3, 4), 3.0), rtol=1e-3, atol=0)


def test_the_best_is_kept_for_each_member():
    module, weights = members(1.0, 1.0, 1.0)
    weights.keep(torch.tensor([True, True, True]))
    with torch.no_grad():
        weights.mean.fill_(7.0)
    weights.keep(torch.tensor([False, True, False]))
    weights.restore(best=True)
    assert module.weight[:, 0].tolist() == [0.0, 7.0, 0.0]


def test_time_is_kept():
    x, m = table()
    settings = Training(**{**TRAINING.__dict__, "max_epochs": 10**6, "max_time": 0.2})
    result = train(model(), x, m, settings, Noise(0))
    assert 0 < len(result.history) < 10**6
    assert not result.interrupted


@pytest.mark.parametrize("mask", ["latent", "self"])
def test_a_share_of_the_last_work_is_enough_to_set_what_it_sets(mask):
    x, m = table(200)
    built = model(mask=mask)
    split = Table(x, m, 2, 0.2, Noise(0))
    recipe = LatentRecipe(built, TRAINING)
    before = {name: each.clone() for name, each in built.state_dict().items()}
    assert recipe.rehearse(split) > 0
    for name, each in built.state_dict().items():
        torch.testing.assert_close(each, before[name])
    recipe.finish(split, Noise(1), 0.05)
    assert bool((built.proposal_scale >= 1).all())
    assert bool(((built.weight_power >= 0) & (built.weight_power <= 1)).all())
    assert bool((built.spread >= 1).all())


def test_members_of_one_table_decide_together_whether_to_draw():
    built, split = started(n_members=2)
    with torch.no_grad():
        # the second is far from the posterior: only the weights can tell
        built.q_z.net.last.bias[1, :, :2] += 1.0
    choose_weight_power(built, split, Noise(1))
    assert built.use_posterior_mean.tolist() == [0.0, 0.0]
    assert float(built.weight_power[1]) == 1.0
    x, m = (each.expand(2, -1, -1) for each in table(400))
    own = Table(x, m, 2, 0.2, Noise(0))
    choose_weight_power(built, own, Noise(1))
    assert built.use_posterior_mean.tolist() == [1.0, 0.0]


def test_without_evidence_draws_are_weighed():
    built, split = started(n_members=1)
    choose_weight_power(built, split, Noise(1), 0.0)
    assert float(built.use_posterior_mean) == 0.0


def test_training_leaves_torchs_global_random_state_alone():
    before = torch.get_rng_state()
    x, m = table()
    train(model(), x, m, TRAINING, Noise(0))
    assert bool((torch.get_rng_state() == before).all())


def test_draws_are_widened_where_the_model_is_too_sure():
    """A model whose noise is half the truth's gets a spread of about two."""
    generator = torch.Generator().manual_seed(99)
    x = torch.randn(2000, 4, generator=generator)
    built = model(n_members=1)
    split = Table(x, torch.ones(2000, 4), 1, 0.5, Noise(0))
    # x is pure noise of deviation 1; the model says deviation 0.5
    built.p_x.start_linear(torch.zeros(1, 4), torch.zeros(1, 2, 4), torch.full((1, 4), 0.5))
    calibrate(built, split, Noise(1))
    torch.testing.assert_close(built.spread, torch.full((1, 4), 2.0), atol=0.2, rtol=0)


def test_a_narrow_q_gets_a_wider_proposal():
    built, split = started(n_members=2)
    choose_proposal_scale(built, split, Noise(1))
    assert built.proposal_scale.tolist() == [1.0, 1.0]
    with torch.no_grad():
        # log scales of q(z) come second: half the width
        built.q_z.net.last.bias[..., 2:] -= 0.7
    choose_proposal_scale(built, split, Noise(1))
    assert bool((built.proposal_scale >= 1.5).all())


def test_trust_is_what_predicts_held_out_cells_best():
    built, split = started(n_members=1)
    with torch.no_grad():
        # far from the posterior: only the weights can tell
        built.q_z.net.last.bias[..., :2] += 1.0
    choose_weight_power(built, split, Noise(1))
    assert float(built.weight_power) == 1.0
    assert float(built.use_posterior_mean) == 0.0


def test_no_draws_where_the_middle_predicts_as_well():
    # a linear decoder: the mean over z is the decoder of the mean
    built, split = started(n_members=1)
    choose_weight_power(built, split, Noise(1))
    assert float(built.use_posterior_mean) == 1.0
    assert float(built.weight_power) == 0.0
