"""The kinds' formulas against integrals, sums and torch.distributions."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from psmvae.kinds import KINDS, Column
from psmvae.kinds.levels import Categorical, CategoricalBlock
from psmvae.kinds.numeric import Normal, NormalBlock
from psmvae.kinds.tools import MIN_LOG_SCALE


def normal(mean, scale):
    return Normal(
        torch.tensor([mean], dtype=torch.float64),
        torch.tensor([math.log(scale)], dtype=torch.float64),
    )


@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (-2.0, 0.05), (3.0, 4.0)])
def test_normal_likelihood_integrates_to_one(mean, scale):
    p = normal(mean, scale)
    total, _ = integrate.quad(
        lambda x: math.exp(float(p.log_prob(torch.tensor([x], dtype=torch.float64)))),
        mean - 12 * scale,
        mean + 12 * scale,
        points=[mean],
    )
    assert total == pytest.approx(1, abs=1e-8)


def test_normal_kl_and_log_prob_equal_torch_distributions():
    p, q = normal(0.3, 0.7), normal(-1.0, 1.9)
    peer_p = torch.distributions.Normal(p.mean, p.log_scale.exp())
    peer_q = torch.distributions.Normal(q.mean, q.log_scale.exp())
    x = torch.tensor([0.9], dtype=torch.float64)
    torch.testing.assert_close(p.log_prob(x), peer_p.log_prob(x))
    torch.testing.assert_close(p.kl(q), torch.distributions.kl_divergence(peer_p, peer_q))


def test_normal_nodes_integrate_polynomials_exactly():
    p = normal(0.5, 2.0)
    nodes = p.nodes()
    weight = nodes.log_weight.exp()
    for power in range(7):
        expected = stats.norm(0.5, 2.0).moment(power) if power else 1.0
        assert float((weight * nodes.x**power).sum()) == pytest.approx(expected, rel=1e-10)


def test_normal_draws_follow_the_distribution():
    uniform = torch.rand(200_000, 1, generator=torch.Generator().manual_seed(0))
    x = Normal(torch.tensor([1.0]), torch.tensor([math.log(0.5)])).sample(uniform)
    assert stats.kstest(x[:, 0].numpy()[:5000], stats.norm(1.0, 0.5).cdf).pvalue > 0.01


def test_learned_scale_has_its_initial_value_and_a_floor():
    block = NormalBlock(3, n_members=1, scale="learned")
    block.start_scale(torch.tensor([[0.5, 2.0, 1e-9]]))
    scale = block(torch.zeros(1, 1, 1, 1, 3, 1)).log_scale.detach().exp().flatten()
    torch.testing.assert_close(scale[:2], torch.tensor([0.5, 2.0]))
    assert float(scale[2]) == pytest.approx(math.exp(MIN_LOG_SCALE), rel=1e-2)


def test_fixed_scale_is_exact():
    block = NormalBlock(1, n_members=1, scale=0.5)
    assert float(block(torch.zeros(1, 1)).scale) == pytest.approx(0.5)


def categorical(n_levels=(3, 2)):
    block = CategoricalBlock(n_levels)
    outputs = torch.randn(5, len(n_levels), 3, generator=torch.Generator().manual_seed(1)).double()
    return block, block(outputs), outputs


def test_categorical_likelihood_sums_to_one_without_padding():
    _, p, _ = categorical()
    first = sum(p.log_prob(torch.tensor([float(c), 0.0]))[:, 0].exp() for c in range(3))
    second = sum(p.log_prob(torch.tensor([0.0, float(c)]))[:, 1].exp() for c in range(2))
    torch.testing.assert_close(first, torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(second, torch.ones(5, dtype=torch.float64))


def test_categorical_kl_equals_torch_distributions_with_padding():
    block, p, outputs = categorical()
    q = block(-outputs)
    for column, n in ((0, 3), (1, 2)):
        peer = torch.distributions.kl_divergence(
            torch.distributions.Categorical(logits=outputs[:, column, :n]),
            torch.distributions.Categorical(logits=-outputs[:, column, :n]),
        )
        torch.testing.assert_close(p.kl(q)[:, column], peer)


def test_categorical_gradient_is_finite_with_padding():
    block = CategoricalBlock((3, 2))
    outputs = torch.randn(4, 2, 3, requires_grad=True)
    other = torch.randn(4, 2, 3)
    block(outputs).kl(block(other)).sum().backward()
    assert bool(outputs.grad.isfinite().all())


def test_categorical_draws_follow_the_probabilities():
    p = Categorical(torch.log(torch.tensor([[0.2, 0.8, 0.0]])))
    uniform = torch.rand(20_000, 1, generator=torch.Generator().manual_seed(0))
    uniform[0] = 1.0 - 1e-9
    x = p.sample(uniform)
    assert float((x == 1).float().mean()) == pytest.approx(0.8, abs=0.01)
    assert float(x.max()) == 1.0


def test_categorical_point_is_the_most_probable_level():
    block, p, outputs = categorical()
    assert block.point(p.expected())[:, 0].tolist() == outputs[:, 0].argmax(-1).tolist()


def test_standardisation_matches_numpy_and_inverts():
    values = np.random.default_rng(0).normal(5.0, 3.0, 100)
    center, scale = KINDS["real"].summarise(values)
    assert (center, scale) == (pytest.approx(values.mean()), pytest.approx(values.std()))
    column = Column("x", "real", "Float64", 100, center, scale)
    x = KINDS["real"].standardise(values, column)
    np.testing.assert_allclose(KINDS["real"].restore(x, column), values)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e300])
def test_standardisation_at_extreme_scales(size):
    values = size * np.array([1.0, 2.0, 3.0, 4.0])
    center, scale = KINDS["real"].summarise(values)
    assert center == pytest.approx(2.5 * size)
    assert scale == pytest.approx(size * math.sqrt(1.25))


def test_scale_of_a_constant_column():
    assert KINDS["real"].summarise(np.full(7, 1e-12)) == (1e-12, 1e-12)
    assert KINDS["real"].summarise(np.full(7, 5.0)) == (5.0, 1.0)
    assert KINDS["real"].summarise(np.zeros(7)) == (0.0, 1.0)


def test_restore_rounds_integers():
    column = Column("n", "integer", "Int64", 3, center=2.0, scale=2.0)
    assert KINDS["integer"].restore(np.array([0.2, 0.3, -0.9]), column).tolist() == [2, 3, 0]
