"""Missing cells of Arrow columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def set_null(column: Any, missing: Any) -> Any:
    """Return a column with null where `missing` is true.

    The nulls are an array: with a null scalar, ``pyarrow.compute.if_else`` gives invalid strings
    for a slice of a column in pyarrow 22 and before.
    """
    return pc.if_else(missing, pa.nulls(len(column), column.type), column)
