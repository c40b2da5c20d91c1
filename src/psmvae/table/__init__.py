"""Tables of any library: kinds of columns, encoding, filling missing cells, and files."""

from psmvae.table.errors import (
    ColumnMismatchError,
    ContentMismatchError,
    EmptyColumnsWarning,
    IdentifierWarning,
    KindMismatchError,
    OutputExistsError,
    StrayTextError,
    StrayTextWarning,
    StrayValues,
    TableError,
    TooManyLevelsError,
    UnknownLevelsError,
    UnsupportedColumnError,
    UnsupportedColumnsError,
)
from psmvae.table.io import read_table, write_table
from psmvae.table.schema import Schema

__all__ = [
    "ColumnMismatchError",
    "ContentMismatchError",
    "EmptyColumnsWarning",
    "IdentifierWarning",
    "KindMismatchError",
    "OutputExistsError",
    "Schema",
    "StrayTextError",
    "StrayTextWarning",
    "StrayValues",
    "TableError",
    "TooManyLevelsError",
    "UnknownLevelsError",
    "UnsupportedColumnError",
    "UnsupportedColumnsError",
    "read_table",
    "write_table",
]
