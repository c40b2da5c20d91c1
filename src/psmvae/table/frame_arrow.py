"""pyarrow tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from psmvae.table.cells import Cells, New, as_decimals, as_numpy, fill_index, holds
from psmvae.table.frames import series_cells, storage_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class ArrowFrame:
    """A pyarrow Table."""

    has_names = True

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.n_rows = table.num_rows
        self.names = tuple(table.column_names)

    def cells(self, position: int) -> Cells:
        """Return the cells of one column."""
        return arrow_cells(self.names[position], self.table.column(position))

    def replace(self, new: Mapping[int, New]) -> pa.Table:
        """Return the table with the missing cells of some columns replaced."""
        table = self.table
        for position, change in new.items():
            column = arrow_fill(table.column(position), change)
            field = table.schema.field(position).with_type(column.type)
            table = table.set_column(position, field, column)
        return table


def arrow_cells(name: str, column: pa.ChunkedArray) -> Cells:
    """Return the cells of an Arrow column."""
    series = nw.from_native(column, series_only=True)
    storage = storage_of(name, series.dtype, column.type)
    dtype = str(column.type) if isinstance(series.dtype, nw.Unknown) else str(series.dtype)
    if storage != "category":
        return series_cells(name, series, storage, dtype)
    # a category's cells are those of its values; the dictionary gives their order
    cells = arrow_cells(name, column.cast(column.type.value_type))
    order = tuple(value for value in _dictionary(column).to_pylist() if value is not None)
    ordered = bool(column.type.ordered)
    return replace(cells, dtype=dtype, storage=storage, order=order, ordered=ordered)


def arrow_fill(column: pa.ChunkedArray, new: New) -> pa.ChunkedArray:
    """Return an Arrow column with its missing cells replaced."""
    cells, values, widen = new
    if widen:
        column = column.cast(pa.float64())
    kind = column.type
    if not holds(cells, values):
        return pa.chunked_array([pa.array(values)])
    if cells.storage == "category":
        return pa.chunked_array([_fill_dictionary(column, new)])
    if cells.storage == "string":
        fresh = pa.array(values, type=kind)
    elif cells.storage == "decimal":
        fresh = pa.array(as_decimals(values, kind.precision, kind.scale), type=kind)
    else:
        fresh = pa.array(as_numpy(values, np.dtype(kind.to_pandas_dtype())), type=kind)
    index = pa.array(fill_index(cells.missing))
    if str(kind) == "string_view":
        # Arrow cannot yet pick from this type
        both = pa.chunked_array([*column.chunks, fresh]).cast(pa.large_string())
        return both.take(index).cast(kind)
    return pa.chunked_array([*column.chunks, fresh], type=kind).take(index)


def _dictionary(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.unify_dictionaries().chunks
    return chunks[0].dictionary if chunks else pa.array([], type=column.type.value_type)


def _fill_dictionary(column: pa.ChunkedArray, new: New) -> pa.DictionaryArray:
    cells, values = new.cells, new.values
    kind = column.type
    unified = column.unify_dictionaries()
    dictionary = _dictionary(column).to_pylist()
    code = {value: position for position, value in enumerate(dictionary) if value is not None}
    for value in values.tolist():
        # a level known from the fit, but not to this table
        if value not in code:
            code[value] = len(dictionary)
            dictionary.append(value)
    index = kind.index_type
    if len(dictionary) - 1 > np.iinfo(index.to_pandas_dtype()).max:
        index = pa.int32()
    codes = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in unified.chunks])
    codes = codes.astype(index.to_pandas_dtype())
    codes[cells.missing] = [code[value] for value in values.tolist()]
    levels = pa.array(dictionary, type=kind.value_type)
    return pa.DictionaryArray.from_arrays(pa.array(codes, type=index), levels, ordered=kind.ordered)
