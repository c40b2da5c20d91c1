"""polars frames."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from psmvae.table.cells import Cells, New, as_decimals, as_numpy, fill_index, holds, object_cells
from psmvae.table.frames import series_cells, storage_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class PolarsFrame:
    """A polars DataFrame."""

    has_names = True

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.n_rows = frame.height
        self.names = tuple(frame.columns)

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, series = self.names[position], self.frame.to_series(position)
        wrapped = nw.from_native(series, series_only=True)
        storage = storage_of(name, wrapped.dtype, series.dtype)
        if storage != "category":
            dtype = "Null" if storage == "null" else str(wrapped.dtype)
            return series_cells(name, wrapped, storage, dtype)
        cells = object_cells(
            name, series.cast(pl.String).to_list(), dtype=str(wrapped.dtype), storage=storage
        )
        if isinstance(series.dtype, pl.Enum):
            # a Categorical has no order of its own: its codes depend on other frames
            cells = replace(cells, order=tuple(series.dtype.categories.to_list()))
        return cells

    def replace(self, new: Mapping[int, New]) -> pl.DataFrame:
        """Return the frame with the missing cells of some columns replaced."""
        return self.frame.with_columns(
            [_fill(self.frame.to_series(position), change) for position, change in new.items()]
        )


def _fill(series: pl.Series, new: New) -> pl.Series:
    cells, values, widen = new
    if widen:
        series = series.cast(pl.Float64)
    name, dtype = series.name, series.dtype
    if not holds(cells, values):
        return pl.Series(name, values.tolist())
    if isinstance(dtype, pl.Enum):
        # a level known from the fit, but not to this table
        known = dtype.categories.to_list()
        extra = sorted(set(values.tolist()) - set(known))
        if extra:
            dtype = pl.Enum(known + extra)
            series = series.cast(dtype)
    return pl.concat([series, _fresh(values, dtype, cells)]).gather(fill_index(cells.missing))


def _fresh(values: Any, dtype: Any, cells: Cells) -> pl.Series:
    name = cells.name
    match cells.storage:
        case "string" | "category":
            return pl.Series(name, values.tolist(), dtype=pl.String).cast(dtype)
        case "decimal":
            decimals = as_decimals(values, dtype.precision, dtype.scale)
            return pl.Series(name, decimals, dtype=dtype)
        case "boolean":
            return pl.Series(name, as_numpy(values, np.dtype(bool)))
        case _:
            # NumPy has no integers of 128 bits
            width = str(dtype).lower().replace("128", "64")
            return pl.Series(name, as_numpy(values, np.dtype(width))).cast(dtype)
