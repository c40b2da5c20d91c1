"""The complete rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.table.errors import UnsupportedColumnError
from psmvae.table.frames import Frame, open_table
from psmvae.table.libraries import is_pandas_frame
from psmvae.table.wording import quoted


def complete_rows(X: Any, complete_on: str | Sequence[str] | None = None) -> Any:
    """Return the rows with all cells observed, or those of some columns, of the type of X."""
    frame = open_table(X)
    given = [complete_on] if isinstance(complete_on, str) else complete_on
    names = frame.names if given is None else tuple(map(str, given))
    if unknown := [name for name in names if name not in frame.names]:
        raise ValueError(
            f"complete_on: there is no column {quoted(unknown)}; the columns are "
            f"{quoted(frame.names)}."
        )
    complete = np.ones(frame.n_rows, dtype=bool)
    for name in names:
        complete &= ~_missing_cells(X, frame, frame.names.index(name))
    if not complete.any():
        raise ValueError("there is no complete row; name the columns of the analysis, complete_on.")
    if not frame.has_names:
        return np.asarray(X)[complete]
    if is_pandas_frame(X):
        return X[complete]
    return nw.from_native(X, eager_only=True).filter(complete.tolist()).to_native()


def missing_values(series: nw.Series[Any]) -> NDArray[np.bool_]:
    """Return which values of a series of any type are missing; NaN is missing."""
    missing: NDArray[np.bool_] = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        missing = missing | np.isnan(series.to_numpy().astype(np.float64))
    return missing


def _missing_cells(X: Any, frame: Frame, position: int) -> NDArray[np.bool_]:
    """Return which cells of a column are missing, also of one that is not modelled, as dates."""
    try:
        return frame.cells(position).missing
    except UnsupportedColumnError:
        if frame.has_names:
            return missing_values(nw.from_native(X, eager_only=True)[:, position])
        column = np.asarray(X, dtype=object)[:, position]
        return missing_values(nw.new_series("", column, backend="pandas"))
