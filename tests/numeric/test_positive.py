"""Positive columns: the log-normal against scipy, and E[x] at every scale."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from psmvae.kinds import KINDS, Column
from psmvae.kinds.positive import LogNormal

POSITIVE = KINDS["positive"]


def column(center=0.0, scale=1.0, deviation=1.0, dtype="Float64"):
    return Column("x", "positive", dtype, 10, center, scale, mean=1.0, deviation=deviation)


def learned(values):
    return POSITIVE.learn(np.asarray(values, dtype=float), Column("x", "positive", "Float64", 3))


def cell(given, mean, scale):
    """A block of one column in float64 and its distribution of one cell."""
    block = POSITIVE.block([given], 1, scale).double()
    return block, block(torch.tensor([[mean]], dtype=torch.float64))


CASES = [(column(1.5, 0.3), 0.4, 0.5), (column(-2.0, 2.5), -0.7, 0.6), (column(0.0, 1.0), 1.0, 1.0)]


@pytest.mark.parametrize(("given", "mean", "scale"), CASES)
def test_density_in_table_units_equals_scipy_and_integrates_to_one(given, mean, scale):
    _, p = cell(given, mean, scale)
    peer = stats.lognorm(given.scale * scale, scale=math.exp(given.center + given.scale * mean))

    def density(value):
        x = POSITIVE.standardise(np.array([value]), given)
        log_p = p.log_prob(torch.tensor(x)).numpy() + POSITIVE.log_jacobian(given, x)
        return math.exp(float(log_p[0]))

    for value in peer.ppf([0.01, 0.3, 0.9]):
        assert density(value) == pytest.approx(peer.pdf(value), rel=1e-6)
    low, high = peer.ppf([1e-9, 1 - 1e-9])
    total, _ = integrate.quad(density, low, high, points=peer.ppf([0.1, 0.5, 0.9]), limit=200)
    assert total == pytest.approx(1, abs=1e-6)


def test_log_jacobian_at_the_geometric_mean():
    given = column(1.5, 0.3)
    assert POSITIVE.log_jacobian(given) == pytest.approx(-math.log(0.3) - 1.5)
    assert POSITIVE.log_jacobian(given, np.array([0.0, 2.0])).shape == (2,)


@pytest.mark.parametrize(("given", "mean", "scale"), CASES)
def test_point_estimate_is_the_mean_of_the_value(given, mean, scale):
    block, p = cell(given, mean, scale)
    found = POSITIVE.restore(block.point(p.expected()).numpy(), given)
    peer = stats.lognorm(given.scale * scale, scale=math.exp(given.center + given.scale * mean))
    assert found[0] == pytest.approx(peer.mean(), rel=1e-6)
    nodes = p.nodes()
    by_nodes = (nodes.log_weight.exp() * block.statistics(nodes.x.mT)[..., 0].mT).sum(-1)
    torch.testing.assert_close(by_nodes, p.expected()[..., 0], rtol=1e-4, atol=0)


def test_mean_and_variance_of_draws():
    given = column(1.5, 0.3)
    _, p = cell(given, 0.4, 0.8)
    uniform = torch.rand(200_000, 1, generator=torch.Generator().manual_seed(0)).double()
    drawn = POSITIVE.restore(p.sample(uniform).numpy(), given)
    peer = stats.lognorm(0.24, scale=math.exp(1.5 + 0.3 * 0.4))
    assert drawn.mean() == pytest.approx(peer.mean(), rel=0.003)
    assert drawn.var() == pytest.approx(peer.var(), rel=0.02)


def test_kl_equals_the_integral():
    given = column(0.0, 2.0)
    _, p = cell(given, 0.3, 0.7)
    _, q = cell(given, -1.0, 1.9)

    def integrand(x):
        at = torch.tensor([x], dtype=torch.float64)
        return float(p.log_prob(at).exp() * (p.log_prob(at) - q.log_prob(at)))

    assert float(p.kl(q)) == pytest.approx(integrate.quad(integrand, -8, 8)[0], rel=1e-7)


@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.5, 1.0, 5.0])
def test_float32_is_accurate_at_any_width(width):
    block = POSITIVE.block([column(3.0, width)], 1, 1.0)
    x = torch.linspace(-4, 4, 33).unsqueeze(-1)
    torch.testing.assert_close(block.point(block.statistics(x)), x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_error_is_in_standard_deviations_of_the_table(size):
    values = size * np.random.default_rng(0).lognormal(1.0, 0.8, 500)
    given = learned(values)
    block = POSITIVE.block([given], 1, "learned")
    x = torch.tensor(POSITIVE.standardise(values, given)).float().unsqueeze(-1)
    expected = block.statistics(x).mean(0)
    error = block.error(expected, x)[:, 0].numpy()
    np.testing.assert_allclose(error, ((values - values.mean()) / values.std()) ** 2, 1e-3, 1e-5)
    assert POSITIVE.restore(block.point(expected).double().numpy(), given)[0] == pytest.approx(
        values.mean(), rel=1e-5
    )
    np.testing.assert_allclose(
        POSITIVE.restore(POSITIVE.standardise(values, given), given), values, rtol=1e-12
    )


@pytest.mark.parametrize(
    "values",
    [[5.0], [1.0, 1.0], [7.0] * 9, [1e-12, 1e12], [1e-300, 1e300], [1e6, 1e6 + 1e-6]],
)
@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
def test_extreme_values_are_finite(values, scale):
    given = learned(values)
    block = POSITIVE.block([given], 1, scale)
    size = (1, 5, 1, 1, 1, block.n_outputs)
    outputs = torch.linspace(-30, 30, 5).view(1, 5, 1, 1, 1, 1).expand(size).clone()
    outputs.requires_grad_()
    p = block(outputs)
    x = torch.tensor([0.0, 1e6, -1e6, 2.0, -3.0]).view(1, 5, 1, 1, 1)
    for part in (p.log_prob(x), p.expected(), block.error(p.expected(), x), block.statistics(x)):
        assert bool(part.isfinite().all())
    (p.log_prob(torch.zeros_like(x)).sum() + p.expected().sum()).backward()
    assert bool(outputs.grad.isfinite().all())
    restored = POSITIVE.restore(block.point(p.expected()).detach().double().numpy(), given)
    assert (restored > 0).all()


def test_learned_scales_have_their_initial_value_and_a_bound():
    block = POSITIVE.block([column(), column(), column()], 1, "learned")
    block.start_scale(torch.tensor([[0.2, 0.9, 50.0]]))
    scale = block(torch.zeros(1, 1, 1, 1, 3, 1)).log_scale.detach().exp().flatten()
    torch.testing.assert_close(scale, torch.tensor([0.2, 0.9, 3.0]), rtol=1e-3, atol=0)


def test_student_scale_is_a_normal_with_a_network_scale():
    block = POSITIVE.block([column()], 2, "student")
    assert block.n_outputs == 2
    assert isinstance(block(torch.zeros(2, 1, 1, 1, 1, 2)), LogNormal)


def test_integers_are_not_restored_as_zero():
    assert POSITIVE.restore(np.array([-50.0]), column(dtype="Int64"))[0] == 1.0
    assert 0 < POSITIVE.restore(np.array([-50.0]), column())[0] < 1e-20
