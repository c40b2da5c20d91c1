"""New values in the data type of the column they fill.

Decimals are rounded here and not by a library's cast: pyarrow and polars raise where a value
exceeds the precision, and round the binary number (2.675 to 2.67) instead of the decimal one.
"""

from __future__ import annotations

from collections.abc import Set
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.table.cells import Cells, is_integer
from psmvae.table.errors import ContentMismatchError

if TYPE_CHECKING:
    from psmvae.kinds.base import Level


class New(NamedTuple):
    """Values for the cells of a column at `rows`; with `widen`, integers become floats.

    `rows` are positions in ascending order, by default those of all missing cells. `levels` are
    those that the values were drawn from, in the order of the fitted column.
    """

    cells: Cells
    values: NDArray[Any]
    widen: bool = False
    rows: NDArray[np.intp] | None = None
    levels: tuple[Level, ...] = ()

    @property
    def at(self) -> NDArray[np.intp]:
        """The positions of the values."""
        return self.cells.missing_rows if self.rows is None else self.rows

    @property
    def completes(self) -> bool:
        """Whether no cell of the column stays missing."""
        left = self.cells.missing.copy()
        left[self.at] = False
        return not left.any()


def holds(cells: Cells, values: NDArray[Any]) -> bool:
    """Whether the column's data type can hold the new values."""
    text = values.dtype == object
    match cells.storage:
        case "object":
            return True
        case "null":
            return False
        case "string":
            return text
        case "category":
            return not cells.order or text == isinstance(cells.order[0], str)
        case "boolean":
            return values.dtype == bool or (not text and cells.family != "nothing")
        case _:
            return not text


def as_categories(new: New) -> list[Any]:
    """Return levels as objects of the type of a column's categories.

    The column may lack some levels of the fitted table. These become new categories, but never
    ones of another type, which would change the observed cells.
    """
    items: list[Any] = new.values.tolist()
    cast = _category_type(new.cells)
    if cast is None:
        return items
    converted = [cast(item) for item in items]
    for item, level in zip(items, converted, strict=True):
        if item != level:
            found = f"categories of type {cast.__name__}"
            raise ContentMismatchError(new.cells.name, f"numbers (such as {item!r})", found)
    return converted


def added_categories(new: New, known: Set[Any]) -> list[Any]:
    """Return the levels that the categories of a column lack, in the order of the fitted column.

    None if the new values need none of them, otherwise all: the order then does not depend on the
    values, which differ between the completed tables of a multiple imputation.
    """
    if set(as_categories(new)) <= known:
        return []
    cast = _category_type(new.cells)
    levels = [level if cast is None else cast(level) for level in new.levels]
    pairs = zip(levels, new.levels, strict=True)
    return [level for level, fitted in pairs if level == fitted and level not in known]


def _category_type(cells: Cells) -> type | None:
    """Return the type of the categories of a column, None for strings and without categories."""
    known = {type(level) for level in cells.order or ()}
    if not known or str in known:
        return None
    return bool if known == {bool} else int if known <= {bool, int} else float


def as_numpy(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers in another NumPy type, rounded to an integer type and clipped to its range."""
    if dtype.kind == "b":
        return values.astype(np.float64) >= 0.5
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        return np.clip(values.astype(np.float64), -most, most).astype(dtype)
    limits = np.iinfo(dtype)
    whole = values if values.dtype.kind in "iu" else np.rint(values.astype(np.float64))
    # the largest int64 is not a float64: a cast at the bounds would overflow
    above, below = whole >= limits.max, whole <= limits.min
    cast = np.where(above | below, 0, whole).astype(dtype)
    cast[above], cast[below] = limits.max, limits.min
    return cast


def as_objects(new: New) -> NDArray[Any]:
    """Return new values as Python objects of the type of the column's content."""
    values, dtype = new.values, "Float64" if new.widen else new.cells.dtype
    items = values.tolist()
    if values.dtype != object and dtype.startswith("Decimal"):
        items = [Decimal(repr(value)) for value in values.astype(np.float64).tolist()]
    elif values.dtype != object and is_integer(dtype):
        items = [round(value) for value in items]
    elif values.dtype != object and dtype == "Boolean":
        items = as_numpy(values, np.dtype(bool)).tolist()
    out = np.empty(values.size, dtype=object)
    out[:] = items
    return out


def as_decimals(values: NDArray[Any], precision: int, scale: int) -> list[Decimal]:
    """Return decimals with `scale` digits after the point and `precision` in all, clipped."""
    # Python's default context would round at 28 digits
    most, context = 10**precision - 1, Context(prec=max(precision, 28))
    decimals = (Decimal(repr(value)) for value in values.astype(np.float64).tolist())
    units = (round(context.scaleb(decimal, scale)) for decimal in decimals)
    return [context.scaleb(Decimal(min(max(unit, -most), most)), -scale) for unit in units]


def filled_numpy(new: New) -> NDArray[Any]:
    """Return a new array of all cells of a number or bool column, those at `rows` replaced."""
    cells = new.cells
    column = cells.raw.astype(np.float64) if new.widen else cells.raw.copy()
    column[new.at] = as_numpy(new.values, column.dtype)
    return column


def fill_index(new: New) -> NDArray[np.int64]:
    """Return where each cell is, in the old column followed by the new values."""
    index = np.arange(new.cells.missing.size, dtype=np.int64)
    index[new.at] = new.cells.missing.size + np.arange(new.at.size)
    return index


def scattered(new: New) -> list[Any]:
    """Return all cells of a column that had no value, None where it still has none."""
    cells: list[Any] = [None] * new.cells.missing.size
    for row, value in zip(new.at.tolist(), new.values.tolist(), strict=True):
        cells[row] = value
    return cells
