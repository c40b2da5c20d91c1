"""Tables: what their columns are, the way into the model and back, and files."""

from psmvae.table.codec import Codec, Encoded
from psmvae.table.errors import TableError, UnsupportedColumnError
from psmvae.table.io import (
    atomic_path,
    check_output,
    keep_text,
    read_table,
    read_text,
    write_table,
)
from psmvae.table.schema import Schema, infer_kind

__all__ = [
    "Codec",
    "Encoded",
    "Schema",
    "TableError",
    "UnsupportedColumnError",
    "atomic_path",
    "check_output",
    "infer_kind",
    "keep_text",
    "read_table",
    "read_text",
    "write_table",
]
