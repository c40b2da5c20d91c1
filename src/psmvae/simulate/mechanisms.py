"""The mechanisms of the paper's experiments.

Each takes a complete (or natively incomplete) table of numbers and a generator and returns which
cells are observed. Nothing is changed in place, and nothing but the generator is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# A column may carry the MNAR mechanism if the share of rows above its median lies between these:
# in a column of few distinct values nearly every row, or none, can lie above it.
_SHARE_ABOVE = (0.1, 0.9)


@dataclass(frozen=True)
class Simulated:
    """What a mechanism did to a table.

    Parameters
    ----------
    m : ndarray of bool, (row, column)
        True where the cell is observed. A natively missing cell is never observed.
    sets : ndarray of int, (row,)
        The true pattern set of each row: 0, or 1 where the row's value of the self-masked column
        lies above the median, so that the cell was at risk of going missing by its own value.
    columns : tuple of int
        The self-masked columns; empty if no column goes missing by its own value.
    """

    m: NDArray[np.bool_]
    sets: NDArray[np.int64]
    columns: tuple[int, ...] = ()


def mcar(values: ArrayLike, rate: float, rng: np.random.Generator) -> Simulated:
    """Missing completely at random: every cell goes missing with probability `rate`.

    Parameters
    ----------
    values : array-like of float, (row, column)
        The table; NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell goes missing.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    Simulated
        One pattern set, no self-masked column.

    Examples
    --------
    >>> import numpy as np
    >>> mcar(np.ones((3, 2)), 0.5, np.random.default_rng(1)).m
    array([[ True,  True],
           [False,  True],
           [False, False]])
    """
    x = _checked(values, rate)
    m = (rng.random(x.shape) >= rate) & ~np.isnan(x)
    return Simulated(m=m, sets=np.zeros(len(x), dtype=np.int64))


def mnar_column(values: ArrayLike, rate: float, rng: np.random.Generator) -> Simulated:
    """Self-masking: above its median, one random column goes missing with probability `rate`.

    Nothing else goes missing. The column is redrawn until the share of rows above its median lies
    strictly between 10 % and 90 %.

    Parameters
    ----------
    values : array-like of float, (row, column)
        The table; NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell above the median goes missing.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    Simulated
        Set 1 are the rows above the median of the self-masked column.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> simulated = mnar_column(table, 1.0, np.random.default_rng(0))
    >>> simulated.columns, simulated.sets.tolist()
    ((0,), [0, 0, 1, 1])
    >>> simulated.m[:, 0].tolist()
    [True, True, False, False]
    """
    x = _checked(values, rate)
    j, above = _self_masked_column(x, rng)
    m = ~np.isnan(x)
    m[:, j] &= ~(above & (rng.random(len(x)) < rate))
    return Simulated(m=m, sets=above.astype(np.int64), columns=(j,))


def mnar_mcar(
    values: ArrayLike, rate: float, rng: np.random.Generator, *, self_rate: float = 0.5
) -> Simulated:
    """Both: every column is MCAR at `rate`, but one random column is self-masked instead.

    Parameters
    ----------
    values : array-like of float, (row, column)
        The table; NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell of another column goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    self_rate : float, default=0.5
        Probability in [0, 1] that a cell above the median of the self-masked column goes missing.

    Returns
    -------
    Simulated
        Set 1 are the rows above the median of the self-masked column.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> simulated = mnar_mcar(table, 0.0, np.random.default_rng(0), self_rate=1.0)
    >>> simulated.m.tolist()
    [[True, True], [True, True], [False, True], [False, True]]
    """
    x = _checked(values, rate)
    _check_probability("self_rate", self_rate)
    j, above = _self_masked_column(x, rng)
    m = rng.random(x.shape) >= rate
    m[:, j] = ~(above & (rng.random(len(x)) < self_rate))
    return Simulated(m=m & ~np.isnan(x), sets=above.astype(np.int64), columns=(j,))


def _checked(values: ArrayLike, rate: float) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape:
        message = f"values must be a table (row, column) with at least one cell, got {x.shape}"
        raise ValueError(message)
    _check_probability("rate", rate)
    return x


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        message = f"{name} must be a probability between 0 and 1, got {value!r}"
        raise ValueError(message)


def _self_masked_column(
    x: NDArray[np.float64], rng: np.random.Generator
) -> tuple[int, NDArray[np.bool_]]:
    """Draw the column, and say which rows lie above its median."""
    # Redrawing until a column fits is drawing among those that fit: a shuffled order ends also
    # where no column does. A natively missing cell compares as not above.
    low, high = _SHARE_ABOVE
    for j in rng.permutation(x.shape[1]):
        observed = x[~np.isnan(x[:, j]), j]
        if len(observed) == 0:
            continue
        above: NDArray[np.bool_] = x[:, j] > np.median(observed)
        if low < above.mean() < high:
            return int(j), above
    message = (
        "no column can be self-masked: in each the share of rows above the median lies outside "
        f"({low:g}, {high:g})"
    )
    raise ValueError(message)
