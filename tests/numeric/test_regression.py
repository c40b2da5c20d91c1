"""A regression on x_obs as the middle of x_mis, and the ramps it is shown."""

import numpy as np
import pytest
import torch

from numeric.helpers import PLAIN, RESIDUAL, make, mixed_columns, real_columns
from psmvae import Network, PSMVAEImputer
from psmvae.inference.importance import log_weights
from psmvae.inference.posterior import draw
from psmvae.models.batch import Batch
from psmvae.nn.columns import Columns, Layout
from psmvae.nn.noise import Noise
from psmvae.nn.quantile_encoding import FEWEST_BINS, MOST_BINS, MOST_FEATURES, Places
from psmvae.training.latent_recipe import (
    BELIEFS,
    LatentRecipe,
    choose_regression_weight,
    predict_by_belief,
)
from psmvae.training.pretrain import pretrain, rate_at
from psmvae.training.recipe import First
from psmvae.training.validation import Table, validation_error


def rows(n=6, n_members=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n_members, n, 4, generator=generator).double()
    order = Layout.of(mixed_columns()).order
    for level in (0, 2):
        x[..., order.index(level)] = (x[..., order.index(level)] > 0).double()
    m = (torch.rand(x.shape, generator=generator) < 0.7).double()
    visible = m * (torch.rand(x.shape, generator=generator) < 0.7).double()
    return Batch(torch.where(m > 0, x, 0.0), m, visible, torch.ones_like(m))


def epsilon(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).double()


@pytest.mark.parametrize("distinct", [5, 400])
def test_ramps_add_up_to_the_place_among_quantiles(distinct):
    rng = np.random.default_rng(0)
    values = rng.choice(rng.normal(size=distinct), size=(2, 500, 1))
    m = (rng.random(values.shape) < 0.8).astype(float)
    places = Places(Columns(Layout.of(real_columns(1)), 2, 1.0), 2).double()
    places.start(torch.as_tensor(values), torch.as_tensor(m))
    asked = np.linspace(-4, 4, 301)
    x = torch.as_tensor(asked).view(1, -1, 1).expand(2, -1, -1)
    found = (places(x, torch.ones_like(x)) + 0.5).sum(-1)
    for member in range(2):
        seen = values[member][m[member] > 0]
        knots = np.unique(seen)
        if len(knots) > MOST_BINS + 1:
            knots = np.quantile(seen, np.linspace(0, 1, MOST_BINS + 1))
        expected = np.interp(asked, knots, np.arange(len(knots)))
        # ramps that a column does not need say the same of every number
        got = found[member].numpy()
        np.testing.assert_allclose(got - got[0], expected, atol=1e-6)


def test_a_cell_that_is_not_visible_has_no_place():
    places = Places(Columns(Layout.of(mixed_columns()), 1, 1.0), 1)
    batch = rows(50, 1)
    places.start(batch.x.float(), batch.m.float())
    shown = places(batch.x.float(), batch.visible.float()).unflatten(-1, (2, MOST_BINS))
    visible = batch.visible[..., places.at] > 0
    assert shown.shape[2] == 2  # the numbers among four columns
    assert not shown[~visible].any()
    assert shown[visible].abs().sum(-1).min() > 0


@pytest.mark.parametrize("n_columns", [64, 100, 300])
def test_many_columns_have_fewer_ramps(n_columns):
    places = Places(Columns(Layout.of(real_columns(n_columns)), 1, 1.0), 1)
    assert places.n_features <= MOST_FEATURES
    assert places.n_bins >= FEWEST_BINS or places.n_bins == 0
    x = torch.randn(1, 40, n_columns)
    places.start(x, torch.ones_like(x))
    assert places(x, torch.ones_like(x)).shape == (1, 40, places.n_features)


