"""Progress bar of ``verbose=True``; the command line has its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psmvae.training.progress import Progress

Callback = Callable[[Progress], None]


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Callback | None]:
    """Yield a callback that draws a bar on stderr, or None if stderr is not a terminal."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fitting", total=None)

        def show(progress: Progress) -> None:
            found, epoch = progress.validation_error, progress.epoch
            label = f"{progress.phase}, epoch {epoch}" + (
                "" if found is None else f", error {found:.3f}"
            )
            bar.update(task, total=progress.expected_epochs, completed=epoch, description=label)

        yield show


def both(first: Callback | None, second: Callback | None) -> Callback | None:
    """Combine two optional callbacks."""
    if first is None or second is None:
        return first or second

    def call(progress: Progress) -> None:
        first(progress)
        second(progress)

    return call
