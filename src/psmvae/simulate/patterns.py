"""Missing tails of columns, and groups of columns that are missing together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import Numbers, Simulated, check_probability, numbered, remove_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# The code of a row in each tail; rows in no tail have code 0.
_TAILS = {"low": {"low": 1}, "high": {"high": 1}, "both": {"low": 1, "high": 2}}


def quantile_cut(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    tail: str = "high",
    probability: float = 1.0,
) -> Simulated:
    """Missing tails: cells in the tail of a column are missing with a given probability.

    The tail contains the share rate / probability of the column, or half of that in each of two
    tails. Equal values are never split: if this makes a tail longer, the probability in it is
    reduced so that the rate is still met. Levels are compared by their order.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Share in [0, 1] of each column's observed cells that becomes missing.
    rng : numpy.random.Generator
        The random generator.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. By default all columns whose
        tails can meet the rate.
    tail : {"high", "low", "both"}, default="high"
        The tail that gets missing cells.
    probability : float, default=1.0
        Probability in [0, 1] that a cell in a tail becomes missing. It must be at least `rate`.

    Returns
    -------
    Simulated
        With one column, set 0 contains the rows outside the tail and set 1 those in it; with two
        tails, set 1 is the low tail and set 2 the high one. With several columns, each combination
        that occurs is a set, numbered in the order of (first column, second column, ...).

    Raises
    ------
    ValueError
        If `rate` or `probability` is not a probability, `tail` or a column is unknown, the rate
        cannot be met at this probability, or a tail would be the whole column.

    Examples
    --------
    >>> table = np.arange(10.0).reshape(-1, 1)
    >>> simulated = quantile_cut(table, 0.4, np.random.default_rng(0), tail="both")
    >>> simulated.sets.tolist()
    [1, 1, 0, 0, 0, 0, 0, 0, 2, 2]
    >>> np.array_equal(simulated.m[:, 0], simulated.sets == 0)
    True
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    check_probability("probability", probability)
    if tail not in _TAILS:
        raise ValueError(f"tail must be one of {', '.join(_TAILS)}, got {tail!r}")
    if rate > probability:
        raise ValueError(
            f"a rate of {rate:g} cannot be met: at probability {probability:g}, at most "
            f"{probability:g} of a column becomes missing"
        )
    share, tails = rate / probability if rate else 0.0, _TAILS[tail]
    chosen = numbers.positions(columns)
    codes = {j: _tails(numbers.x[:, j], share, tails) for j in chosen}
    short = [j for j in chosen if not _leaves(codes[j], numbers.x[:, j], len(tails), rate)]
    if columns is None:
        chosen = tuple(j for j in chosen if j not in short)
    if (columns is not None and short) or not chosen:
        what = "both tails" if tail == "both" else f"the {tail} tail"
        raise ValueError(
            f"a rate of {rate:g} cannot be met by {what} of column {numbers.names[short[0]]!r}: at "
            f"probability {probability:g}, with equal values kept together, {what} would be the "
            "whole column"
        )
    m = numbers.observed()
    for j in chosen:
        in_tail = codes[j][m[:, j]]
        counts = np.bincount(in_tail, minlength=len(tails) + 1)
        # the tails share the rate equally, whatever their lengths
        chance = rate * len(in_tail) / len(tails) / np.maximum(counts, 1)
        chance[0] = 0.0
        remove_cells(m, j, chance[in_tail], rng)
    sets = numbered(np.column_stack([codes[j] for j in chosen]))
    return Simulated(m=m, sets=sets, columns=chosen)


def blocks(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    n_blocks: int = 3,
) -> Simulated:
    """Blocks of columns are missing together, each block in its own random group of rows.

    The columns are assigned to the blocks at random, in equal numbers as far as possible. In each
    row at most one block is missing, each with probability `rate`.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Share in [0, 1 / n_blocks] of each column's cells that becomes missing.
    rng : numpy.random.Generator
        The random generator.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. All columns by default.
    n_blocks : int, default=3
        Number of blocks. A single block of all columns leaves rows without an observed cell.

    Returns
    -------
    Simulated
        Set 0 contains the rows without a missing block, set k those without the k-th block. No
        column is self-masked.

    Raises
    ------
    ValueError
        If `rate` is not a probability or is above 1 / n_blocks, a column is unknown or has no
        observed cell, or there are fewer columns than blocks.

    Examples
    --------
    >>> simulated = blocks(np.ones((6, 4)), 0.4, np.random.default_rng(1), n_blocks=2)
    >>> all(len(np.unique(simulated.m[simulated.sets == k], axis=0)) <= 1 for k in (0, 1, 2))
    True
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = numbers.positions(columns)
    if not 1 <= n_blocks <= len(chosen):
        raise ValueError(
            f"n_blocks must be between 1 and the number of columns, {len(chosen)}, got {n_blocks!r}"
        )
    if rate > 1 / n_blocks:
        raise ValueError(
            f"a rate of {rate:g} cannot be met: with at most one of {n_blocks} blocks missing in a "
            f"row, the largest rate is {1 / n_blocks:.3g}"
        )
    parts = np.array_split(rng.permutation(chosen), n_blocks)
    # a draw in the k-th interval of length `rate` means that the k-th block is missing
    ends = rate * np.arange(1, n_blocks + 1)
    intervals = np.searchsorted(ends, rng.random(len(numbers.x)), side="right").astype(np.int64)
    sets = (intervals + 1) % (n_blocks + 1)
    m = numbers.observed()
    for k, part in enumerate(parts, start=1):
        m[np.ix_(sets == k, part)] = False
    return Simulated(m=m, sets=sets)


def _tails(column: NDArray[np.float64], share: float, tails: dict[str, int]) -> NDArray[np.int64]:
    """The code of each row's tail, the shortest of its share that splits no equal values, or 0."""
    codes = np.zeros(len(column), dtype=np.int64)
    observed = np.sort(column[~np.isnan(column)])
    # rounding errors can put a whole number slightly above itself
    n = math.ceil(share / len(tails) * len(observed) - 1e-9)
    if n == 0:
        return codes
    for name, code in tails.items():
        codes[column <= observed[n - 1] if name == "low" else column >= observed[-n]] = code
    return codes


def _leaves(
    codes: NDArray[np.int64], column: NDArray[np.float64], n_tails: int, rate: float
) -> bool:
    """Whether every tail has rows and some rows are in no tail."""
    found = np.unique(codes[~np.isnan(column)])
    return len(found) == n_tails + 1 or (rate == 0 and len(found) == 1)
