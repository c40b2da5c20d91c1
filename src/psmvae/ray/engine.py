"""The jobs of a table, done by a pool of actors of Ray Data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.deep import DeepImputer
from psmvae.ray.cluster import connected_ray
from psmvae.streaming.part import Job, PartError, PartResult, impute_part
from psmvae.table.errors import TableError


class Failure(NamedTuple):
    """A job that could not be done: the error in words, and whether it was one of a file."""

    message: str
    of_file: bool

    def error(self) -> Exception:
        """Return the error to be raised."""
        return OSError(self.message) if self.of_file else PartError(self.message)


@dataclass(frozen=True)
class Pool:
    """The actors that do the jobs.

    Parameters
    ----------
    n_workers : int
        Number of actors.
    use_gpu : bool
        Whether each actor has a GPU.
    cpus_per_worker : int
        Cores of each actor.
    max_failures : int
        How many times a job starts anew after its actor was lost.
    """

    n_workers: int = 2
    use_gpu: bool = False
    cpus_per_worker: int = 1
    max_failures: int = 3

    def check(self) -> None:
        """Raise for a setting out of its range."""
        for name in ("n_workers", "cpus_per_worker"):
            checks.whole_number(name, getattr(self, name), low=1)
        checks.whole_number("max_failures", self.max_failures, low=0)
        checks.yes_or_no("use_gpu", self.use_gpu)

    @property
    def device(self) -> str:
        """The type of the actors' device."""
        return "cuda" if self.use_gpu else "cpu"

    def map(self, numbers: Any, worker: type, *arguments: Any) -> Any:
        """Return the dataset of what actors of a class make of each row of a dataset."""
        from ray.data import ActorPoolStrategy

        return numbers.map_batches(
            worker,
            batch_size=1,
            batch_format="pyarrow",
            # a job takes long, so that an actor needs none in advance
            compute=ActorPoolStrategy(size=self.n_workers, max_tasks_in_flight_per_actor=1),
            num_cpus=self.cpus_per_worker,
            num_gpus=1 if self.use_gpu else None,
            max_task_retries=self.max_failures,
            fn_constructor_args=arguments,
        )


class Worker:
    """An actor that holds the imputer and the list of all jobs."""

    def __init__(self, imputer: Any, jobs: Any, device: str) -> None:
        import ray

        self.imputer, self.jobs = ray.get(imputer), ray.get(jobs)
        if isinstance(self.imputer, DeepImputer):
            self.imputer.device = device
            self.imputer.model_.to(device)


class FileWorker(Worker):
    """An actor that writes the output files of jobs."""

    def __call__(self, numbers: Any) -> dict[str, list[Any]]:
        """Do the jobs with these numbers, and return how each ended."""
        found = numbers["id"].to_pylist()
        return {"job": found, "outcome": [self._outcome(self.jobs[number]) for number in found]}

    def _outcome(self, job: Job) -> PartResult | Failure:
        try:
            return impute_part(self.imputer, job)
        except (TableError, OSError) as error:
            # not raised: the other jobs go on
            return Failure(str(error), isinstance(error, OSError))


class TableWorker(Worker):
    """An actor that returns the imputed rows of jobs; their outputs are names of files."""

    def __call__(self, numbers: Any) -> Iterator[Any]:
        """Return the imputed rows of the jobs with these numbers."""
        for number in numbers["id"].to_pylist():
            job = self.jobs[number]
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / job.outputs[0])
                impute_part(self.imputer, replace(job, outputs=(path,)))
                with pa.OSFile(path) as file, pa.ipc.open_file(file) as opened:
                    yield opened.read_all()


def run_jobs(
    imputer: Imputer, jobs: Sequence[Job], pool: Pool
) -> Iterator[tuple[Job, PartResult | Failure]]:
    """Do all jobs, and return each with how it ended as soon as it has.

    Output files are complete or absent, whatever happens to actors and to this process. A job whose
    actor is lost is done again by another one.
    """
    ray = connected_ray()
    imputer_ref, jobs_ref = put_imputer(imputer), ray.put(list(jobs))
    for row in pool.map(
        _numbers(len(jobs)), FileWorker, imputer_ref, jobs_ref, pool.device
    ).iter_rows():
        yield jobs[row["job"]], row["outcome"]


def imputed_dataset(imputer: Imputer, jobs: Sequence[Job], pool: Pool) -> Any:
    """Return a Ray Dataset of the imputed rows of all jobs, in their order.

    It is computed when it is used.
    """
    ray = connected_ray()
    imputer_ref, jobs_ref = put_imputer(imputer), ray.put(list(jobs))
    dataset = pool.map(_numbers(len(jobs)), TableWorker, imputer_ref, jobs_ref, pool.device)
    dataset.context.execution_options.preserve_order = True
    return dataset


def _numbers(n: int) -> Any:
    """Return a Ray Dataset of the numbers of the jobs, one in a block.

    Unlike ``ray.data.range`` it needs no task, which would wait for ever if the actors hold all
    cores.
    """
    import ray.data

    return ray.data.from_arrow([pa.table({"id": [number]}) for number in range(n)])


def put_imputer(imputer: Imputer) -> Any:
    """Put an imputer into Ray's object store, with its model on the CPU."""
    ray = connected_ray()
    if not isinstance(imputer, DeepImputer):
        return ray.put(imputer)
    device = next(imputer.model_.parameters()).device
    try:
        return ray.put(_on(imputer, "cpu"))
    finally:
        _on(imputer, device)


def _on(imputer: DeepImputer, device: Any) -> DeepImputer:
    imputer.model_.to(device)
    return imputer
