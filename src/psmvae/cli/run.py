"""Run a command line: errors, warnings and signals become one line and an exit code."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from psmvae.cli.streams import discard, prepare_streams
from psmvae.cli.terminal import Terminal, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

# Some releases of typer bundle click and others import it: find the base class of either.
_PARSER_ERROR: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

# As a shell reports a process that SIGPIPE has ended; Windows does not have this signal.
_BROKEN_PIPE = 128 + 13
# Errors that a table, a file or the machine can cause. Any other exception is a bug, and its
# traceback is shown.
_FAILURES = (ValueError, TypeError, OSError, MemoryError, ImportError, RuntimeError)


def run_app(app: typer.Typer, name: str, argv: Sequence[str] | None = None) -> int:
    """Run a command of an app with the given arguments, or those of the process.

    The exit code is 0, 1 if the command failed, 2 if it was called wrongly, 130 after Ctrl-C and
    143 after a termination signal, and 141 if what reads standard output is gone, as in
    ``psmvae info model.safetensors | head -1``.
    """
    prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    terminal = Terminal()
    try:
        with _interruptible(), terminal.plain_warnings():
            code = app(arguments, prog_name=name, standalone_mode=False)
            _flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return _BROKEN_PIPE
    except SystemExit as error:
        # click exits so if it cannot write
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        discard(sys.stdout)
        return _BROKEN_PIPE
    except UsageError as error:
        terminal.line(f"error: {_message(error)}")
        return 2
    except _PARSER_ERROR as error:
        # typer lists the choices of an option on several lines: join them into one
        text: str = getattr(error, "format_message", error.__str__)()
        terminal.line(f"error: {' '.join(text.split())}")
        return 2
    except (_Interrupted, KeyboardInterrupt) as error:
        terminal.line("error: interrupted")
        return error.exit_code if isinstance(error, _Interrupted) else 128 + signal.SIGINT
    except _FAILURES as error:
        terminal.line(f"error: {_message(error)}")
        return 1
    finally:
        # registered last, and so called before what PyTorch does at the exit of the process
        atexit.unregister(_ignore_interrupts)
        atexit.register(_ignore_interrupts)
    return code if isinstance(code, int) else 0


def _message(error: Exception) -> str:
    """Return the message of an error and its notes, as one line."""
    # messages of scikit-learn and torch can have several lines
    lines = (str(error) or type(error).__name__).split("\n")
    text = " ".join(line.strip() for line in lines if line.strip())
    return "; ".join([text, *getattr(error, "__notes__", [])])


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C at the exit of a process, when there is nothing left to interrupt."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _flush() -> None:
    """Write what is left of standard output, while an error can still be reported."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        raise OSError(error.errno, error.strerror, "standard output") from error


class _Interrupted(BaseException):
    """Ctrl-C or a termination signal; the exit code is 128 + the signal's number, as in shells.

    Not a KeyboardInterrupt, because `fit` then stops training and returns, and not an Exception,
    which libraries may catch.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn Ctrl-C and a termination signal into `_Interrupted`.

    A signal that was ignored when the process started, as in a shell's background jobs, stays
    ignored. After the first signal, the previous handlers are restored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    previous = {n: handler for n, handler in before.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def interrupt(number: int, _frame: FrameType | None) -> None:
        restore()
        raise _Interrupted(number)

    for number in previous:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        restore()
