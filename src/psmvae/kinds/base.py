"""What a column is, and what a kind of column must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Level = str | int | float | bool

Scale = float | Literal["learned", "network"]
"""Where the scale of a numeric likelihood comes from: a fixed standard deviation, one learned
parameter a column, or the network beside the mean."""


@dataclass(frozen=True)
class Column:
    """One column of a table: its kind and what the kind learned from the observed values.

    Parameters
    ----------
    name : str
        The column's name.
    kind : str
        The name of its kind, a key of :data:`psmvae.kinds.KINDS`.
    dtype : str
        The column's data type when the imputer was fitted, as narwhals prints it.
    n_observed : int
        How many observed values there were. A column with none is not modelled.
    center, scale : float
        Standardisation of a numeric column: x becomes (x - center) / scale.
    levels : tuple
        The distinct observed values of a column with levels; a cell's code is its position here.

    Examples
    --------
    >>> from psmvae.kinds import Column
    >>> Column("smoker", "binary", "String", n_observed=3, levels=("no", "yes")).n_levels
    2
    """

    name: str
    kind: str
    dtype: str
    n_observed: int
    center: float = 0.0
    scale: float = 1.0
    levels: tuple[Level, ...] = ()

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 for a numeric column."""
        return len(self.levels)


class Nodes(NamedTuple):
    """Points and log weights that integrate a function of x_j under a distribution of x_j.

    Both are ``(..., column, node)``; the weights of a column sum to one. ``step`` is the distance
    between the nodes of an even grid, None where x takes no other values than the nodes.
    """

    x: Tensor
    log_weight: Tensor
    step: Tensor | None = None


class Distribution(Protocol):
    """A distribution of each cell of a block, given the latents: shapes ``(..., column)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density (or probability) of each cell."""
        ...

    def expected_features(self) -> Tensor:
        """E[features(x)], shape ``(..., column, feature)``."""
        ...

    def kl(self, other: Distribution) -> Tensor:
        """KL(self || other) of each cell."""
        ...

    def nodes(self) -> Nodes:
        """A rule that integrates smooth functions of each cell."""
        ...

    def fine_nodes(self) -> Nodes:
        """A finer rule whose weights approximate the distribution itself, to draw from."""
        ...

    def sample(self, uniform: Tensor) -> Tensor:
        """A draw of each cell from uniform noise ``(..., column)``."""
        ...


class Block(Protocol):
    """A group of columns of one kind inside the model; an ``nn.Module``.

    ``n_features`` numbers describe a cell to a network, ``n_outputs`` numbers come back from a
    decoder for it.
    """

    n_columns: int
    n_features: int
    n_outputs: int

    def features(self, x: Tensor) -> Tensor:
        """What a network sees of x: ``(..., column) -> (..., column, feature)``."""
        ...

    def point(self, expected_features: Tensor) -> Tensor:
        """The best single value given E[features(x)], ``(..., column)``."""
        ...

    def error(self, expected_features: Tensor, x: Tensor) -> Tensor:
        """Squared distance of E[features(x)] to the truth's features, ``(..., column)``."""
        ...

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Output bias and loadings for which the decoder is about E[features] = mean + loading z.

        ``mean`` is ``(member, column, feature)`` and ``loading`` ``(member, latent, column,
        feature)``; the answers have outputs in place of features.
        """
        ...

    def start_scale(self, scale: Tensor) -> None:
        """Start a learned scale, ``(member, column)``."""
        ...

    def __call__(self, outputs: Tensor) -> Distribution:
        """The distribution a network's outputs ``(..., column, output)`` stand for."""
        ...


class Kind(Protocol):
    """The behaviour of one kind of column.

    The first half works on one column of the table (NumPy, float64, NaN where missing); `block`
    gives the half that works on a group of such columns inside the model (torch). A value inside
    the model is the standardised number, or the level's code as a float.
    """

    name: str
    has_levels: bool
    likelihood: str

    def summarise(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Center and scale learned from the observed values."""
        ...

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Table values (or level codes) to model values."""
        ...

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Model values to table values (or level codes); the inverse of `standardise`."""
        ...

    def log_jacobian(self, column: Column) -> float:
        """Log of |d model value / d table value|: turns a density of one into one of the other."""
        ...

    def group(self, column: Column) -> int:
        """Columns of one likelihood with the same number share a block."""
        ...

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> Block:
        """The torch side for a group of columns of this kind."""
        ...
