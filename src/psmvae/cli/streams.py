"""Standard streams that are closed, cannot encode a character, or have lost their reader."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable

# How characters of messages are spelled where the encoding does not have them.
_SPELLED = {"–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "≤": "<=", "≥": ">=", "·": "*"}
_HANDLER = "psmvae-spelled"


class StderrConsole(Console):
    """A console on standard error that is silent once nothing reads it: messages are not data."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        """Write nothing from now on."""
        self.quiet = True
        discard(sys.stderr)


class StdoutConsole(Console):
    """A console on standard output that raises BrokenPipeError if nothing reads it."""

    def on_broken_pipe(self) -> None:
        """Leave the end of the process to the caller; rich would exit with code 1."""
        raise BrokenPipeError


def prepare_streams() -> None:
    """Open closed standard streams as the null device, and let every character be written.

    If descriptor 2 is closed, the next file that is opened takes its number, and what a library
    writes to standard error ends up in that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # the lowest free number, which is this one
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    codecs.register_error(_HANDLER, _spell)
    for stream in _text_streams((sys.stdout, sys.stderr)):
        encoding = getattr(stream, "encoding", None) or "utf-8"
        if codecs.lookup(encoding).name != "utf-8":
            stream.reconfigure(errors=_HANDLER)  # type: ignore[attr-defined]


def discard(stream: TextIO) -> None:
    """Send what a standard stream has not written yet, and all that follows, to the null device.

    Otherwise Python reports at exit that the stream cannot be flushed.
    """
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _text_streams(streams: Iterable[TextIO]) -> list[TextIO]:
    """Return the streams that can be reconfigured; those of tests and notebooks may not."""
    return [stream for stream in streams if hasattr(stream, "reconfigure")]


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    spelled = [_SPELLED.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text]
    return "".join(spelled), error.end
