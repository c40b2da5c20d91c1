"""The optimiser is PyTorch's, to the bit, without what loads PyTorch's compiler."""

import torch
from torch import nn

from psmvae.training.adam import Adam


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
