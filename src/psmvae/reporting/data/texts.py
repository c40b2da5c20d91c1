"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence

# Names that a sentence lists, and the length at which one is cut.
MAX_NAMES, MAX_LENGTH = 5, 40


def share(value: float) -> str:
    """Return a fraction in percent."""
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.1f} %"


def level(alpha: float) -> str:
    """Return the level of an interval, such as 95 %."""
    return f"{100 * (1 - alpha):g} %"


def count(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def short(name: str) -> str:
    """Return a name on one line, cut to 40 characters."""
    line = " ".join(name.split()) or repr(name)
    return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 1]}…"


def listed(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return a list of names, at most the first of them."""
    return joined([short(name) for name in names], most)


def joined(texts: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return a list of texts, at most the first of them."""
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most:,} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def p_value(p: float) -> str:
    """Return ``p < 0.001`` or ``p = 0.012``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
