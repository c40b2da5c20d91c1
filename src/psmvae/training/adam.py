"""Adam for one matrix of weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.adam import adam


class Adam:
    """PyTorch's Adam by its function: what `torch.optim.Adam` does with ``fused=True``, to the bit.

    The class would load PyTorch's compiler when the first one is made in a process, which takes
    longer than the fit of a small table.

    Parameters
    ----------
    weights : Parameter
        Moved in place by their gradient.
    learning_rate : float or Tensor
        Of each step. Where steps are captured in a graph, only a tensor can change between them.

    Examples
    --------
    >>> weights = nn.Parameter(torch.tensor([1.0, -1.0]))
    >>> optimiser = Adam(weights, learning_rate=0.1)
    >>> weights.grad = torch.tensor([5.0, -0.2])
    >>> optimiser.step()
    >>> weights.detach()
    tensor([ 0.9000, -0.9000])
    """

    def __init__(self, weights: nn.Parameter, learning_rate: float | Tensor) -> None:
        self.weights, self.learning_rate = weights, learning_rate
        self.mean = torch.zeros_like(weights.detach())
        self.square = torch.zeros_like(weights.detach())
        self.n_steps = torch.zeros((), device=weights.device)

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights; without a gradient they stay."""
        if self.weights.grad is None:
            return
        adam(
            [self.weights],
            [self.weights.grad],
            [self.mean],
            [self.square],
            [],
            [self.n_steps],
            fused=True,
            capturable=self.weights.is_cuda,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )
