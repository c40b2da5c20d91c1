"""Lists of names and values for messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

N_SHOWN = 3
"""How many distinct texts `counted` lists."""


def quoted(names: Iterable[Any], most: int = 10) -> str:
    """Return a quoted list of names, at most the first `most` of them."""
    listed = list(names)
    text = ", ".join(repr(name) for name in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most} more"


def counted(counts: Mapping[str, int], what: str = "cell") -> str:
    """Return the first few texts with their numbers of cells."""
    listed = list(counts.items())[:N_SHOWN]
    text = ", ".join(f"{word!r} ({n:,} {what}{'s' if n > 1 else ''})" for word, n in listed)
    more = len(counts) - len(listed)
    return f"{text} and {more:,} more" if more else text


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted(name for name, n in Counter(names).items() if n > 1)
