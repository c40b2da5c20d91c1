"""What a user declares about columns: kinds with the order of levels, and bounds.

`psmvae.kinds` is imported inside functions because it loads PyTorch, which takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae.table.cells import Cells
from psmvae.table.errors import UnlistedLevelsError
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds.base import Level

Bounds = tuple[float | None, float | None]
"""Smallest and largest value of a column; None is no bound."""
_BOOLS = {"false": False, "true": True}


class DeclaredKind(NamedTuple):
    """A kind and, in their order, its levels; texts if they are still to be converted."""

    kind: str
    levels: tuple[Level, ...] = ()


def check_kinds(kinds: Mapping[Any, Any], names: Iterable[str]) -> dict[str, DeclaredKind]:
    """Return declared kinds by column name, checked against the columns and kinds that exist."""
    declared = {str(name): kind for name, kind in kinds.items()}
    _check_known("kinds", declared, names)
    return {name: parse_kind(name, kind) for name, kind in declared.items()}


def parse_kind(name: str, given: Any) -> DeclaredKind:
    """Return a kind given as "ordinal", "ordinal:low,high" or ("ordinal", ["low", "high"])."""
    from psmvae.kinds import KINDS

    kind, levels = given, None
    if isinstance(given, str) and ":" in given:
        kind, _, text = given.partition(":")
        levels = [level.strip() for level in text.split(",")]
    elif isinstance(given, tuple | list) and len(given) == 2:
        kind, levels = given[0], given[1]
    if not isinstance(kind, str) or kind not in KINDS:
        message = f"unknown kind {kind!r} for column {name!r}; expected one of {quoted(KINDS)}"
        raise ValueError(message)
    if levels is None:
        return DeclaredKind(kind)
    if not KINDS[kind].has_levels:
        message = f"kinds gives levels for column {name!r}, but {kind} is a kind without levels"
        with_levels = quoted(one for one in KINDS if KINDS[one].has_levels)
        raise ValueError(f"{message}; kinds with levels are {with_levels}")
    return DeclaredKind(kind, distinct_levels(name, levels))


def declared_levels(cells: Cells, declared: DeclaredKind) -> tuple[Level, ...]:
    """Return the declared levels in the type of a column's cells, which must all be listed."""
    levels = tuple(converted_level(cells, level) for level in declared.levels)
    unlisted = cells.codes(levels) == -1
    if unlisted.any():
        found = tuple(dict.fromkeys(cells.raw[unlisted].tolist()))
        raise UnlistedLevelsError(
            cells.name, declared.kind, found, int(unlisted.sum()), declared.levels
        )
    return levels


def check_bounds(bounds: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Bounds]:
    """Return bounds by column name, with None for an open side, checked against the columns."""
    given = {str(name): pair for name, pair in bounds.items()}
    _check_known("bounds", given, names)
    return {name: _pair(name, pair) for name, pair in given.items()}


def _pair(name: str, pair: Any) -> Bounds:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        message = f"bounds of column {name!r} must be a pair (low, high), got {pair!r}"
        raise ValueError(f"{message}; None is no bound")
    low, high = (_side(name, side) for side in pair)
    if low is not None and high is not None and low > high:
        raise ValueError(f"bounds of column {name!r} must be (low, high), got {pair!r}")
    return low, high


def _side(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        raise ValueError(f"bounds of column {name!r} must be numbers or None, got {value!r}")
    return None if math.isinf(value) else float(value)


def _check_known(parameter: str, given: Iterable[str], names: Iterable[str]) -> None:
    known = dict.fromkeys(names)
    if unknown := [name for name in given if name not in known]:
        message = f"{parameter} names unknown columns {quoted(unknown)}"
        raise ValueError(f"{message}; the table has {quoted(known)}")


def distinct_levels(name: str, levels: Any) -> tuple[Level, ...]:
    """Return the levels of a column in order, which must be distinct strings or numbers."""
    listed = tuple(levels) if isinstance(levels, Iterable) and not isinstance(levels, str) else ()
    valid = all(isinstance(level, str | Real) and level != "" for level in listed)
    if not listed or not valid or len(set(listed)) < len(listed):
        message = f"levels of column {name!r} must be distinct strings or numbers"
        raise ValueError(f"{message}, got {levels!r}")
    return listed


def converted_level(cells: Cells, level: Level) -> Level:
    """Return a level in the type of the cells."""
    kind = cells.raw.dtype.kind
    if cells.family == "string":
        return str(level)
    try:
        number = float(_BOOLS.get(str(level).lower(), level) if kind == "b" else level)
    except ValueError as error:
        message = f"levels of column {cells.name!r}, which holds numbers, must be numbers"
        raise ValueError(f"{message}, got {level!r}") from error
    if kind == "b":
        return bool(number)
    return int(number) if kind in "iu" and number.is_integer() else number
