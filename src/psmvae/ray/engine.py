"""The jobs of a table, done by a pool of actors of Ray Data."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.deep import DeepImputer
from psmvae.ray.cluster import connected_ray
from psmvae.streaming import Job, impute_part
from psmvae.streaming.run import Outcome
from psmvae.table.errors import TableError
from psmvae.table.temporary import remove_stale

# Seconds within which Ray ends the actors of a run that was interrupted.
SECONDS_TO_END = 5.0


class Ended(NamedTuple):
    """How a job ended, and the cause of an error, which pickling would lose."""

    outcome: Outcome
    cause: BaseException | None = None


@dataclass(frozen=True)
class Pool:
    """A pool of actors; called as an engine of `psmvae.streaming.impute_files`.

    Parameters
    ----------
    n_workers : int, optional
        Number of actors. By default as many as the cluster has cores or GPUs for.
    use_gpu : bool
        Whether each actor has a GPU.
    cpus_per_worker : int
        Cores of each actor.
    max_failures : int
        How many times a job starts anew after its actor was lost.
    """

    n_workers: int | None = None
    use_gpu: bool = False
    cpus_per_worker: int = 1
    max_failures: int = 3

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.n_workers is not None:
            checks.whole_number("n_workers", self.n_workers, low=1)
        checks.whole_number("cpus_per_worker", self.cpus_per_worker, low=1)
        checks.whole_number("max_failures", self.max_failures, low=0)
        checks.yes_or_no("use_gpu", self.use_gpu)

    @property
    def device(self) -> str:
        """The type of the actors' device."""
        return "cuda" if self.use_gpu else "cpu"

    def __call__(self, imputer: Imputer, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
        """Do all jobs, and return the number and the outcome of each as soon as it has ended.

        Output files are complete or absent, whatever happens to actors and to this process. A job
        whose actor is lost is done again by another one.
        """
        if not jobs:
            return
        from ray.exceptions import RayError

        unfinished = set(range(len(jobs)))
        try:
            for row in self._map(FileWorker, imputer, jobs).iter_rows():
                number, (outcome, cause) = row["job"], row["ended"]
                if isinstance(outcome, Exception):
                    outcome.__cause__ = cause
                unfinished.discard(number)
                yield number, outcome
        except RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise RuntimeError(f"Ray could not finish {len(unfinished)} jobs: {reason}") from error
        finally:
            if unfinished:
                _remove_temporary_files([jobs[number] for number in unfinished])

    def dataset(self, imputer: Imputer, jobs: Sequence[Job]) -> Any:
        """Return a Ray Dataset of the imputed rows of all jobs, computed when it is used."""
        dataset = self._map(TableWorker, imputer, jobs)
        dataset.context.execution_options.preserve_order = True
        return dataset

    def _map(self, worker: type, imputer: Imputer, jobs: Sequence[Job]) -> Any:
        ray = connected_ray()
        from ray.data import ActorPoolStrategy, from_arrow

        # unlike the numbers of ray.data.range, these need no task, which would wait for ever if the
        # actors hold all cores
        numbers = from_arrow([pa.table({"job": [number]}) for number in range(len(jobs))])
        size = min(self.n_workers or self._n_places(ray), len(jobs))
        return numbers.map_batches(
            worker,
            batch_size=1,
            batch_format="pyarrow",
            # a job takes long, so that an actor needs none in advance
            compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=1),
            num_cpus=self.cpus_per_worker,
            num_gpus=1 if self.use_gpu else None,
            ray_remote_args_fn=lambda: {"max_task_retries": self.max_failures},
            fn_constructor_args=(put_imputer(imputer), ray.put(list(jobs)), self.device),
        )

    def _n_places(self, ray: Any) -> int:
        """Return the number of actors for which the cluster has cores and GPUs."""
        found = ray.cluster_resources()
        places = int(found.get("CPU", 1)) // self.cpus_per_worker
        return max(1, min(places, int(found.get("GPU", 0))) if self.use_gpu else places)


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
        found = numbers["job"].to_pylist()
        return {"job": found, "ended": [self._end(self.jobs[number]) for number in found]}

    def _end(self, job: Job) -> Ended:
        try:
            return Ended(impute_part(self.imputer, job))
        except (TableError, OSError) as error:
            # not raised, so that Ray does not take it for a fault of the actor
            return Ended(error, _copied(error.__cause__))


class TableWorker(Worker):
    """An actor that returns the imputed rows of jobs, whose outputs are names of files."""

    def __call__(self, numbers: Any) -> Iterator[Any]:
        """Return the imputed rows of the jobs with these numbers."""
        for number in numbers["job"].to_pylist():
            job = self.jobs[number]
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / job.outputs[0])
                impute_part(self.imputer, replace(job, outputs=(path,)))
                with pa.OSFile(path) as file, pa.ipc.open_file(file) as opened:
                    yield opened.read_all()


def put_imputer(imputer: Imputer) -> Any:
    """Put an imputer into Ray's object store, with its model on the CPU."""
    ray = connected_ray()
    if not isinstance(imputer, DeepImputer):
        return ray.put(imputer)
    device = next(imputer.model_.parameters()).device
    try:
        imputer.model_.to("cpu")
        return ray.put(imputer)
    finally:
        imputer.model_.to(device)


def _copied(error: BaseException | None) -> BaseException | None:
    """Return the error, or None if it cannot be copied and so not be sent."""
    try:
        return copy.copy(error)
    except TypeError:
        return None


def _remove_temporary_files(jobs: Sequence[Job]) -> None:
    """Remove what actors have left that were ended; a locked file has an actor that works on."""
    paths = [Path(path) for job in jobs for path in job.outputs if "://" not in path]
    end = time.monotonic() + SECONDS_TO_END
    while not remove_stale(*paths) and time.monotonic() < end:
        time.sleep(0.1)
