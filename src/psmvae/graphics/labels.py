"""Names and numbers as labels: any text of a user is drawn as plain text on one line."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Options of a matplotlib text that draw a dollar sign as a dollar sign."""

_JOINERS = "\u200c\u200d"
_ISOLATE, _END = "\u2068", "\u2069"


def clean(text: Any, length: int = 24) -> str:
    """Return a text on one line, without control characters, cut with an ellipsis.

    Control characters, surrogates and noncharacters are not allowed in XML; those that change the
    direction of writing would reorder what follows. Joiners stay, as emoji are made with them.

    Parameters
    ----------
    text : object
        A name or level.
    length : int, default=24
        Largest number of characters.

    Returns
    -------
    str
        At least one character: "(empty)" stands for a text without any.
    """
    # a name may have megabytes; what is cut off anyway is not looked at
    spaced = " ".join(str(text)[: 20 * length + 100].split())
    kept = "".join(filter(_is_drawn, spaced)).strip()
    if not kept:
        return "(empty)"
    if len(kept) <= length:
        return kept
    return kept[: length - 1].rstrip(_JOINERS + " ") + "…"


def isolated(text: Any, length: int = 24) -> str:
    """Return a clean text for use within a sentence, whatever its direction of writing."""
    kept = clean(text, length)
    if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in kept):
        return f"{_ISOLATE}{kept}{_END}"
    return kept


def width(text: str, size: float) -> float:
    """Return about how wide a text is in a sans-serif font, in units of its size."""
    ems = sum(_ems(letter) for letter in text)
    return size * ems


def number(value: float) -> str:
    """Return a number of an axis, with a minus sign and separators of thousands."""
    if not math.isfinite(value):
        return ""
    size = abs(value)
    if 1e-5 <= size < 1e-4:
        return f"{value:.10f}".rstrip("0").replace("-", "−")
    plain = size == 0 or 1e-4 <= size < 1e9
    text = f"{value:,.10g}" if plain else f"{value:.3g}"
    return text.replace("-", "−")


def short(value: float | None) -> str:
    """Return a number with three significant digits, or a dash if it is not defined."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}" if digits <= 5 and abs(value) < 1e9 else f"{value:.3g}"
    return text.replace("-", "−")


def percent(fraction: float | None) -> str:
    """Return a fraction in percent: "12 %", "0.4 %", "< 0.1 %"."""
    if fraction is None or not math.isfinite(fraction):
        return "–"
    value = 100 * fraction
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 0 < value < 1 or 99 < value < 100:
        # no more than 99.9 % where something is left
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.0f} %"


def _is_drawn(letter: str) -> bool:
    if letter in _JOINERS:
        return True
    return unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Cn", "Co")


def _ems(letter: str) -> float:
    if letter in _JOINERS + _ISOLATE + _END or unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if letter in "iljtfrI.,:;'|!()[] ":
        return 0.34
    if letter in "mwMW@%…—<>+=~":
        return 0.9
    return 0.68 if letter.isupper() else 0.6
