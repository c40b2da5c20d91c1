"""Data-parallel training: each process computes the gradient of a part of every batch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from psmvae.nn.noise import Noise


class Shard:
    """The part of each training batch that this process computes; here the whole batch.

    All processes hold the whole training table and the same weights. They draw the same noise and
    shuffle rows alike, so that a training differs from that of one process in the rounding of
    gradients only.
    """

    rank, size = 0, 1

    def rows(self, rows: Tensor) -> Tensor:
        """Return this process's part of the rows of a batch, ``(member, row)``."""
        return rows

    def noise(self, noise: Noise, n_rows: int) -> Noise:
        """Return the noise of this process's part of a batch of ``n_rows`` rows."""
        del n_rows
        return noise

    def average(self, gradient: Tensor, n_rows: int) -> None:
        """Average the gradients of all processes for a batch of ``n_rows`` rows, in place."""

    def agree(self, value: float) -> float:
        """Return the value of the first process, such as its clock."""
        return value

    def agree_on(self, values: Tensor) -> Tensor:
        """Return the tensor of the first process."""
        return values

    def synchronise(self, tensors: Iterable[Tensor]) -> None:
        """Copy the tensors of the first process to the others, in place."""


class ProcessShard(Shard):
    """The part of one process of the default group of `torch.distributed`.

    Parameters
    ----------
    device : torch.device or str
        Where the tensors to be exchanged are: the CPU with gloo, a GPU with NCCL.
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        from torch import distributed

        self.device = torch.device(device)
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def part(self, n_rows: int) -> slice:
        """Return the positions of this process's rows in a batch; parts differ by a row at most."""
        if n_rows < self.size:
            raise ValueError(
                f"{self.size} workers cannot share batches of {n_rows} rows; use fewer workers, "
                "or a larger batch_size."
            )
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    def rows(self, rows: Tensor) -> Tensor:
        """Return this process's part of the rows of a batch, ``(member, row)``."""
        return rows[:, self.part(rows.shape[1])]

    def noise(self, noise: Noise, n_rows: int) -> Noise:
        """Return the noise of this process's part of a batch of ``n_rows`` rows."""
        return RowNoise(noise, n_rows, self.part(n_rows))

    def average(self, gradient: Tensor, n_rows: int) -> None:
        """Average the gradients of all processes for a batch of ``n_rows`` rows, in place."""
        from torch import distributed

        part = self.part(n_rows)
        # the gradient of a mean of rows: parts may differ in size
        gradient.mul_((part.stop - part.start) / n_rows)
        distributed.all_reduce(gradient)

    def agree(self, value: float) -> float:
        """Return the value of the first process, such as its clock."""
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        return float(self.agree_on(shared))

    def agree_on(self, values: Tensor) -> Tensor:
        """Return the tensor of the first process."""
        from torch import distributed

        # not every backend sends booleans
        kind = torch.uint8 if values.dtype == torch.bool else values.dtype
        shared = values.detach().to(kind, copy=True).contiguous()
        distributed.broadcast(shared, 0)
        return shared.to(values.dtype)

    @torch.no_grad()
    def synchronise(self, tensors: Iterable[Tensor]) -> None:
        """Copy the tensors of the first process to the others, in place."""
        for tensor in tensors:
            tensor.copy_(self.agree_on(tensor))


class RowNoise(Noise):
    """The noise of some rows of a batch: that of the whole batch is drawn, and these are returned.

    Shapes have the rows of the batch in their second axis, as those of all noise of a training
    step; shapes with another number of rows are drawn as they are.
    """

    def __init__(self, noise: Noise, n_rows: int, part: slice) -> None:
        self.device, self.whole, self.n_rows, self.part = noise.device, noise, n_rows, part
        self.generator = noise.generator

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return self._taken(self.whole.normal(*self._widened(shape)), shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return self._taken(self.whole.uniform(*self._widened(shape)), shape)

    def _has_rows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) > 1 and shape[1] == self.part.stop - self.part.start

    def _widened(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape for all rows of the batch."""
        return (shape[0], self.n_rows, *shape[2:]) if self._has_rows(shape) else shape

    def _taken(self, drawn: Tensor, shape: tuple[int, ...]) -> Tensor:
        return drawn[:, self.part] if self._has_rows(shape) else drawn
