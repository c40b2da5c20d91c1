"""Counts: the negative binomial and the Poisson against scipy and explicit sums."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from psmvae.kinds import KINDS, Column
from psmvae.kinds.count import NegativeBinomial

COUNT = KINDS["count"]
# mean and size; a Poisson has no size
CASES = [(0.05, 1.0), (2.0, 0.5), (3.0, None), (12.0, 40.0), (90.0, 0.7), (400.0, None)]


def cell(mean, size, dtype=torch.float64):
    log_size = None if size is None else torch.tensor([size], dtype=dtype).log()
    return NegativeBinomial(torch.tensor([mean], dtype=dtype).log(), log_size)


def peer_of(mean, size):
    return stats.poisson(mean) if size is None else stats.nbinom(size, size / (size + mean))


def learned(values):
    column = Column("n", "count", "Int64", len(values))
    return COUNT.learn(np.asarray(values, dtype=float), column)


@pytest.mark.parametrize(("mean", "size"), CASES)
def test_probabilities_equal_scipy_and_sum_to_one(mean, size):
    p, peer = cell(mean, size), peer_of(mean, size)
    x = np.arange(int(peer.ppf(1 - 1e-12)) + 50)
    log_p = p.log_prob(torch.tensor(x, dtype=torch.float64).unsqueeze(-1))[:, 0].numpy()
    np.testing.assert_allclose(log_p, peer.logpmf(x), rtol=1e-8, atol=1e-9)
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-9)
    assert (np.exp(log_p) * x).sum() == pytest.approx(float(p.expected()), rel=1e-7)


@pytest.mark.parametrize("size", [0.5, 1e3, 1e9, None])
def test_float32_is_accurate_for_large_counts(size):
    p = cell(1e6, size, torch.float32)
    mean = float(p.log_mean.double().exp())
    x = np.array([0.0, 5e5, 999_000.0, 1e6, 1_001_000.0])
    found = p.log_prob(torch.tensor(x, dtype=torch.float32).unsqueeze(-1))[:, 0].numpy()
    exact = peer_of(mean, None if size is None else float(p.log_size.double().exp())).logpmf(x)
    np.testing.assert_allclose(found, exact, rtol=1e-5)


@pytest.mark.parametrize(("mean", "size"), [*CASES, (1e4, 20.0), (1e6, 1.0), (1e6, None)])
@pytest.mark.parametrize("rule", ["nodes", "fine_nodes"])
def test_nodes_cover_the_distribution(mean, size, rule):
    p, peer = cell(mean, size), peer_of(mean, size)
    nodes = getattr(p, rule)()
    weight = nodes.log_weight.exp()
    edges = (nodes.x + nodes.step / 2).numpy()[0]
    assert (np.diff(edges) >= 1).all()
    assert np.abs(weight.cumsum(-1).numpy()[0] - peer.cdf(edges)).max() < 0.02
    assert float((weight * nodes.x).sum()) == pytest.approx(mean, rel=0.002)
    spread = float((weight * (nodes.x - mean).square()).sum())
    assert spread == pytest.approx(peer.var(), rel=0.005)


def test_small_counts_are_enumerated():
    nodes = cell(2.0, None).nodes()
    assert nodes.x[0].tolist() == list(range(32))
    np.testing.assert_allclose(nodes.log_weight.exp()[0], stats.poisson(2).pmf(range(32)), 1e-9)


@pytest.mark.parametrize(("mean", "size"), CASES)
def test_mean_and_variance_of_draws(mean, size):
    uniform = torch.rand(200_000, 1, generator=torch.Generator().manual_seed(0))
    drawn = cell(mean, size, torch.float32).sample(uniform)[:, 0].double().numpy()
    peer = peer_of(mean, size)
    assert (drawn == np.rint(drawn)).all()
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(mean, rel=0.01, abs=4 * peer.std() / math.sqrt(200_000))
    assert drawn.var() == pytest.approx(peer.var(), rel=0.03)


def test_small_counts_are_drawn_exactly():
    uniform = torch.linspace(0.0005, 0.9995, 1000).double().unsqueeze(-1)
    drawn = cell(2.0, 0.9).sample(uniform)[:, 0].numpy()
    assert (drawn == peer_of(2.0, 0.9).ppf(uniform[:, 0].numpy())).all()


@pytest.mark.parametrize(
    ("p", "q", "rel"),
    [
        ((3.0, None), (4.5, None), 1e-9),
        ((3.0, 2.0), (4.5, 0.8), 1e-4),
        ((3.0, 2.0), (4.5, None), 1e-3),
        ((3.0, None), (4.5, 2.0), 1e-6),
        ((80.0, 3.0), (60.0, 8.0), 1e-3),
        ((5000.0, None), (5100.0, 900.0), 1e-3),
    ],
)
def test_kl_equals_the_explicit_sum(p, q, rel):
    x = np.arange(int(peer_of(*p).ppf(1 - 1e-13)) + 50)
    log_p, log_q = peer_of(*p).logpmf(x), peer_of(*q).logpmf(x)
    exact = (np.exp(log_p) * (log_p - log_q)).sum()
    assert float(cell(*p).kl(cell(*q))) == pytest.approx(exact, rel=rel)
    assert float(cell(*p).kl(cell(*p))) == pytest.approx(0, abs=1e-12)


def test_kl_gradient_equals_that_of_the_explicit_sum():
    def parameters():
        return [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in (0.9, 0.3)]

    found, exact = parameters(), parameters()
    q = cell(4.5, 0.8)
    NegativeBinomial(*found).kl(q).backward()
    p, x = NegativeBinomial(*exact), torch.arange(300.0).double().unsqueeze(-1)
    (p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))).sum().backward()
    for mine, sums in zip(found, exact, strict=True):
        torch.testing.assert_close(mine.grad, sums.grad, rtol=1e-3, atol=0)


def simulated(n=20_000, mean=3.0, slope=0.5, size=4.0):
    """Counts whose log mean is linear in z."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    rate = mean * np.exp(slope * z)
    return z, rng.poisson(rng.gamma(size, rate / size)).astype(float)


