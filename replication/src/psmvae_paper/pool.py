"""Processes that work off jobs and hand back records one by one."""

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

_GRACE = 5.0


@dataclass(frozen=True)
class Event:
    """What happened to a job: it began (neither is set), gave a record, or ended."""

    job: Job
    record: Record | None = None
    ended: bool = False


@dataclass
class _Worker:
    """A process, the end of the pipe to it, and what it is working on."""

    process: SpawnProcess
    pipe: Connection
    lane: str
    job: Job | None = None
    told: set[str] = field(default_factory=set)


def here(jobs: Iterable[Job]) -> Generator[Event]:
    """Work off jobs in this process, on one thread."""
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
    """Work off jobs in processes of one thread each.

    Processes are started afresh rather than forked: CUDA and threads do not survive a fork. One
    that dies takes the cells of its job with it, as failed, and another takes its place. When the
    iterator is closed, or raises, the processes are ended.

    Parameters
    ----------
    queues : mapping of str to sequence of Job
        What is to be done in each lane, such as "cpu" and "cuda", first things first.
    sizes : mapping of str to int
        How many processes each lane has.
    methods : iterable of Method
        Those that a fresh process does not know by itself.

    Yields
    ------
    Event
        As it happens.

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
    """Compute on one thread, and as before afterwards: with more, sums come in another order."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

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
    # a daemon ends with the program that started it
    process = context.Process(target=_work, args=(theirs, methods), daemon=True)
    with held():
        process.start()
    theirs.close()
    return _Worker(process, ours, lane)


@contextmanager
def held() -> Iterator[None]:
    """Hold Ctrl-C back, here and in a process that is started meanwhile, until that ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        # Windows has no such masks
        yield
        return
    # it is started with the first process, and then lets Ctrl-C through again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _next(worker: _Worker, waiting: Mapping[str, list[Job]]) -> Iterator[Event]:
    """Give a worker its next job, if there is one."""
    worker.job, worker.told = None, set()
    if waiting[worker.lane]:
        worker.job = waiting[worker.lane].pop()
        # if it is dead already, that is noticed as soon as something is read
        with suppress(OSError):
            worker.pipe.send(worker.job)
        yield Event(worker.job)


def _listen(
    worker: _Worker,
    workers: list[_Worker],
    waiting: Mapping[str, list[Job]],
    methods: list[Method],
) -> Iterator[Event]:
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
            if cell.key not in worker.told:
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
    worker.told.add(record["key"])
    yield Event(job, record)


def _end(worker: _Worker) -> None:
    worker.process.join(_GRACE)
    if worker.process.exitcode is None:
        worker.process.kill()
        worker.process.join()
    worker.pipe.close()


def _work(pipe: Connection, methods: Iterable[Method]) -> None:
    """What a process does: jobs come in, records go out, None after the last of a job."""
    # Ctrl-C in a terminal reaches every process; the one that started this ends it
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
        # nobody is there any more to work for
        return


def _check_sendable(methods: Iterable[Method]) -> None:
    for method in methods:
        try:
            ForkingPickler.dumps(method)
        except Exception as error:
            raise ValueError(
                f"method {method.name!r} cannot be sent to another process ({error}): let its make "
                "be a function of a module, or run with one worker on the CPU"
            ) from error
