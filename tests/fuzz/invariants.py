"""What must hold of a completed table, of an error and of warnings."""

import math
import traceback
from decimal import Decimal
from pathlib import Path

import numpy as np
import sklearn

import psmvae
from fuzz.libraries import content, layout, names, shape

# Errors may be raised by the library, and by scikit-learn's checks that it calls.
_SOURCES = (Path(psmvae.__file__).parent, Path(sklearn.__file__).parent / "utils")
_CLEAR = (ValueError, TypeError)


class FaultError(AssertionError):
    """An invariant does not hold."""


def require(condition, message):
    """Raise FaultError unless the condition holds."""
    if not condition:
        raise FaultError(message)


def check_error(error, case, table):
    """Check that an error is one that the case may raise, and that it is clear."""
    require(case.faulty, f"refused a valid table: {type(error).__name__}: {error}")
    require(isinstance(error, _CLEAR), f"an error of another library: {error!r}")
    place = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    inside = any(place.is_relative_to(source) for source in _SOURCES)
    require(inside, f"an error of another library: {type(error).__name__}: {error} ({place})")
    if case.faulty == "name":
        found = names(table) or [f"x{j}" for j in range(len(case.columns))]
        text = str(error)
        listed = [found[j] for j in case.suspects]
        by_table = isinstance(table, np.ndarray | list)
        require(
            by_table or any(repr(name) in text or name in text for name in listed),
            f"the error names no column of {listed}: {error}",
        )


def check_warnings(caught):
    """Check that all warnings are the library's own."""
    for one in caught:
        own = type(one.message).__module__.startswith("psmvae")
        plain = one.category is UserWarning
        # an older matplotlib with a newer pyparsing
        plain = plain or "pyparsing" in one.category.__module__
        require(own or plain, f"{one.category.__name__}: {one.message}")


def check_completed(case, table, filled, *, wanted=None, strict=True):
    """Check a completed table against the incomplete one and the fitted columns.

    `wanted` has the missing cells to fill, by default all. Without `strict`, the table is not the
    fitted one, and columns that hold nothing may get another type.
    """
    require(shape(filled) == shape(table), f"shape {shape(filled)}, not {shape(table)}")
    # integers that are declared real become floats
    declared = bool(case.parameters.get("kinds"))
    if not isinstance(table, list):
        _check_layout(table, filled, strict=strict and not declared)
    for j, (old, new) in enumerate(zip(content(table), content(filled), strict=True)):
        column = case.columns[j]
        if column.name in case.parameters.get("derived", {}):
            # computed by a formula, wherever a column of the formula was filled
            continue
        learned = column.observed
        # a list of rows becomes an array of floats where all are numbers
        may_widen = isinstance(table, list) or declared
        for i, (was, now) in enumerate(zip(old, new, strict=True)):
            place = f"cell ({i}, {column.name!r})"
            if was is not None:
                kept = was == now or (may_widen and _number(was) == _number(now))
                require(kept, f"{place}: observed {was} became {now}")
            elif not learned or (wanted is not None and not wanted[i, j]):
                require(now is None, f"{place} must stay missing, is {now}")
            else:
                require(now is not None, f"{place} is missing")
                _check_value(case, column, now, place)


def _check_layout(table, filled, *, strict):
    expected, found = layout(table), layout(filled)
    if strict or isinstance(table, np.ndarray):
        same = expected == found or (
            isinstance(table, np.ndarray) and table.dtype.newbyteorder("=") == filled.dtype
        )
        require(same, f"layout {found}, not {expected}")
    else:
        require(type(filled) is type(table), f"{type(filled)}, not {type(table)}")
        require(names(filled) == names(table), "the names of the columns changed")


def _number(bits):
    kind, value = bits
    return float.fromhex(value) if kind.startswith("float") else value


def _check_value(case, column, bits, place):
    value = _number(bits)
    if isinstance(value, float):
        require(math.isfinite(value), f"{place} is {value}")
    declared = case.parameters.get("kinds", {})
    text = isinstance(column.observed[0], str | bool)
    category = column.dtype == "category" and case.library.has_names
    levels = (text or category) and not declared
    if levels:
        # polars has categories of text only
        known = {str(level) for level in column.observed}
        known |= {str(level) for level in column.categories} if column.dtype == "ordered" else set()
        known = {"True", "False"} if column.dtype == "bool" else known
        require(str(value) in known, f"{place} is {value!r}, which is no level")
    elif isinstance(value, float | int | Decimal) and not case.parameters.get("bounds"):
        negative = any(cell < 0 for cell in column.observed)
        require(negative or value >= 0, f"{place} is {value}, and no observed value is negative")
