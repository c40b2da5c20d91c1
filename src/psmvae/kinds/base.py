"""The description of a column, and the protocol of a kind of column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from psmvae.kinds.block import Block

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
        The name of its kind, a key of :data:`psmvae.kinds.KINDS`.
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
        The distinct observed values of a column with levels. The code of a cell is its position
        here.
    mean : float
        Mean of a positive or count column in the table's own units, and of the codes of an ordinal
        column. 0 for other kinds.
    deviation : float
        Standard deviation that belongs to `mean`. 1 for other kinds.
    shares : tuple of float
        Relative frequencies of the levels of an ordinal column; they sum to one.

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


class Kind(Protocol):
    """The behaviour of one kind of column.

    `outside` to `log_jacobian` work on one column of a table (NumPy, float64, NaN where missing).
    `block` makes the part that works on a group of such columns inside the model (PyTorch). A model
    value is the standardised number, the count, or the code of the level as a float.

    Attributes
    ----------
    name : str
        Key in `KINDS`.
    has_levels : bool
        Whether values are codes of levels.
    likelihood : str
        Columns of the same likelihood and `group` share a block.
    domain : str
        The valid values, in words.
    limit : float
        Model values are clipped to ± this.
    """

    name: str
    has_levels: bool
    likelihood: str
    domain: str
    limit: float

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return where a value is not in `domain`."""
        ...

    def learn(self, values: NDArray[np.float64], column: Column) -> Column:
        """Return the column with the statistics that this kind needs."""
        ...

    def standardise(self, values: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Return model values of table values."""
        ...

    def restore(self, x: NDArray[np.float64], column: Column) -> NDArray[np.float64]:
        """Return table values of model values, the inverse of `standardise`."""
        ...

    def log_jacobian(
        self, column: Column, x: NDArray[np.floating] | float = 0.0
    ) -> NDArray[np.float64]:
        """Return log ``|d model value / d table value|``.

        Added to a log density of model values, it gives that of table values.
        """
        ...

    def group(self, column: Column) -> int:
        """Return a number that columns of one block have in common."""
        ...

    def block(self, columns: Sequence[Column], n_members: int, scale: Scale) -> Block:
        """Return the PyTorch part for a group of columns."""
        ...
