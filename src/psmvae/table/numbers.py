"""Numbers as text, in tables of results."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

ABSENT = "–"
"""Stands for a number that is not defined."""


def is_defined(value: Any) -> TypeGuard[float]:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def share(value: float | None) -> str:
    """Return a fraction in percent; a small one is not rounded to none, nor a large one to all."""
    if not is_defined(value):
        return ABSENT
    percent = 100 * value
    if 0 < percent < 0.05:
        return "< 0.1 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def decimals(value: float | None, digits: int) -> str:
    """Return a number with a fixed number of decimals."""
    return f"{value:.{digits}f}" if is_defined(value) else ABSENT


def number(value: float | None, digits: int = 4, largest: float = 1e6) -> str:
    """Return a number with so many significant digits, from ``largest`` on with an exponent."""
    if not is_defined(value):
        return ABSENT if value is None or math.isnan(value) else f"{value:g}".replace("inf", "∞")
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < largest:
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals."""
    if not is_defined(value):
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(low: float | None, high: float | None, digits: int | None = None) -> str:
    """Return the limits of an interval, with so many decimals or four significant digits."""
    if not (is_defined(low) and is_defined(high)):
        return ABSENT
    ends = (number(end) if digits is None else decimals(end, digits) for end in (low, high))
    return " to ".join(ends)
