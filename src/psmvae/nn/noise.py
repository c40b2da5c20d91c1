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

    def keep(self, shape: Sequence[int], share: float) -> Tensor:
        """True with probability ``share``."""
        return self.uniform(*shape) < share
