"""Progress, messages and interrupts of a command.

All output goes to standard error, so that it never mixes with data on standard output.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from psmvae.training import Progress as Epoch


class UsageError(Exception):
    """A usage error: exit code 2."""


class Interrupted(BaseException):
    """Ctrl-C or a termination signal.

    Not a KeyboardInterrupt, because `fit` then stops training and returns, and not an Exception,
    which libraries may catch.

    Parameters
    ----------
    number : int
        The signal's number; the exit code is 128 + number, as in shells.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class Terminal:
    """Messages and progress on standard error.

    Parameters
    ----------
    quiet : bool, default=False
        Show no progress and no summary. Warnings and errors are still shown.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True)
        self._quiet = quiet
        # rich treats FORCE_COLOR as a terminal, but a log file should have no progress bar
        self._live = not quiet and sys.stderr.isatty()

    def line(self, text: str) -> None:
        """Write one line, without markup or wrapping."""
        self._console.print(Text(text), soft_wrap=True)

    def say(self, text: str) -> None:
        """Write one line unless quiet."""
        if not self._quiet:
            self.line(text)

    @contextmanager
    def training(self) -> Iterator[Callable[[Epoch], None] | None]:
        """Show a progress bar; yield the callback for `fit` that updates it."""
        if not self._live:
            yield None
            return
        columns = (
            TextColumn("Training"),
            BarColumn(bar_width=30),
            TextColumn("epoch"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[error]}"),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task("training", total=None, error="", left="")

            def show(epoch: Epoch) -> None:
                error, left = epoch.validation_error, epoch.seconds_left
                bar.update(
                    task,
                    completed=epoch.epoch,
                    total=epoch.max_epochs,
                    error="" if error is None else f"validation error {error:.4f}",
                    left="" if left is None else f"at most {_clock(left)} left",
                )

            yield show

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show a spinner."""
        if not self._live:
            yield
            return
        with self._console.status(text):
            yield

    @contextmanager
    def plain_warnings(self) -> Iterator[None]:
        """Show a Python warning as one ``warning: …`` line."""

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            self.line(f"warning: {' '.join(str(message).split())}")

        with warnings.catch_warnings():
            warnings.showwarning = show
            yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn Ctrl-C and a termination signal into `Interrupted`.

    A signal that was ignored when the process started, as in a shell's background jobs, stays
    ignored. After the first signal, the previous handlers are restored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    previous = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is not signal.SIG_IGN
    }

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def interrupt(number: int, _frame: FrameType | None) -> None:
        restore()
        raise Interrupted(number)

    for number in previous:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        restore()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
