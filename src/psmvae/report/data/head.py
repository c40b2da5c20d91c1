"""The first rows of a completed table as text, with imputed cells marked.

Signatures
----------
``head_data(read, mi, mask, shown) -> HeadData``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.report.data.columns import Bools, Columns, is_missing, take
from psmvae.report.schema import HeadData

if TYPE_CHECKING:
    from psmvae.multiple import MultipleImputation

MAX_HEAD = 10
"""Rows that are shown."""
MAX_TEXT = 80
"""Characters of a cell; longer ones are cut."""


def head_data(read: Columns, mi: MultipleImputation, mask: Bools, shown: list[str]) -> HeadData:
    """Return the first rows of the first imputation.

    Parameters
    ----------
    read : Columns
        The incomplete table.
    mi : MultipleImputation
        The imputations.
    mask : ndarray of bool, shape (n_rows, n_columns)
        True where a cell was imputed.
    shown : list of str
        Columns that are shown, here in the order of the table.

    Returns
    -------
    HeadData
        Numbers have six significant digits; a cell that is still missing is empty.
    """
    positions = sorted(read.position(name) for name in shown)
    rows = np.arange(min(MAX_HEAD, read.n_rows) if mi.tables else 0)
    columns = [[cell_text(item) for item in take(mi.tables[0], j, rows)] for j in positions]
    return {
        "columns": [read.names[j] for j in positions],
        "row_numbers": rows.tolist(),
        "cells": [list(row) for row in zip(*columns, strict=True)] if len(rows) else [],
        "imputed": mask[rows][:, positions].tolist(),
    }


def cell_text(item: Any) -> str:
    """Return the text of a cell.

    Parameters
    ----------
    item : object
        A cell.

    Returns
    -------
    str
        At most 80 characters.

    Examples
    --------
    >>> cell_text(1 / 3), cell_text(None), len(cell_text("a" * 300))
    ('0.333333', '', 80)
    """
    if is_missing(item):
        return ""
    text = f"{item:.6g}" if isinstance(item, float | np.floating) else str(item)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