def test_a_column_without_two_values_has_no_slope():
    places = Places(Columns(Layout.of(real_columns(2)), 1, 1.0), 1)
    places.start(torch.ones(1, 10, 2), torch.tensor([1.0, 0.0]).expand(1, 10, 2))
    assert not places.slope.any()
    assert torch.isfinite(places(torch.ones(1, 3, 2), torch.ones(1, 3, 2))).all()


@pytest.mark.parametrize("network", [PLAIN, RESIDUAL], ids=["plain", "residual"])
@pytest.mark.parametrize("kind", ["psmvae", "gmvae", "dlgm"])
@torch.no_grad()
def test_densities_are_those_of_outputs_moved_by_hand(kind, network):
    """Unseen cells: f(z) + regression − f(middle of q(z)); visible ones: f(z)."""
    model = make(mixed_columns(), model=kind, network=network, regression=PLAIN)
    batch = rows()
    noise = epsilon(2, 6, 5, 3, 2)
    answer = model.log_densities(batch, noise)
    code = model.encode(batch)
    z, at_middle = code.q_z.at(noise), code.q_z.mean
    n = model.p_x.x_obs.n_outputs
    outputs = model.p_x.outputs(z, None)[..., :n]
    middle = model.middle(batch, None) - model.p_x.outputs(at_middle, None)[..., :n]
    owner = model.p_x.x_obs.output_column
    for j in range(4):
        seen = batch.visible[:, :, None, None, j, None] > 0
        mine = torch.nonzero(owner == j)[:, 0]
        moved = outputs[..., mine] + middle[..., mine]
        outputs[..., mine] = torch.where(seen, outputs[..., mine], moved)
    log_p = model.p_x.x_obs(outputs).log_prob(batch.x[:, :, None, None])
    expected = (log_p * batch.m[:, :, None, None]).sum(-1)
    torch.testing.assert_close(answer.log_p_x_obs, expected)
    torch.testing.assert_close(answer.p_x.expected(), model.p_x.x_obs(outputs).expected())


@pytest.mark.parametrize("mask", ["latent", "none", "self"])
@torch.no_grad()
def test_weights_at_imputation_do_not_hang_on_it(mask):
    """What is observed is visible then, and a regression moves other cells only."""
    model = make(mixed_columns(), mask=mask, regression=PLAIN)
    batch = rows()
    batch = Batch.of(batch.x, batch.m)
    noise = epsilon(2, 6, 5, 3, 2)
    with_it = model.log_densities(batch, noise)
    draws = model.expected(with_it)
    model.regression = None
    without = model.log_densities(batch, noise)
    torch.testing.assert_close(with_it.log_p_x_obs, without.log_p_x_obs)
    if mask != "self":
        torch.testing.assert_close(log_weights(with_it), log_weights(without))
    assert (draws - model.expected(without)).abs().max() > 0.01


@torch.no_grad()
def test_draws_of_a_missing_cell_are_about_the_regression():
    model = make(real_columns(3), mask="none", n_sets=1, n_members=1, regression=PLAIN)
    model.p_x.net.last.weight.mul_(0.1)
    x = torch.tensor([[[0.5, -1.0, 0.0]]]).double()
    m = torch.tensor([[[1.0, 1.0, 0.0]]]).double()
    batch = Batch.of(x, m)
    drawn = draw(model, batch, 4000, 200, Noise(0)).squeeze()[:, 2]
    middle = model.middle(batch, None).squeeze()[2]
    assert abs(float(drawn.mean() - middle)) < 0.1


