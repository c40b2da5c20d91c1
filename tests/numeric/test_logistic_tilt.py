"""The expectation of a sigmoid under a normal distribution, by formula and by quadrature."""

import math

import pytest
import torch
from scipy import integrate, special, stats

from numeric.helpers import make
from numeric.test_columns import encoded
from psmvae.kinds import Column
from psmvae.kinds.numeric import Normal
from psmvae.kinds.positive import LogNormal
from psmvae.models.mask_likelihood import log_missing
from psmvae.nn.settings import LogisticMask


def normal(mean, scale, dtype=torch.float64):
    return Normal(torch.tensor([mean], dtype=dtype), math.log(scale))


def numbers(slope, offset, dtype=torch.float64):
    return torch.tensor([slope], dtype=dtype), torch.tensor([offset], dtype=dtype)


@pytest.mark.parametrize("slope", [-2.0, 0.0, 0.7, 3.0])
@pytest.mark.parametrize("offset", [-9.0, -1.0, 4.0])
def test_expectation_and_tilted_mean_are_the_integrals(slope, offset):
    mean, scale = 0.4, 0.6

    def moment(power):
        return integrate.quad(
            lambda x: x**power * stats.norm.pdf(x, mean, scale) * special.expit(slope * x + offset),
            -8,
            8,
            epsabs=1e-14,
        )[0]

    sigmoid = numbers(slope, offset)
    found = float(normal(mean, scale).log_mean_sigmoid(*sigmoid))
    assert found == pytest.approx(math.log(moment(0)), abs=1e-4)
    tilted = float(normal(mean, scale).expected_by_sigmoid(*sigmoid))
    assert tilted == pytest.approx(moment(1) / moment(0), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("slope", [-3.0, 0.0, 2.0])
def test_far_below_zero_the_sigmoid_is_an_exponential(slope, dtype):
    """There E[exp(a x + b)] = exp(a μ + b + ½ a²σ²), and the tilted mean is μ + a σ²."""
    mean, scale, offset = 0.4, 0.6, -500.0
    sigmoid = numbers(slope, offset, dtype)
    exact = slope * mean + offset + 0.5 * (slope * scale) ** 2
    assert float(normal(mean, scale, dtype).log_mean_sigmoid(*sigmoid)) == pytest.approx(exact)
    tilted = float(normal(mean, scale, dtype).expected_by_sigmoid(*sigmoid))
    assert tilted == pytest.approx(mean + slope * scale**2, rel=1e-5)


@pytest.mark.parametrize("offset", [-80.0, -41.0, -39.0, -5.0, 60.0])
def test_float32_agrees_with_float64(offset):
    found = [
        [float(part.log_mean_sigmoid(*sigmoid)), float(part.expected_by_sigmoid(*sigmoid))]
        for dtype in (torch.float32, torch.float64)
        for part, sigmoid in [(normal(-0.3, 1.2, dtype), numbers(1.5, offset, dtype))]
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5, abs=1e-6)


OPTIONS = [{}, {"ceiling": False}, {"sign": "low"}, {"columns": ["x1", "x4"]}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
def test_formula_agrees_with_quadrature_for_all_kinds_of_columns(scale, options):
    layout, _, _ = encoded()
    built = make(layout.columns, mask=LogisticMask(**options), scale=scale)
    torch.manual_seed(0)
    with torch.no_grad():
        built.p_m.weight.normal_(0, 1.5)
        built.p_m.bias.normal_()
    z = torch.randn(2, 5, 4, 3, 2, dtype=torch.float64)
    _, p_x_mis = built.p_x(z, None, both=True)
    tilt, formula = log_missing(built.p_m, z), built.p_m.logistics
    for expectation in (p_x_mis.log_expectation, p_x_mis.tilted):
        torch.testing.assert_close(
            expectation(tilt, formula), expectation(tilt), rtol=1e-9, atol=1e-9
        )


def test_gradients_of_formula_and_quadrature_agree():
    built = make([Column("x", "real", "Float64", 10)], mask=LogisticMask(), n_members=1)
    z = torch.randn(1, 5, 4, 3, 2, dtype=torch.float64)
    tilt, formula = log_missing(built.p_m, z), built.p_m.logistics
    for far in (0.0, -100.0):
        with torch.no_grad():
            built.p_m.bias.fill_(far)
        found = []
        for logistics in (None, formula):
            built.zero_grad()
            _, p_x_mis = built.p_x(z, None, both=True)
            (
                p_x_mis.log_expectation(tilt, logistics).sum()
                + p_x_mis.tilted(tilt, logistics).sum()
            ).backward()
            found.append([p.grad.clone() for p in built.parameters() if p.grad is not None])
        torch.testing.assert_close(found[0], found[1], rtol=1e-7, atol=1e-9)


def test_wide_log_normal_keeps_its_mean_under_a_constant_tilt():
    width = torch.tensor([6.0], dtype=torch.float64)
    mean = torch.zeros(1, dtype=torch.float64)
    part = LogNormal(mean, 0.0, width, torch.tensor([False]))
    slope, offset = numbers(0.0, -1.0)
    assert float(part.expected_by_sigmoid(slope, offset)) == pytest.approx(math.exp(18.0))
