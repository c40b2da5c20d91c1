"""The columns of a table as the report reads them: masks, kinds and levels.

Signatures
----------
``read_columns(X) -> Columns``; ``X`` may be `Columns` already, so that a table is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.describe.variables import Variable
from psmvae.table.errors import UnsupportedColumnError
from psmvae.table.frame_numpy import as_array
from psmvae.table.frames import Frame, open_table
from psmvae.table.inference import infer_kind
from psmvae.table.libraries import is_arrow_table, is_pandas_frame
from psmvae.table.schema import check_finite

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

LEVEL_KINDS = frozenset({"binary", "categorical", "ordinal"})
"""Kinds whose values are levels; values of other kinds are numbers."""
OTHER = "other"
"""Kind of a column that no imputer models, such as dates. It has a mask and texts."""


@dataclass(frozen=True, eq=False)
class Columns:
    """A table that was read for a report.

    Parameters
    ----------
    table : Any
        The table itself.
    frame : Frame
        The opened table.
    kinds : tuple of str
        Kind of each column, as the imputers infer it, or "other".
    missing : ndarray of bool, shape (n_rows, n_columns)
        True where a cell is missing.
    """

    table: Any
    frame: Frame
    kinds: tuple[str, ...]
    missing: Bools

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.frame.names

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.frame.n_rows

    def position(self, name: str) -> int:
        """Return the position of a column."""
        return self.names.index(name)

    def is_numeric(self, position: int) -> bool:
        """Whether the values of a column are numbers and not levels."""
        return self.kinds[position] not in LEVEL_KINDS | {OTHER}

    def values(self, position: int) -> Floats:
        """Return the numbers of a numeric column, NaN where missing."""
        return self.frame.cells(position).values()

    def variable(self, position: int, rows: Rows | slice = slice(None)) -> Variable:
        """Return some rows of a column as numbers: values, or codes of levels."""
        cells = self.frame.cells(position)
        name, kind = self.names[position], self.kinds[position]
        if cells.family != "string" and cells.storage != "category":
            return Variable(name, kind, cells.values()[rows])
        some = replace(cells, raw=cells.raw[rows], missing=cells.missing[rows])
        levels = some.levels()
        return Variable(name, kind, some.codes(levels), levels)

    @property
    def modelled(self) -> list[int]:
        """Positions of the columns that imputers can model."""
        return [j for j, kind in enumerate(self.kinds) if kind != OTHER]


def read_columns(X: Any) -> Columns:
    """Read the masks and kinds of all columns of a table.

    Parameters
    ----------
    X : table or Columns
        A pandas or polars DataFrame, a pyarrow Table, a 2-D NumPy array or a list of rows.

    Returns
    -------
    Columns
        Columns of types that imputers do not model, such as dates, have the kind "other".
    """
    if isinstance(X, Columns):
        return X
    table = native(X)
    frame = open_table(table)
    kinds: list[str] = []
    missing = np.empty((frame.n_rows, len(frame.names)), dtype=bool)
    for position in range(len(frame.names)):
        try:
            cells = frame.cells(position)
        except UnsupportedColumnError:
            kinds.append(OTHER)
            missing[:, position] = [is_missing(item) for item in take(table, position)]
            continue
        check_finite(cells)
        kinds.append(infer_kind(cells).kind)
        missing[:, position] = cells.missing
    return Columns(table, frame, tuple(kinds), missing)


def native(table: Any) -> Any:
    """Return a table without the wrapper of narwhals; an array for rows in lists.

    Parameters
    ----------
    table : table
        Of any library.

    Returns
    -------
    table
        The table itself, if it is no list and not wrapped.
    """
    if isinstance(table, nw.DataFrame):
        return table.to_native()
    return as_array(table) if isinstance(table, list | tuple) else table


def take(table: Any, position: int, rows: Rows | None = None) -> list[Any]:
    """Return cells of one column as Python objects, those of some rows or all.

    Parameters
    ----------
    table : table
        Of any library.
    position : int
        Position of the column.
    rows : ndarray of int, optional
        Positions of the rows; by default all.

    Returns
    -------
    list
        The objects that the library returns.
    """
    table = native(table)
    if isinstance(table, np.ndarray):
        column = table[:, position]
        return list((column if rows is None else column[rows]).tolist())
    if is_pandas_frame(table):
        # by position, since labels need not be texts
        series = table.iloc[:, position]
        return list((series if rows is None else series.iloc[rows]).tolist())
    if is_arrow_table(table):
        from psmvae.table.frame_arrow import movable

        cells = movable(table.column(position))
        return list((cells if rows is None else cells.take(rows)).to_pylist())
    frame = nw.from_native(table, eager_only=True)
    column = frame[frame.columns[position]]
    return list((column if rows is None else column[rows]).to_list())


def take_numbers(table: Any, position: int, rows: Rows) -> Floats:
    """Return cells of one numeric column as floats.

    Parameters
    ----------
    table : table
        Of any library.
    position : int
        Position of the column.
    rows : ndarray of int
        Positions of the rows.

    Returns
    -------
    ndarray of float
        NaN where a cell is missing.
    """
    table = native(table)
    if isinstance(table, np.ndarray):
        return np.asarray(table[rows, position].astype(np.float64))
    if is_pandas_frame(table):
        series = table.iloc[rows, position]
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    # a cast of Arrow refuses whole numbers that a float rounds
    return np.asarray(open_table(table).cells(position).values()[rows])


def is_missing(item: Any) -> bool:
    """Whether an object marks a missing cell.

    Parameters
    ----------
    item : object
        A cell.

    Returns
    -------
    bool
        True for None, NaN, NaT and NA.
    """
    if item is None or type(item).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(item, float | np.floating) and bool(np.isnan(item))


def level_text(level: Any) -> str:
    """Return a level as text; whole numbers without decimals.

    Parameters
    ----------
    level : object
        A level.

    Returns
    -------
    str
        The text.
    """
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)


def sampled(values: NDArray[Any], n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return at most ``n`` values, drawn without replacement and kept in order.

    Parameters
    ----------
    values : ndarray
        The values, along the first axis.
    n : int
        Largest number of values.
    rng : numpy.random.Generator
        Random numbers.

    Returns
    -------
    ndarray
        A part of ``values``.
    """
    if len(values) <= n:
        return values
    return np.asarray(values[np.sort(rng.choice(len(values), n, replace=False))])


def rounded(values: Any, digits: int = 9) -> list[float]:
    """Return numbers as floats with so many significant digits, which keeps JSON small.

    Parameters
    ----------
    values : array-like
        Finite numbers.
    digits : int, default=9
        Number of digits.

    Returns
    -------
    list of float
        The rounded numbers.
    """
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float).tolist()]


def number(value: Any) -> float | None:
    """Return a number that JSON can hold: None in place of NaN and infinity.

    Parameters
    ----------
    value : float or None
        A number.

    Returns
    -------
    float or None
        The number, if it is finite.
    """
    return None if value is None or not np.isfinite(value) else float(value)
