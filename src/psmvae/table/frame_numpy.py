"""NumPy arrays and lists of rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.casts import New, as_numpy, as_objects, holds
from psmvae.table.cells import MAX_WHOLE, Cells, Storage, number_cells, object_cells


def array_names(n_columns: int) -> tuple[str, ...]:
    """Return names for the columns of an array, numbered as in scikit-learn."""
    return tuple(f"x{j}" for j in range(n_columns))


class ArraySource:
    """A 2-D NumPy array; its columns are x0, x1, ..."""

    has_names = False
    index = None

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.n_rows = array.shape[0]
        self.names = array_names(array.shape[1])

    def read(self, position: int) -> Cells:
        """Return the cells of one column."""
        name, column = self.names[position], self.array[:, position]
        if column.dtype.kind in "OUT":
            storage: Storage = "object" if column.dtype == object else "string"
            return object_cells(name, column.tolist(), storage=storage)
        return number_cells(name, column)

    def replace(self, new: Mapping[int, New]) -> NDArray[Any]:
        """Return a copy with missing cells replaced; of objects if its type cannot hold them."""
        array = self.array.copy(order="K")
        if not all(holds(change.cells, change.values) for change in new.values()):
            array = array.astype(object)
        for position, change in new.items():
            if array.dtype == object:
                cast = as_objects(change)
            elif array.dtype.kind in "UT":
                cast = change.values
            else:
                cast = as_numpy(change.values, array.dtype)
            array[change.at, position] = cast
        return array


def as_array(table: Any) -> NDArray[Any]:
    """Return a 2-D array of an array or a list of rows."""
    if isinstance(table, np.ma.MaskedArray):
        message = "masked arrays are not supported: use .filled(np.nan) to mark missing values"
        raise TypeError(message)
    try:
        array = np.asarray(table)
        if array.dtype.kind in "US" and not isinstance(table, np.ndarray):
            # NumPy turns the NaN and the numbers beside a string into strings
            array = np.asarray(table, dtype=object)
        if array.dtype == object and not isinstance(table, np.ndarray):
            array = _as_floats(array)
    except ValueError as error:
        message = "expected a list of rows of the same length, got rows that differ in length"
        raise ValueError(message) from error
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: got an array of {array.dtype}")
    if array.ndim != 2:
        message = (
            f"Expected 2D array, got {array.ndim}D array instead (shape={array.shape}). Reshape "
            "your data: X.reshape(-1, 1) if it is a single column, X.reshape(1, -1) if a single row"
        )
        raise ValueError(message)
    if array.dtype.kind not in "fiubOUT":
        message = (
            f"expected an array of numbers, bools, strings or objects, got one of {array.dtype}: "
            "convert it to numbers or strings first"
        )
        raise TypeError(message)
    return array


def _as_floats(array: NDArray[Any]) -> NDArray[Any]:
    """Return objects as floats if all are numbers or None and float64 holds them exactly."""
    cells = array.ravel().tolist()
    # by type, since a bool is an int too
    if not set(map(type, cells)) <= {int, float, NoneType, np.float64, np.int64}:
        return array
    large = any(isinstance(cell, int | np.int64) and abs(int(cell)) > MAX_WHOLE for cell in cells)
    return array if large else array.astype(np.float64)
