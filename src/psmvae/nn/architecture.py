"""Architecture of the networks, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral


@dataclass(frozen=True)
class Network:
    """The architecture of every network of a model.

    Parameters
    ----------
    width : int, default=128
        Units of a hidden layer.
    depth : int, default=2
        Number of residual blocks, or of hidden layers if ``residual`` is False.
    residual : bool, default=True
        Use residual blocks (LayerNorm, SiLU). Otherwise use plain layers, as in the paper.
    dropout : float, default=0.0
        Dropout rate of the hidden units during training.
    linear : bool, default=True
        Add a linear path that is initialised by factor analysis. The networks then model the
        residuals of a linear-Gaussian model.
    smooth : bool, default=False
        Use SiLU in plain layers. Otherwise use ReLU, as in the paper.

    Examples
    --------
    >>> from psmvae import Network
    >>> Network(width=64, depth=1).width
    64
    >>> Network.paper()
    Network(width=128, depth=1, residual=False, dropout=0.0, linear=False, smooth=False)
    """

    width: int = 128
    depth: int = 2
    residual: bool = True
    dropout: float = 0.0
    linear: bool = True
    smooth: bool = False

    def __post_init__(self) -> None:
        """Check types and ranges."""
        sizes: dict[str, object] = {"width": self.width, "depth": self.depth}
        for name, value in sizes.items():
            if not isinstance(value, Integral):
                raise TypeError(f"Network needs a whole number for {name}, got {value!r}.")
        if self.width < 1 or self.depth < 1:
            raise ValueError(
                f"Network needs width >= 1 and depth >= 1, got width={self.width}, "
                f"depth={self.depth}."
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"Network needs dropout in [0, 1), got {self.dropout}.")

    @classmethod
    def paper(cls) -> Network:
        """Return the paper's architecture: one hidden ReLU layer of 128 units.

        Returns
        -------
        Network
            The architecture.
        """
        return cls(width=128, depth=1, residual=False, dropout=0.0, linear=False)

    def light(self) -> Network:
        """Return a smaller network for the factors q(x_mis | ·) and p(m | ·).

        Returns
        -------
        Network
            One residual block of at most 64 units. A plain network is returned unchanged.
        """
        return replace(self, width=min(self.width, 64), depth=1) if self.residual else self
