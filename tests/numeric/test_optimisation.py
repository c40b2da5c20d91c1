"""One optimisation step: Adam, clipping and averaging of the flat weights."""

import pytest
import torch
from torch import nn

from psmvae.training.adam import Adam
from psmvae.training.weights import Weights


def test_adam_equals_torch_adam_bit_for_bit():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 50, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    one, other = Adam(ours, 3e-2), torch.optim.Adam([theirs], lr=3e-2, fused=True)
    for _ in range(50):
        ours.grad = torch.randn(3, 50, generator=generator)
        theirs.grad = ours.grad.clone()
        one.step()
        other.step()
    assert bool((ours == theirs).all())


def test_adam_without_a_gradient_does_nothing():
    weights = nn.Parameter(torch.ones(2, 3))
    Adam(weights, 3e-2).step()
    assert bool((weights == 1).all())


def test_a_fit_does_not_import_the_compiler_of_torch(python):
    code = (
        "import sys, numpy as np, psmvae\n"
        "table = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [4.0, 9.0]])\n"
        "psmvae.GAINImputer(max_epochs=2, device='cpu').fit_transform(table)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert python(code) == "False\n"


@pytest.fixture
def module():
    """Two parameters of three members."""
    module = nn.Module()
    module.one = nn.Parameter(torch.zeros(3, 4))
    module.two = nn.Parameter(torch.ones(3, 2, 1))
    return module


def test_gradients_are_clipped_for_each_member(module):
    weights = Weights(module.parameters(), decay=0.9)
    module.one.grad = torch.tensor([[1.0], [1000.0], [torch.nan]]).expand(3, 4)
    weights.collect_gradients()
    weights.clip_gradients(max_norm=10.0)
    gradient = weights.flat.grad
    torch.testing.assert_close(gradient[0, :4], torch.ones(4))
    assert float(gradient[1].norm()) == pytest.approx(10.0, rel=1e-4)
    assert float(gradient[2].abs().sum()) == 0.0


def test_gradients_can_be_limited_to_some_parameters(module):
    weights = Weights(module.parameters(), decay=0.9)
    module.one.grad, module.two.grad = torch.ones(3, 4), torch.ones(3, 2, 1)
    weights.collect_gradients(weights.positions([module.two]))
    assert weights.flat.grad.tolist() == [[0.0] * 4 + [1.0] * 2] * 3


def test_only_the_chosen_parameters_require_gradients(module):
    weights = Weights(module.parameters(), decay=0.0)
    with weights.only([module.two]) as positions:
        assert positions.tolist() == [0, 0, 0, 0, 1, 1]
        (module.one.sum() + module.two.sum()).backward()
        assert module.one.grad is None
        assert module.two.grad is not None
    assert module.one.requires_grad
    assert module.two.requires_grad


def test_parameters_are_views_of_the_flat_weights_until_they_are_released(module):
    weights = Weights(module.parameters(), decay=0.9)
    with torch.no_grad():
        weights.flat.fill_(5.0)
    assert bool((module.one == 5).all())
    assert bool((module.two == 5).all())
    weights.release()
    with torch.no_grad():
        weights.flat.fill_(6.0)
    assert bool((module.one == 5).all())


def test_the_average_converges_to_constant_weights(module):
    weights = Weights(module.parameters(), decay=0.9)
    with torch.no_grad():
        module.one.fill_(3.0)
    for _ in range(400):
        weights.update_average()
    with torch.no_grad():
        module.one.fill_(7.0)
    with weights.averaged():
        torch.testing.assert_close(module.one.detach(), torch.full((3, 4), 3.0), rtol=1e-3, atol=0)
    assert bool((module.one == 7).all())


def test_the_best_weights_are_kept_for_each_member(module):
    weights = Weights(module.parameters(), decay=0.0)
    weights.keep_best(torch.tensor([True, True, True]))
    with torch.no_grad():
        module.one.fill_(7.0)
    weights.keep_best(torch.tensor([False, True, False]))
    weights.restore(best=True)
    assert module.one[:, 0].tolist() == [0.0, 7.0, 0.0]
