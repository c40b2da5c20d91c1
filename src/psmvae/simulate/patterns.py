"""Mechanisms that cut: the tails of a column, or blocks of columns out of groups of rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import Numbers, Simulated, check_probability, lose, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# The code of a row that lies in one of the tails; 0 in neither.
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
    """The tails of a column go missing: those long enough to meet the rate at this probability.

    The tail starts at the quantile that leaves rate / probability of the column in it, or half of
    that in each of both tails. Equal values stay together: where they make a tail longer than
    that, its cells go missing with as much less probability. Levels count by their order.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Share in [0, 1] of each column's cells that goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing; by default all with long enough tails.
    tail : {"high", "low", "both"}, default="high"
        Which end goes missing.
    probability : float, default=1.0
        Probability in (0, 1] that a cell of a tail goes missing.

    Returns
    -------
    Simulated
        Of one column, set 0 are the rows outside the tail and set 1 those in it; of both tails,
        set 1 is the low and set 2 the high one. Of several columns, each combination of these that
        occurs is a set, numbered as (first column, second column, ...) sort.

    Raises
    ------
    ValueError
        If the rate cannot be met at this probability, or the tail would be the whole column.

    Examples
    --------
    >>> import numpy as np
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
        message = f"tail must be one of {', '.join(_TAILS)}, got {tail!r}"
        raise ValueError(message)
    if rate > probability:
        message = (
            f"a rate of {rate:g} cannot be met: even a tail as long as the column loses only "
            f"{probability:g} of it"
        )
        raise ValueError(message)
    share = rate / probability if rate else 0.0
    chosen = numbers.positions(columns)
    codes = {j: _tails(numbers.x[:, j], share, _TAILS[tail]) for j in chosen}
    short = [j for j in chosen if not _leaves(codes[j], numbers.x[:, j], len(_TAILS[tail]), rate)]
    if columns is None:
        chosen = tuple(j for j in chosen if j not in short)
    if (columns is not None and short) or not chosen:
        what = "both tails" if tail == "both" else f"the {tail} tail"
        message = (
            f"a rate of {rate:g} cannot be met by {what} of column {numbers.names[short[0]]!r}: at "
            f"probability {probability:g}, with equal values kept together, {what} would be the "
            "whole column"
        )
        raise ValueError(message)
    m = numbers.observed()
    for j in chosen:
        in_tail = codes[j][m[:, j]]
        counts = np.bincount(in_tail, minlength=len(_TAILS[tail]) + 1)
        # each tail gives the same part of the rate, however many equal values lengthen it
        lost = rate * len(in_tail) / len(_TAILS[tail])
        chance = lost / np.maximum(counts, 1)
        chance[0] = 0.0
        lose(m, j, chance[in_tail], rng)
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
    """Blocks of columns are missing together, each in a random group of rows.

    The columns are dealt out to the blocks at random, as evenly as can be. Each row loses at most
    one block, each block with probability `rate`.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Share in [0, 1 / n_blocks] of each column's cells that goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing; all by default.
    n_blocks : int, default=3
        Number of blocks. With a single one of all columns, nothing is left of the rows it hits.

    Returns
    -------
    Simulated
        Set 0 are the rows that lose nothing, set k those that lose the k-th block. No self-masked
        column.

    Raises
    ------
    ValueError
        If there are fewer columns than blocks, or groups of that size would overlap.

    Examples
    --------
    >>> import numpy as np
    >>> simulated = blocks(np.ones((6, 4)), 0.4, np.random.default_rng(1), n_blocks=2)
    >>> all(len(np.unique(simulated.m[simulated.sets == k], axis=0)) <= 1 for k in (0, 1, 2))
    True
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = numbers.positions(columns)
    if not 1 <= n_blocks <= len(chosen):
        message = (
            f"the number of blocks must be between 1 and that of the columns, {len(chosen)}, got "
            f"{n_blocks!r}"
        )
        raise ValueError(message)
    if rate > 1 / n_blocks:
        message = (
            f"a rate of {rate:g} cannot be met: a row loses one of {n_blocks} blocks at most, so "
            f"that a column loses at most {1 / n_blocks:.3g}"
        )
        raise ValueError(message)
    parts = np.array_split(rng.permutation(chosen), n_blocks)
    u: NDArray[np.float64] = rng.random(len(numbers.x))
    # the k-th stretch of length `rate` of the unit interval is the k-th block's
    ends = rate * np.arange(1, n_blocks + 1)
    sets = np.searchsorted(ends, u, side="right").astype(np.int64) + 1
    sets[sets > n_blocks] = 0
    m = numbers.observed()
    for k, part in enumerate(parts, start=1):
        m[np.ix_(sets == k, part)] = False
    return Simulated(m=m, sets=sets)


def _tails(column: NDArray[np.float64], share: float, tails: dict[str, int]) -> NDArray[np.int64]:
    """The tail each row lies in: 0, or the tail's code.

    Each is the shortest that holds its part of the share and does not part equal values.
    """
    codes = np.zeros(len(column), dtype=np.int64)
    observed = np.sort(column[~np.isnan(column)])
    # a product that should be whole may come out a little above it
    n = math.ceil(share / len(tails) * len(observed) - 1e-9)
    if n == 0:
        return codes
    for name, code in tails.items():
        inside = column <= observed[n - 1] if name == "low" else column >= observed[-n]
        codes[inside] = code
    return codes


def _leaves(
    codes: NDArray[np.int64], column: NDArray[np.float64], n_tails: int, rate: float
) -> bool:
    """Whether every tail is there and something is left beside them."""
    found = np.unique(codes[~np.isnan(column)])
    return len(found) == n_tails + 1 or (rate == 0 and len(found) == 1)
