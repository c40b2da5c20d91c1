"""What a column is, and what a kind of column must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

Level = str | int | float | bool

Scale = float | Literal["learned", "network", "student"]
"""Where the scale of a numeric likelihood comes from: a fixed standard deviation, one learned
parameter a column, or the network beside the mean; "student" is a Student-t likelihood whose scale
and degrees of freedom come from the network. Likelihoods without a scale ignore it."""

X_LIMIT = 1e6
"""Standardised numbers are held inside ±1e6 standard deviations, so that float32 and its squares
stay finite. No value of the fitted table is cut: among n rows, none is further than √n away."""


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
        Standardisation of a numeric column: x becomes (x - center) / scale. Of log x for a
        positive column, of log(1 + x) for a count.
    levels : tuple
        The distinct observed values of a column with levels; a cell's code is its position here.
    mean, deviation : float
        Mean and standard deviation in the table's own units, for a positive or a count column;
        those of the codes for an ordinal one.
    shares : tuple of float
        How often each level of an ordinal column was observed; they sum to one.

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
    mean: float = 0.0
    deviation: float = 1.0
    shares: tuple[float, ...] = ()

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 for a numeric column."""
        return len(self.levels)


class Nodes(NamedTuple):
    """Points and log weights that integrate a function of x_j under a distribution of x_j.

    Both are ``(..., column, node)``; the weights of a column sum to one. ``step`` is the width of
    what each node stands for, ``(..., column, node)``, or ``(..., column, 1)`` where nodes are
    evenly spaced; None where x takes no other values than the nodes. ``whole`` says that x is a
    whole number also between nodes.
    """

    x: Tensor
    log_weight: Tensor
    step: Tensor | None = None
    whole: bool = False


class Distribution(Protocol):
    """A distribution of each cell of a block, given the latents: shapes ``(..., column)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density (or probability) of each cell."""
        ...

    def expected(self) -> Tensor:
        """E[statistics(x)] of its block, shape ``(..., column, statistic)``."""
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


@runtime_checkable
class UnderSigmoid(Protocol):
    """A distribution of numbers that knows a quicker way to integrate a sigmoid than `nodes`.

    Its block's one feature is x itself.
    """

    def log_mean_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Log E[sigmoid(slope · x + offset)] of each cell."""
        ...

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """E[statistics(x)] where the density is multiplied by sigmoid(slope · x + offset)."""
        ...


class Block(Protocol):
    """A group of columns of one kind inside the model; an ``nn.Module``.

    ``n_features`` numbers describe a cell to a network, ``n_outputs`` numbers come back from a
    decoder for it. ``n_statistics`` numbers are what is averaged over draws and members to get a
    point estimate. ``n_nodes`` is how many values `nodes` tries.
    """

    n_columns: int
    n_features: int
    n_statistics: int
    n_outputs: int
    n_nodes: int

    def features(self, x: Tensor) -> Tensor:
        """What a network sees of x: ``(..., column) -> (..., column, feature)``."""
        ...

    def statistics(self, x: Tensor) -> Tensor:
        """What is averaged for a point estimate: ``(..., column) -> (..., column, statistic)``."""
        ...

    def point(self, expected: Tensor) -> Tensor:
        """The best single model value given E[statistics(x)], ``(..., column)``."""
        ...

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """How far E[statistics(x)] is from the truth, ``(..., column)``.

        Squared, and about 1 where nothing is known of x: kinds can be added up.
        """
        ...

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Output bias and loadings for which the decoder is about E[features] = mean + loading z.

        ``mean`` is ``(member, column, feature)`` and ``loading`` ``(member, latent, column,
        feature)``; the answers have outputs in place of features. Parameters of the block's own
        are started too, so it is to be called on every block that gets these outputs.
        """
        ...

    def start_scale(self, scale: Tensor) -> None:
        """Start a scale at that of the (first) feature given z, ``(member, column)``."""
        ...

    def __call__(self, outputs: Tensor) -> Distribution:
        """The distribution a network's outputs ``(..., column, output)`` stand for."""
        ...


class Kind(Protocol):
    """The behaviour of one kind of column.

    The first half works on one column of the table (NumPy, float64, NaN where missing); `block`
    gives the half that works on a group of such columns inside the model (torch). A value inside
    the model is the standardised number, the count, or the level's code as a float.
    """

    name: str
    has_levels: bool
    likelihood: str
    domain: str
    limit: float

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where a value is none of this kind's, that is, not `domain`; NaN is never outside."""
        ...

    def learn(self, values: NDArray[np.float64], column: Column) -> Column:
        """The column with what is learned from its observed values (or codes)."""
        ...

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Table values (or level codes) to model values, to be held inside ±`limit`."""
        ...

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Model values to table values (or level codes); the inverse of `standardise`."""
        ...

    def log_jacobian(
        self, column: Column, x: NDArray[np.floating] | float = 0.0
    ) -> NDArray[np.float64]:
        """Log of |d model value / d table value| at each model value x.

        Added to a log density of model values, it gives that of table values. For most kinds it is
        the same at every x.
        """
        ...

    def group(self, column: Column) -> int:
        """Columns of one likelihood with the same number share a block."""
        ...

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> Block:
        """The torch side for a group of columns of this kind."""
        ...
