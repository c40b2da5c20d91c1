"""Data types by their narwhals names, and the cells of polars and Arrow columns.

Integers of 128 bits have no NumPy type, so they are read as Python objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from psmvae.table.cells import (
    Cells,
    Storage,
    empty_cells,
    number_cells,
    object_cells,
    unsupported_dtype,
)

if TYPE_CHECKING:
    import numpy as np


def numpy_dtype_name(dtype: np.dtype[Any]) -> str:
    """Return a NumPy type as narwhals prints it."""
    if dtype.kind == "b":
        return "Boolean"
    return dtype.name.capitalize().replace("Uint", "UInt")


def numpy_storage(dtype: np.dtype[Any]) -> Storage:
    """Return what a NumPy type of numbers or bools can hold."""
    return "boolean" if dtype.kind == "b" else "float" if dtype.kind == "f" else "integer"


def is_integer_name(dtype: str) -> bool:
    """Whether a narwhals name is that of an integer type."""
    return dtype.startswith(("Int", "UInt"))


def storage_of(name: str, dtype: nw.dtypes.DType, native: Any) -> Storage:
    """Return what a column of a data type can hold."""
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return "category"
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "float"
    if isinstance(dtype, nw.Boolean):
        return "boolean"
    if isinstance(dtype, nw.String):
        return "string"
    # narwhals has neither a null type nor decimals of other widths than 128 bits
    if str(native).lower() == "null":
        return "null"
    if dtype.is_decimal() or str(native).startswith("decimal"):
        return "decimal"
    raise unsupported_dtype(name, str(native), temporal=dtype.is_temporal())


def series_cells(name: str, series: nw.Series[Any], storage: Storage, dtype: str) -> Cells:
    """Return the cells of a polars or Arrow column that is not categorical."""
    if storage == "null":
        return empty_cells(name, len(series), dtype, storage)
    if storage == "string" or dtype.endswith("128"):
        return object_cells(name, series.to_list(), dtype=dtype, storage=storage)
    if storage in {"float", "decimal"}:
        raw = (series if storage == "float" else series.cast(nw.Float64())).to_numpy()
        return number_cells(name, dtype, storage, raw)
    missing = series.is_null().to_numpy()
    # without nulls an integer column becomes an integer array, and not one of floats
    blank = False if storage == "boolean" else 0
    raw = series.fill_null(blank).to_numpy() if missing.any() else series.to_numpy()
    return number_cells(name, dtype, storage, raw, missing)
