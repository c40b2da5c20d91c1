"""A remedy in the words of who reads it: Python, or the command line."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ON_COMMAND_LINE: ContextVar[bool] = ContextVar("on_command_line", default=False)
_OF_TEXT: ContextVar[bool] = ContextVar("of_text", default=True)


@contextmanager
def command_line_words(*, text_file: bool = True) -> Iterator[None]:
    """Have messages name options of the command line.

    Parameters
    ----------
    text_file : bool, default=True
        Whether the table is from a text file: once a stray word there is read as missing, its
        column is one of numbers. In other files a column's type is fixed.

    Examples
    --------
    >>> with command_line_words():
    ...     print(either("drop it", "--ignore id"))
    --ignore id
    """
    tokens = _ON_COMMAND_LINE.set(True), _OF_TEXT.set(text_file)
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(tokens[0])
        _OF_TEXT.reset(tokens[1])


def either(python: str, command_line: str) -> str:
    """Return the words for who reads them.

    Examples
    --------
    >>> either("handle_unknown='missing'", "--handle-unknown missing")
    "handle_unknown='missing'"
    """
    return command_line if _ON_COMMAND_LINE.get() else python


def option(name: str, values: Iterable[str]) -> str:
    """Return an option as it is typed in a shell, once for each value.

    Examples
    --------
    >>> option("--na", ["unknown", "?", "-"])
    "--na unknown --na '?' --na=-"
    """
    # what starts with a dash would be taken for another option
    return " ".join(
        f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" for value in values
    )


def read_as_missing(codes: list[str], *, several: bool) -> str:
    """Return how to have codes read as missing, so that their column becomes one of numbers."""
    them = "them" if several else "it"
    if _ON_COMMAND_LINE.get() and _OF_TEXT.get():
        verb = "read" if len(codes) > 1 else "reads"
        return f"{option('--na', codes)} {verb} {them} as missing"
    values = "missing values" if several else "a missing value"
    return f"replace {them} by {values} and turn the column into numbers"
