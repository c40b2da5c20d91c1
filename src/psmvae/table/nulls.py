"""Missing cells of Arrow columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def is_view(kind: Any) -> bool:
    """Whether a type is that of string views, which older versions of pyarrow do not have."""
    return str(kind) == "string_view"


def is_string_type(kind: Any) -> bool:
    """Whether a type is one of strings."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind)


def set_null(column: Any, missing: Any) -> Any:
    """Return a column with null where `missing` is true.

    The nulls are an array: with a null scalar, ``pyarrow.compute.if_else`` gives invalid strings
    for a slice of a column in pyarrow 22 and before. It is not implemented for string views.
    """
    if is_view(column.type):
        return set_null(column.cast(pa.large_string()), missing).cast(column.type)
    return pc.if_else(missing, pa.nulls(len(column), column.type), column)
