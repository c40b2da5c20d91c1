"""Types of a table of text cells, inferred as pyarrow infers those of a CSV file.

pyarrow infers types only while it parses. As `keep_text` needs the text, it would parse twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from psmvae.table.nulls import set_null
from psmvae.table.text import MISSING

# 007 is a label and not the number seven
_LEADING_ZERO = r"^[+-]?0[0-9]+$"
_DECIMAL = re.compile(r"[+-]?[0-9]+\.[0-9]+")
_TIME = r"^\d{2}:\d{2}(:\d{2})?$"
_BOOLEANS = pa.array(["1", "True", "TRUE", "true", "0", "False", "FALSE", "false"])


def mark_missing(text: Any, na: Sequence[str] = (), keep: Collection[str] = ()) -> Any:
    """Return a table of strings with null in the missing cells."""
    # a single string is one code, not one for each of its letters
    codes = pa.array([*MISSING, *([na] if isinstance(na, str) else na)])

    def marked(column: Any) -> Any:
        missing = pc.is_in(column, codes)
        return set_null(column, missing) if pc.any(missing).as_py() else column

    columns = {
        name: column if name in keep else marked(column)
        for name, column in zip(text.column_names, text.columns, strict=True)
    }
    return pa.table(columns)


def infer_types(text: Any) -> Any:
    """Return a table of strings with each column in the type that holds all its cells.

    As in pyarrow, the first of null, int64, bool, date32, time32, timestamp and float64 that holds
    every cell, and string otherwise; but integers with leading zeros stay strings, and a plus sign
    does not make a float of an integer.
    """
    columns = [_typed(column) for column in text.columns]
    return pa.table(dict(zip(text.column_names, columns, strict=True)))


class TypeScan:
    """The types of `infer_types` for a table that is read in parts.

    Parameters
    ----------
    names : sequence of str
        The columns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        # conversions that hold all cells so far, by number
        self._possible = {name: list(range(len(_CONVERSIONS))) for name in names}
        self._empty = dict.fromkeys(names, True)
        self._labels = dict.fromkeys(names, False)

    def add(self, text: Any) -> None:
        """Take a part of the table into account: strings, null where missing."""
        for name, possible in self._possible.items():
            column = text[name].drop_null()
            if len(column) == 0:
                continue
            self._empty[name] = False
            possible[:] = [k for k in possible if _holds(_CONVERSIONS[k], column)]
            if possible and possible[0] == 0 and not self._labels[name]:
                self._labels[name] = _has_leading_zeros(column)

    def convert(self, text: Any) -> Any:
        """Return a part of the table with the types of the whole table."""
        columns = {name: self._convert(name, text[name]) for name in text.column_names}
        return pa.table(columns)

    def _convert(self, name: str, column: Any) -> Any:
        possible = self._possible[name]
        if self._empty[name]:
            return pa.nulls(len(column))
        if not possible or (possible[0] == 0 and self._labels[name]):
            return column
        if column.null_count == len(column):
            return pa.nulls(len(column), _TYPES[possible[0]])
        return _CONVERSIONS[possible[0]](column)


def _holds(convert: Callable[[Any], Any], column: Any) -> bool:
    try:
        # most types do not hold the first cell, which is faster to test than all cells
        convert(column.slice(0, 1))
        convert(column)
    except pa.ArrowInvalid:
        return False
    return True


def _typed(column: Any) -> Any:
    if column.null_count == len(column):
        return pa.nulls(len(column))
    first = column.drop_null().slice(0, 1)
    # most columns of wide tables are decimal numbers, and no other type holds one
    is_decimal = _DECIMAL.fullmatch(first[0].as_py()) is not None
    for convert in _CONVERSIONS[-1:] if is_decimal else _CONVERSIONS:
        try:
            # most types do not hold the first cell, which is faster to test than all cells
            convert(first)
            typed = convert(column)
        except pa.ArrowInvalid:
            continue
        is_label = pa.types.is_integer(typed.type) and _has_leading_zeros(column)
        return column if is_label else typed
    return column


def _has_leading_zeros(column: Any) -> bool:
    zeros = column.filter(pc.starts_with(pc.ascii_trim(column, "+-"), "0"))
    return bool(pc.any(pc.match_substring_regex(zeros, _LEADING_ZERO)).as_py())


def _cast_to(kind: Any) -> Callable[[Any], Any]:
    """A conversion of trimmed cells, which raises ArrowInvalid if a cell does not fit."""

    def convert(column: Any) -> Any:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            return pc.ascii_trim(column, " \t").cast(kind)

    return convert


def _to_int(column: Any) -> Any:
    """Integers, also with a plus sign, which Arrow's cast does not accept."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim(column, " \t")
        return pc.replace_substring_regex(trimmed, r"^\+([0-9])", r"\1").cast(pa.int64())


def _to_bool(column: Any) -> Any:
    # a cast alone would accept other spellings, such as tRUE
    if not pc.all(pc.is_in(column.drop_null(), _BOOLEANS)).as_py():
        raise pa.ArrowInvalid
    return column.cast(pa.bool_())


def _to_time(column: Any) -> Any:
    # Arrow casts strings to timestamps but not to times of day
    time = pc.ascii_trim(column, " \t")
    if not pc.all(pc.match_substring_regex(time, _TIME)).as_py():
        raise pa.ArrowInvalid
    day = pc.binary_join_element_wise("1970-01-01", time, " ")
    return day.cast(pa.timestamp("s")).cast(pa.time32("s"))


_TIMESTAMPS = tuple(pa.timestamp(unit, tz) for tz in (None, "UTC") for unit in ("s", "ns"))
_TYPES = (pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *_TIMESTAMPS, pa.float64())
# in the order of their types
_CONVERSIONS: tuple[Callable[[Any], Any], ...] = (
    _to_int,
    _to_bool,
    _cast_to(pa.date32()),
    _to_time,
    *(_cast_to(kind) for kind in _TIMESTAMPS),
    _cast_to(pa.float64()),
)