def test_the_loss_of_a_regression_is_that_of_hidden_cells():
    model = make(real_columns(4), n_sets=1, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    middle = model.middle(batch, None)[:, :, 0, 0]
    hidden = batch.m - batch.visible
    normal = torch.distributions.Normal(middle, 1.0)
    expected = (normal.log_prob(batch.x) * hidden).sum(-1)
    torch.testing.assert_close(model.log_p_by_regression(batch, None), expected)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_gradient_by_hand_is_that_of_autograd(smooth, depth):
    network = Network(width=8, depth=depth, residual=False, linear=False, smooth=smooth)
    model = make(real_columns(4), n_members=1, n_sets=1, network=RESIDUAL, regression=network)
    first = LatentRecipe(model, None).first()
    batch = rows(n_members=1)
    first.loss(batch, None).mean(1).sum().backward()
    into = [torch.zeros_like(p) for p in first.parameters]
    first.gradient(batch, into)
    for parameter, found in zip(first.parameters, into, strict=True):
        torch.testing.assert_close(found, parameter.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "other",
    [
        {"n_members": 2},
        {"n_sets": 2},
        {"regression": Network(width=8, depth=1)},
        {"regression": Network(width=8, depth=1, residual=False, linear=False, dropout=0.1)},
        {"columns": mixed_columns()},
    ],
    ids=str,
)
def test_what_is_not_known_by_hand_is_left_to_autograd(other):
    given = {"n_members": 1, "n_sets": 1, "network": RESIDUAL, "regression": PLAIN} | other
    model = make(given.pop("columns", real_columns(4)), **given)
    assert LatentRecipe(model, None).first().gradient is None


def trained_first(n_steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    a = 4 * torch.rand(800, 1, generator=generator) - 2
    x = torch.cat([a, a.pow(3) / 3, torch.tanh(3 * a)], 1)
    m = (torch.rand(x.shape, generator=generator) < 0.85).float()
    network = Network(width=32, depth=2, residual=False, linear=False, smooth=True)
    model = make(real_columns(3), n_sets=1, regression=network).float()
    table = Table(x, m, 2, 0.1, Noise(seed), validation_rows=400)
    assert not table.held[:, 400:].any()
    model.regression.places.start(table.x.expand(table.m.shape), table.m)
    parameters = list(model.regression.parameters())
    first = First(
        parameters,
        lambda *given: -model.log_p_by_regression(*given),
        lambda split: choose_regression_weight(model, split),
    )
    before = validation_error(model, table)
    pretrain(first, model, table, Noise(seed), 100.0, lambda done: done / n_steps)
    return model, before, validation_error(model, table)


def test_what_is_trained_first_learns_and_is_trained_no_more():
    model, before, after = trained_first(400)
    assert (after < 0.5 * before).all()
    assert not any(p.requires_grad for p in model.regression.parameters())
    assert all(p.requires_grad for p in model.p_x.net.parameters())
    same = trained_first(400)[2]
    torch.testing.assert_close(after, same, rtol=0, atol=0)


def test_without_time_nothing_is_learned_and_nothing_breaks():
    assert torch.isfinite(trained_first(0.5)[2]).all()


def test_held_out_cells_decide_whether_it_is_believed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2500, 1)) + 0.1 * rng.normal(size=(2500, 4))
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    # no time to learn: factor analysis knows all there is to know of this table
    imputer = PSMVAEImputer(max_time=1e-3, device="cpu", random_state=0).fit(holes)
    assert imputer.model_.regression is not None
    assert not imputer.model_.regression_weight.any()
    error = (imputer.transform(holes) - x)[np.isnan(holes)]
    assert np.sqrt(np.mean(error**2)) < 0.3
    model, _, _ = trained_first(400)
    assert (model.regression_weight > 0.5).all()


