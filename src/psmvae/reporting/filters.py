"""Filters of the templates: numbers and names as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from psmvae.reporting.data.texts import error_words, level
from psmvae.table import numbers

MAX_NAMES = 60
"""Names of columns in a cell of a table."""
_EMPTY = "(empty name)"


def count(n: int) -> str:
    """Return a whole number with separators of thousands."""
    return f"{n:,}"


def count_of(n: int, what: str) -> str:
    """Return a number with what is counted, in the plural where needed."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def number(value: Any) -> str:
    """Return a number with four significant digits; text where it is undefined in a template."""
    return numbers.number(value) if isinstance(value, int | float) else numbers.ABSENT


def interval(limits: Mapping[str, Any] | Sequence[float], digits: int | None = None) -> str:
    """Return the limits of an interval: ``conf_low`` and ``conf_high``, or a pair."""
    low, high = (limits["conf_low"], limits["conf_high"]) if isinstance(limits, Mapping) else limits
    return numbers.interval(low, high, digits)


def value_range(summary: Mapping[str, Any]) -> str:
    """Return the smallest and the largest value of a summary, which may be empty."""
    return numbers.interval(summary.get("low"), summary.get("high"))


def capitalised(text: str) -> str:
    """Return a text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def shown_name(name: str) -> str:
    """Return the name of a column, or words where it is empty."""
    return name if name.strip() else _EMPTY


def headings(names: Sequence[str], kind: str = "") -> list[tuple[str, str]]:
    """Return headings of a table with the class of their cells."""
    return [(shown_name(name), kind) for name in names]


def missing_names(columns: Sequence[str], observed: Sequence[bool]) -> str:
    """Return the names of the columns that a pattern misses, at most the first of them."""
    names = [shown_name(name) for name, seen in zip(columns, observed, strict=True) if not seen]
    more = len(names) - MAX_NAMES
    return (", ".join(names[:MAX_NAMES]) or "none") + (f" and {more:,} more" if more > 0 else "")


def positions(
    columns: Sequence[Mapping[str, Any]], needs: str = "name"
) -> list[tuple[int, Mapping[str, Any]]]:
    """Return columns with their positions, which are in the names of figures.

    Parameters
    ----------
    columns : sequence of dict
        Columns of a section.
    needs : str, default="name"
        A list; columns for which it is empty are left out. The name is never left out.
    """
    return [(k, one) for k, one in enumerate(columns) if needs == "name" or one[needs]]


FILTERS: dict[str, Callable[..., Any]] = {
    "count": count,
    "level": level,
    "error_words": lambda found: capitalised(error_words(found)),
    "count_of": count_of,
    "share": numbers.share,
    "decimals": numbers.decimals,
    "number": number,
    "p_value": numbers.p_value,
    "interval": interval,
    "range": value_range,
    "shown_name": shown_name,
    "headings": headings,
    "missing_names": missing_names,
    "positions": positions,
}
