"""One column of a table as NumPy arrays: its values and where they are missing."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import compress
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.table.errors import UnsupportedColumnError

if TYPE_CHECKING:
    from psmvae.kinds.base import Level

Family = Literal["number", "bool", "string", "nothing"]
"""What the observed cells of a column are; "nothing" where no cell is observed."""
Storage = Literal["integer", "float", "boolean", "string", "decimal", "category", "object", "null"]
"""What a data type can hold, whatever library it is from."""
MAX_WHOLE = 2.0**53
"""Above this float64 holds whole numbers only, and not all of them."""

_TEMPORAL = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
# Python types and the narwhals types that hold them; a bool is an int too, so it comes first
_CONTENTS: tuple[tuple[Any, str], ...] = (
    ((bool, np.bool_), "Boolean"),
    (str, "String"),
    ((int, np.integer), "Int64"),
    ((float, np.floating), "Float64"),
    (Decimal, "Decimal"),
)


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    `dtype` is the data type as narwhals prints it; for Python objects, that of their content.
    `raw` holds all cells in a NumPy type that holds them exactly. It may be the table's own memory
    and must not be written to. Where `missing`, it is NaN in a float array and arbitrary in others.
    `order` has the categories of a categorical data type, which may declare them as `ordered`.
    """

    name: str
    dtype: str
    storage: Storage
    family: Family
    raw: NDArray[Any]
    missing: NDArray[np.bool_]
    order: tuple[Level, ...] | None = None
    ordered: bool = False

    @cached_property
    def missing_rows(self) -> NDArray[np.intp]:
        """Positions of the missing cells."""
        return np.flatnonzero(self.missing)

    @property
    def n_observed(self) -> int:
        """Number of observed cells."""
        return self.missing.size - self.missing_rows.size

    @cached_property
    def counts(self) -> Counter[str]:
        """Numbers of cells of the distinct strings; empty if the column does not hold strings."""
        return Counter(self.observed().tolist() if self.family == "string" else ())

    @cached_property
    def distinct(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The distinct observed numbers (or bools) in ascending order, and their frequencies."""
        values, counts = np.unique(self.observed(), return_counts=True)
        return values, counts.astype(np.int64)

    def observed(self) -> NDArray[Any]:
        """Return the observed cells, in their own type."""
        return self.raw[~self.missing] if self.missing_rows.size else self.raw

    def values(self) -> NDArray[np.float64]:
        """Return numbers (or bools) as a read-only array of float64, NaN where missing."""
        values = self.raw.astype(np.float64, copy=False).view()
        if self.raw.dtype.kind != "f":
            values[self.missing_rows] = np.nan
        values.flags.writeable = False
        return values

    def levels(self) -> tuple[Level, ...]:
        """Return the distinct observed values, in the data type's order or else sorted."""
        if self.family == "bool":
            return (False, True)
        if self.raw.dtype == object:
            seen = set(self.counts or self.observed().tolist())
        else:
            # adding zero makes one level of 0.0 and -0.0
            seen = set((np.unique(self.observed()) + 0).tolist())
        if self.order is not None:
            return tuple(level for level in self.order if level in seen)
        return tuple(sorted(seen))

    def codes(self, levels: Sequence[Level]) -> NDArray[np.float64]:
        """Return positions in `levels`: NaN where missing, -1 where the level is unknown."""
        # a dict finds 1, 1.0 and True alike, and integers beyond 2**53 exactly
        position = {level: code for code, level in enumerate(levels)}
        codes = np.full(self.missing.size, np.nan)
        observed = self.observed()
        if observed.dtype == object:
            codes[~self.missing] = [position.get(value, -1) for value in observed.tolist()]
        else:
            distinct, inverse = np.unique(observed, return_inverse=True)
            found = [position.get(value, -1) for value in distinct.tolist()]
            codes[~self.missing] = np.asarray(found, dtype=np.float64)[inverse.reshape(-1)]
        return codes


def is_integer(dtype: str) -> bool:
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


def unsupported_dtype(name: str, dtype: str, *, temporal: bool = False) -> UnsupportedColumnError:
    """Return the error for a column of a data type that no kind can model."""
    convert_to = ["numbers (say, days since a date)"] if temporal else []
    return UnsupportedColumnError(name, f"is of type {dtype}, which has no kind", *convert_to)


def number_cells(
    name: str,
    raw: NDArray[Any],
    missing: NDArray[np.bool_] | None = None,
    *,
    dtype: str | None = None,
    storage: Storage | None = None,
) -> Cells:
    """Return cells of numbers or bools; NaN is missing. By default, the array gives the type."""
    kind = raw.dtype.kind
    if kind == "f":
        missing = np.isnan(raw)
    elif missing is None:
        missing = np.zeros(raw.size, dtype=bool)
    if kind == "f" and raw.dtype.itemsize > 8:
        # files and models hold float64; a longer type would be rounded without a word
        content = f"is of type {raw.dtype}, which has more digits than are modelled"
        raise UnsupportedColumnError(name, content, "float64")
    family: Family = "nothing" if missing.all() else "bool" if kind == "b" else "number"
    if dtype is None or storage is None:
        storage = "boolean" if kind == "b" else "float" if kind == "f" else "integer"
        in_numpy = raw.dtype.name.capitalize().replace("Uint", "UInt")
        dtype = "Boolean" if kind == "b" else in_numpy
    return Cells(name, dtype, storage, family, raw, missing)


def series_cells(name: str, series: nw.Series[Any], storage: Storage, dtype: str) -> Cells:
    """Return the cells of a polars or Arrow column that is not categorical."""
    if storage == "null":
        return number_cells(name, np.full(len(series), np.nan), dtype=dtype, storage=storage)
    # integers of 128 bits have no NumPy type
    if storage == "string" or dtype.endswith("128"):
        return object_cells(name, series.to_list(), dtype=dtype, storage=storage)
    if storage in {"float", "decimal"}:
        raw = (series if storage == "float" else series.cast(nw.Float64())).to_numpy()
        return number_cells(name, raw, dtype=dtype, storage=storage)
    missing = series.is_null().to_numpy()
    # without nulls an integer column becomes an integer array, and not one of floats
    blank = False if storage == "boolean" else 0
    raw = series.fill_null(blank).to_numpy() if missing.any() else series.to_numpy()
    return number_cells(name, raw, missing, dtype=dtype, storage=storage)


def object_cells(
    name: str,
    items: Iterable[Any],
    *,
    dtype: str | None = None,
    storage: Storage = "object",
    order: tuple[Level, ...] | None = None,
) -> Cells:
    """Return the cells of a column of Python objects, which must be of one family."""
    objects = list(items)
    types_with_missing = {kind for kind in set(map(type, objects)) if _may_be_missing(kind)}
    is_missing = [type(item) in types_with_missing and _is_missing(item) for item in objects]
    missing = np.array(is_missing, dtype=bool)
    observed = list(compress(objects, (~missing).tolist()))
    types = Counter(map(type, observed))
    content = _content(name, types)
    family: Family = "number"
    match content:
        case "Object":
            family, raw = "nothing", np.full(missing.size, np.nan)
        case "String":
            family, raw = "string", np.empty(missing.size, dtype=object)
            # str.__str__ turns np.str_ and other subclasses into plain strings
            raw[~missing] = observed if set(types) == {str} else list(map(str.__str__, observed))
        case "Boolean":
            family, raw = "bool", np.zeros(missing.size, dtype=bool)
            raw[~missing] = observed
        case _:
            raw = _numbers(name, observed, missing, whole=content == "Int64")
    return Cells(name, dtype or content, storage, family, raw, missing, order)


def _may_be_missing(kind: type) -> bool:
    # pandas' NA and NaT are compared by name, because pandas need not be installed
    by_name = kind.__name__ in {"NAType", "NaTType"}
    return by_name or issubclass(kind, NoneType | float | np.floating | Decimal)


def _is_missing(item: Any) -> bool:
    """Whether an object marks a missing cell; its type passed `_may_be_missing`."""
    if isinstance(item, float | np.floating):
        return bool(item != item)
    return not isinstance(item, Decimal) or item.is_nan()


def _content(name: str, types: Counter[type]) -> str:
    """Return the narwhals type that holds objects of some types; "Object" if there are none."""
    contents = set()
    for kind, n_rows in types.items():
        content = next((text for base, text in _CONTENTS if issubclass(kind, base)), None)
        if content is None and issubclass(kind, _TEMPORAL):
            raise unsupported_dtype(name, kind.__name__, temporal=True)
        if content is None:
            # scikit-learn's checks look for "argument must be a string.* number"
            needed = (
                "a cell given in a table argument must be a string, a bool, a number or missing"
            )
            raise UnsupportedColumnError(name, f"holds {kind.__name__} ({n_rows} rows): {needed}")
        contents.add(content)
    if len(contents) > 1 and contents & {"Boolean", "String"}:
        found = ", ".join(f"{kind.__name__} ({n} rows)" for kind, n in types.most_common())
        raise UnsupportedColumnError(name, f"mixes types: {found}", "one of str, bool or numbers")
    if len(contents) > 1:
        return "Decimal" if "Decimal" in contents else "Float64"
    return contents.pop() if contents else "Object"


def _numbers(
    name: str, observed: list[Any], missing: NDArray[np.bool_], *, whole: bool
) -> NDArray[Any]:
    raw: NDArray[Any] = np.full(missing.size, np.nan)
    for dtype in (np.int64, np.uint64) if whole else ():
        bounds = np.iinfo(dtype)
        if bounds.min <= min(observed) and max(observed) <= bounds.max:
            raw = np.zeros(missing.size, dtype=dtype)
            break
    try:
        raw[~missing] = [float(item) for item in observed] if raw.dtype.kind == "f" else observed
    except OverflowError as error:
        raise ValueError(f"column {name!r} holds an integer too large for a float64") from error
    return raw
