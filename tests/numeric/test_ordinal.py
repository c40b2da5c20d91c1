"""Ordered levels: the cumulative logit against scipy's logistic distribution."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from psmvae.kinds import KINDS, Column

ORDINAL = KINDS["ordinal"]


def learned(codes, n_levels=None):
    codes = np.asarray(codes, dtype=float)
    levels = tuple(range(int(codes.max()) + 1 if n_levels is None else n_levels))
    return ORDINAL.learn(codes, Column("o", "ordinal", "Int64", len(codes), levels=levels))


def with_shares(*shares):
    return Column("o", "ordinal", "Int64", 9, levels=tuple(range(len(shares))), shares=shares)


def thresholds(block):
    """θ of each column, in the parametrisation's own words: a first one and positive steps."""
    raw = block.threshold.detach().double()[0, 0, 0, 0]
    steps = torch.nn.functional.softplus(raw[..., 1:]) + 1e-4
    return torch.cat([raw[..., :1], steps], -1).cumsum(-1).numpy()


SHARES = [(0.1, 0.2, 0.4, 0.3), (0.5, 0.3, 0.2)]


def test_probabilities_equal_logistic_differences_and_sum_to_one():
    block = ORDINAL.block([with_shares(*shares) for shares in SHARES], 1, "learned").double()
    location = torch.linspace(-4, 4, 9, dtype=torch.float64)
    log_p = block(location.view(9, 1, 1).expand(9, 2, 1)).log_p.detach().reshape(9, 2, 4)
    for j, n_levels in enumerate((4, 3)):
        theta = thresholds(block)[j, : n_levels - 1]
        edges = np.concatenate([[-np.inf], theta, [np.inf]])
        exact = np.diff(stats.logistic.cdf(edges - location.numpy()[:, None]), axis=1)
        np.testing.assert_allclose(log_p[:, j, :n_levels].exp(), exact, rtol=1e-9)
    assert bool(log_p[:, 1, 3].isneginf().all())
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(9, 2, dtype=torch.float64))


@pytest.mark.parametrize("n_levels", [2, 5, 200])
def test_float32_is_finite_far_from_every_threshold(n_levels):
    block = ORDINAL.block([with_shares(*[1 / n_levels] * n_levels)], 1, "learned")
    outputs = torch.tensor([-1e4, -30.0, 0.0, 30.0, 1e4]).view(1, 5, 1, 1, 1, 1).requires_grad_()
    p = block(outputs)
    assert bool(p.log_p.isfinite().all())
    torch.testing.assert_close(p.log_p.exp().sum(-1), torch.ones(1, 5, 1, 1, 1))
    (p.log_p.sum() + p.kl(block(torch.zeros(1, 5, 1, 1, 1, 1))).sum()).backward()
    assert bool(outputs.grad.isfinite().all())
    assert bool(block.threshold.grad.isfinite().all())


def test_single_level_has_probability_one():
    block = ORDINAL.block([learned([0, 0, 0])], 3, "learned")
    p = block(torch.randn(3, 2, 1, 1, 1, 1))
    assert p.log_p.shape == (3, 2, 1, 1, 1, 1)
    assert bool((p.log_p == 0).all())
    assert bool((block.point(p.expected()) == 0).all())
    assert bool((block.features(torch.zeros(3, 2, 1)) == 0).all())
    bias, weight = block.linear_start(torch.zeros(3, 1, 1), torch.zeros(3, 2, 1, 1))
    assert bool(bias.isfinite().all())
    assert bool(weight.isfinite().all())


def test_initial_probabilities_are_the_observed_shares():
    block = ORDINAL.block([with_shares(*shares) for shares in SHARES], 2, "network")
    found = block(torch.zeros(2, 1, 1, 1, 2, 1)).expected().detach()
    for member in range(2):
        np.testing.assert_allclose(found[member, 0, 0, 0, 0], SHARES[0], atol=1e-5)
        np.testing.assert_allclose(found[member, 0, 0, 0, 1], (*SHARES[1], 0), atol=1e-5)


def test_unobserved_level_has_a_small_initial_probability():
    column = learned([0, 0, 0], n_levels=2)
    assert column.shares == (1.0, 0.0)
    p = ORDINAL.block([column], 1, 1.0)(torch.zeros(1, 1, 1, 1, 1, 1))
    assert 0 < float(p.log_p.detach().exp()[..., 1]) < 1e-4


