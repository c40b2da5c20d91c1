"""Numbers and names of the page as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ABSENT = "–"
"""Stands for a number that is not defined."""
_EMPTY = "(empty name)"


def _defined(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def count(n: int) -> str:
    """Return a whole number with separators of thousands."""
    return f"{n:,}"


def count_of(n: int, what: str) -> str:
    """Return a number with what is counted, in the plural where needed."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def share(value: float | None) -> str:
    """Return a fraction in percent; a small one is not rounded to none."""
    if not _defined(value) or value is None:
        return ABSENT
    percent = 100 * value
    if 0 < percent < 0.05:
        return "< 0.1 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def decimals(value: float | None, digits: int) -> str:
    """Return a number with a fixed number of decimals."""
    return f"{value:.{digits}f}" if _defined(value) else ABSENT


def number(value: float | None) -> str:
    """Return a number with four significant digits."""
    if not _defined(value) or value is None:
        return ABSENT
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        digits = max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.3g}"


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals."""
    if not _defined(value) or value is None:
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(limits: Mapping[str, Any] | Sequence[float], digits: int | None = None) -> str:
    """Return the limits of an interval: ``conf_low`` and ``conf_high``, or a pair."""
    if isinstance(limits, Mapping):
        limits = [limits["conf_low"], limits["conf_high"]]
    if not all(map(_defined, limits)):
        return ABSENT
    low, high = (number(x) if digits is None else decimals(x, digits) for x in limits)
    return f"{low} to {high}"


def value_range(summary: Mapping[str, Any]) -> str:
    """Return the smallest and the largest value of a summary, which may be empty."""
    return interval([summary.get("low"), summary.get("high")])  # type: ignore[list-item]


def shown_name(name: str) -> str:
    """Return the name of a column, or words where it is empty."""
    return name if name.strip() else _EMPTY


def headings(names: Sequence[str], kind: str = "") -> list[tuple[str, str]]:
    """Return headings of a table with the class of their cells."""
    return [(shown_name(name), kind) for name in names]


def missing_names(columns: Sequence[str], observed: Sequence[bool]) -> str:
    """Return the names of the columns that a pattern misses."""
    names = [shown_name(name) for name, seen in zip(columns, observed, strict=True) if not seen]
    return ", ".join(names) or "none"


def drawn(
    columns: Sequence[Mapping[str, Any]], figures: Mapping[str, Any], key: Callable[[str], str]
) -> list[Mapping[str, Any]]:
    """Return the columns that have a figure."""
    return [column for column in columns if key(column["name"]) in figures]


FILTERS: dict[str, Callable[..., Any]] = {
    "count": count,
    "count_of": count_of,
    "share": share,
    "decimals": decimals,
    "number": number,
    "p_value": p_value,
    "interval": interval,
    "range": value_range,
    "shown_name": shown_name,
    "headings": headings,
    "missing_names": missing_names,
    "drawn": drawn,
}
