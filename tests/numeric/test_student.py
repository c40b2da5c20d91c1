"""The Student-t likelihood against scipy and integrals."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from psmvae.kinds import KINDS, Column
from psmvae.kinds.numeric import Normal, StudentBlock
from psmvae.kinds.student import Student, quantile
from psmvae.kinds.tools import invert

CASES = [(0.0, 1.0, 3.0), (-2.0, 0.05, 4.5), (1.0, 3.0, 30.0), (0.5, 1.0, 1000.0)]


def student(location, scale, df, dtype=torch.float64):
    parts = (location, math.log(scale), df)
    return Student(*(torch.tensor([part], dtype=dtype) for part in parts))


def normal(mean, scale):
    return Normal(*(torch.tensor([v], dtype=torch.float64) for v in (mean, math.log(scale))))


@pytest.mark.parametrize(("location", "scale", "df"), CASES)
def test_density_equals_scipy_and_integrates_to_one(location, scale, df):
    p, peer = student(location, scale, df), stats.t(df, location, scale)

    def log_p(x):
        return float(p.log_prob(torch.tensor([x], dtype=torch.float64)))

    for x in peer.ppf([1e-6, 0.2, 0.5, 0.99]):
        assert log_p(x) == pytest.approx(peer.logpdf(x), rel=1e-9, abs=1e-9)
    total, _ = integrate.quad(lambda t: scale * math.exp(log_p(location + scale * t)), -400, 400)
    assert total == pytest.approx(1, abs=1e-6)
    assert float(p.expected()) == location


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("df", [3.0, 3.2, 4.0, 5.0, 8.0, 20.0, 150.0, 1000.0])
def test_quantile_is_within_2e_5_of_scipy(df, dtype):
    low = np.concatenate([np.geomspace(1e-7, 0.1, 2000), np.linspace(0.1, 0.5, 2000)])
    uniform = torch.tensor(np.concatenate([low, 1 - low[low > 1e-4]]), dtype=dtype)
    found = quantile(uniform, torch.tensor(df, dtype=dtype)).double().numpy()
    peer = stats.t.ppf(uniform.double().numpy(), df)
    assert (np.abs(found - peer) <= 2e-5 * np.maximum(1, np.abs(peer))).all()


def test_mean_and_variance_of_draws():
    uniform = torch.rand(200_000, 1, generator=torch.Generator().manual_seed(0)).double()
    drawn = student(1.0, 0.5, 6.0).sample(uniform)[:, 0].numpy()
    peer = stats.t(6.0, 1.0, 0.5)
    assert drawn.mean() == pytest.approx(1.0, abs=0.005)
    assert drawn.var() == pytest.approx(peer.var(), rel=0.02)
    assert stats.kstest(drawn, peer.cdf).pvalue > 0.01


PAIRS = {
    "student, student": (student(0.3, 0.7, 4.0), student(-1.0, 1.9, 12.0)),
    "student, normal": (student(0.3, 0.7, 8.0), normal(-1.0, 1.9)),
    "normal, student": (normal(0.3, 0.7), student(-1.0, 1.9, 3.5)),
    "wide normal, student": (normal(0.3, 2.0), student(-1.0, 0.5, 3.5)),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_kl_equals_the_integral(pair):
    p, q = PAIRS[pair]

    def integrand(x):
        at = torch.tensor([x], dtype=torch.float64)
        return float(p.log_prob(at).exp() * (p.log_prob(at) - q.log_prob(at)))

    # the density beyond this grid integrates to less than 1e-15
    reach = 2000 if isinstance(p, Student) else 20
    points = [-10.0, -1.0, 0.3, 2.0, 10.0]
    exact, _ = integrate.quad(integrand, -reach, reach, points=points, limit=500)
    assert float(p.kl(q)) == pytest.approx(exact, rel=2e-3)


def test_kl_of_equal_distributions_is_zero():
    p = student(0.3, 0.7, 4.0)
    assert float(p.kl(p)) == 0.0


@pytest.mark.parametrize(("location", "scale", "df"), CASES)
def test_nodes_integrate_smooth_functions(location, scale, df):
    p, peer = student(location, scale, df), stats.t(df, location, scale)
    nodes = p.nodes()
    weight = nodes.log_weight.exp()
    assert float(weight.sum()) == pytest.approx(1)
    assert float((weight * nodes.x).sum()) == pytest.approx(location, abs=1e-6 * scale)
    found = float((weight * torch.sigmoid(2 * nodes.x)).sum())
    exact, _ = integrate.quad(lambda u: special.expit(2 * peer.ppf(u)), 0, 1, limit=500)
    assert found == pytest.approx(exact, abs=3e-4)


def test_draws_by_fine_nodes_follow_the_distribution():
    nodes = student(1.0, 0.5, 3.0).fine_nodes()
    uniform = torch.linspace(0.0005, 0.9995, 1000).double().unsqueeze(-1)
    weight = nodes.log_weight.exp().expand(1000, 1, -1)
    drawn = invert(nodes, weight, uniform)[:, 0].numpy()
    peer = stats.t.ppf(uniform[:, 0].numpy(), 3.0, 1.0, 0.5)
    np.testing.assert_allclose(drawn, peer, atol=0.02, rtol=0.01)


def test_student_scale_applies_to_real_and_integer_columns_only():
    given = [Column("a", "real", "Float64", 9), Column("b", "integer", "Int64", 9)]
    block = KINDS["real"].block(given, 2, "student")
    assert isinstance(block, StudentBlock)
    assert block.n_outputs == 3
    p = block(torch.zeros(2, 1, 1, 1, 2, 3))
    assert float(p.df.min()) > 3
    assert p.log_scale.shape == (2, 1, 1, 1, 2)


def test_initial_scale_has_the_standard_deviation_of_the_noise():
    block = StudentBlock(2, n_members=1)
    block.start_scale(torch.tensor([[0.5, 0.2]]))
    bias, loading = block.linear_start(torch.tensor([[[0.1], [0.2]]]), torch.ones(1, 4, 2, 1))
    assert bias.shape == (1, 2, 3)
    assert loading.shape == (1, 4, 2, 3)
    p = block(bias)
    deviation = p.log_scale.exp() * (p.df / (p.df - 2)).sqrt()
    torch.testing.assert_close(deviation.flatten().detach(), torch.tensor([0.5, 0.2]))
    torch.testing.assert_close(p.location.flatten(), torch.tensor([0.1, 0.2]))


def test_gradients_are_finite_for_outliers_and_extreme_outputs():
    block = StudentBlock(3, n_members=1)
    outputs = (
        torch.tensor([-30.0, 0.0, 30.0]).view(3, 1, 1, 1, 1, 1).expand(3, 1, 1, 1, 3, 3).clone()
    )
    outputs.requires_grad_()
    p = block(outputs)
    x = torch.tensor([0.0, 1e6, -1e6])
    uniform = torch.tensor([0.0, 0.5, 1.0])
    total = p.log_prob(x).sum() + p.sample(uniform).sum() + p.kl(normal(0.0, 1.0)).sum()
    assert bool(total.isfinite())
    total.backward()
    assert bool(outputs.grad.isfinite().all())
