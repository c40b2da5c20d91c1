"""The regression of x_mis on x_obs: encoding of its inputs, its role in the model, its weight."""

import numpy as np
import pytest
import torch

from numeric.helpers import PLAIN, RESIDUAL, make, mixed_columns, real_columns
from psmvae import Network, PSMVAEImputer
from psmvae.inference.draws import draw_missing
from psmvae.inference.importance import log_weights
from psmvae.models.batch import Batch
from psmvae.nn.columns import Columns, Layout
from psmvae.nn.noise import Noise
from psmvae.nn.regression import MAX_BINS, MAX_FEATURES, QuantileEncoding
from psmvae.training.calibration import (
    REGRESSION_WEIGHTS,
    choose_regression_weight,
    predict_by_regression_weight,
)
from psmvae.training.data import TrainingData
from psmvae.training.latent_recipe import LatentRecipe
from psmvae.training.pretrain import pretrain
from psmvae.training.schedule import Schedule
from psmvae.training.stopping import validation_error


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
def test_sum_of_the_encoding_interpolates_between_quantiles(distinct):
    rng = np.random.default_rng(0)
    values = rng.choice(rng.normal(size=distinct), size=(2, 500, 1))
    m = (rng.random(values.shape) < 0.8).astype(float)
    encoding = QuantileEncoding(Columns(Layout.of(real_columns(1)), 2, 1.0), 2).double()
    encoding.start(torch.as_tensor(values), torch.as_tensor(m))
    grid = np.linspace(-4, 4, 301)
    x = torch.as_tensor(grid).view(1, -1, 1).expand(2, -1, -1)
    found = (encoding(x, torch.ones_like(x)) + 0.5).sum(-1)
    for member in range(2):
        seen = values[member][m[member] > 0]
        knots = np.unique(seen)
        if len(knots) > MAX_BINS + 1:
            knots = np.quantile(seen, np.linspace(0, 1, MAX_BINS + 1))
        expected = np.interp(grid, knots, np.arange(len(knots)))
        # unused intervals add a constant
        got = found[member].numpy()
        np.testing.assert_allclose(got - got[0], expected, atol=1e-6)


def test_encoding_of_invisible_cells_is_zero():
    encoding = QuantileEncoding(Columns(Layout.of(mixed_columns()), 1, 1.0), 1)
    batch = rows(50, 1)
    encoding.start(batch.x.float(), batch.m.float())
    shown = encoding(batch.x.float(), batch.visible.float()).unflatten(-1, (2, MAX_BINS))
    visible = batch.visible[..., encoding.at] > 0
    assert shown.shape[2] == 2  # two of the four columns are numeric
    assert not shown[~visible].any()
    assert shown[visible].abs().sum(-1).min() > 0


@pytest.mark.parametrize("n_columns", [64, 100, 300])
def test_many_columns_have_fewer_intervals(n_columns):
    encoding = QuantileEncoding(Columns(Layout.of(real_columns(n_columns)), 1, 1.0), 1)
    assert encoding.n_features <= MAX_FEATURES
    x = torch.randn(1, 40, n_columns)
    encoding.start(x, torch.ones_like(x))
    assert encoding(x, torch.ones_like(x)).shape == (1, 40, encoding.n_features)


def test_encoding_of_constant_columns_is_finite():
    encoding = QuantileEncoding(Columns(Layout.of(real_columns(2)), 1, 1.0), 1)
    encoding.start(torch.ones(1, 10, 2), torch.tensor([1.0, 0.0]).expand(1, 10, 2))
    assert torch.isfinite(encoding(torch.ones(1, 3, 2), torch.ones(1, 3, 2))).all()


@pytest.mark.parametrize("network", [PLAIN, RESIDUAL], ids=["plain", "residual"])
@pytest.mark.parametrize("kind", ["psmvae", "gmvae", "dlgm"])
@torch.no_grad()
def test_regression_shifts_the_outputs_of_invisible_cells(kind, network):
    """Outputs are f(z) + regression − f(mean of q(z)), and f(z) for visible cells."""
    model = make(mixed_columns(), model=kind, network=network, regression=PLAIN)
    batch = rows()
    noise = epsilon(2, 6, 5, 3, 2)
    densities = model.log_densities(batch, noise)
    q_z = model.encode(batch).q_z
    z = q_z.at(noise)
    n = model.p_x.x_obs.n_outputs
    outputs = model.p_x.outputs(z, None)[..., :n]
    shift = model.regression_outputs(batch, None) - model.p_x.outputs(q_z.mean, None)[..., :n]
    owner = model.p_x.x_obs.output_column
    for j in range(4):
        visible = batch.visible[:, :, None, None, j, None] > 0
        at = torch.nonzero(owner == j)[:, 0]
        shifted = outputs[..., at] + shift[..., at]
        outputs[..., at] = torch.where(visible, outputs[..., at], shifted)
    log_p = model.p_x.x_obs(outputs).log_prob(batch.x[:, :, None, None])
    expected = (log_p * batch.m[:, :, None, None]).sum(-1)
    torch.testing.assert_close(densities.log_p_x_obs, expected)
    torch.testing.assert_close(densities.p_x.expected(), model.p_x.x_obs(outputs).expected())