def test_features_are_standardised_normal_scores():
    rng = np.random.default_rng(0)
    codes = rng.binomial(6, 0.2, 4000)
    block = ORDINAL.block([learned(codes)], 1, "learned")
    feature = block.features(torch.tensor(codes).float().unsqueeze(-1))[:, 0, 0].numpy()
    assert feature.mean() == pytest.approx(0, abs=1e-5)
    assert feature.std() == pytest.approx(1, abs=1e-5)
    ranks = (stats.rankdata(codes) - 0.5) / len(codes)
    assert np.corrcoef(feature, stats.norm.ppf(ranks))[0, 1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("slope", [0.5, 2.0, 5.0])
def test_linear_start_has_the_observed_shares_and_slope(slope):
    rng = np.random.default_rng(0)
    z = rng.normal(size=40_000)
    latent = slope * z + rng.logistic(size=z.size)
    codes = np.digitize(latent, np.quantile(latent, [0.15, 0.3, 0.6, 0.9]))
    block = ORDINAL.block([learned(codes)], 1, "learned")
    feature = block.features(torch.tensor(codes).float().unsqueeze(-1))[:, 0, 0].double().numpy()
    loading = float(np.mean(feature * z))
    bias, weight = block.linear_start(torch.zeros(1, 1, 1), torch.full((1, 1, 1, 1), loading))
    assert float(weight) == pytest.approx(slope, rel=0.35)
    grid = torch.tensor(stats.norm.ppf((np.arange(4000) + 0.5) / 4000)).float()
    outputs = (bias[0] + weight[0, 0] * grid[:, None, None]).view(1, -1, 1, 1, 1, 1)
    p = block(outputs).expected().detach()[0, :, 0, 0, 0].double().numpy()
    np.testing.assert_allclose(p.mean(0), np.bincount(codes) / codes.size, atol=0.002)
    for low, high in ((-2, -1), (-0.5, 0.5), (1, 2)):
        inside, there = (z > low) & (z < high), (grid.numpy() > low) & (grid.numpy() < high)
        found = (p[there] * np.arange(5)).sum(1).mean()
        assert found == pytest.approx(codes[inside].mean(), abs=0.25)


def test_linear_start_scales_the_mean_of_the_feature():
    block = ORDINAL.block([with_shares(*SHARES[0])], 1, "learned")
    bias, _ = block.linear_start(torch.full((1, 1, 1), 0.5), torch.zeros(1, 1, 1, 1))
    assert float(bias) == pytest.approx(0.5 * math.pi / math.sqrt(3))


def test_point_is_the_level_nearest_to_the_mean_code():
    block = ORDINAL.block([with_shares(*SHARES[0])], 1, "learned")
    # level 0 is the most probable, and the mean code 1.55 is nearest to level 2
    probability = torch.tensor([[[0.4, 0.0, 0.25, 0.35]]])
    assert block.point(probability).tolist() == [[2.0]]
    hot = block.statistics(torch.tensor([[0.0], [3.0]]))
    assert block.point(hot).tolist() == [[0.0], [3.0]]


def test_error_grows_with_the_distance_of_levels():
    rng = np.random.default_rng(0)
    codes = rng.binomial(6, 0.4, 4000)
    block = ORDINAL.block([learned(codes)], 1, "learned")
    x = torch.tensor(codes).float().unsqueeze(-1)
    marginal = block.statistics(x).mean(0)
    assert float(block.error(marginal, x).mean()) == pytest.approx(1, rel=1e-4)
    hot = block.statistics(torch.tensor([2.0]))
    near, far = (float(block.error(hot, torch.tensor([truth]))) for truth in (3.0, 5.0))
    assert far == pytest.approx(9 * near)


def test_draws_follow_the_probabilities():
    block = ORDINAL.block([with_shares(*SHARES[0])], 1, "learned")
    p = block(torch.full((1, 1, 1, 1, 1, 1), 0.8))
    uniform = torch.rand(1, 200_000, 1, 1, 1, generator=torch.Generator().manual_seed(0))
    drawn = p.sample(uniform).flatten().long().numpy()
    share = np.bincount(drawn, minlength=4) / drawn.size
    np.testing.assert_allclose(share, p.expected().detach().flatten(), atol=0.005)


def test_kl_equals_the_explicit_sum():
    block = ORDINAL.block([with_shares(*shares) for shares in SHARES], 1, "learned").double()
    p, q = (block(torch.full((1, 2, 1), v, dtype=torch.float64)) for v in (0.3, -1.2))
    for j, n_levels in ((0, 4), (1, 3)):
        log_p, log_q = (d.log_p.detach().reshape(2, 4)[j, :n_levels] for d in (p, q))
        exact = stats.entropy(log_p.exp(), log_q.exp())
        assert float(p.kl(q).detach().flatten()[j]) == pytest.approx(exact)
