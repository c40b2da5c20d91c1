"""Quotes in text files that are never closed, or closed in the middle of a cell.

pyarrow's CSV reader accepts such a file without an error: the rows after the quote become part of
one long cell and are lost. Python's `csv` finds the quote, but only its strict mode reports it, and
that also rejects files that pyarrow reads as they are meant.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def has_odd_quotes(lines: Iterable[bytes]) -> bool:
    """Whether a line has an odd number of quotes: a cell of several lines, or a mistake."""
    return any(line.count(b'"') % 2 for line in lines)


def broken_quote(lines: Iterable[str], separator: str) -> str | None:
    r"""Return what is wrong with the quotes of a file, and in which line, if anything is.

    A quote opens a quoted cell only at the start of the cell, as in ``5"``. A quoted cell may have
    several lines.
    """
    record: list[str] = []

    def recorded() -> Iterator[str]:
        for line in lines:
            record.append(line)
            yield line

    n_lines = 0
    for _ in csv.reader(recorded(), delimiter=separator):
        first, n_lines = n_lines + 1, n_lines + len(record)
        error = _strict_error(record, separator)
        if error == "unexpected end of data":
            return f"line {first} opens a quote that is never closed"
        if error and len(record) > 1:
            return (
                f"line {first} opens a quote that is not closed before line {n_lines}, inside a "
                "cell there"
            )
        record.clear()
    return None


def _strict_error(record: list[str], separator: str) -> str | None:
    if len(record) == 1 and record[0].count('"') % 2 == 0:
        return None
    try:
        list(csv.reader(record, delimiter=separator, strict=True))
    except csv.Error as error:
        return str(error)
    return None
