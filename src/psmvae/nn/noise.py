"""Random numbers from one seeded source; nothing here touches torch's global state."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Noise:
    """A seeded source of random tensors on one device.

    Parameters
    ----------
    seed : int
        Where the stream starts.
    device : torch.device or str
        Where the numbers are made. The stream of a seed differs between kinds of devices.

    Examples
    --------
    >>> from psmvae.nn.noise import Noise
    >>> bool((Noise(1).normal(3) == Noise(1).normal(3)).all())
    True
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device)
        self.generator.manual_seed(seed)

    def restart(self, state: Tensor) -> None:
        """Go on from a generator's state with a generator of its own."""
        self.generator = torch.Generator(device=self.device)
        self.generator.set_state(state)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(*shape, generator=self.generator, device=self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1)."""
        return torch.rand(*shape, generator=self.generator, device=self.device)

    def shuffles(self, n_members: int, n: int) -> Tensor:
        """A permutation of 0 … n − 1 for each member, ``(member, n)``."""
        return torch.argsort(self.uniform(n_members, n), dim=1)

    def picks(self, n_members: int, n: int) -> Tensor:
        """As many of 0 … n − 1 for each member, with replacement, ``(member, n)``."""
        return torch.randint(n, (n_members, n), generator=self.generator, device=self.device)

    def keys(self, *shape: int) -> Tensor:
        """Whole numbers of 63 random bits."""
        return torch.randint(2**63 - 1, shape, generator=self.generator, device=self.device)

    def keep(self, shape: Sequence[int], share: float) -> Tensor:
        """True with probability ``share``."""
        return self.uniform(*shape) < share


def told_by_row(cells: Tensor, keys: Tensor, noise: Noise) -> Tensor:
    """Uniform numbers inside (0, 1), told by the cells of a row and a key.

    Equal rows have equal numbers, and those of others, however near, have nothing to do with them.

    Parameters
    ----------
    cells : Tensor
        ``(member, row, cell)``.
    keys : Tensor
        From `Noise.keys`, of axes that follow that of rows.
    noise : Noise
        Where the weights of cells come from.

    Returns
    -------
    Tensor
        ``(member, row, *keys)`` with 52 random bits.

    Examples
    --------
    >>> noise = Noise(0)
    >>> told_by_row(torch.zeros(1, 4, 2), noise.keys(1, 1, 3), noise).shape
    torch.Size([1, 4, 3])
    """
    # -0.0 is 0.0; products wrap around, and with an odd factor none is lost
    bits = (cells.float() + 0.0).contiguous().view(torch.int32).long()
    row = (bits * (2 * noise.keys(cells.shape[-1]) + 1)).sum(-1)
    row = row.reshape(*row.shape, *[1] * (keys.ndim - row.ndim))
    mixed = _mixed(_mixed(row) + keys)
    return (_shifted(mixed, 12).double() + 0.5) * 2.0**-52


def _mixed(number: Tensor) -> Tensor:
    """The finaliser of SplitMix64: every bit hangs on every bit."""
    for by, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        number = (number ^ _shifted(number, by)) * factor
    return number ^ _shifted(number, 31)


def _shifted(number: Tensor, by: int) -> Tensor:
    """To the right, with zeros coming in from the left also below zero."""
    return (number >> by) & ((1 << (64 - by)) - 1)
