"""Columns of text that may not be meant as text: numbers with a stray word, and identifiers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psmvae.table.words import either, option, read_as_missing

if TYPE_CHECKING:
    from psmvae.table.cells import Cells

# What marks a missing cell in some files, and is a level in others: never read as missing unasked.
CODES = frozenset({".", "..", "?", "-", "--", "missing", "unknown", "none", "not available"})
CODES |= {"na", "n.a.", "n/a", "#n/a", "nan", "null"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# 007 is a name, and so is what stands beside it
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
# 1,234 or 1 234.5 or 1'234; 1,5 or 1.234,5
_PUNCTUATED = re.compile(
    r"[+-]?(\d{1,3}([,'’ \u00a0\u202f]\d{3})+(\.\d*)?|(\d+|\d{1,3}(\.\d{3})+),\d+)"
)
# 12a, EC1A, 79-B: beside whole numbers these are names, such as of houses or places
_NAME = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w/-]+")
_ENOUGH_NUMBERS, _SHARE_OF_NUMBERS = 5, 0.9
# so few numbers, each there twice or more, are names of levels
_FEW_NUMBERS = 10
_FEW_LEVELS = 20
_SHOWN = 3


@dataclass(frozen=True)
class Strays:
    """What keeps a column of text from being one of numbers.

    Parameters
    ----------
    name : str
        The column's name.
    n_numbers : int
        How many cells are numbers.
    words : dict of str to int
        What is no number, most frequent first, with the number of cells.
    punctuated : dict of str to int
        Numbers that are not read as such: with separators of thousands or a decimal comma.
    """

    name: str
    n_numbers: int
    words: dict[str, int]
    punctuated: dict[str, int]

    def told(self) -> str:
        """Return the cells and the remedy, for a message about the column.

        Examples
        --------
        >>> Strays("income", 199, {"unknown": 1}, {}).told().partition(";")[0]
        "'unknown' (1 cell) is no number, 199 other cells are"
        """
        parts = []
        if self.words:
            several = len(self.words) > 1
            rest = f"{self.n_numbers:,} other cell{'s are' if self.n_numbers > 1 else ' is'}"
            remedy = read_as_missing(list(self.words)[:_SHOWN], several=several)
            verb = "are no numbers" if several else "is no number"
            parts.append(f"{counted(self.words)} {verb}, {rest}; {remedy}")
        if self.punctuated:
            verb = "are not read as numbers" if len(self.punctuated) > 1 else "is not read as one"
            parts.append(
                f"{counted(self.punctuated)} {verb}; write numbers with a "
                "decimal point and without separators of thousands"
            )
        return "; ".join(parts)


def strays(cells: Cells) -> Strays | None:
    """Return what is no number in a column of text that holds numbers too.

    Examples
    --------
    >>> from psmvae.table.frames import open_table
    >>> strays(open_table([["1"], ["2"], ["?"]]).cells(0)).words
    {'?': 1}
    """
    return _sorted_out(cells.name, _counts(cells))


def almost_numbers(cells: Cells) -> Strays | None:
    """Return what keeps a column of text from being one of numbers, if that seems an accident.

    It does where all but a few cells are numbers, or all but codes for missing; not where numbers
    are names: with leading zeros, a few that occur again and again, whole ones beside 12a.

    Examples
    --------
    >>> from psmvae.table.frames import open_table
    >>> numbers = [[str(i)] for i in range(20)]
    >>> almost_numbers(open_table([*numbers, ["unknown"]]).cells(0)).words
    {'unknown': 1}
    >>> almost_numbers(open_table([*numbers, ["12a"]]).cells(0))
    """
    if cells.storage == "category":
        return None
    counts = _counts(cells)
    found = _sorted_out(cells.name, counts)
    if found is None:
        return None
    coded = {word: n for word, n in found.words.items() if is_code(word)}
    others = [word for word in found.words if word not in coded]
    n_meant = sum(counts.values()) - sum(coded.values())
    if found.n_numbers < max(_ENOUGH_NUMBERS, _SHARE_OF_NUMBERS * n_meant):
        return None
    numbers = [text for text in counts if text not in found.words]
    if any(_LEADING_ZERO.fullmatch(text.strip()) for text in numbers):
        return None
    if coded:
        return found
    if len(numbers) <= _FEW_NUMBERS and found.n_numbers >= 2 * len(numbers):
        return None
    whole = all(text.strip().lstrip("+-").isdigit() for text in numbers)
    return None if whole and all(_NAME.fullmatch(word.strip()) for word in others) else found


def doubt(cells: Cells) -> str | None:
    """Return a warning about a column of text that nobody declared, if there is need for one.

    Examples
    --------
    >>> from psmvae.table.frames import open_table
    >>> doubt(open_table([[f"P{i}"] for i in range(30)]).cells(0)).partition(";")[0]
    "column 'x0' looks like an identifier (30 levels in 30 observed cells)"
    """
    if cells.family != "string" or cells.storage == "category":
        return None
    found = almost_numbers(cells)
    if found is not None:
        return f"column {cells.name!r} is text, and modelled as levels: {found.told()}"
    n_levels = len(set(cells.observed().tolist()))
    if n_levels <= _FEW_LEVELS or 2 * n_levels <= cells.n_observed:
        return None
    aside = f"{option('--ignore', [cells.name])} sets it aside"
    remedy = either("leave it out if it is one", aside)
    return (
        f"column {cells.name!r} looks like an identifier ({n_levels:,} levels in "
        f"{cells.n_observed:,} observed cells); it is modelled as levels: {remedy}"
    )


def codes_for_missing(cells: Cells) -> dict[str, int]:
    """Return the cells of a column of text that are no text in some files: codes for missing.

    Where the column is one of numbers but for a few cells, these.

    Examples
    --------
    >>> from psmvae.table.frames import open_table
    >>> codes_for_missing(open_table([["Basel"], ["?"], ["Ghent"]]).cells(0))
    {'?': 1}
    """
    if cells.family != "string":
        return {}
    coded = {word: n for word, n in _counts(cells).most_common() if is_code(word)}
    found = None if coded else almost_numbers(cells)
    return coded if found is None else found.words


def is_code(word: str) -> bool:
    """Tell whether a text marks missing cells in some files.

    Examples
    --------
    >>> is_code("Unknown"), is_code("London")
    (True, False)
    """
    return word.strip().lower() in CODES


def counted(words: dict[str, int]) -> str:
    """Return the first few texts with their numbers of cells.

    Examples
    --------
    >>> counted({"?": 3, "none": 1})
    "'?' (3 cells), 'none' (1 cell)"
    """
    listed = list(words.items())[:_SHOWN]
    text = ", ".join(f"{word!r} ({n:,} cell{'s' if n > 1 else ''})" for word, n in listed)
    more = len(words) - len(listed)
    return f"{text} and {more:,} more" if more else text


def _counts(cells: Cells) -> Counter[str]:
    return Counter(cells.observed().tolist() if cells.family == "string" else ())


def _sorted_out(name: str, counts: Counter[str]) -> Strays | None:
    """Return what is no number, if that is some of the cells but not all."""
    words: dict[str, int] = {}
    punctuated: dict[str, int] = {}
    n_numbers = 0
    for text, n in counts.most_common():
        plain = text.strip()
        if _NUMBER.fullmatch(plain):
            n_numbers += n
        elif _PUNCTUATED.fullmatch(plain):
            n_numbers += n
            punctuated[text] = n
        else:
            words[text] = n
    return Strays(name, n_numbers, words, punctuated) if n_numbers and words | punctuated else None
