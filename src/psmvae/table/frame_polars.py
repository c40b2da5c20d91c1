"""polars frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from psmvae.table.casts import (
    New,
    added_categories,
    as_decimals,
    as_numpy,
    fill_index,
    filled_numpy,
    holds,
    scattered,
)
from psmvae.table.cells import Cells, object_cells, series_cells, storage_of


class PolarsSource:
    """A polars DataFrame."""

    has_names = True
    index = None

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.n_rows = frame.height
        self.names = tuple(frame.columns)

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, series = self.names[position], self.frame.to_series(position)
        wrapped = nw.from_native(series, series_only=True)
        storage = storage_of(name, wrapped.dtype, series.dtype)
        if storage != "category":
            dtype = "Null" if storage == "null" else str(wrapped.dtype)
            return series_cells(name, wrapped, storage, dtype)
        items = series.cast(pl.String).to_list()
        cells = object_cells(name, items, dtype=str(wrapped.dtype), storage=storage)
        if isinstance(series.dtype, pl.Enum):
            # a Categorical has no order: its codes depend on other frames
            cells = replace(cells, order=tuple(series.dtype.categories.to_list()))
        return cells

    def replace(self, new: Mapping[int, New]) -> pl.DataFrame:
        """Return the frame with the missing cells of some columns replaced."""
        frame = self.frame
        return frame.with_columns([_fill(frame.to_series(j), change) for j, change in new.items()])


def _fill(series: pl.Series, new: New) -> pl.Series:
    cells, values, name = new.cells, new.values, series.name
    dtype: Any = series.dtype
    if not holds(cells, values):
        return pl.Series(name, scattered(new))
    if new.widen:
        dtype = pl.Float64()
        series = series.cast(dtype)
    if cells.storage in {"string", "category"}:
        if isinstance(dtype, pl.Enum):
            # with the levels of the fitted table that this table does not have
            known = dtype.categories.to_list()
            dtype = pl.Enum(known + added_categories(new, set(known)))
            series = series.cast(dtype)
        fresh = pl.Series(name, values.tolist(), dtype=pl.String).cast(dtype)
    elif cells.storage == "decimal":
        fresh = pl.Series(name, as_decimals(values, dtype.precision, dtype.scale), dtype=dtype)
    elif str(dtype).endswith("128"):
        # NumPy has no integers of 128 bits
        width = str(dtype).lower().replace("128", "64")
        fresh = pl.Series(name, as_numpy(values, np.dtype(width))).cast(dtype)
    elif new.completes:
        return pl.Series(name, filled_numpy(new)).cast(dtype)
    else:
        # a cast of all cells would turn missing ones into zeros
        numbers = np.dtype(np.float64) if new.widen else cells.raw.dtype
        fresh = pl.Series(name, as_numpy(values, numbers)).cast(dtype)
    return pl.concat([series, fresh]).gather(fill_index(new))
