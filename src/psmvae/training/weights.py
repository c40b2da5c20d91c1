"""All trained numbers of a model side by side: one matrix to clip, to step and to average."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Weights:
    """The weights of a model as one matrix ``(member, number)``, of which its parameters are views.

    What is done to all weights alike (clipping, Adam, running means) is then one operation and not
    one for each of some forty parameters, which would take longer than the networks do.

    Parameters
    ----------
    parameters : iterable of Parameter
        What is trained; their first axis is the members. Those that need no gradient are left out.
    decay : float
        Of the running mean of the weights; 0 keeps none, and the mean is the weights themselves.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.decay = decay
        parts = [p.detach().flatten(1) for p in self.parameters]
        self.ends = torch.tensor([part.shape[1] for part in parts]).cumsum(0).tolist()
        self.now = nn.Parameter(torch.cat(parts, 1))
        self.nothing = torch.zeros_like(self.now[:1, :1]).detach()
        start = 0
        for p, end in zip(self.parameters, self.ends, strict=True):
            p.data = self.now.detach()[:, start:end].view(p.shape)
            start = end
        self.mean = self.now.detach().clone() if decay > 0 else self.now.detach()
        self.best = self.now.detach().clone()
        self.steps = torch.zeros((), device=self.now.device)

    def columns(self, parameters: list[nn.Parameter]) -> Tensor:
        """1 for the numbers of some parameters, 0 for the others, ``(number,)``."""
        chosen = {id(p) for p in parameters}
        starts = [0, *self.ends[:-1]]
        mask = torch.zeros(self.now.shape[1], device=self.now.device)
        for p, start, end in zip(self.parameters, starts, self.ends, strict=True):
            if id(p) in chosen:
                mask[start:end] = 1.0
        return mask

    @contextmanager
    def only(self, parameters: list[nn.Parameter]) -> Iterator[Tensor]:
        """Ask for the gradients of some parameters alone; gives their `columns`.

        What is not trained needs no backward pass, which is most of a step.
        """
        chosen = {id(p) for p in parameters}
        for p in self.parameters:
            p.requires_grad_(id(p) in chosen)
        try:
            yield self.columns(parameters)
        finally:
            for p in self.parameters:
                p.requires_grad_(True)

    @torch.no_grad()
    def take_gradients(self, limit: float, columns: Tensor | None = None) -> None:
        """Collect the gradients, each member's scaled to a norm of at most ``limit``.

        A member whose gradient is not finite takes no step, and members stay independent.
        """
        parts = [
            torch.zeros_like(p).flatten(1) if p.grad is None else p.grad.flatten(1)
            for p in self.parameters
        ]
        grad = torch.cat(parts, 1)
        if columns is not None:
            grad = grad * columns
        self.now.grad = self._cut(grad, limit)
        for p in self.parameters:
            p.grad = None

    def gradients(self) -> list[Tensor]:
        """Tensors shaped as the parameters to write gradients into, for `cut_gradients`."""
        self.now.grad = torch.zeros_like(self.now)
        parts = self.now.grad.tensor_split(self.ends[:-1], dim=1)
        return [part.view(p.shape) for part, p in zip(parts, self.parameters, strict=True)]

    @torch.no_grad()
    def cut_gradients(self, limit: float) -> None:
        """Scale what was written into `gradients` as `take_gradients` does."""
        grad = self.now.grad
        if grad is not None and (cut := self._cut(grad, limit)) is not grad:
            grad.copy_(cut)

    def _cut(self, grad: Tensor, limit: float) -> Tensor:
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        # most steps need no cut; a GPU is not asked, since it would have to be waited for
        if grad.is_cuda or not bool((norm <= limit).all()):
            factor = limit / norm.clamp(min=limit)
            return torch.where(norm < torch.inf, grad * factor, self.nothing)
        return grad

    @torch.no_grad()
    def shrink(self, share: Tensor | float) -> None:
        """Draw all weights to 0 by a share of themselves."""
        self.now.mul_(1 - share)

    @torch.no_grad()
    def update_mean(self) -> None:
        """Move the mean towards the weights; faster in the first steps."""
        if self.decay > 0:
            self.steps += 1
            decay = (self.steps / (self.steps + 10)).clamp(max=self.decay)
            self.mean.lerp_(self.now.detach(), 1 - decay)

    @torch.no_grad()
    def keep(self, better: Tensor) -> None:
        """Remember the mean of the members that got better."""
        self.best.copy_(torch.where(better.unsqueeze(1), self.mean, self.best))

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their mean."""
        if self.decay > 0:
            kept = self.now.detach().clone()
            self.now.copy_(self.mean)
            self.mean.copy_(kept)

    @torch.no_grad()
    def restore(self, *, best: bool) -> None:
        """Put the best, or the mean, into the model."""
        self.now.copy_(self.best if best else self.mean)

    def release(self) -> None:
        """Give each parameter memory of its own again."""
        for p in self.parameters:
            p.data = p.data.clone()
