"""Size of the table, the columns that are shown, and a sample of the rows.

Signatures
----------
``table_data(X, *, max_columns=60, max_rows=10_000) -> TableData``;
``shown_columns(X, max_columns=60) -> list of names``;
``sampled_rows(n_rows, max_rows=10_000, random_state=0) -> ndarray of positions``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psmvae.reporting.data.columns import Rows, read_columns, sampled
from psmvae.reporting.schema import TableData

MAX_COLUMNS = 60
"""Columns shown in full by default."""
MAX_ROWS = 10_000
"""Rows of Little's test, of predictors of missing cells and of scatter plots, by default."""


def table_data(X: Any, *, max_columns: int = MAX_COLUMNS, max_rows: int = MAX_ROWS) -> TableData:
    """Count the cells of a table, and choose the columns that are shown.

    Parameters
    ----------
    X : table or Columns
        The incomplete table.
    max_columns : int, default=60
        Number of columns shown in full.
    max_rows : int, default=10_000
        Largest number of rows of Little's test, of predictors of missing cells and of scatter
        plots.

    Returns
    -------
    TableData
        Columns are shown by descending missing rate; of equals, in the order of the table.

    Examples
    --------
    >>> import numpy as np
    >>> table_data(np.array([[1.0, np.nan], [2.0, 3.0]]))["shown"]
    ['x1', 'x0']
    """
    columns = read_columns(X)
    missing = columns.missing
    n_rows, n_columns = missing.shape
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "n_cells": n_rows * n_columns,
        "n_missing": int(missing.sum()),
        "n_complete_rows": int((~missing.any(1)).sum()),
        "n_incomplete_columns": int(missing.any(0).sum()),
        "shown": shown_columns(columns, max_columns),
        "n_sampled": min(n_rows, max_rows),
    }


def shown_columns(X: Any, max_columns: int = MAX_COLUMNS) -> list[str]:
    """Return the names of the columns with the highest missing rates.

    Parameters
    ----------
    X : table or Columns
        The incomplete table.
    max_columns : int, default=60
        Largest number of columns.

    Returns
    -------
    list of str
        By descending missing rate; of equals, in the order of the table.
    """
    columns = read_columns(X)
    order = np.argsort(-columns.missing.sum(0), kind="stable")[:max_columns]
    return [columns.names[j] for j in order]


def sampled_rows(n_rows: int, max_rows: int = MAX_ROWS, random_state: int = 0) -> Rows:
    """Return the positions of a sample of the rows, in order.

    Parameters
    ----------
    n_rows : int
        Number of rows of the table.
    max_rows : int, default=10_000
        Largest number of positions.
    random_state : int, default=0
        Seed of the sample.

    Returns
    -------
    ndarray of int
        All rows, or a sample without replacement.
    """
    return sampled(np.arange(n_rows), max_rows, np.random.default_rng(random_state))
