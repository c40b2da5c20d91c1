"""The argument `where`: which missing cells of a table to fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.frames import Frame, open_table
from psmvae.table.wording import quoted


def read_where(where: Any, frame: Frame) -> NDArray[np.bool_] | None:
    """Return the cells to fill, ``(row, column)`` in the order of the table; None means all.

    A frame is matched by column names, if the table has names too, and an array by position. Rows
    of two pandas frames are matched by their index.
    """
    if where is None:
        return None
    given = open_table(where)
    expected = (frame.n_rows, len(frame.names))
    found = (given.n_rows, len(given.names))
    if found != expected:
        raise ValueError(f"where must have the shape of X, {expected}, got {found}")
    positions = range(len(frame.names))
    if given.has_names and frame.has_names:
        if set(given.names) != set(frame.names):
            absent = [name for name in frame.names if name not in given.names]
            raise ValueError(f"where must have the columns of X; it has no {quoted(absent)}")
        order = {name: position for position, name in enumerate(given.names)}
        columns = [order[name] for name in frame.names]
    else:
        columns = list(positions)
    rows = _rows(given, frame)
    wanted = np.empty(expected, dtype=bool)
    for position, column in zip(positions, columns, strict=True):
        cells = given.cells(column)
        if cells.family != "bool" or cells.missing_rows.size:
            raise TypeError(
                f"where must hold True or False in every cell, but column {cells.name!r} is of "
                f"type {cells.dtype}{' with missing cells' if cells.missing_rows.size else ''}; "
                "use .astype(bool) for 0 and 1"
            )
        wanted[:, position] = cells.raw[rows]
    return wanted


def _rows(given: Frame, frame: Frame) -> Any:
    """Return the rows of `where` in the order of the table."""
    if given.index is None or frame.index is None or given.index.equals(frame.index):
        return slice(None)
    position = given.index.get_indexer(frame.index) if given.index.is_unique else np.array([-1])
    if (position < 0).any():
        raise ValueError(
            "where must have the index of X; use .set_axis(X.index) if its rows are in the order "
            "of X"
        )
    return position
