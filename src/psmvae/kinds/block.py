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

        Parameters
        ----------
        x : Tensor, (..., column)
            Model values.

        Returns
        -------
        Tensor, (..., column)
        """
        ...

    def expected(self) -> Tensor:
        """Return E[statistics(x)], with the statistics of the block.

        Returns
        -------
        Tensor, (..., column, statistic)
        """
        ...

    def kl(self, other: Distribution) -> Tensor:
        """Return KL(self || other) of each cell.

        Parameters
        ----------
        other : Distribution
            Of the same block.

        Returns
        -------
        Tensor, (..., column)
        """
        ...

    def nodes(self) -> Nodes:
        """Return a quadrature rule for expectations of smooth functions of each cell.

        Returns
        -------
        Nodes
        """
        ...

    def fine_nodes(self) -> Nodes:
        """Return a finer rule whose weights approximate the distribution, to sample from.

        Returns
        -------
        Nodes
        """
        ...

    def sample(self, uniform: Tensor) -> Tensor:
        """Return a draw of each cell.

        Parameters
        ----------
        uniform : Tensor, (..., column)
            Uniform random numbers in (0, 1).

        Returns
        -------
        Tensor, (..., column)
            Model values.
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

        Parameters
        ----------
        x : Tensor, (..., column)
            Model values.

        Returns
        -------
        Tensor, (..., column, feature)
        """
        ...

    def statistics(self, x: Tensor) -> Tensor:
        """Return the statistics that are averaged for a point estimate.

        Parameters
        ----------
        x : Tensor, (..., column)
            Model values.

        Returns
        -------
        Tensor, (..., column, statistic)
        """
        ...

    def point(self, expected: Tensor) -> Tensor:
        """Return the point estimate.

        Parameters
        ----------
        expected : Tensor, (..., column, statistic)
            E[statistics(x)].

        Returns
        -------
        Tensor, (..., column)
            Model values.
        """
        ...

    def error(self, expected: Tensor, x: Tensor) -> Tensor:
        """Return the squared error of E[statistics(x)], comparable between kinds.

        Parameters
        ----------
        expected : Tensor, (..., column, statistic)
            E[statistics(x)].
        x : Tensor, (..., column)
            The true model values.

        Returns
        -------
        Tensor, (..., column)
            About 1 for the marginal distribution of the column, so that kinds can be summed.
        """
        ...

    def linear_start(self, mean: Tensor, loading: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs for which the decoder is about E[features] = mean + loading z.

        Also sets the initial values of the block's own parameters, so call it on every block that
        gets these outputs.

        Parameters
        ----------
        mean : Tensor, (member, column, feature)
            Intercepts.
        loading : Tensor, (member, latent, column, feature)
            Loadings.

        Returns
        -------
        bias : Tensor, (member, column, output)
            Bias of the decoder's output layer.
        weight : Tensor, (member, latent, column, output)
            Weights of the decoder's output layer.
        """
        ...

    def start_scale(self, scale: Tensor) -> None:
        """Set the initial scale to that of the first feature given z.

        Parameters
        ----------
        scale : Tensor, (member, column)
            Standard deviations.
        """
        ...

    def __call__(self, outputs: Tensor) -> Distribution:
        """Return the distribution with the network's outputs as parameters.

        Parameters
        ----------
        outputs : Tensor, (..., column, output)
            Outputs of a decoder.

        Returns
        -------
        Distribution
        """
        ...
