"""The optimiser is PyTorch's, to the bit, without what loads PyTorch's compiler."""

import torch
from torch import nn

from psmvae.training.adam import Adam
from psmvae.training.weights import Weights


def test_it_is_torchs_adam_to_the_bit():
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
    ours.grad = None
    one.step()
    assert bool((ours == theirs).all())


def test_a_fit_does_not_load_the_compiler(python):
    code = (
        "import sys, numpy as np, psmvae\n"
        "table = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 5.0], [4.0, 9.0]])\n"
        "psmvae.GAINImputer(max_epochs=2, device='cpu').fit_transform(table)\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert python(code) == "False\n"


def test_only_some_parameters_ask_for_gradients():
    model = nn.Module()
    model.one = nn.Parameter(torch.ones(2, 3))
    model.two = nn.Parameter(torch.ones(2, 4))
    weights = Weights(model.parameters(), decay=0.0)
    with weights.only([model.two]) as columns:
        assert columns.tolist() == [0, 0, 0, 1, 1, 1, 1]
        (model.one.sum() * model.two.sum()).backward()
        assert model.one.grad is None
        weights.take_gradients(100.0, columns)
    assert weights.now.grad.tolist() == [[0.0] * 3 + [6.0] * 4] * 2
    assert model.one.requires_grad
    assert model.two.requires_grad
