"""Checks of the fields of a dataclass against their annotations, for values from a file."""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

MAX_INTEGER = 2**64
"""Largest integer of a field; levels may be unsigned integers of 64 bits."""


def check_fields(part: Any, names: Mapping[str, Any] | None = None) -> None:
    """Raise ValueError if a field is not of its annotated type, or is a number that is not finite.

    Parameters
    ----------
    part : dataclass instance
        The object; its fields that are dataclasses are checked too.
    names : mapping of str to type, optional
        Types that the annotations name but their module does not import.
    """
    kind: Any = type(part)
    hints = _hints(kind, tuple((names or {}).items()))
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if not _conforms(value, hints[field.name]):
            text = repr(value)
            shown = text if len(text) <= 60 else f"{text[:57]}..."
            raise ValueError(f"{type(part).__name__}.{field.name} must not be {shown}")
        if dataclasses.is_dataclass(value):
            check_fields(value, names)


@lru_cache
def _hints(kind: type, names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return get_type_hints(kind, localns=dict(names))


def _conforms(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_conforms(value, one) for one in args)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in args)
    if origin is tuple:
        return isinstance(value, tuple) and _is_tuple_of(value, args)
    if origin in (Sequence, collections.abc.Sequence):
        return isinstance(value, list | tuple) and all(_conforms(one, args[0]) for one in value)
    if origin in (Mapping, collections.abc.Mapping):
        return isinstance(value, Mapping) and all(
            _conforms(key, args[0]) and _conforms(one, args[1]) for key, one in value.items()
        )
    return _is_of(value, hint)


def _is_tuple_of(values: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if args[1:] == (...,):
        return all(_conforms(value, args[0]) for value in values)
    return len(values) == len(args) and all(map(_conforms, values, args))


def _is_of(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is None:
        return value is None
    # a bool is an int, but not a number here
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is int:
        return isinstance(value, int) and abs(value) <= MAX_INTEGER
    if hint is float:
        return isinstance(value, int | float) and _is_finite(value)
    return isinstance(value, hint)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
