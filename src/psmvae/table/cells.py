"""One column of any table as NumPy: what it holds, where it is missing, and new values for it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import compress
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from psmvae.table.errors import UnsupportedColumnError
from psmvae.table.words import either, option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from psmvae.kinds import Level

Family = Literal["number", "bool", "string", "nothing"]
Storage = Literal["integer", "float", "boolean", "string", "decimal", "category", "object", "null"]

# Beyond this every float64 is a whole number, and not every whole number is a float64.
MAX_WHOLE = 2.0**53
_TEMPORAL = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
_PLAIN = "numbers, strings or bools,"


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    Parameters
    ----------
    name : str
        The column's name.
    dtype : str
        Its data type as narwhals prints it; for a column of Python objects, that of its content.
    storage : str
        What the data type can hold.
    family : str
        What the observed cells are; "nothing" when none is observed.
    raw : ndarray
        All cells in a NumPy type that holds them exactly; anything where missing, but NaN where
        the type is a float.
    missing : ndarray of bool
        Where a cell is missing: null, None, NA or NaN.
    order : tuple, optional
        The categories of a categorical data type, in its own order.
    ordered : bool
        Whether the data type says that this order means something.
    """

    name: str
    dtype: str
    storage: Storage
    family: Family
    raw: NDArray[Any]
    missing: NDArray[np.bool_]
    order: tuple[Level, ...] | None = None
    ordered: bool = False

    @property
    def n_observed(self) -> int:
        """How many cells are observed."""
        return self.missing.size - int(np.count_nonzero(self.missing))

    def observed(self) -> NDArray[Any]:
        """Return the observed cells, in their own type."""
        return self.raw[~self.missing] if self.missing.any() else self.raw

    def values(self) -> NDArray[np.float64]:
        """Numbers (or bools) as float64, NaN where missing. Not to be written to."""
        values = self.raw.astype(np.float64, copy=False)
        if self.raw.dtype.kind != "f":
            values[self.missing] = np.nan
        return values

    def levels(self) -> tuple[Level, ...]:
        """Return the distinct observed values, in the data type's order or else sorted."""
        if self.family == "bool":
            # a bool can be both, also where only one was seen
            return (False, True)
        if self.family == "string" or self.raw.dtype == object:
            seen = set(self.observed().tolist())
        else:
            # adding zero makes one level of 0.0 and -0.0
            seen = set((np.unique(self.observed()) + 0).tolist())
        if self.order is not None:
            return tuple(level for level in self.order if level in seen)
        return tuple(sorted(seen))

    def codes(self, levels: Sequence[Level]) -> NDArray[np.float64]:
        """Positions in `levels`: NaN where missing, -1 where the level is not among them."""
        # a dict finds 1, 1.0 and True alike, and integers beyond 2**53 exactly
        position = {level: code for code, level in enumerate(levels)}
        codes = np.full(self.missing.size, np.nan)
        observed = self.observed()
        if observed.dtype == object:
            found = [position.get(value, -1) for value in observed.tolist()]
            codes[~self.missing] = found
        else:
            distinct, inverse = np.unique(observed, return_inverse=True)
            found = [position.get(value, -1) for value in distinct.tolist()]
            codes[~self.missing] = np.asarray(found, dtype=np.float64)[inverse.reshape(-1)]
        return codes


class New(NamedTuple):
    """New values for the missing cells of a column: float, int, bool, or object holding str.

    With `widen` a column of integers becomes one of floats, so that values keep their fractions.
    """

    cells: Cells
    values: NDArray[Any]
    widen: bool = False


def unsupported(name: str, what: str, *, temporal: bool = False) -> UnsupportedColumnError:
    """Return the error for a column of a data type that no kind can model."""
    advice = _advice(name, "numbers (say, days since a date)" if temporal else _PLAIN)
    return UnsupportedColumnError(f"column {name!r} is of type {what}, which has no kind: {advice}")


def _advice(name: str, into: str) -> str:
    aside = either("drop it", f"set it aside by {option('--ignore', [name])}")
    return f"turn it into {into} or {aside}"


def empty_cells(name: str, n_rows: int, dtype: str, storage: Storage) -> Cells:
    """Cells of a column with nothing in it."""
    raw = np.full(n_rows, np.nan)
    return Cells(name, dtype, storage, "nothing", raw, np.ones(n_rows, dtype=bool))


def number_cells(
    name: str,
    dtype: str,
    storage: Storage,
    raw: NDArray[Any],
    missing: NDArray[np.bool_] | None = None,
) -> Cells:
    """Cells of a column of numbers or bools; the NaN of a float are missing."""
    if raw.dtype.kind == "f":
        missing = np.isnan(raw)
    elif missing is None:
        missing = np.zeros(raw.size, dtype=bool)
    family: Family = "bool" if raw.dtype.kind == "b" else "number"
    if missing.all():
        family = "nothing"
    return Cells(name, dtype, storage, family, raw, missing)


