"""The description of a column, and the protocols of a kind of column and of its likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]

Level = str | int | float | bool
"""A value of a column with levels."""

Scale = float | Literal["learned", "network", "student"]
"""The scale of a numeric likelihood. A float is a fixed standard deviation; "learned" is one
parameter a column; "network" is an output of the network beside the mean; "student" is a Student-t
likelihood whose scale and degrees of freedom are outputs of the network. Likelihoods without a
scale ignore it."""

X_LIMIT = 1e6
"""Standardised numbers are clipped to ±1e6, so that float32 and its squares stay finite. No value
of the fitted table is clipped: among n rows, none is more than √n standard deviations away."""


@dataclass(frozen=True)
class Column:
    """One column of a table: its kind, and statistics of its observed values.

    Parameters
    ----------
    name : str
        The column's name.
    kind : str
        The name of its kind, such as "real" or "categorical".
    dtype : str
        The column's data type in the fitted table, as narwhals prints it.
    n_observed : int
        Number of observed cells in the fitted table. A column with none is not modelled.
    center : float
        Mean of a real or integer column, of log x for a positive column and of log(1 + x) for a
        count column. The model value is (x - center) / scale, or of the logarithm likewise; for a
        count column only the network's input is standardised.
    scale : float
        Standard deviation that belongs to `center`.
    levels : tuple
        The values of a column with levels, observed or declared, in order. The code of a cell is
        its position here.
    mean : float
        Mean of a positive or count column in the table's own units, and of the codes of an ordinal
        column. 0 for other kinds.
    deviation : float
        Standard deviation that belongs to `mean`. 1 for other kinds.
    shares : tuple of float
        Relative frequencies of the levels of an ordinal column; they sum to one.
    low, high : float or None
        Smallest and largest value that may be imputed, in the table's units. None is no bound.
    observed : tuple of float
        Smallest and largest observed value of a numeric column. Empty for other columns.
    reason : str
        Why the column has this kind, such as "whole numbers, 16 distinct values".
    formula : str
        The formula of a derived column, which is not modelled. Empty for other columns.

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
    low: float | None = None
    high: float | None = None
    observed: tuple[float, ...] = ()
    reason: str = ""
    formula: str = ""

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 for a numeric column."""
        return len(self.levels)


class Kind(Protocol):
    """The behaviour of one kind of column.

    `outside` to `log_jacobian` work on one column of a table (NumPy, float64, NaN where missing).
    `block` makes the part that works on a group of such columns inside the model (PyTorch). A model
    value is the standardised number, the count, or the code of the level as a float, clipped to
    ± `limit`. Columns of the same `likelihood` and `group` share a block. `domain` names the valid
    values in words.
    """

    name: str
    has_levels: bool
    likelihood: str
    domain: str
    limit: float

    def outside(self, values: Floats) -> NDArray[np.bool_]:
        """Return where a value is not in `domain`."""

    def learn(self, values: Floats, column: Column) -> Column:
        """Return the column with the statistics that this kind needs."""

    def standardise(self, values: Floats, column: Column) -> Floats:
        """Return model values of table values."""

    def restore(self, x: Floats, column: Column) -> Floats:
        """Return table values of model values, the inverse of `standardise`."""

    def log_jacobian(self, column: Column, x: NDArray[np.floating] | float = 0.0) -> Floats:
        """Return log ``|d x / d value|``; log p(value) is log p(x) plus this."""

    def group(self, column: Column) -> int:
        """Return a number that columns of one block have in common."""

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> Block:
        """Return the PyTorch part for a group of columns."""


class Nodes(NamedTuple):
    """Quadrature nodes x and log weights ``(..., column, node)`` for expectations of each cell.

    The weights of a column sum to one. `step` is the width of the interval around each node, with a
    last axis of one if nodes are evenly spaced, and None if the nodes are the only values of x.
    `whole` means that x is a whole number, also between nodes.
    """

    x: Tensor
    log_weight: Tensor
    step: Tensor | None = None
    whole: bool = False


class Distribution(Protocol):
    """The distribution p(x_j | z, r) of each cell of a block; shapes are ``(..., column)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log density (or log probability) of each cell."""

    def expected(self) -> Tensor:
        """Return E[statistics(x)], with the statistics of the block."""

    def kl(self, other: Distribution) -> Tensor:
        """Return KL(self || other) of each cell."""

    def nodes(self) -> Nodes:
        """Return a quadrature rule for expectations of smooth functions of each cell."""

    def fine_nodes(self) -> Nodes:
        """Return a finer rule whose weights approximate the distribution, to sample from."""

    def sample(self, uniform: Tensor) -> Tensor:
        """Return a draw of each cell."""


@runtime_checkable
class UnderSigmoid(Protocol):
    """A distribution whose one feature is x, and that integrates a sigmoid faster than `nodes`."""

    def log_mean_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return log E[sigmoid(slope · x + offset)] of each cell."""

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return E[statistics(x)] under the density times sigmoid(slope · x + offset)."""


class Block(Protocol):
    """A group of columns of one likelihood inside the model; an ``nn.Module``.

    A cell x ``(..., column)`` has features (inputs of a network), outputs of a decoder, statistics
    (averaged over draws and members for a point estimate) and nodes of `Distribution.nodes`.
    """

    n_columns: int
    n_features: int
    n_statistics: int
    n_outputs: int
    n_nodes: int

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of a network ``(..., column, feature)``."""

    def statistics(self, x: Tensor) -> Tensor:
        """Return what is averaged for a point estimate ``(..., column, statistic)``."""

    def point(self, expected: Tensor) -> Tensor:
        """Return the point estimate for E[statistics(x)] ``(..., column, statistic)``."""

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error of E[statistics(x)], comparable between kinds."""

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs for which the decoder is about E[features] = mean + loading z.

        Also initialises the parameters of this block. Axes: mean ``(member, column, feature)``;
        loading ``(member, latent, column, feature)``.
        """

    def start_scale(self, scale: Tensor) -> None:
        """Set the initial scale ``(member, column)`` to that of the first feature given z."""

    def __call__(self, outputs: Tensor) -> Distribution:
        """Return the distribution with the outputs ``(..., column, output)`` as parameters."""
