"""The protocols of a kind inside the model: a block of columns and its distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


class Nodes(NamedTuple):
    """Quadrature nodes and log weights for expectations under a distribution of each cell.

    Parameters
    ----------
    x : Tensor, (..., column, node)
        The nodes.
    log_weight : Tensor, (..., column, node)
        Log weights; the weights of a column sum to one.
    step : Tensor, (..., column, node) or (..., column, 1), optional
        Width of the interval around each node; one for all if nodes are evenly spaced. None if the
        nodes are the only values of x.
    whole : bool
        Whether x is a whole number, also between nodes.
    """

    x: Tensor
    log_weight: Tensor
    step: Tensor | None = None
    whole: bool = False


class Distribution(Protocol):
    """The distribution p(x_j | z, r) of each cell of a block; shapes are ``(..., column)``."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the log density (or log probability) of each cell.

        Axes: x ``(..., column)``.
        """
        ...

    def expected(self) -> Tensor:
        """Return E[statistics(x)], with the statistics of the block."""
        ...

    def kl(self, other: Distribution) -> Tensor:
        """Return KL(self || other) of each cell."""
        ...

    def nodes(self) -> Nodes:
        """Return a quadrature rule for expectations of smooth functions of each cell."""
        ...

    def fine_nodes(self) -> Nodes:
        """Return a finer rule whose weights approximate the distribution, to sample from."""
        ...

    def sample(self, uniform: Tensor) -> Tensor:
        """Return a draw of each cell.

        Axes: uniform ``(..., column)``.
        """
        ...


@runtime_checkable
class UnderSigmoid(Protocol):
    """A numeric distribution that integrates a sigmoid faster than its `nodes` do.

    The block has one feature, x itself.
    """

    def log_mean_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return log E[sigmoid(slope · x + offset)] of each cell."""
        ...

    def expected_by_sigmoid(self, slope: Tensor, offset: Tensor) -> Tensor:
        """Return E[statistics(x)] under the density times sigmoid(slope · x + offset)."""
        ...


class Block(Protocol):
    """A group of columns of one likelihood inside the model; an ``nn.Module``.

    Attributes
    ----------
    n_columns : int
        Number of columns.
    n_features : int
        Number of inputs of a network for each cell.
    n_statistics : int
        Number of statistics of each cell that are averaged over draws and members for a point
        estimate.
    n_outputs : int
        Number of outputs of a decoder for each cell.
    n_nodes : int
        Number of quadrature nodes of `Distribution.nodes`.
    """

    n_columns: int
    n_features: int
    n_statistics: int
    n_outputs: int
    n_nodes: int

    def features(self, x: Tensor) -> Tensor:
        """Return the inputs of a network.

        Axes: x ``(..., column)``.
        """
        ...

    def statistics(self, x: Tensor) -> Tensor:
        """Return the statistics that are averaged for a point estimate.

        Axes: x ``(..., column)``.
        """
        ...

    def point(self, expected: Tensor) -> Tensor:
        """Return the point estimate.

        Axes: expected ``(..., column, statistic)``.
        """
        ...

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error of E[statistics(x)], comparable between kinds.

        Axes: expected ``(..., column, statistic)``; x ``(..., column)``.
        """
        ...

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs for which the decoder is about E[features] = mean + loading z.

        Also sets the initial values of the block's own parameters, so call it on every block that
        gets these outputs.

        Axes: mean ``(member, column, feature)``; loading ``(member, latent, column, feature)``.
        """
        ...

    def start_scale(self, scale: Tensor) -> None:
        """Set the initial scale to that of the first feature given z.

        Axes: scale ``(member, column)``.
        """
        ...

    def __call__(self, outputs: Tensor) -> Distribution:
        """Return the distribution with the network's outputs as parameters.

        Axes: outputs ``(..., column, output)``.
        """
        ...
