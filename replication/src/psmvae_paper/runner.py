"""Run the cells of an experiment that have no record, in worker processes."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psmvae_paper.methods import added_methods
from psmvae_paper.preflight import check_cells
from psmvae_paper.records import FILE, Writer, done, load_records

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psmvae_paper.experiment import Experiment
    from psmvae_paper.pool import Event
    from psmvae_paper.stacks import Job

    Record = dict[str, Any]


@dataclass(frozen=True)
class Status:
    """The status of a run; the `progress` callback of `run` gets one after every change.

    Parameters
    ----------
    total : int
        Number of cells of the experiment.
    skipped : int
        Cells that had a record before the run.
    done : int
        Cells recorded by this run, including failed ones.
    failed : int
        Cells that failed in this run.
    running : int
        Cells that are being run.
    share : float
        Estimated share of the work of this run that is done, from 0 to 1.
    record : dict or None
        The record that was just written.

    Examples
    --------
    >>> Status(total=10, skipped=4, done=2, failed=0, running=1, share=0.3).left
    3
    """

    total: int
    skipped: int
    done: int
    failed: int
    running: int
    share: float
    record: Record | None = None

    @property
    def left(self) -> int:
        """Cells that have not been started."""
        return self.total - self.skipped - self.done - self.running


def run(
    experiment: Experiment,
    out: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    device: str = "auto",
    workers: int | None = None,
    processes: int = 1,
    seeds: Sequence[int] | None = None,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    retry: bool = False,
    progress: Callable[[Status], None] | None = None,
) -> list[Record]:
    """Run the cells of an experiment that have no record yet.

    Each cell is written to ``records.jsonl`` in the folder `out` as soon as it is measured, so
    that a killed run can be resumed. A cell that raises is recorded as failed, and the run
    continues. Ctrl-C ends all processes and raises KeyboardInterrupt.

    Parameters
    ----------
    experiment : Experiment
        One of `EXPERIMENTS`, its ``quick()``, or one of your own.
    out : path
        The folder of the records; several experiments can share it. It is created if needed.
    data_home : path, optional
        The folder with the data, as for `psmvae_paper.datasets.load`.
    device : str, default="auto"
        Where deep methods are trained: "auto" (CUDA if available), "cpu", "cuda" or "cuda:N". On a
        GPU all seeds and mechanisms of a method are trained as one stack. Other methods always run
        on the CPU.
    workers : int, optional
        Processes on the CPU, with one thread each; by default one a core. With one worker and no
        GPU, everything runs in the current process. A script with more workers needs the guard
        ``if __name__ == "__main__":`` of `multiprocessing`.
    processes : int, default=1
        Processes that share the GPU.
    seeds, datasets, methods : sequence, optional
        Replace the experiment's own.
    retry : bool, default=False
        Run failed cells again.
    progress : callable, optional
        Called with a `Status` after every change.

    Returns
    -------
    list of dict
        The records of all cells of the experiment, in its order; see `psmvae_paper.records`.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or cells would all fail: too few rows or
        columns, no target where one is needed, or a setting that a method does not have.
    FileNotFoundError
        If data are missing; the message says how to get them.

    Examples
    --------
    >>> import tempfile
    >>> from psmvae_paper import EXPERIMENTS, run
    >>> quick = EXPERIMENTS["rmse80"].quick()
    >>> records = run(quick, tempfile.mkdtemp(), methods=["mean"], device="cpu", workers=1)
    >>> [round(record["metrics"]["rmse"], 2) for record in records]
    [0.2, 0.19, 0.26, 0.31]
    """
    experiment = experiment.only(seeds, datasets, methods)
    _check_count("processes", processes)
    workers = _cores() if workers is None else workers
    _check_count("workers", workers)
    folder = Path(out)
    for part in (folder, *folder.parents):
        if part.exists() and not part.is_dir():
            raise ValueError(f"out must be a folder, but {part} is a file")
    if (folder / FILE).is_dir():
        raise ValueError(f"out must be a folder for records, but {folder / FILE} is a folder")
    cells = list(dict.fromkeys(experiment.cells()))
    home = None if data_home is None else os.fspath(data_home)
    there = done(_records(folder), failed=not retry)
    missing = [cell for cell in cells if cell.key not in there]
    check_cells(missing, home)
    if missing:
        from psmvae_paper.stacks import make_jobs

        jobs = make_jobs(cells, there, _device(device), home)
        _run_jobs(jobs, folder, len(cells), workers, processes, experiment, progress)
    elif progress is not None:
        progress(Status(len(cells), len(cells), 0, 0, 0, 1.0))
    latest = {record["key"]: record for record in _records(folder)}
    return [latest[cell.key] for cell in cells if cell.key in latest]


def _run_jobs(
    jobs: list[Job],
    folder: Path,
    total: int,
    workers: int,
    processes: int,
    experiment: Experiment,
    progress: Callable[[Status], None] | None,
) -> None:
    """Run jobs and write their records."""
    skipped = total - sum(len(job.cells) for job in jobs)
    work = sum(job.cost for job in jobs)
    n_done = n_failed = running = 0
    finished = 0.0

    def report(record: Record | None = None) -> None:
        if progress is not None:
            share = min(1.0, finished / work)
            progress(Status(total, skipped, n_done, n_failed, running, share, record))

    events = _events(jobs, workers, processes, experiment)
    with Writer(folder) as writer, closing(events):
        report()
        for event in events:
            if event.record is not None:
                writer.append(event.record)
                n_done += 1
                n_failed += bool(event.record["error"])
                running -= 1
                finished += event.job.cost / len(event.job.cells)
            elif not event.ended:
                running += len(event.job.cells)
            report(event.record)


def _events(
    jobs: list[Job], workers: int, processes: int, experiment: Experiment
) -> Generator[Event]:
    """Run jobs in this process or in workers."""
    from psmvae_paper.pool import here, spread

    lanes = {
        "gpu": [job for job in jobs if job.device != "cpu"],
        "cpu": [job for job in jobs if job.device == "cpu"],
    }
    if workers == 1 and not lanes["gpu"]:
        return here(jobs)
    sizes = {"gpu": processes, "cpu": workers}
    return spread(lanes, sizes, added_methods(experiment.methods))


def _records(folder: Path) -> list[Record]:
    try:
        return load_records(folder)
    except FileNotFoundError:
        return []


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")


def _cores() -> int:
    return os.cpu_count() or 1


def _device(device: str) -> str:
    """The name of the device, with "auto" resolved."""
    from psmvae.imputers.checks import torch_device

    return str(torch_device(device))
