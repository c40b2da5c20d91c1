"""pyarrow tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from psmvae.table.casts import (
    New,
    as_decimals,
    as_numpy,
    fill_index,
    filled_numpy,
    holds,
    scattered,
)
from psmvae.table.cells import Cells, series_cells, storage_of


class ArrowSource:
    """A pyarrow Table."""

    has_names = True

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
    order = tuple(value for value in _dictionary(column) if value is not None)
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
    if str(kind) == "string_view":
        # `take` is not implemented for this type
        both = both.cast(pa.large_string())
    return both.take(pa.array(fill_index(new))).cast(kind)


def _dictionary(column: pa.ChunkedArray) -> list[Any]:
    chunks = column.unify_dictionaries().chunks
    return list(chunks[0].dictionary.to_pylist()) if chunks else []


def _fill_dictionary(column: pa.ChunkedArray, new: New) -> pa.DictionaryArray:
    values, kind = new.values.tolist(), column.type
    # with the levels of the fitted table that this table does not have
    levels = _dictionary(column)
    levels += [value for value in dict.fromkeys(values) if value not in levels]
    code = {value: position for position, value in enumerate(levels)}
    index = kind.index_type
    if len(levels) - 1 > np.iinfo(index.to_pandas_dtype()).max:
        index = pa.int32()
    chunks = column.unify_dictionaries().chunks
    codes = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in chunks])
    codes = codes.astype(index.to_pandas_dtype())
    codes[new.at] = [code[value] for value in values]
    dictionary = pa.array(levels, type=kind.value_type)
    left = new.cells.missing.copy()
    left[new.at] = False
    indices = pa.array(codes, type=index, mask=left)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=kind.ordered)
