"""The progress of a running experiment, on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

if TYPE_CHECKING:
    from types import TracebackType

    from psmvae.cli.terminal import Terminal
    from psmvae_paper.runner import Status

# Without a terminal, a line is written each time this further share of the work is done.
_STEP = 0.1
# The time left is estimated once this share of the work is done.
_MIN_SHARE = 0.02


class RunProgress:
    """Shows the progress of a run: a bar on a terminal, a line per tenth of the work elsewhere.

    Parameters
    ----------
    terminal : Terminal
        Writes the lines.
    quiet : bool, default=False
        Show nothing.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool = False) -> None:
        self._terminal = terminal
        self._last: Status | None = None
        self._shown_share = 0.0
        self._start = time.monotonic()
        self._bar: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("Cells"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rest]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("cells", total=None, rest="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, status: Status) -> None:
        """Show the status of the run; the callback of `psmvae_paper.runner.run`.

        Parameters
        ----------
        status : Status
            The counts of cells.
        """
        first, self._last = self._last is None, status
        if first and status.skipped:
            cells = f"{status.skipped:,} of {status.total:,} cells"
            self._terminal.say(f"{cells} have a record and are skipped")
        finished = status.skipped + status.done
        if self._bar is not None:
            rest = self._rest(status)
            self._bar.update(self._task, completed=finished, total=status.total, rest=rest)
        elif status.done and status.share >= self._shown_share + _STEP:
            self._shown_share = status.share
            self._terminal.say(f"{finished:,} of {status.total:,} cells, {self._rest(status)}")

    def summary(self) -> str:
        """One line about the whole run.

        Returns
        -------
        str
            How many cells were run, in what time, and how many failed.
        """
        if self._last is None:
            return "nothing to run"
        failed = f", {self._last.failed:,} of them failed" if self._last.failed else ""
        seconds = time.monotonic() - self._start
        return f"{self._last.done:,} cells run in {_clock(seconds)}{failed}"

    def _rest(self, status: Status) -> str:
        parts = [f"{status.running:,} running, {status.left:,} left"]
        if status.failed:
            parts.append(f"{status.failed:,} failed")
        if _MIN_SHARE <= status.share < 1:
            spent = time.monotonic() - self._start
            parts.append(f"about {_clock(spent * (1 - status.share) / status.share)} left")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
