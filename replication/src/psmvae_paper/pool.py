"""Worker processes that run jobs and return records one by one.

`concurrent.futures` and joblib do not fit: when a worker dies (of lack of memory, say) they break
the whole pool and lose all pending jobs, and they return a result only at the end of a job. Here a
dead worker fails its own cells only and is replaced, and each record is returned as soon as it is
measured, so that a run that is killed loses no finished cell.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from psmvae_paper.methods import METHODS
from psmvae_paper.stacks import Job, failure, run_job

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from psmvae_paper.methods import Method

    Record = dict[str, Any]

# Seconds that a worker has to end before it is killed.
_GRACE = 5.0


@dataclass(frozen=True)
class Event:
    """A job began (neither field is set), returned a record, or ended.

    Parameters
    ----------
    job : Job
        The job.
    record : dict, optional
        The record of one of its cells.
    ended : bool, default=False
        Whether the job is over.
    """

    job: Job
    record: Record | None = None
    ended: bool = False


@dataclass
class _Worker:
    """A process, our end of the pipe to it, its current job, and the keys it has returned."""

    process: SpawnProcess
    pipe: Connection
    lane: str
    job: Job | None = None
    returned: set[str] = field(default_factory=set)


def here(jobs: Iterable[Job]) -> Generator[Event]:
    """Run jobs in this process, on one thread."""
    with one_thread():
        for job in jobs:
            yield Event(job)
            for record in run_job(job):
                yield Event(job, record)
            yield Event(job, ended=True)


def spread(
    queues: Mapping[str, Sequence[Job]],
    sizes: Mapping[str, int],
    methods: Iterable[Method] = (),
) -> Generator[Event]:
    """Run jobs in processes of one thread each.

    Processes are spawned, not forked: CUDA and threads do not survive a fork. If a process dies,
    the unfinished cells of its job are recorded as failed and a new process replaces it. The
    processes end when the iterator is closed or raises.

    Parameters
    ----------
    queues : mapping of str to sequence of Job
        The jobs of each lane, "cpu" and "gpu", in order.
    sizes : mapping of str to int
        The number of processes of each lane.
    methods : iterable of Method
        Methods that a user added to `METHODS`: a spawned process does not have them.

    Yields
    ------
    Event
        Begin, record or end of a job.

    Raises
    ------
    ValueError
        If a method cannot be sent to another process.
    """
    extra = list(methods)
    _check_sendable(extra)
    waiting = {lane: list(reversed(jobs)) for lane, jobs in queues.items()}
    workers: list[_Worker] = []
    try:
        for lane, jobs in waiting.items():
            workers += [_start(lane, extra) for _ in range(min(sizes[lane], len(jobs)))]
        for worker in workers:
            yield from _next(worker, waiting)
        while any(worker.job for worker in workers):
            busy = {worker.pipe: worker for worker in workers if worker.job}
            for pipe in connection.wait(list(busy)):
                yield from _listen(busy[pipe], workers, waiting, extra)  # type: ignore[index]
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            _end(worker)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: with more, floating-point sums are taken in another order."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _start(lane: str, methods: list[Method]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # a daemon process ends with its parent
    process = context.Process(target=_work, args=(theirs, methods), daemon=True)
    with sigint_blocked():
        process.start()
    theirs.close()
    return _Worker(process, ours, lane)


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C, here and in a process that is started meanwhile, which then ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        # Windows has no signal masks
        yield
        return
    # the tracker process starts with the first worker and would unblock the signal
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _next(worker: _Worker, waiting: Mapping[str, list[Job]]) -> Iterator[Event]:
    """Give a worker its next job, if there is one."""
    worker.job, worker.returned = None, set()
    if waiting[worker.lane]:
        worker.job = waiting[worker.lane].pop()
        # a process that is dead already is noticed at the next read
        with suppress(OSError):
            worker.pipe.send(worker.job)
        yield Event(worker.job)


def _listen(
    worker: _Worker,
    workers: list[_Worker],
    waiting: Mapping[str, list[Job]],
    methods: list[Method],
) -> Iterator[Event]:
    """Receive what a worker sent, or replace it if it died."""
    job = worker.job
    if job is None:
        return
    try:
        record = worker.pipe.recv()
    except (EOFError, OSError):
        _end(worker)
        workers.remove(worker)
        died = RuntimeError(f"the process ended with code {worker.process.exitcode}")
        for cell in job.cells:
            if cell.key not in worker.returned:
                yield Event(job, failure(job, cell, died))
        yield Event(job, ended=True)
        if waiting[worker.lane]:
            workers.append(_start(worker.lane, methods))
            yield from _next(workers[-1], waiting)
        return
    if record is None:
        yield Event(job, ended=True)
        yield from _next(worker, waiting)
        return
    worker.returned.add(record["key"])
    yield Event(job, record)


def _end(worker: _Worker) -> None:
    """Wait for a process to end, and kill it if it does not."""
    worker.process.join(_GRACE)
    if worker.process.exitcode is None:
        worker.process.kill()
        worker.process.join()
    worker.pipe.close()


def _work(pipe: Connection, methods: Iterable[Method]) -> None:
    """The main function of a process: receive jobs, send records, and None after each job."""
    # Ctrl-C in a terminal reaches every process; the parent ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    METHODS.update({method.name: method for method in methods})
    try:
        with one_thread():
            while True:
                job: Job = pipe.recv()
                for record in run_job(job):
                    pipe.send(record)
                pipe.send(None)
    except (EOFError, OSError):
        # the parent has ended
        return


def _check_sendable(methods: Iterable[Method]) -> None:
    """Raise an error for a method that cannot be pickled."""
    for method in methods:
        try:
            ForkingPickler.dumps(method)
        except Exception as error:
            raise ValueError(
                f"method {method.name!r} cannot be sent to another process ({error}): define its "
                "make function in a module, or run with one worker on the CPU"
            ) from error
