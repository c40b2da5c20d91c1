"""One column of a table as NumPy arrays: its values and where they are missing."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import compress
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psmvae.table.errors import UnsupportedColumnError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from psmvae.kinds import Level

Family = Literal["number", "bool", "string", "nothing"]
"""What the observed cells of a column are; "nothing" where no cell is observed."""

Storage = Literal["integer", "float", "boolean", "string", "decimal", "category", "object", "null"]
"""What a data type can hold, whatever library it is from."""

MAX_WHOLE = 2.0**53
"""Above this float64 holds whole numbers only, and not all of them."""

_TEMPORAL = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)


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
        What the data type can hold, see `Storage`.
    family : str
        What the observed cells are, see `Family`.
    raw : ndarray
        All cells in a NumPy type that holds them exactly. It may be the table's own memory and
        must not be written to. Missing cells are NaN in a float array, and arbitrary in others.
    missing : ndarray of bool
        True where a cell is missing: null, None, NA or NaN.
    order : tuple, optional
        The categories of a categorical data type, in its own order.
    ordered : bool
        Whether the data type declares the categories as ordered.
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

    def observed(self) -> NDArray[Any]:
        """Return the observed cells, in their own type."""
        return self.raw[~self.missing] if self.missing_rows.size else self.raw

    def values(self) -> NDArray[np.float64]:
        """Return numbers (or bools) as a read-only array of float64, NaN where missing."""
        values = self.raw.astype(np.float64, copy=False)
        if self.raw.dtype.kind != "f":
            values[self.missing_rows] = np.nan
        values = values.view()
        values.flags.writeable = False
        return values

    def levels(self) -> tuple[Level, ...]:
        """Return the distinct observed values, in the data type's order or else sorted."""
        return self._levels

    @cached_property
    def counts(self) -> Counter[str]:
        """Numbers of cells of the distinct strings; empty if the column does not hold strings."""
        return Counter(self.observed().tolist() if self.family == "string" else ())

    @cached_property
    def _levels(self) -> tuple[Level, ...]:
        if self.family == "bool":
            # both, also where only one was observed
            return (False, True)
        if self.family == "string":
            seen = set(self.counts)
        elif self.raw.dtype == object:
            seen = set(self.observed().tolist())
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


def unsupported_dtype(name: str, dtype: str, *, temporal: bool = False) -> UnsupportedColumnError:
    """Return the error for a column of a data type that no kind can model."""
    content = f"is of type {dtype}, which has no kind"
    if temporal:
        return UnsupportedColumnError(name, content, "numbers (say, days since a date)")
    return UnsupportedColumnError(name, content)


def empty_cells(name: str, n_rows: int, dtype: str, storage: Storage) -> Cells:
    """Return the cells of a column without an observed one."""
    raw = np.full(n_rows, np.nan)
    return Cells(name, dtype, storage, "nothing", raw, np.ones(n_rows, dtype=bool))


def number_cells(
    name: str,
    dtype: str,
    storage: Storage,
    raw: NDArray[Any],
    missing: NDArray[np.bool_] | None = None,
) -> Cells:
    """Return the cells of a column of numbers or bools; NaN is missing."""
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
    """Return the cells of a column of Python objects, which must be of one family."""
    objects = list(items)
    types_with_missing = {kind for kind in set(map(type, objects)) if _may_be_missing(kind)}
    missing = np.array(
        [type(item) in types_with_missing and _is_missing(item) for item in objects], dtype=bool
    )
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


def _is_missing(item: Any) -> bool:
    """Whether an object marks a missing cell; its type passed `_may_be_missing`."""
    if item is None:
        return True
    if isinstance(item, float | np.floating):
        return bool(item != item)
    return not isinstance(item, Decimal) or item.is_nan()


def _may_be_missing(kind: type) -> bool:
    # pandas' NA and NaT are compared by name, because pandas need not be installed
    return issubclass(kind, NoneType | float | np.floating | Decimal) or kind.__name__ in {
        "NAType",
        "NaTType",
    }


def _content(name: str, types: Counter[type]) -> set[str]:
    """Return the narwhals types of a column of objects; several only if all are numeric."""
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
        raise UnsupportedColumnError(name, f"mixes types: {found}", "one of str, bool or numbers")
    return contents


def _odd_object(name: str, kind: type, n_rows: int) -> UnsupportedColumnError:
    if issubclass(kind, _TEMPORAL):
        return unsupported_dtype(name, kind.__name__, temporal=True)
    # scikit-learn's checks look for "argument must be a string.* number"
    content = (
        f"holds {kind.__name__} ({n_rows} rows): a cell given in a table argument must be a "
        "string, a bool, a number or missing"
    )
    return UnsupportedColumnError(name, content)


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
