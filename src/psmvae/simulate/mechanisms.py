"""MCAR and self-masking above the median: the mechanisms of the paper's experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import Numbers, Simulated, check_probability, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# Limits of the share of rows above the median in a column that can be self-masked. A column with
# few distinct values can have almost all rows, or none, above its median.
_SHARE_ABOVE = (0.1, 0.9)


def mcar(
    table: Any, rate: float, rng: np.random.Generator, *, columns: Columns | None = None
) -> Simulated:
    """Missing completely at random (MCAR): each cell is missing with probability `rate`.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Probability in [0, 1] that a cell becomes missing.
    rng : numpy.random.Generator
        The random generator.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. All columns by default.

    Returns
    -------
    Simulated
        All rows are in set 0. No column is self-masked.

    Raises
    ------
    ValueError
        If `rate` is not a probability, or a column is unknown, repeated or has no observed cell.

    Examples
    --------
    >>> mcar(np.ones((3, 2)), 0.5, np.random.default_rng(1)).m
    array([[ True,  True],
           [False,  True],
           [False, False]])
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = list(numbers.positions(columns))
    m = numbers.observed()
    m[:, chosen] &= rng.random((len(m), len(chosen))) >= rate
    return Simulated(m=m, sets=np.zeros(len(m), dtype=np.int64))


def mnar_column(table: Any, rate: float, rng: np.random.Generator) -> Simulated:
    """Self-masking of one random column: cells above its median are missing with chance `rate`.

    The other columns stay observed. It is `mnar_above` with ``n_columns=1``.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Probability in [0, 1] that a cell above the median becomes missing.
    rng : numpy.random.Generator
        The random generator.

    Returns
    -------
    Simulated
        Set 1 contains the rows above the median of the self-masked column, set 0 the others.

    Raises
    ------
    ValueError
        If `rate` is not a probability, or no column can be split at its median.

    Examples
    --------
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> simulated = mnar_column(table, 1.0, np.random.default_rng(0))
    >>> simulated.columns, simulated.sets.tolist()
    ((0,), [0, 0, 1, 1])
    >>> simulated.m[:, 0].tolist()
    [True, True, False, False]
    """
    return mnar_above(table, rate, rng, n_columns=1)


def mnar_above(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    n_columns: int | None = None,
    columns: Columns | None = None,
) -> Simulated:
    """Self-masking above the median: in each column, such a cell is missing with chance `rate`.

    Only columns in which the share of rows above the median is strictly between 10 % and 90 % can
    be self-masked. Levels are compared by their order.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Probability in [0, 1] that a cell above the median of its column becomes missing.
    rng : numpy.random.Generator
        The random generator.
    n_columns : int, optional
        Number of columns to draw at random. By default all columns are self-masked.
    columns : sequence of str or int, optional
        Names or positions of the columns to draw from. By default all that can be self-masked.

    Returns
    -------
    Simulated
        Two rows are in the same set if the same self-masked columns are above their medians. Sets
        are numbered in the order of (first column above, second column above, ...). With one
        column, set 1 contains the rows above its median.

    Raises
    ------
    ValueError
        If `rate` is not a probability, `n_columns` is below 1, a column is unknown or has no
        observed cell, or too few columns can be split at the median.

    Examples
    --------
    >>> table = np.array([[1.0, 1.0], [2.0, 4.0], [3.0, 2.0], [4.0, 3.0]])
    >>> simulated = mnar_above(table, 1.0, np.random.default_rng(0))
    >>> simulated.m.tolist()
    [[True, True], [True, False], [False, True], [False, False]]
    >>> simulated.sets.tolist()
    [0, 1, 2, 3]
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = _self_masked(numbers, rng, n_columns, columns)
    above = np.column_stack([_above(numbers.x[:, j]) for j in chosen])
    m = numbers.observed()
    m[:, list(chosen)] &= ~(above & (rng.random(above.shape) < rate))
    return Simulated(m=m, sets=numbered(above.astype(np.int64)), columns=chosen)


def mnar_mcar(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    self_rate: float = 0.5,
    columns: Columns | None = None,
) -> Simulated:
    """One random column is self-masked above its median, the others are MCAR.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Probability in [0, 1] that a cell of an MCAR column becomes missing.
    rng : numpy.random.Generator
        The random generator.
    self_rate : float, default=0.5
        The same for a cell above the median of the self-masked column.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells, one of them self-masked. All
        columns by default.

    Returns
    -------
    Simulated
        Set 1 contains the rows above the median of the self-masked column, set 0 the others.

    Raises
    ------
    ValueError
        If a rate is not a probability, a column is unknown or has no observed cell, or no column
        can be split at its median.

    Examples
    --------
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> simulated = mnar_mcar(table, 0.0, np.random.default_rng(0), self_rate=1.0)
    >>> simulated.m.tolist()
    [[True, True], [True, True], [False, True], [False, True]]
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    check_probability("self_rate", self_rate)
    (j,) = _self_masked(numbers, rng, 1, columns)
    above = _above(numbers.x[:, j])
    chosen = list(numbers.positions(columns))
    gone = np.zeros(numbers.x.shape, dtype=np.bool_)
    gone[:, chosen] = rng.random((len(gone), len(chosen))) < rate
    gone[:, j] = above & (rng.random(len(gone)) < self_rate)
    return Simulated(m=numbers.observed() & ~gone, sets=above.astype(np.int64), columns=(j,))


def _self_masked(
    numbers: Numbers, rng: np.random.Generator, n_columns: int | None, columns: Columns | None
) -> tuple[int, ...]:
    """Draw columns that can be split at the median; without a draw, all in `columns` must be."""
    candidates = numbers.positions(columns)
    if n_columns is None:
        suitable = [j for j in candidates if _splits(numbers.x[:, j])]
        wanted = max(1, len(suitable) if columns is None else len(candidates))
    elif n_columns < 1:
        raise ValueError(f"n_columns must be at least 1, got {n_columns!r}")
    else:
        # The first suitable columns in random order: the same distribution as redrawing until a
        # column is suitable, but it also ends if none is.
        shuffled = (candidates[i] for i in rng.permutation(len(candidates)))
        suitable = [j for j in shuffled if _splits(numbers.x[:, j])][:n_columns]
        wanted = n_columns
    if len(candidates) < wanted:
        raise ValueError(f"this mechanism needs {wanted} columns, and there are {len(candidates)}")
    if len(suitable) < wanted:
        found = f"only {len(suitable)} of the {wanted} columns" if suitable else "no column"
        low, high = _SHARE_ABOVE
        raise ValueError(
            f"{found} can be self-masked: in {'the others' if suitable else 'each'} the share of "
            f"rows above the median is outside ({low:g}, {high:g})"
        )
    return tuple(sorted(suitable))


def _above(column: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows above the median; a missing cell counts as not above."""
    observed = column[~np.isnan(column)]
    above: NDArray[np.bool_] = column > (np.median(observed) if len(observed) else np.inf)
    return above


def _splits(column: NDArray[np.float64]) -> bool:
    """Whether the share of rows above the median is neither too small nor too large."""
    low, high = _SHARE_ABOVE
    return bool(low < _above(column).mean() < high)
