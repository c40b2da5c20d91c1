"""Quotes in text files that would swallow the lines below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_QUOTE = b'"'


def suspicious(lines: Iterable[bytes]) -> bool:
    """Tell whether a line has an odd number of quotes: a cell of several lines, or a mistake.

    Examples
    --------
    >>> suspicious([b"a,b", b'1,"x, y"']), suspicious([b"a,b", b'1,"x'])
    (False, True)
    """
    return any(line.count(_QUOTE) % 2 for line in lines)


def broken_quote(lines: Iterable[bytes], separator: str) -> str | None:
    """Return what is wrong with the quotes of a file and in which line, if anything is.

    A quote counts where it begins a cell; elsewhere it is a letter like others, as in 5". Lines
    inside a cell are fine if the quote that ends it ends a cell.

    Examples
    --------
    >>> broken_quote([b"a,b", b'1,"x', b"2,y"], ",")
    'line 2 opens a quote that is never closed'
    >>> broken_quote([b"a,b", b'1,"x', b'y"'], ",")
    """
    mark = separator.encode()
    inside, opened = False, 0
    for number, line in enumerate(lines, 1):
        if _QUOTE not in line:
            continue
        cells = line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf" if number == 1 else b"")
        at = 0
        while at <= len(cells):
            if not inside:
                if not cells.startswith(_QUOTE, at):
                    found = cells.find(mark, at)
                    if found < 0:
                        break
                    at = found + 1
                    continue
                inside, opened, at = True, number, at + 1
            at = _end(cells, at)
            if at < 0:
                break
            inside = False
            if opened < number and at < len(cells) and not cells.startswith(mark, at):
                return (
                    f"line {opened} opens a quote that is not closed before line {number}, inside "
                    "a cell there"
                )
            found = cells.find(mark, at)
            if found < 0:
                break
            at = found + 1
    return f"line {opened} opens a quote that is never closed" if inside else None


def _end(cells: bytes, at: int) -> int:
    """Where a quoted cell has ended, or -1; two quotes are one inside the cell."""
    while True:
        found = cells.find(_QUOTE, at)
        if found < 0:
            return -1
        if not cells.startswith(_QUOTE, found + 1):
            return found + 1
        at = found + 2