@torch.no_grad()
def test_it_is_believed_by_column_and_as_far_as_held_out_cells_say(monkeypatch):
    """Constants for both: the best mix of the two is known."""
    rng = torch.Generator().manual_seed(0)
    x = 0.1 * torch.randn(4000, 4, generator=rng).double()
    m = torch.ones_like(x)
    model = make(real_columns(4), n_sets=1, n_members=1, network=PLAIN, regression=PLAIN)
    for parameter in (*model.p_x.parameters(), *model.regression.parameters()):
        parameter.zero_()
    # cells are 0, and so is what z says; there is nothing to gain
    middle = torch.tensor([0.0, 2.0, 0.3, 1.0])
    model.regression.net.last.bias.view(-1).copy_(middle)
    table = Table(x, m, 1, 0.2, Noise(0))
    assert not choose_regression_weight(model, table).any()
    assert not model.regression_weight.any()
    # there is in the fourth column, where the middle of the two is right; that the regression as
    # a whole is worse is no reason
    model.p_x.net.last.bias[..., 3] = -1.0
    with monkeypatch.context() as alone:
        alone.setattr("psmvae.training.latent_recipe.COMPANY", 0)
        assert choose_regression_weight(model, table).all()
        assert model.regression_weight.tolist()[0][1:] == [0.0, 0.0, 0.5]
        model.p_x.net.last.bias[..., 0] = 5.0
        assert choose_regression_weight(model, table).all()
        assert model.regression_weight.tolist() == [[1.0, 0.0, 0.0, 0.5]]
        # what is measured in one pass is what it would predict
        batch, _ = next(table.measured())
        model.regression_weight.fill_(1.0)
        by_belief = torch.stack(list(predict_by_belief(model, batch)))
        model.regression_weight.fill_(0.25)
        torch.testing.assert_close(model.predict(batch), by_belief[BELIEFS.index(0.25)])
    # a column without cells of its own goes by all others, which say 0, 0 and 1
    table.held[..., 0] = False
    model.p_x.net.last.bias[..., 3] = 5.0
    choose_regression_weight(model, table)
    assert 0.0 < float(model.regression_weight[0, 0]) < 1.0


@torch.no_grad()
def test_what_is_half_believed_is_half_way():
    model = make(real_columns(4), n_sets=2, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    found = []
    for belief in (0.0, 1.0, 0.25):
        model.regression_weight.fill_(belief)
        found.append(model.predict(batch)[batch.visible == 0])
    torch.testing.assert_close(found[2], 0.75 * found[0] + 0.25 * found[1])


def test_few_cells_draw_weights_to_nothing_and_no_further():
    x = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [np.nan, 4.0]])
    imputer = PSMVAEImputer(
        regression=PLAIN, validation_fraction=0.5, max_epochs=30, random_state=0
    )
    assert np.isfinite(imputer.fit(x).transform(x)).all()
    assert max(float(p.abs().max()) for p in imputer.model_.regression.parameters()) < 2.0


def test_a_regression_that_is_not_believed_is_not_heard_even_if_it_is_infinite():
    model = make(real_columns(4), n_sets=1, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    with torch.no_grad():
        model.regression_weight.fill_(0.0)
        expected = model.predict(batch)
        model.regression.net.last.bias.fill_(torch.inf)
        torch.testing.assert_close(model.predict(batch), expected)


def test_the_rate_rises_stays_and_falls():
    rates = [rate_at(part) for part in (0.0, 0.05, 0.1, 0.3, 0.65, 1.0, 1.2)]
    assert rates[0] == 0.0
    assert rates[1] == pytest.approx(0.5 * rates[2])
    assert rates[2] == rates[3] > rates[4] > rates[5] == rates[6] == 0.0


def test_errors_name_the_parameter():
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(TypeError, match="regression must be a Network, 'auto' or None"):
        PSMVAEImputer(regression=3).fit(x)
    with pytest.raises(ValueError, match="regression needs a scale"):
        PSMVAEImputer(regression=Network(), scale="student").fit(x)


def test_draws_about_a_regression_are_as_wide_as_its_errors():
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, 1000)
    x = np.column_stack([a, a**3, np.tanh(3 * a)]) + 0.05 * rng.normal(size=(1000, 3))
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    network = Network(width=32, depth=2, residual=False, linear=False, smooth=True)
    settings = {"max_epochs": 60, "device": "cpu", "random_state": 0}
    imputer = PSMVAEImputer(regression=network, **settings).fit(holes)
    drawn = np.stack(imputer.sample(holes[:500], n=50))
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    inside = ((x[:500] >= low) & (x[:500] <= high))[np.isnan(holes[:500])]
    assert 0.8 < inside.mean() < 1.0
