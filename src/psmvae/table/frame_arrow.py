"""pyarrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from psmvae.table.casts import (
    New,
    added_categories,
    as_categories,
    as_decimals,
    as_numpy,
    fill_index,
    filled_numpy,
    holds,
    scattered,
)
from psmvae.table.cells import Cells, series_cells, storage_of
from psmvae.table.nulls import is_view


class ArrowSource:
    """A pyarrow Table."""

    has_names = True
    index = None

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.n_rows = table.num_rows
        self.names = tuple(table.column_names)

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        return arrow_cells(self.names[position], self.table.column(position))

    def replace(self, new: Mapping[int, New]) -> pa.Table:
        """Return the table with the missing cells of some columns replaced."""
        columns, fields = list(self.table.columns), list(self.table.schema)
        for position, change in new.items():
            columns[position] = arrow_fill(columns[position], change)
            fields[position] = fields[position].with_type(columns[position].type)
        return pa.table(columns, pa.schema(fields, metadata=self.table.schema.metadata))


def arrow_cells(name: str, column: pa.ChunkedArray) -> Cells:
    """Return the cells of an Arrow column."""
    series = nw.from_native(column, series_only=True)
    storage = storage_of(name, series.dtype, column.type)
    dtype = str(column.type) if isinstance(series.dtype, nw.Unknown) else str(series.dtype)
    if storage != "category":
        return series_cells(name, series, storage, dtype)
    # the cells are those of the decoded values; the dictionary gives the order of the levels
    cells = arrow_cells(name, column.cast(column.type.value_type))
    order = tuple(_unified(column)[0])
    ordered = bool(column.type.ordered)
    return replace(cells, dtype=dtype, storage=storage, order=order, ordered=ordered)


def arrow_fill(column: pa.ChunkedArray, new: New) -> pa.ChunkedArray:
    """Return an Arrow column with its missing cells replaced."""
    cells, values, kind = new.cells, new.values, column.type
    if not holds(cells, values):
        return pa.chunked_array([pa.array(scattered(new))])
    if cells.storage == "category":
        return pa.chunked_array([_fill_dictionary(column, new)])
    if cells.storage == "string":
        fresh = pa.array(values, type=kind)
    elif cells.storage == "decimal":
        fresh = pa.array(as_decimals(values, kind.precision, kind.scale), type=kind)
    elif new.completes:
        return pa.chunked_array([pa.array(filled_numpy(new))])
    else:
        kind = pa.float64() if new.widen else kind
        column = column.cast(kind)
        fresh = pa.array(as_numpy(values, np.dtype(kind.to_pandas_dtype())), type=kind)
    both = pa.chunked_array([*column.chunks, fresh], type=kind)
    return movable(both).take(pa.array(fill_index(new))).cast(kind)


def select_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Return the rows of a table at some positions."""
    at = pa.array(rows)
    columns = [movable(column).take(at).cast(column.type) for column in table.columns]
    return pa.table(columns, table.schema)


def movable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that Arrow's `take` is implemented for."""
    return column.cast(pa.large_string()) if is_view(column.type) else column


def without_views(table: pa.Table) -> pa.Table:
    """Return a table with ordinary strings in place of string views, whose casts crash polars."""
    return pa.table([movable(column) for column in table.columns], table.column_names)


def _unified(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the categories of all chunks, and the category of each cell, -1 where missing.

    Arrow's own `unify_dictionaries` fails if a dictionary has a null.
    """
    code: dict[Any, int] = {}
    codes = [np.zeros(0, dtype=np.int64)]
    for chunk in column.chunks:
        # a null index is the last one
        own = [*chunk.dictionary.to_pylist(), None]
        present = [value is not None and value == value for value in own]
        for value, is_level in zip(own, present, strict=True):
            if is_level:
                code.setdefault(value, len(code))
        pairs = zip(own, present, strict=True)
        to = np.array([code[value] if is_level else -1 for value, is_level in pairs])
        index = chunk.indices.cast(pa.int64()).fill_null(len(own) - 1)
        codes.append(to[index.to_numpy()])
    return list(code), np.concatenate(codes)


def _fill_dictionary(column: pa.ChunkedArray, new: New) -> pa.DictionaryArray:
    values, kind = as_categories(new), column.type
    levels, codes = _unified(column)
    # with the levels of the fitted table that this table does not have
    levels += added_categories(new, set(levels))
    code = {value: position for position, value in enumerate(levels)}
    index = kind.index_type
    if len(levels) - 1 > np.iinfo(index.to_pandas_dtype()).max:
        index = pa.int32()
    codes[new.at] = [code[value] for value in values]
    indices = pa.array(np.maximum(codes, 0), mask=codes < 0).cast(index)
    dictionary = pa.array(levels, type=kind.value_type)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=kind.ordered)