def object_cells(
    name: str,
    items: Iterable[Any],
    *,
    dtype: str | None = None,
    storage: Storage = "object",
    order: tuple[Level, ...] | None = None,
) -> Cells:
    """Cells of a column of Python objects, which must be of one family.

    Raises
    ------
    UnsupportedColumnError
        If the objects are neither strings, bools nor numbers, or a mixture of these.
    """
    objects = list(items)
    doubtful = {kind for kind in set(map(type, objects)) if _may_be_missing(kind)}
    gone = [type(item) in doubtful and _is_missing(item) for item in objects]
    missing = np.array(gone, dtype=bool)
    observed = list(compress(objects, (~missing).tolist()))
    types = Counter(map(type, observed))
    contents = _content(name, types)
    if not contents:
        raw = np.full(missing.size, np.nan)
        return Cells(name, dtype or "Object", storage, "nothing", raw, missing, order)
    content = contents.pop() if len(contents) == 1 else "number"
    if content == "String":
        raw = np.empty(missing.size, dtype=object)
        # str.__str__ turns np.str_ and other subclasses into plain strings
        raw[~missing] = observed if set(types) == {str} else list(map(str.__str__, observed))
        return Cells(name, dtype or content, storage, "string", raw, missing, order)
    if content == "Boolean":
        raw = np.zeros(missing.size, dtype=bool)
        raw[~missing] = observed
        return Cells(name, dtype or content, storage, "bool", raw, missing, order)
    raw = _numbers(name, observed, missing, whole=content == "Int64")
    if content == "number":
        content = "Decimal" if "Decimal" in contents else "Float64"
    return Cells(name, dtype or content, storage, "number", raw, missing, order)


def holds(cells: Cells, values: NDArray[Any]) -> bool:
    """Whether the column's data type can take the new values."""
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


def as_numpy(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers in another NumPy type: rounded where it is whole, held inside its limits.

    Examples
    --------
    >>> as_numpy(np.array([-3.0, 2.6, 1e9]), np.dtype("uint8")).tolist()
    [0, 3, 255]
    """
    if dtype.kind == "b":
        return values.astype(np.float64) >= 0.5
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        return np.clip(values.astype(np.float64), -most, most).astype(dtype)
    limits = np.iinfo(dtype)
    whole = values if values.dtype.kind in "iu" else np.rint(values.astype(np.float64))
    # the largest int64 is no float64, so the two ends are set apart from what can be cast
    above, below = whole >= limits.max, whole <= limits.min
    cast = np.where(above | below, 0, whole).astype(dtype)
    cast[above], cast[below] = limits.max, limits.min
    return cast


def as_objects(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return new values as Python objects of the type that `dtype` names."""
    out = np.empty(values.size, dtype=object)
    if values.dtype == object:
        out[:] = values
    elif dtype.startswith("Decimal"):
        out[:] = [Decimal(repr(value)) for value in values.astype(np.float64).tolist()]
    elif dtype.startswith(("Int", "UInt")):
        # Python's integers have no limits
        out[:] = [round(value) for value in values.tolist()]
    elif dtype == "Boolean":
        out[:] = as_numpy(values, np.dtype(bool)).tolist()
    else:
        out[:] = values.tolist()
    return out


def as_decimals(values: NDArray[Any], precision: int, scale: int) -> list[Decimal]:
    """Numbers as decimals with `scale` digits after the point and `precision` in all."""
    most = 10**precision - 1
    # Python's default context would round at 28 digits
    context = Context(prec=max(precision, 28))
    decimals = []
    for value in values.astype(np.float64).tolist():
        units = round(context.scaleb(Decimal(repr(value)), scale))
        decimals.append(context.scaleb(Decimal(min(max(units, -most), most)), -scale))
    return decimals


def fill_index(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where each cell of the filled column is, in the old column followed by the new values."""
    index = np.arange(missing.size, dtype=np.int64)
    index[missing] = missing.size + np.arange(np.count_nonzero(missing))
    return index


def _is_missing(item: Any) -> bool:
    """Tell whether an object of a type that may mark a missing cell does."""
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(item != item)
    return not isinstance(item, Decimal) or item.is_nan()


def _may_be_missing(kind: type) -> bool:
    # pandas' own marks, known by name so that pandas need not be there
    return issubclass(kind, NoneType | float | np.floating | Decimal) or kind.__name__ in {
        "NAType",
        "NaTType",
    }


def _content(name: str, types: Counter[type]) -> set[str]:
    """Return what a column of objects amounts to in narwhals; several types only of numbers."""
    contents = set()
    for kind in types:
        if issubclass(kind, bool | np.bool_):
            contents.add("Boolean")
        elif issubclass(kind, str):
            contents.add("String")
        elif issubclass(kind, int | np.integer):
            contents.add("Int64")
        elif issubclass(kind, float | np.floating):
            contents.add("Float64")
        elif issubclass(kind, Decimal):
            contents.add("Decimal")
        else:
            raise _odd_object(name, kind, types[kind])
    if len(contents) > 1 and contents & {"Boolean", "String"}:
        found = ", ".join(f"{kind.__name__} ({n} rows)" for kind, n in types.most_common())
        message = f"column {name!r} mixes types: {found}; expected one of str, bool or numbers"
        raise UnsupportedColumnError(message)
    return contents


def _odd_object(name: str, kind: type, n_rows: int) -> UnsupportedColumnError:
    if issubclass(kind, _TEMPORAL):
        return unsupported(name, kind.__name__, temporal=True)
    return UnsupportedColumnError(
        f"column {name!r} holds {kind.__name__} ({n_rows} rows): a cell given in a table argument "
        f"must be a string, a bool, a number or missing; {_advice(name, _PLAIN)}"
    )


def _numbers(
    name: str, observed: list[Any], missing: NDArray[np.bool_], *, whole: bool
) -> NDArray[Any]:
    bounds = np.iinfo(np.int64)
    if whole and bounds.min <= min(observed) and max(observed) <= bounds.max:
        raw: NDArray[Any] = np.zeros(missing.size, dtype=np.int64)
    else:
        raw = np.full(missing.size, np.nan)
    try:
        raw[~missing] = [float(item) for item in observed] if raw.dtype.kind == "f" else observed
    except OverflowError as error:
        message = f"column {name!r} holds an integer too large for a float64"
        raise ValueError(message) from error
    return raw