@pytest.mark.parametrize(("mean", "slope"), [(0.1, 0.7), (3.0, 0.5), (500.0, 0.4)])
def test_linear_start_has_the_observed_mean_and_slope(mean, slope):
    z, values = simulated(mean=mean, slope=slope)
    block = COUNT.block([learned(values)], 1, "learned")
    feature = block.features(torch.tensor(values).float().unsqueeze(-1))[:, 0, 0].double().numpy()
    assert feature.mean() == pytest.approx(0, abs=1e-4)
    assert feature.std() == pytest.approx(1, abs=1e-4)
    loading = float(np.mean(feature * z))
    psi = 1 - loading**2
    bias, weight = block.linear_start(torch.zeros(1, 1, 1), torch.full((1, 1, 1, 1), loading))
    block.start_scale(torch.full((1, 1), math.sqrt(psi)))
    grid = torch.tensor(stats.norm.ppf((np.arange(2000) + 0.5) / 2000)).float()
    outputs = bias[0] + weight[0, 0] * grid[:, None, None]
    p = block(outputs.view(1, -1, 1, 1, 1, 1))
    expected = p.expected().flatten().detach().double().numpy()
    assert expected.mean() == pytest.approx(values.mean(), rel=0.01)
    for low, high in ((-2, -1), (-0.5, 0.5), (1, 2)):
        inside, there = (z > low) & (z < high), (grid.numpy() > low) & (grid.numpy() < high)
        truth = values[inside].mean()
        assert expected[there].mean() == pytest.approx(truth, rel=0.25, abs=0.25 * mean)
    within = expected + expected**2 / p.log_size.detach().exp().flatten().numpy()
    assert within.mean() + expected.var() == pytest.approx(values.var(), rel=0.4)


def test_scale_selects_the_source_of_the_size():
    column = learned([0, 1, 5, 9])
    assert COUNT.block([column], 2, "learned").size.shape == (2, 1, 1, 1, 1)
    for scale in ("network", "student"):
        block = COUNT.block([column], 2, scale)
        outputs = torch.zeros(2, 1, 1, 1, 1, 2)
        outputs[0, ..., 1] = 3.0
        log_size = block(outputs).log_size.flatten()
        assert float(log_size[0]) > float(log_size[1])
        assert list(block.parameters()) == []
    assert COUNT.block([column], 2, 0.5)(torch.zeros(2, 1, 1, 1, 1, 1)).log_size is None


def test_initial_size_matches_the_moments():
    _, values = simulated(mean=3.0, slope=0.0, size=2.0)
    block = COUNT.block([learned(values)], 1, "learned")
    size = block(torch.zeros(1, 1)).log_size.detach().exp()
    assert float(size) == pytest.approx(2.0, rel=0.1)


def test_error_is_in_standard_deviations_and_point_is_the_mean():
    _, values = simulated()
    block = COUNT.block([learned(values)], 1, "learned")
    x = torch.tensor(values).float().unsqueeze(-1)
    expected = block.statistics(x).mean(0)
    assert float(block.point(expected)) == pytest.approx(values.mean(), rel=1e-5)
    assert float(block.error(expected, x).mean()) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize("values", [[0], [0, 0, 0], [1], [7, 7], [0, 1_000_000], [10**9, 1]])
@pytest.mark.parametrize("scale", ["learned", "network", 0.5])
def test_extreme_counts_are_finite(values, scale):
    block = COUNT.block([learned(values)], 1, scale)
    outputs = torch.tensor([-1e4, -5.0, 0.0, 5.0, 1e4]).view(1, 5, 1, 1, 1, 1)
    outputs = outputs.repeat(1, 1, 1, 1, 1, block.n_outputs).requires_grad_()
    p = block(outputs)
    other = COUNT.block([learned(values)], 1, "network")(torch.zeros(1, 5, 1, 1, 1, 2))
    uniform = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0]).view(1, 5, 1, 1, 1)
    zero = torch.zeros(1, 5, 1, 1, 1)
    parts = [p.log_prob(zero), p.log_prob(zero + max(values)), p.expected(), other.kl(p)]
    parts += [p.sample(uniform), p.nodes().log_weight, block.features(zero), p.kl(other)]
    assert all(bool(part.isfinite().all()) for part in parts)
    assert float(p.sample(uniform).detach().min()) >= 0
    (p.log_prob(zero).sum() + other.kl(p).sum() + p.expected().log().sum()).backward()
    assert bool(outputs.grad.isfinite().all())
    for start in block.linear_start(torch.zeros(1, 1, 1), torch.ones(1, 2, 1, 1)):
        assert bool(start.isfinite().all())
