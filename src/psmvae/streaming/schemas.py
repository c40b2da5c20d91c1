"""The columns of output files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from psmvae.multiple.long_format import IMPUTATION, ROW
from psmvae.table.cells import is_integer
from psmvae.table.errors import TableError

if TYPE_CHECKING:
    from psmvae.kinds import Column
    from psmvae.table.schema import Schema


def output_schema(schema: Any, fitted: Schema) -> Any:
    """Return the schema of completed rows, the same for all batches and files.

    Whole numbers become floats in a column whose imputed values have fractions, and a column
    without any value gets the type of the fitted one.
    """
    columns = {column.name: column for column in fitted.columns}
    fields = [field.with_type(_type(field.type, columns.get(field.name))) for field in schema]
    return pa.schema(fields, schema.metadata)


def long_schema(schema: Any) -> Any:
    """Return the schema of a long table: the number of the imputation and of the row in front."""
    keys = [pa.field(IMPUTATION, pa.int64()), pa.field(ROW, pa.int64())]
    return pa.schema([*keys, *schema], schema.metadata)


def _type(kind: Any, column: Column | None) -> Any:
    """Return the type of a column in the output; `column` is None if the model ignores it."""
    if pa.types.is_dictionary(kind):
        # room for levels that a file does not have
        return pa.dictionary(pa.int32(), kind.value_type, ordered=kind.ordered)
    if column is None:
        return kind
    if pa.types.is_null(kind):
        return _fitted_type(column)
    fractions = column.kind == "real" or (
        column.kind == "positive" and not is_integer(column.dtype)
    )
    if pa.types.is_integer(kind) and fractions:
        return pa.float64()
    return kind


def _fitted_type(column: Column) -> Any:
    if column.n_observed == 0:
        return pa.null()
    if column.levels:
        return pa.array(list(column.levels)).type
    return pa.int64() if is_integer(column.dtype) and column.kind != "real" else pa.float64()


def in_schema(table: Any, schema: Any, place: str) -> Any:
    """Return a completed batch in the output schema."""
    columns = []
    for field in schema:
        column = table[field.name]
        try:
            if column.type != field.type:
                column = _cast(column, field.type)
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise TableError(f"{place}: column {field.name!r}: {reason}") from error
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(column.type) and pa.types.is_dictionary(kind):
        chunks = [
            pa.DictionaryArray.from_arrays(
                chunk.indices.cast(kind.index_type), chunk.dictionary, ordered=kind.ordered
            )
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, kind)
    return column.cast(kind)
