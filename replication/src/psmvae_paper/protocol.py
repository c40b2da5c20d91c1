"""The paper's protocol: masks, splits and what is scored.

Per seed, a mask is drawn for all rows, and a permutation splits the rows 8:1:1. A method is fitted
on the 80 % and imputes the missing cells of the same 80 %. Integer columns with fewer than 20
distinct values are discrete: their imputations are rounded. Errors are divided by the range of the
column's complete values in the 80 %. Natively missing cells are missing for every method and are
not scored. With ``masks="paper"`` a cell has the paper's own masks and splits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate import MECHANISMS, mnar_column
from psmvae.simulate.table import Numbers, generator
from psmvae.table.errors import UnsupportedColumnError
from psmvae_paper.datasets.catalogue import CATALOGUE
from psmvae_paper.paper_masks import printed_mask, printed_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from psmvae_paper.cell import Cell

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Integers = NDArray[np.int64]

# Integer columns with fewer distinct values than this are rounded after imputation.
DISCRETE_BELOW = 20
TRAIN, TEST = 0.8, 0.1
# With fewer rows the test part of the split would be empty.
FEWEST_ROWS = 10
# Random parts of a table are drawn with a separate generator, so that the masks of whole tables do
# not depend on it.
_PART = 1
_TRIES = 1000


@dataclass(frozen=True, eq=False)
class Problem:
    """An incomplete table with its true values.

    Parameters
    ----------
    truth : ndarray of float, (row, column)
        The complete training rows, levels as numbers; NaN where natively missing.
    incomplete : DataFrame
        The same rows with NaN where a cell is missing.
    m : ndarray of bool, (row, column)
        True where observed.
    discrete : ndarray of bool, (column,)
        The columns that are rounded.
    sets : ndarray of int, (row,)
        The true pattern set of each row.
    test_truth, test_incomplete, test_m
        The same for the test rows.
    y, test_y : ndarray or None
        The target of the training and of the test rows, if the data set has one.
    """

    truth: Floats
    incomplete: pd.DataFrame
    m: Bools
    discrete: Bools
    sets: Integers
    test_truth: Floats
    test_incomplete: pd.DataFrame
    test_m: Bools
    y: NDArray[Any] | None
    test_y: NDArray[Any] | None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.incomplete.columns]

    @property
    def scale(self) -> Floats:
        """The range of each column's complete values; NaN for a column that is not scored.

        A column is not scored if it is constant or has no observed cell.
        """
        from psmvae_paper.metrics import column_range

        return np.where(self.m.any(0), column_range(self.truth), np.nan)


def make_problem(cell: Cell, data_home: str | os.PathLike[str] | None = None) -> Problem:
    """Make the incomplete table of a cell; it does not depend on the method.

    Parameters
    ----------
    cell : Cell
        Data set, mechanism, rate, seed and size.
    data_home : path, optional
        The folder with the data, as for `psmvae_paper.datasets.load`.

    Returns
    -------
    Problem
        The incomplete table and its true values.

    Raises
    ------
    FileNotFoundError
        If the data are missing.
    ValueError
        If the data set or the mechanism is unknown, or the table is smaller than the cell.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> problem = make_problem(Cell("breast", "mcar", 0.2, 0, "mean"))
    >>> problem.truth.shape, round(float(1 - problem.m.mean()), 2)
    ((455, 30), 0.2)
    """
    home = None if data_home is None else os.fspath(data_home)
    shape = (cell.n_rows, cell.n_columns)
    how = (cell.mechanism, cell.rate, cell.masks == "paper")
    return _problem(cell.dataset, how, cell.seed, shape, home)


@lru_cache(maxsize=32)
def _problem(
    dataset: str,
    how: tuple[str, float, bool],
    seed: int,
    shape: tuple[int | None, int | None],
    home: str | None,
) -> Problem:
    import pandas as pd

    mechanism, rate, printed = how
    if mechanism not in MECHANISMS:
        raise ValueError(f"unknown mechanism {mechanism!r}; known are {', '.join(MECHANISMS)}")
    whole, y = numbers_of(dataset, home)
    rows, columns = part(whole.x, seed, *shape)
    x = whole.x[np.ix_(rows, columns)]
    # each seed draws other columns; with common names they can be trained as one stack
    names = whole.names if shape[1] is None else [f"column{j}" for j in range(len(columns))]
    target = None if y is None else y[rows]

    if printed:
        m, sets = printed_mask(x, mechanism, rate, seed)
        order = printed_order(len(x), seed)
    else:
        # a user's table may have been drawn with default_rng(seed): its mask needs another stream
        rng = np.random.default_rng(seed) if dataset in CATALOGUE else generator(seed)
        simulated = MECHANISMS[mechanism](x, rate, rng)
        m, sets = simulated.m, simulated.sets
        order = rng.permutation(len(x))
    n_train, n_test = int(TRAIN * len(x)), int(TEST * len(x))
    train, test = order[:n_train], order[len(x) - n_test :]

    def incomplete(part_of: Integers) -> pd.DataFrame:
        return pd.DataFrame(np.where(m[part_of], x[part_of], np.nan), columns=list(names))

    return Problem(
        truth=x[train],
        incomplete=incomplete(train),
        m=m[train],
        discrete=discrete_columns(x),
        sets=sets[train],
        test_truth=x[test],
        test_incomplete=incomplete(test),
        test_m=m[test],
        y=None if target is None else target[train],
        test_y=None if target is None else target[test],
    )


@lru_cache(maxsize=8)
def numbers_of(dataset: str, home: str | None) -> tuple[Numbers, NDArray[Any] | None]:
    """Read a data set as numbers, and its target.

    Parameters
    ----------
    dataset : str
        A name or a path.
    home : str or None
        The folder with the data.

    Returns
    -------
    numbers : Numbers
        The table with levels as numbers.
    target : ndarray or None
        The target, if there is one.

    Examples
    --------
    >>> numbers, target = numbers_of("breast", None)
    >>> numbers.x.shape, target.shape
    ((569, 30), (569,))
    """
    from psmvae_paper.datasets import load

    data = load(dataset, home)
    return Numbers.of(data.X), data.y


def check_data(datasets: Iterable[str], data_home: str | os.PathLike[str] | None = None) -> None:
    """Read data sets again, and raise an error for one that cannot be used.

    Parameters
    ----------
    datasets : iterable of str
        Names or paths.
    data_home : path, optional
        The folder with the data.

    Raises
    ------
    FileNotFoundError
        If its files are missing.
    ValueError
        If it is unknown or unreadable, has too few rows, or contains infinity or dates.

    Examples
    --------
    >>> check_data(["breast", "brest"])
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'brest'; known are ...
    """
    # a file may have changed since it was read
    _problem.cache_clear()
    numbers_of.cache_clear()
    home = None if data_home is None else os.fspath(data_home)
    for dataset in datasets:
        try:
            x = numbers_of(dataset, home)[0].x
        except (ValueError, UnsupportedColumnError) as error:
            text = str(error)
            raise ValueError(text if dataset in text else f"{dataset}: {text}") from error
        if len(x) < FEWEST_ROWS:
            raise ValueError(f"{dataset}: expected at least {FEWEST_ROWS} rows, got {len(x)}")
        if np.isinf(x).any():
            raise ValueError(f"{dataset}: contains infinity; expected finite numbers")


def part(
    x: Floats, seed: int, n_rows: int | None, n_columns: int | None
) -> tuple[Integers, Integers]:
    """Draw a random part of a table; with one seed, larger parts contain the smaller ones.

    The drawn columns always include one that can be split at its median, as MNAR masks need.

    Parameters
    ----------
    x : ndarray of float, (row, column)
        The table.
    seed : int
        The seed.
    n_rows, n_columns : int or None
        The size of the part; None is all.

    Returns
    -------
    rows, columns : ndarray of int
        Positions in ascending order.

    Raises
    ------
    ValueError
        If the table is smaller, or no such columns were found.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(10, 4))
    >>> rows, columns = part(x, 0, 5, None)
    >>> len(rows), columns.tolist()
    (5, [0, 1, 2, 3])
    """
    rng = np.random.default_rng([seed, _PART])
    for name, n, there in (("n_rows", n_rows, x.shape[0]), ("n_columns", n_columns, x.shape[1])):
        if n is not None and n > there:
            raise ValueError(f"{name} must be at most {there}, which the data set has, got {n}")
    rows = _first(rng.permutation(x.shape[0]), n_rows)
    for _ in range(_TRIES):
        columns = _first(rng.permutation(x.shape[1]), n_columns)
        if n_columns is None or _splits(x[np.ix_(rows, columns)]):
            return rows, columns
    raise ValueError(
        f"n_columns: found no {n_columns} columns of which one can be split at its median"
    )


def discrete_columns(x: Floats) -> Bools:
    """Mask of the columns with few distinct values, all of them integers.

    Parameters
    ----------
    x : ndarray of float, (row, column)
        The table.

    Returns
    -------
    ndarray of bool, (column,)
        The discrete columns.

    Examples
    --------
    >>> import numpy as np
    >>> levels = np.arange(30.0) % 3
    >>> discrete_columns(np.column_stack([np.arange(30.0), levels, levels / 10]))
    array([False,  True, False])
    """
    values = [np.unique(column[~np.isnan(column)]) for column in x.T]
    return np.array([len(v) < DISCRETE_BELOW and bool((v == np.rint(v)).all()) for v in values])


def _first(order: Integers, n: int | None) -> Integers:
    return np.arange(len(order)) if n is None else np.sort(order[:n])


def _splits(x: Floats) -> bool:
    try:
        mnar_column(x, 0.0, np.random.default_rng(0))
    except ValueError:
        return False
    return True
