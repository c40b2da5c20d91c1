"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from psmvae.table.numbers import share

if TYPE_CHECKING:
    from psmvae.reporting.schema import ValidationData

# Names that a sentence lists, and the length at which one is cut.
MAX_NAMES, MAX_LENGTH = 5, 40


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


def error_words(found: ValidationData) -> str:
    """Return the errors of held-out cells by method: of numbers, and of levels."""
    texts = []
    numbers = {name: value for name, value in found["error_numbers"].items() if value is not None}
    if numbers:
        each = joined([f"{value:.2f} by {name}" for name, value in numbers.items()])
        texts.append(f"the mean RMSE of numeric columns was {each}, in standard deviations")
    levels = {name: value for name, value in found["error_levels"].items() if value is not None}
    if levels:
        each = joined([f"{share(value)} by {name}" for name, value in levels.items()])
        texts.append(f"the mean share of wrong levels was {each}")
    return ", and ".join(texts) or "the error is not defined"


def predictor_words(name: str, by: str) -> str:
    """Return what predicts a mask: a column, its mask, or all other columns."""
    return f"whether {name} is missing" if by == "mask" else name


def listed(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return a list of names, at most the first of them."""
    return joined([short(name) for name in names], most)


def joined(texts: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return a list of texts, at most the first of them."""
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most:,} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