@pytest.mark.parametrize("mask", ["latent", "none", "logistic-ceiling"])
@torch.no_grad()
def test_importance_weights_do_not_depend_on_the_regression(mask):
    """At imputation all observed cells are visible, and the regression shifts the others only."""
    model = make(mixed_columns(), mask=mask, regression=PLAIN)
    batch = rows()
    batch = Batch.of(batch.x, batch.m)
    noise = epsilon(2, 6, 5, 3, 2)
    with_it = model.log_densities(batch, noise)
    draws = model.expected(with_it)
    model.regression = None
    without = model.log_densities(batch, noise)
    torch.testing.assert_close(with_it.log_p_x_obs, without.log_p_x_obs)
    if mask != "logistic-ceiling":
        torch.testing.assert_close(log_weights(with_it), log_weights(without))
    assert (draws - model.expected(without)).abs().max() > 0.01


@torch.no_grad()
def test_draws_of_a_missing_cell_have_the_mean_of_the_regression():
    model = make(real_columns(3), mask="none", n_sets=1, n_members=1, regression=PLAIN)
    model.p_x.net.last.weight.mul_(0.1)
    x = torch.tensor([[[0.5, -1.0, 0.0]]]).double()
    m = torch.tensor([[[1.0, 1.0, 0.0]]]).double()
    batch = Batch.of(x, m)
    drawn = draw_missing(model, batch, 4000, 200, Noise(0)).squeeze()[:, 2]
    mean = model.regression_outputs(batch, None).squeeze()[2]
    assert abs(float(drawn.mean() - mean)) < 0.1


def test_loss_of_the_regression_is_the_density_of_masked_cells():
    model = make(real_columns(4), n_sets=1, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    mean = model.regression_outputs(batch, None)[:, :, 0, 0]
    masked = batch.m - batch.visible
    normal = torch.distributions.Normal(mean, 1.0)
    expected = (normal.log_prob(batch.x) * masked).sum(-1)
    torch.testing.assert_close(model.log_p_by_regression(batch, None), expected)


def pretrained(n_steps, seed=0):
    """A model with a pre-trained regression, and its validation errors before and after."""
    generator = torch.Generator().manual_seed(seed)
    a = 4 * torch.rand(800, 1, generator=generator) - 2
    x = torch.cat([a, a.pow(3) / 3, torch.tanh(3 * a)], 1)
    m = (torch.rand(x.shape, generator=generator) < 0.85).float()
    network = Network(width=32, depth=2, residual=False, linear=False, smooth=True)
    model = make(real_columns(3), n_sets=1, regression=network).float()
    data = TrainingData(x, m, 2, 0.1, Noise(seed), validation_rows=400)
    model.regression.start(data.x.expand(data.m.shape), data.m)
    before = validation_error(model, data)
    pretraining = LatentRecipe(model).pretraining()
    pretrain(pretraining, model, data, Noise(seed), Schedule(n_steps), lambda: 0.0)
    return model, before, validation_error(model, data)


def test_pretraining_lowers_the_error_and_freezes_the_regression():
    model, before, after = pretrained(400)
    assert (after < 0.5 * before).all()
    assert not any(p.requires_grad for p in model.regression.parameters())
    assert all(p.requires_grad for p in model.p_x.net.parameters())
    same = pretrained(400)[2]
    torch.testing.assert_close(after, same, rtol=0, atol=0)


def test_pretraining_of_one_step_is_finite():
    assert torch.isfinite(pretrained(1)[2]).all()


@pytest.mark.filterwarnings("ignore:max_time")
def test_regression_weight_is_zero_without_gain_on_validation_cells():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2500, 1)) + 0.1 * rng.normal(size=(2500, 4))
    incomplete = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    # the table is linear, so an untrained regression cannot improve on factor analysis
    imputer = PSMVAEImputer(max_time=1e-3, device="cpu", random_state=0).fit(incomplete)
    assert imputer.model_.regression is not None
    assert not imputer.model_.regression_weight.any()
    error = (imputer.transform(incomplete) - x)[np.isnan(incomplete)]
    assert np.sqrt(np.mean(error**2)) < 0.3
    model, _, _ = pretrained(400)
    assert (model.regression_weight > 0.5).all()


