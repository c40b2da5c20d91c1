"""The complete rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from psmvae.table.frames import open_table
from psmvae.table.libraries import is_pandas_frame
from psmvae.table.wording import quoted


def complete_rows(X: Any, complete_on: Sequence[str] | None = None) -> Any:
    """Return the rows with all cells observed, or those of some columns, of the type of X."""
    frame = open_table(X)
    names = frame.names if complete_on is None else tuple(map(str, complete_on))
    if unknown := [name for name in names if name not in frame.names]:
        raise ValueError(
            f"complete_on: there is no column {quoted(unknown)}; the columns are "
            f"{quoted(frame.names)}."
        )
    complete = ~np.any([frame.cells(frame.names.index(name)).missing for name in names], axis=0)
    if not complete.any():
        raise ValueError("there is no complete row; name the columns of the analysis, complete_on.")
    if not frame.has_names:
        return np.asarray(X)[complete]
    if is_pandas_frame(X):
        return X[complete]
    return nw.from_native(X, eager_only=True).filter(complete.tolist()).to_native()
