"""Self-masking in one dimension, against numerical integration."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats
from torch.nn.functional import logsigmoid

from numeric.helpers import linear_gaussian
from psmvae.inference.posterior import Posterior
from psmvae.models.mask_likelihood import log_missing
from psmvae.nn.columns import Columns, Layout
from psmvae.nn.settings import LogisticMask

LOADING, PSI = 0.8, 0.36  # x ~ N(0.5, 1)
MEAN = 0.5


def model(weight, bias, ceiling, **options):
    built = linear_gaussian([[LOADING]], [MEAN], [PSI], mask=LogisticMask(**options))
    with torch.no_grad():
        built.p_m.weight.fill_(weight)
        built.p_m.bias.fill_(bias)
        built.p_m.ceiling_logits.fill_(math.log(ceiling / (1 - ceiling)))
    return built


def exact(weight, bias, ceiling):
    """E[x | missing], its standard deviation, and log p(missing)."""

    def moment(power):
        def integrand(x):
            missing = ceiling / (1 + math.exp(-(weight * x + bias)))
            return x**power * stats.norm.pdf(x, MEAN, 1.0) * missing

        return integrate.quad(integrand, -12, 12, limit=200)[0]

    mass = moment(0)
    mean = moment(1) / mass
    return mean, math.sqrt(moment(2) / mass - mean**2), math.log(mass)


CASES = [(3.0, -1.5, 0.9), (-2.0, 0.5, 0.6), (6.0, -6.0, 0.8)]


def noise_double(monkeypatch):
    original = torch.randn
    monkeypatch.setattr(
        torch, "randn", lambda *a, **k: original(*a, **{**k, "dtype": torch.float64})
    )


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_imputed_mean_and_bound_are_the_integrals(case, monkeypatch):
    noise_double(monkeypatch)
    posterior = Posterior(model(*case), 20_000, 0)
    missing = torch.zeros(1, 1).double()
    found = posterior.expected(missing, missing)
    mean, _, log_p = exact(*case)
    assert float(found) == pytest.approx(mean, abs=0.02)
    assert float(posterior.diagnostics(missing, missing)[0]) == pytest.approx(log_p, abs=0.02)


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_moments_of_the_tilted_density(case, monkeypatch):
    noise_double(monkeypatch)
    missing = torch.zeros(3000, 1).double()
    drawn = Posterior(model(*case), 100, 0).sample(missing, missing, 2).flatten().numpy()
    mean, deviation, _ = exact(*case)
    assert drawn.mean() == pytest.approx(mean, abs=0.06)
    assert drawn.std() == pytest.approx(deviation, abs=0.05)


@torch.no_grad()
@pytest.mark.parametrize("case", CASES)
def test_without_tilt_imputations_depend_on_the_mask_through_z_only(case, monkeypatch):
    noise_double(monkeypatch)
    weight, bias, ceiling = case
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    def p_missing(z):
        """p(missing | z) by quadrature over x."""
        x = MEAN + LOADING * z + math.sqrt(PSI) * nodes
        return (weights / weights.sum() * ceiling * special.expit(weight * x + bias)).sum()

    posterior = weights * np.array([p_missing(z) for z in nodes])
    posterior /= posterior.sum()
    center = MEAN + LOADING * nodes
    mean = (posterior * center).sum()
    deviation = math.sqrt((posterior * (center - mean) ** 2).sum() + PSI)
    built = model(*case, tilt=False)
    missing = torch.zeros(3000, 1).double()
    found = Posterior(built, 20_000, 0).expected(missing[:1], missing[:1])
    assert float(found) == pytest.approx(mean, abs=0.02)
    assert abs(mean - exact(*case)[0]) > 0.05
    drawn = Posterior(built, 100, 0).sample(missing, missing, 2).flatten().numpy()
    assert drawn.mean() == pytest.approx(mean, abs=0.06)
    assert drawn.std() == pytest.approx(deviation, abs=0.05)


@torch.no_grad()
def test_mask_with_weight_zero_does_not_change_the_mean(monkeypatch):
    noise_double(monkeypatch)
    missing = torch.zeros(1, 1).double()
    found = Posterior(model(0.0, -0.7, 0.8), 20_000, 0).expected(missing, missing)
    assert float(found) == pytest.approx(MEAN, abs=0.02)


def test_quadrature_of_p_missing_is_the_integral():
    built = model(6.0, -6.0, 0.8)
    z = torch.tensor([0.3]).double().reshape(1, 1, 1, 1, 1)
    _, p_x_mis = built.p_x(z, None, both=True)
    found = p_x_mis.log_expectation(log_missing(built.p_m, z))
    center, scale = MEAN + LOADING * 0.3, math.sqrt(PSI)
    expected, _ = integrate.quad(
        lambda x: stats.norm.pdf(x, center, scale) * 0.8 / (1 + math.exp(-(6 * x - 6))), -10, 10
    )
    assert float(found.detach()) == pytest.approx(math.log(expected), abs=2e-3)


def test_probabilities_of_missing_and_observed_sum_to_one_for_extreme_values():
    built = model(6.0, -6.0, 0.8)
    x = torch.tensor([-50.0, -1.0, 0.0, 1.0, 50.0]).double().reshape(1, 1, 1, 1, 1, 5)
    missing, observed = built.p_m(x, torch.zeros(1, 1, 1, 1, 1), slice(0, 1))
    torch.testing.assert_close(missing.exp() + observed.exp(), torch.ones_like(missing))
    assert bool(missing.isfinite().all())
    assert bool(observed.isfinite().all())


def test_without_ceiling_the_mask_is_logistic():
    built = linear_gaussian([[LOADING]], [MEAN], [PSI], mask=LogisticMask(ceiling=False))
    x = torch.tensor([2.0]).double().reshape(1, 1, 1, 1, 1, 1)
    missing, _ = built.p_m(x, torch.zeros(1, 1, 1, 1, 1), slice(0, 1))
    score = built.p_m.weight.flatten()[0] * 2.0 + built.p_m.bias.flatten()[0]
    torch.testing.assert_close(missing.flatten()[0], logsigmoid(score))


def test_columns_not_named_have_a_constant_missing_rate():
    built = linear_gaussian(
        [[0.5], [0.5]], [0.0, 0.0], [0.5, 0.5], mask=LogisticMask(columns=["x1"])
    )
    with torch.no_grad():
        built.p_m.weight.fill_(2.0)
    x = torch.tensor([[0.0, 3.0], [0.0, 3.0]]).double().reshape(1, 1, 1, 1, 2, 2)
    missing, _ = built.p_m(x, torch.zeros(1, 1, 1, 1, 1), slice(0, 2))
    first, second = missing[0, 0, 0, 0]
    assert float(first[0].detach()) == float(first[1].detach())
    assert float(second[0].detach()) < float(second[1].detach())


def test_tilted_categories_follow_bayes_rule():
    """p(c | missing) ∝ p(c) p(missing | c) for a categorical column."""
    from psmvae.kinds import Column

    columns = Columns(
        Layout.of([Column("c", "categorical", "String", 9, levels=("a", "b", "c"))]), 1, 1.0
    )
    p = torch.tensor([0.5, 0.3, 0.2]).double()
    tilt = torch.tensor([0.1, 0.4, 0.9]).double()
    cells = columns(p.log().reshape(1, 1, 1, 1, 3))

    def log_tilt(x, at):
        return tilt[x.long()].log()

    expected = p * tilt / (p * tilt).sum()
    torch.testing.assert_close(cells.tilted(log_tilt).flatten(), expected)
    uniform = torch.rand(20_000, 1, 1, 1, 1, generator=torch.Generator().manual_seed(0)).double()
    drawn = columns(p.log().expand(20_000, 1, 1, 1, 3)).tilted_sample(log_tilt, uniform)
    share = np.bincount(drawn.flatten().long().numpy(), minlength=3) / 20_000
    np.testing.assert_allclose(share, expected.numpy(), atol=0.012)
