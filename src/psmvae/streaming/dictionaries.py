"""Dictionaries of categorical columns in an Arrow file, which may have only one for each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class SharedDictionaries:
    """Gives the categorical columns of all tables of a file the same dictionaries.

    A dictionary begins with that of the first table and the fitted levels. Further categories are
    appended, since a writer can extend a dictionary but not replace it.

    Parameters
    ----------
    levels : mapping of str to sequence
        Fitted levels of columns.
    """

    def __init__(self, levels: Mapping[str, Sequence[Any]]) -> None:
        self._levels = levels
        self._known: dict[str, Any] = {}

    def __call__(self, table: Any) -> Any:
        """Return a table with the dictionaries of the file."""
        columns = [
            self._recoded(field.name, column) if pa.types.is_dictionary(field.type) else column
            for field, column in zip(table.schema, table.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=table.schema)

    def _recoded(self, name: str, column: Any) -> Any:
        for chunk in column.chunks:
            if name in self._known:
                self._known[name] = _extended(self._known[name], chunk.dictionary)
            else:
                self._known[name] = _first(chunk.dictionary, self._levels.get(name, ()))
        chunks = [_recoded_chunk(chunk, self._known[name]) for chunk in column.chunks]
        return pa.chunked_array(chunks, column.type)


def _first(own: Any, levels: Sequence[Any]) -> Any:
    """Return a dictionary of all levels, in the order of the one that has the other."""
    fitted = own.slice(0, 0)
    # levels of another type than that of the column are not among its categories
    with suppress(pa.ArrowException):
        fitted = pa.array(list(levels), type=own.type)
    own = _extended(own.slice(0, 0), own)
    both = _extended(own, fitted)
    return fitted if len(both) == len(fitted) > len(own) else both


def _extended(known: Any, own: Any) -> Any:
    """Return a dictionary with the categories of another one at its end."""
    if own.equals(known):
        return known
    is_new = pc.and_(own.is_valid(), pc.index_in(own, value_set=known).is_null())
    new = own.filter(is_new).unique()
    return pa.concat_arrays([known, new]) if len(new) else known


def _recoded_chunk(chunk: Any, dictionary: Any) -> Any:
    if chunk.dictionary.equals(dictionary):
        indices = chunk.indices
    else:
        # a category that is null has no code, and its cells become null
        codes = pc.index_in(chunk.dictionary, value_set=dictionary)
        indices = codes.take(chunk.indices).cast(chunk.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=chunk.type.ordered)
