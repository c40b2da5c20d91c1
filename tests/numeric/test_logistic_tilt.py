"""The quick integral of a normal number against a sigmoid."""

import math

import pytest
import torch
from scipy import integrate, special, stats

from numeric.helpers import make
from numeric.test_columns import encoded
from psmvae.kinds import Column
from psmvae.kinds.numeric import Normal
from psmvae.kinds.positive import LogNormal
from psmvae.nn.mask import SelfMask


def normal(mean, scale, dtype=torch.float64):
    return Normal(torch.tensor([mean], dtype=dtype), math.log(scale))


def numbers(slope, offset, dtype=torch.float64):
    return torch.tensor([slope], dtype=dtype), torch.tensor([offset], dtype=dtype)


@pytest.mark.parametrize("slope", [-2.0, 0.0, 0.7, 3.0])
@pytest.mark.parametrize("offset", [-9.0, -1.0, 4.0])
def test_it_is_the_integral(slope, offset):
    mean, scale = 0.4, 0.6

    def moment(power):
        return integrate.quad(
            lambda x: x**power * stats.norm.pdf(x, mean, scale) * special.expit(slope * x + offset),
            -8,
            8,
            epsabs=1e-14,
        )[0]

    told = numbers(slope, offset)
    found = float(normal(mean, scale).log_mean_sigmoid(*told))
    assert found == pytest.approx(math.log(moment(0)), abs=1e-4)
    tilted = float(normal(mean, scale).expected_by_sigmoid(*told))
    assert tilted == pytest.approx(moment(1) / moment(0), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("slope", [-3.0, 0.0, 2.0])
def test_far_below_zero_a_sigmoid_is_an_exponential(slope, dtype):
    """There E[exp(a x + b)] = exp(a μ + b + ½ a²σ²), and the tilted mean is μ + a σ²."""
    mean, scale, offset = 0.4, 0.6, -500.0
    told = numbers(slope, offset, dtype)
    exact = slope * mean + offset + 0.5 * (slope * scale) ** 2
    assert float(normal(mean, scale, dtype).log_mean_sigmoid(*told)) == pytest.approx(exact)
    tilted = float(normal(mean, scale, dtype).expected_by_sigmoid(*told))
    assert tilted == pytest.approx(mean + slope * scale**2, rel=1e-5)


@pytest.mark.parametrize("offset", [-80.0, -41.0, -39.0, -5.0, 60.0])
def test_float32_says_what_float64_says(offset):
    says = [
        [float(part.log_mean_sigmoid(*told)), float(part.expected_by_sigmoid(*told))]
        for dtype in (torch.float32, torch.float64)
        for part, told in [(normal(-0.3, 1.2, dtype), numbers(1.5, offset, dtype))]
    ]
    assert says[0] == pytest.approx(says[1], rel=1e-5, abs=1e-6)


OPTIONS = [{}, {"ceiling": False}, {"sign": "low"}, {"columns": ["x1", "x4"]}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
def test_all_kinds_of_columns_say_what_they_say_node_by_node(scale, options):
    layout, _, _ = encoded()
    built = make(layout.columns, mask=SelfMask(**options), scale=scale)
    torch.manual_seed(0)
    with torch.no_grad():
        built.p_m.weight.normal_(0, 1.5)
        built.p_m.bias.normal_()
    z = torch.randn(2, 5, 4, 3, 2, dtype=torch.float64)
    _, p_x_mis = built.p_x(z, None, both=True)
    tilt, quick = built._log_missing(z), built.p_m.logistics
    for ask in (p_x_mis.log_expectation, p_x_mis.tilted):
        torch.testing.assert_close(ask(tilt, quick), ask(tilt), rtol=1e-9, atol=1e-9)


def test_gradients_are_the_same():
    built = make([Column("x", "real", "Float64", 10)], mask=SelfMask(), n_members=1)
    z = torch.randn(1, 5, 4, 3, 2, dtype=torch.float64)
    tilt, quick = built._log_missing(z), built.p_m.logistics
    for far in (0.0, -100.0):
        with torch.no_grad():
            built.p_m.bias.fill_(far)
        found = []
        for how in (None, quick):
            built.zero_grad()
            _, p_x_mis = built.p_x(z, None, both=True)
            (p_x_mis.log_expectation(tilt, how).sum() + p_x_mis.tilted(tilt, how).sum()).backward()
            found.append([p.grad.clone() for p in built.parameters() if p.grad is not None])
        torch.testing.assert_close(found[0], found[1], rtol=1e-7, atol=1e-9)


def test_a_wide_log_normal_that_nothing_tilts_keeps_its_mean():
    width = torch.tensor([6.0], dtype=torch.float64)
    mean = torch.zeros(1, dtype=torch.float64)
    part = LogNormal(mean, 0.0, width, torch.tensor([False]))
    slope, offset = numbers(0.0, -1.0)
    assert float(part.expected_by_sigmoid(slope, offset)) == pytest.approx(math.exp(18.0))
