"""Imputation by the actors of a Ray cluster."""

from __future__ import annotations

import os
from typing import Any

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.blocks import BLOCK_ROWS
from psmvae.imputers.loading import load
from psmvae.ray.blocks import BlockTable
from psmvae.ray.engine import Pool, imputed_dataset
from psmvae.sources.files import FileTable
from psmvae.streaming.part import Job

# Rows that an actor imputes at a time for a Ray Dataset: whole blocks of any device.
ROWS_PER_TASK = max(BLOCK_ROWS.values())


def impute(
    data: Any,
    model: Any,
    *,
    multiple: int | None = None,
    random_state: int | None = None,
    rows_per_task: int = ROWS_PER_TASK,
    n_workers: int = 2,
    use_gpu: bool = False,
    cpus_per_worker: int = 1,
    max_failures: int = 3,
) -> Any:
    """Impute a table by a pool of actors.

    The values are those of ``imputer.transform`` and ``imputer.sample`` to the bit, for any number
    of workers on the same type of device.
    """
    pool = Pool(n_workers, use_gpu, cpus_per_worker, max_failures)
    pool.check()
    imputer = model if isinstance(model, Imputer) else load(model, device="cpu")
    checks.whole_number("rows_per_task", rows_per_task, low=1)
    if multiple is not None:
        checks.whole_number("multiple", multiple, low=1)
    table: Any = FileTable.open(data) if _is_paths(data) else BlockTable.of(data)
    size = rows_per_task
    jobs = [
        Job(
            table, start, min(start + size, table.n_rows), ("rows.feather",), multiple, random_state
        )
        for start in range(0, table.n_rows, size)
    ]
    return imputed_dataset(imputer, jobs, pool)


def _is_paths(data: Any) -> bool:
    """Return whether files are named, and not a dataset given."""
    paths = data if isinstance(data, list | tuple) else [data]
    return all(isinstance(one, str | os.PathLike) for one in paths)
