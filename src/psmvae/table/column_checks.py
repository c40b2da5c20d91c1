"""Columns that may not be what they seem: numbers with a few stray words, and identifiers."""

from __future__ import annotations

import re

import numpy as np

from psmvae.table.cells import Cells
from psmvae.table.errors import IdentifierWarning, StrayTextWarning, StrayValues

# These are missing cells in some files and levels in others: read as missing only if the user asks.
_CODES = frozenset({".", "..", "?", "-", "--", "missing", "unknown", "none", "not available"})
_CODES |= {"na", "n.a.", "n/a", "#n/a", "nan", "null"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# 007 is a label, and so are the other values of its column
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
# 1,234 or 1 234.5 or 1'234; 1,5 or 1.234,5
_FORMATTED = re.compile(
    r"[+-]?(\d{1,3}([,'’ \u00a0\u202f]\d{3})+(\.\d*)?|(\d+|\d{1,3}(\.\d{3})+),\d+)"
)
# 12a, EC1A, 79-B: beside whole numbers these are labels, such as house numbers or postcodes
_LABEL = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w/-]+")
_MIN_NUMBERS, _MIN_SHARE_OF_NUMBERS = 5, 0.9
# so few distinct numbers, each in two cells or more on average, are labels of levels
_FEW_NUMBERS = 10
# a column with at most this many levels is not reported as an identifier
_FEW_LEVELS = 20
# a value in fewer cells may be the only one by chance
_MIN_REPEATED = 5
# id, ID, patient_id, patientId, subject no.
_IDENTIFIER = re.compile(r"(^|[^a-zA-Z])(id|ID|Id|no|nr)([^a-zA-Z]|$)|[a-z](Id|ID)$")


def stray_values(cells: Cells) -> StrayValues | None:
    """Return the cells of a text column that are not numbers, if others are."""
    counts = dict(cells.counts.most_common())
    others = {text: n for text, n in counts.items() if not _NUMBER.fullmatch(text.strip())}
    formatted = {text: n for text, n in others.items() if _FORMATTED.fullmatch(text.strip())}
    words = {text: n for text, n in others.items() if text not in formatted}
    n_numbers = sum(counts.values()) - sum(words.values())
    return StrayValues(cells.name, n_numbers, words, formatted) if n_numbers and others else None


def accidental_text(cells: Cells) -> StrayValues | None:
    """Return the cells that keep a column from being numeric, if that seems to be an accident.

    It does if 90 % of the cells are numbers, not counting codes for missing values, unless these
    are labels: with leading zeros, few distinct ones, or whole numbers beside texts such as 12a.
    """
    found = None if cells.storage == "category" else stray_values(cells)
    if found is None:
        return None
    codes = _codes_in(found.words)
    n_other_cells = cells.n_observed - sum(codes.values())
    if found.n_numbers < max(_MIN_NUMBERS, _MIN_SHARE_OF_NUMBERS * n_other_cells):
        return None
    numbers = [text for text in cells.counts if text not in found.words]
    if any(_LEADING_ZERO.fullmatch(text.strip()) for text in numbers):
        return None
    if codes:
        return found
    if len(numbers) <= _FEW_NUMBERS and found.n_numbers >= 2 * len(numbers):
        return None
    whole = all(text.strip().lstrip("+-").isdigit() for text in numbers)
    labels = all(_LABEL.fullmatch(word.strip()) for word in found.words)
    return None if whole and labels else found


def suspect_column(cells: Cells) -> StrayTextWarning | IdentifierWarning | None:
    """Return a warning about a column that is probably an identifier, or text by accident."""
    if cells.family == "number" and looks_like_identifier(cells):
        n = cells.n_observed
        return IdentifierWarning(cells.name, n, n, "numbers")
    if cells.family != "string" or cells.storage == "category":
        return None
    found, n_levels = accidental_text(cells), len(cells.counts)
    if found is not None:
        return StrayTextWarning(cells.name, found)
    if n_levels > max(_FEW_LEVELS, cells.n_observed / 2):
        return IdentifierWarning(cells.name, n_levels, cells.n_observed)
    return None


def looks_like_identifier(cells: Cells) -> bool:
    """Whether a column of numbers is probably an identifier.

    Its values are whole, none is missing or repeated, and they are numbered through, sorted, or the
    column is called so. Measurements in a small table may be distinct whole numbers, too.
    """
    values = cells.observed()
    if cells.missing_rows.size or values.size <= _FEW_LEVELS:
        return False
    if values.dtype.kind == "f" and bool(np.any(values != np.rint(values))):
        return False
    if len(cells.distinct[0]) < values.size:
        return False
    numbered = float(values.max()) - float(values.min()) < 2 * values.size
    sorted_rows = bool(np.all(values[1:] > values[:-1]))
    return numbered or sorted_rows or _IDENTIFIER.search(cells.name) is not None


def is_constant(cells: Cells) -> bool:
    """Whether a column has one distinct value in several observed cells."""
    if cells.n_observed < _MIN_REPEATED:
        return False
    if cells.family == "string":
        return len(cells.counts) == 1
    values = cells.observed()
    return bool(np.all(values == values[0]))


def missing_value_codes(cells: Cells) -> dict[str, int]:
    """Return the texts of a column that may be codes for missing values."""
    codes = _codes_in(dict(cells.counts.most_common()))
    found = None if codes else accidental_text(cells)
    return codes if found is None else found.words


def _codes_in(words: dict[str, int]) -> dict[str, int]:
    return {word: n for word, n in words.items() if word.strip().lower() in _CODES}
