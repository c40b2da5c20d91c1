"""What is shown while an experiment runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

if TYPE_CHECKING:
    from types import TracebackType

    from psmvae_paper.runner import Standing

    from psmvae.cli.terminal import Terminal

# Without a terminal a line is written when so much more of the work is done.
_STEP = 0.1
# Before this share of the work an estimate of the time left would be a guess.
_ENOUGH = 0.02


class Running:
    """Shows how far a run is: a bar on a terminal, now and then a line elsewhere.

    Parameters
    ----------
    terminal : Terminal
        Where lines go.
    quiet : bool, default=False
        Show nothing.
    """

    def __init__(self, terminal: Terminal, *, quiet: bool = False) -> None:
        self._terminal = terminal
        self._last: Standing | None = None
        self._told = 0.0
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

    def show(self, standing: Standing) -> None:
        """Show where the run stands; the callback of `psmvae_paper.runner.run`."""
        first, self._last = self._last is None, standing
        if first and standing.skipped:
            cells = f"{standing.skipped:,} of {standing.total:,} cells"
            self._terminal.say(f"{cells} are done already and are skipped")
        finished = standing.skipped + standing.done
        if self._bar is not None:
            rest = self._rest(standing)
            self._bar.update(self._task, completed=finished, total=standing.total, rest=rest)
        elif standing.done and standing.share >= self._told + _STEP:
            self._told = standing.share
            self._terminal.say(f"{finished:,} of {standing.total:,} cells, {self._rest(standing)}")

    def summary(self) -> str:
        """One line about the whole run."""
        if self._last is None:
            return "nothing to run"
        failed = f", {self._last.failed:,} of them failed" if self._last.failed else ""
        seconds = time.monotonic() - self._start
        return f"{self._last.done:,} cells run in {_clock(seconds)}{failed}"

    def _rest(self, standing: Standing) -> str:
        parts = [f"{standing.running:,} running, {standing.left:,} left"]
        if standing.failed:
            parts.append(f"{standing.failed:,} failed")
        if _ENOUGH <= standing.share < 1:
            spent = time.monotonic() - self._start
            parts.append(f"about {_clock(spent * (1 - standing.share) / standing.share)} left")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
