"""Progress and messages of a command.

All output goes to standard error, so that it never mixes with data on standard output.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from psmvae.cli.streams import StderrConsole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psmvae.training import Progress as Epoch


class UsageError(Exception):
    """A usage error: exit code 2."""


class Terminal:
    """Messages and progress on standard error; if quiet, only warnings and errors."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = StderrConsole()
        self._quiet = quiet
        # rich treats FORCE_COLOR as a terminal, but a log file should have no progress bar
        self._live = not quiet and sys.stderr.isatty()

    def line(self, text: str) -> None:
        """Write one line, without markup or wrapping."""
        try:
            self._console.print(Text(text), soft_wrap=True)
        except OSError:
            # a full disk, or a terminal that is gone
            self._console.on_broken_pipe()

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
            TextColumn("{task.fields[phase]}"),
            BarColumn(bar_width=30),
            TextColumn("epoch"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[error]}"),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task("training", total=None, phase="Fitting", error="", left="")

            def show(epoch: Epoch) -> None:
                error, left = epoch.validation_error, epoch.seconds_left
                bar.update(
                    task,
                    completed=epoch.epoch,
                    total=epoch.expected_epochs,
                    phase=epoch.phase.capitalize(),
                    error="" if error is None else f"validation error {error:.4f}",
                    left="finishing" if left == 0 else f"about {_clock(left or 0.0)} left",
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
    def steps(self) -> Iterator[Callable[[str], None] | None]:
        """Show a spinner; yield the function that names the step."""
        if not self._live:
            yield None
            return
        with self._console.status("Working") as status:
            yield status.update

    @contextmanager
    def plain_warnings(self) -> Iterator[None]:
        """Show a Python warning as one ``warning: …`` line."""

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            self.line(f"warning: {' '.join(str(message).split())}")

        with warnings.catch_warnings():
            warnings.showwarning = show
            yield


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