@torch.no_grad()
def test_regression_weight_minimises_the_validation_error_of_each_column(monkeypatch):
    """The decoder and the regression are constants, so the best weights are known."""
    rng = torch.Generator().manual_seed(0)
    x = 0.1 * torch.randn(4000, 4, generator=rng).double()
    m = torch.ones_like(x)
    model = make(real_columns(4), n_sets=1, n_members=1, network=PLAIN, regression=PLAIN)
    for parameter in (*model.p_x.parameters(), *model.regression.parameters()):
        parameter.zero_()
    # x has mean 0 and the decoder predicts 0, so the regression cannot gain anything
    model.regression.net.last.bias.view(-1).copy_(torch.tensor([0.0, 2.0, 0.3, 1.0]))
    data = TrainingData(x, m, 1, 0.2, Noise(0))
    assert not choose_regression_weight(model, data).any()
    assert not model.regression_weight.any()
    # in the fourth column the mean of decoder and regression is right
    model.p_x.net.last.bias[..., 3] = -1.0
    with monkeypatch.context() as alone:
        alone.setattr("psmvae.training.calibration.PSEUDO_COUNT", 0)
        assert choose_regression_weight(model, data).all()
        assert model.regression_weight.tolist()[0][1:] == [0.0, 0.0, 0.5]
        model.p_x.net.last.bias[..., 0] = 5.0
        assert choose_regression_weight(model, data).all()
        assert model.regression_weight.tolist() == [[1.0, 0.0, 0.0, 0.5]]
        # predictions with all candidate weights from one encoding
        batch, _ = next(iter(data.validation_batches()))
        model.regression_weight.fill_(1.0)
        predicted = list(predict_by_regression_weight(model, batch))
        model.regression_weight.fill_(0.25)
        expected = predicted[REGRESSION_WEIGHTS.index(0.25)]
        torch.testing.assert_close(model.predict(batch), expected)
    # a column without validation cells has the pooled weight of the others, 0, 0 and 1
    data.validation_mask[..., 0] = False
    model.p_x.net.last.bias[..., 3] = 5.0
    choose_regression_weight(model, data)
    assert 0.0 < float(model.regression_weight[0, 0]) < 1.0


@torch.no_grad()
def test_prediction_is_linear_in_the_regression_weight():
    model = make(real_columns(4), n_sets=2, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    found = []
    for weight in (0.0, 1.0, 0.25):
        model.regression_weight.fill_(weight)
        found.append(model.predict(batch)[batch.visible == 0])
    torch.testing.assert_close(found[2], 0.75 * found[0] + 0.25 * found[1])


def test_weight_decay_is_bounded_for_tables_with_few_cells():
    x = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [np.nan, 4.0]])
    imputer = PSMVAEImputer(
        regression=PLAIN, validation_fraction=0.5, max_epochs=30, random_state=0
    )
    assert np.isfinite(imputer.fit(x).transform(x)).all()
    assert max(float(p.abs().max()) for p in imputer.model_.regression.parameters()) < 2.0


def test_infinite_regression_with_weight_zero_is_ignored():
    model = make(real_columns(4), n_sets=1, network=RESIDUAL, regression=PLAIN)
    batch = rows()
    with torch.no_grad():
        model.regression_weight.fill_(0.0)
        expected = model.predict(batch)
        model.regression.net.last.bias.fill_(torch.inf)
        torch.testing.assert_close(model.predict(batch), expected)


def test_error_names_the_parameter_regression():
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(TypeError, match="regression must be a Network, 'auto' or None"):
        PSMVAEImputer(regression=3).fit(x)
    with pytest.raises(ValueError, match="regression needs a scale"):
        PSMVAEImputer(regression=Network(), scale="student").fit(x)


# draws of a Normal around tanh exceed its range
@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.slow
def test_intervals_of_draws_around_the_regression_cover_the_truth():
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, 1000)
    x = np.column_stack([a, a**3, np.tanh(3 * a)]) + 0.05 * rng.normal(size=(1000, 3))
    incomplete = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    network = Network(width=32, depth=2, residual=False, linear=False, smooth=True)
    settings = {"max_epochs": 60, "device": "cpu", "random_state": 0}
    imputer = PSMVAEImputer(regression=network, **settings).fit(incomplete)
    drawn = np.stack(imputer.sample(incomplete[:500], n=50))
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
    inside = ((x[:500] >= low) & (x[:500] <= high))[np.isnan(incomplete[:500])]
    # 90 % intervals of a short training, .80 to .84 by the version of PyTorch
    assert 0.75 < inside.mean() < 1.0
