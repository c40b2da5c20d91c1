"""Seeded random numbers that leave PyTorch's global generator unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class Noise:
    """A seeded generator of random tensors on one device.

    The same seed gives different numbers on a CPU and on a GPU.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device).manual_seed(seed)

    @property
    def _float32(self) -> dict[str, Any]:
        """Arguments for float32 numbers from the generator, whatever PyTorch's default type."""
        return {"generator": self.generator, "device": self.device, "dtype": torch.float32}

    def restart(self, state: Tensor) -> None:
        """Continue from the state of another generator."""
        self.generator = torch.Generator(device=self.device)
        self.generator.set_state(state)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(*shape, **self._float32)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return torch.rand(*shape, **self._float32)

    def shuffles(self, n_members: int, n: int) -> Tensor:
        """A permutation of 0 … n − 1 for each member, ``(member, n)``."""
        return torch.argsort(self.uniform(n_members, n), dim=1)

    def picks(self, n_members: int, n: int) -> Tensor:
        """Draw n numbers from 0 … n − 1 with replacement for each member, ``(member, n)``."""
        return torch.randint(n, (n_members, n), generator=self.generator, device=self.device)

    def keys(self, *shape: int) -> Tensor:
        """Integers of 63 random bits."""
        return torch.randint(2**63 - 1, shape, generator=self.generator, device=self.device)

    def keep(self, shape: Sequence[int], probability: float) -> Tensor:
        """True with the given probability."""
        return self.uniform(*shape) < probability


class NoNoise(Noise):
    """Tensors of the requested shapes without values or memory, to find the shapes of a model."""

    def __init__(self) -> None:
        super().__init__(0)
        self.device = torch.device("meta")

    def normal(self, *shape: int) -> Tensor:
        """Return a tensor without values."""
        return torch.empty(*shape, dtype=torch.float32, device=self.device)

    uniform = normal


def hash_uniform(cells: Tensor, keys: Tensor, noise: Noise) -> Tensor:
    """Pseudo-random uniform numbers in (0, 1) from a hash of the cells of a row and a key.

    Equal rows have equal numbers, and different rows independent ones, however similar they are.
    ``cells (member, row, cell)`` and ``keys (member, 1, ...)`` give ``(member, row, ...)``.
    """
    # adding 0.0 maps -0.0 to 0.0; multiplication by an odd number modulo 2^64 is invertible
    bits = (cells.float() + 0.0).contiguous().view(torch.int32).long()
    row = (bits * (2 * noise.keys(cells.shape[-1]) + 1)).sum(-1)
    row = row.reshape(*row.shape, *[1] * (keys.ndim - row.ndim))
    mixed = _splitmix(_splitmix(row) + keys)
    return (_shift_right(mixed, 12).double() + 0.5) * 2.0**-52


def _splitmix(number: Tensor) -> Tensor:
    """The finaliser of SplitMix64: every output bit depends on every input bit."""
    for by, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        number = (number ^ _shift_right(number, by)) * factor
    return number ^ _shift_right(number, 31)


def _shift_right(number: Tensor, by: int) -> Tensor:
    """Logical right shift of signed integers."""
    return (number >> by) & ((1 << (64 - by)) - 1)
