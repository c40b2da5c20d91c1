"""Tables of any library: kinds of columns, encoding, filling missing cells, and files."""

from psmvae.table.cells import Cells
from psmvae.table.codec import Codec, Encoded
from psmvae.table.errors import (
    ColumnMismatchError,
    ContentMismatchError,
    EmptyColumnsWarning,
    IdentifierWarning,
    KindMismatchError,
    OutputExistsError,
    StrayTextError,
    StrayTextWarning,
    TableError,
    TooManyLevelsError,
    UnknownLevelsError,
    UnsupportedColumnError,
    UnsupportedColumnsError,
)
from psmvae.table.filler import Filler
from psmvae.table.frames import Frame, open_table
from psmvae.table.io import (
    atomic_path,
    check_output,
    keep_text,
    read_table,
    read_text,
    write_table,
)
from psmvae.table.schema import Schema, infer_kind
from psmvae.table.stray_values import StrayValues

__all__ = [
    "Cells",
    "Codec",
    "ColumnMismatchError",
    "ContentMismatchError",
    "EmptyColumnsWarning",
    "Encoded",
    "Filler",
    "Frame",
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
    "atomic_path",
    "check_output",
    "infer_kind",
    "keep_text",
    "open_table",
    "read_table",
    "read_text",
    "write_table",
]
