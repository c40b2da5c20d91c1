"""The mechanisms of the paper's experiments, and self-masking above the median of more columns.

Each takes a complete (or natively incomplete) table and a generator and returns which cells are
observed. Nothing is changed in place, and nothing but the generator is random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import Numbers, Simulated, check_probability, numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# A column may carry the MNAR mechanism if the share of rows above its median lies between these:
# in a column of few distinct values nearly every row, or none, can lie above it.
_SHARE_ABOVE = (0.1, 0.9)


def mcar(
    table: Any, rate: float, rng: np.random.Generator, *, columns: Columns | None = None
) -> Simulated:
    """Missing completely at random: every cell goes missing with probability `rate`.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing; all by default.

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
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = list(numbers.positions(columns))
    m = numbers.observed()
    m[:, chosen] &= rng.random((len(m), len(chosen))) >= rate
    return Simulated(m=m, sets=np.zeros(len(m), dtype=np.int64))


def mnar_column(table: Any, rate: float, rng: np.random.Generator) -> Simulated:
    """Self-masking: above its median, one random column goes missing with probability `rate`.

    Nothing else goes missing. The column is redrawn until the share of rows above its median lies
    strictly between 10 % and 90 %.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
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
    return mnar_above(table, rate, rng, n_columns=1)


def mnar_above(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    n_columns: int | None = None,
    columns: Columns | None = None,
) -> Simulated:
    """Self-masking of several columns: above its median, each loses cells with chance `rate`.

    A column takes part only if the share of rows above its median lies strictly between 10 % and
    90 %. Levels count by their order.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell above the median of its column goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    n_columns : int, optional
        How many columns are drawn; by default there is no draw and all are self-masked.
    columns : sequence of str or int, optional
        The columns, by name or position, that are drawn among; by default all that can take part.

    Returns
    -------
    Simulated
        Which of the self-masked columns lie above their medians: each combination that occurs is
        a set, numbered as (first column above, second column above, ...) sort. Of one column,
        set 1 are the rows above.

    Raises
    ------
    ValueError
        If fewer columns can be split at the median than are asked for.

    Examples
    --------
    >>> import numpy as np
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
    """Both: every column is MCAR at `rate`, but one random column is self-masked instead.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Probability in [0, 1] that a cell of another column goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    self_rate : float, default=0.5
        Probability in [0, 1] that a cell above the median of the self-masked column goes missing.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing, the self-masked one among them; all by
        default.

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
    """Draw columns that can be split at the median; those that are named must all be able to."""
    candidates = numbers.positions(columns)
    if n_columns is None:
        fit = tuple(j for j in candidates if _splits(numbers.x[:, j]))
        wanted = max(1, len(fit) if columns is None else len(candidates))
    else:
        if n_columns < 1:
            message = f"n_columns must be at least 1, got {n_columns!r}"
            raise ValueError(message)
        # Redrawing until a column fits is drawing among those that fit: a shuffled order ends
        # also where no column does.
        shuffled = (candidates[i] for i in rng.permutation(len(candidates)))
        fit = tuple(j for j in shuffled if _splits(numbers.x[:, j]))[:n_columns]
        wanted = n_columns
    if len(candidates) < wanted:
        message = f"this needs {wanted} columns to choose from, and there are {len(candidates)}"
        raise ValueError(message)
    if len(fit) < wanted:
        found = f"only {len(fit)} of the {wanted} columns" if fit else "no column"
        low, high = _SHARE_ABOVE
        message = (
            f"{found} can be self-masked: in {'the others' if fit else 'each'} the share of rows "
            f"above the median lies outside ({low:g}, {high:g})"
        )
        raise ValueError(message)
    return tuple(sorted(fit))


def _above(column: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows lie above the median; a natively missing cell compares as not above."""
    observed = column[~np.isnan(column)]
    above: NDArray[np.bool_] = column > (np.median(observed) if len(observed) else np.inf)
    return above


def _splits(column: NDArray[np.float64]) -> bool:
    low, high = _SHARE_ABOVE
    return bool(low < _above(column).mean() < high)
