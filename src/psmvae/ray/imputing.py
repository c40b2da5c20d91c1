"""Imputation by the actors of a Ray cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.blocks import BLOCK_ROWS
from psmvae.imputers.loading import load
from psmvae.ray.blocks import BlockTable
from psmvae.ray.cluster import connected_ray
from psmvae.ray.engine import Pool
from psmvae.streaming import FileTable, Job, PartDone, impute_files

# Rows that an actor imputes and returns at a time: whole blocks of any type of device.
ROWS_PER_TASK = max(BLOCK_ROWS.values())

AnyPath = str | os.PathLike[str]


def impute(
    data: Any,
    model: Imputer | AnyPath,
    *,
    output: AnyPath | None = None,
    multiple: int | None = None,
    random_state: int | None = None,
    rows_per_file: int | None = None,
    ignore: Sequence[str] = (),
    na: Sequence[str] = (),
    on_error: Literal["stop", "skip"] = "stop",
    force: bool = False,
    n_workers: int | None = None,
    use_gpu: bool = False,
    cpus_per_worker: int = 1,
    max_failures: int = 3,
    progress: Callable[[PartDone], None] | None = None,
) -> Any:
    """Impute a table by a pool of actors of Ray Data.

    The values are those of ``imputer.transform`` and ``imputer.sample`` of the whole table to the
    bit, for any number of workers on the same type of device.

    Parameters
    ----------
    data : paths or ray.data.Dataset
        Files, folders, patterns and URIs that all machines of the cluster can read. Or a Ray
        Dataset, which is computed first, since the imputed values depend on the positions of rows.
    model : imputer or path
        A fitted imputer, or its model file.
    output : path, optional
        A folder that all machines can write to. It has one file for each input file and a manifest,
        and a run that was ended in any way goes on where it was; see
        `psmvae.streaming.impute_files`. Only for paths; a Ray Dataset is written by its methods.
    multiple : int, optional
        Number of imputations, in the long format with the columns ``.imp`` and ``.id``. By default
        cells are imputed by their expected values.
    random_state : int, optional
        Seed of the draws. None gives the draws of ``imputer.sample``.
    rows_per_file : int, optional
        Rows of an output file, instead of one file for each input file. A file is the work of one
        actor. Without `output`, rows that an actor imputes at a time, 65,536 by default.
    ignore : sequence of str
        Columns that are written as they are, beside those that the model ignores.
    na : sequence of str
        Codes of missing cells in files.
    on_error : {"stop", "skip"}, default="stop"
        Whether an input file that cannot be read or imputed ends the run or is left out.
    force : bool, default=False
        Whether to replace the files of another run.
    n_workers : int, optional
        Number of actors. By default as many as the cluster has cores or GPUs for.
    use_gpu : bool, default=False
        Whether each actor has a GPU.
    cpus_per_worker : int, default=1
        Cores of each actor.
    max_failures : int, default=3
        How many times a file is done again after its actor was lost.
    progress : callable, optional
        Called with a `psmvae.streaming.PartDone` when an output file is done.

    Returns
    -------
    RunResult or ray.data.Dataset
        With `output`, what was done. Without it, a dataset of the imputed rows in their order,
        computed when it is used.

    Raises
    ------
    ImportError
        If Ray is not installed.
    TableError
        If an input cannot be read or imputed, which the message names. Output files that are done
        stay valid.
    OSError
        If an output file cannot be written.
    RuntimeError
        If actors were lost more than `max_failures` times at the same file.

    See Also
    --------
    psmvae.streaming.impute_files : The same by one process.

    Examples
    --------
    >>> import psmvae
    >>> psmvae.ray.impute(                                  # doctest: +SKIP
    ...     "data/*.parquet", "model.safetensors", output="filled/", n_workers=64
    ... )
    >>> ds = ray.data.read_parquet("data/")                 # doctest: +SKIP
    >>> psmvae.ray.impute(ds, imputer).write_parquet("filled/")  # doctest: +SKIP
    """
    pool = Pool(n_workers, use_gpu, cpus_per_worker, max_failures)
    if multiple is not None:
        checks.whole_number("multiple", multiple, low=1)
    if rows_per_file is not None:
        checks.whole_number("rows_per_file", rows_per_file, low=1)
    if output is None:
        imputer = model if isinstance(model, Imputer) else load(model, device="cpu")
        job = Job(_opened(data, na), 0, 0, ("rows.feather",), multiple, random_state, tuple(ignore))
        return pool.dataset(imputer, _split(job, rows_per_file or ROWS_PER_TASK))
    if not _are_paths(data):
        raise TypeError(
            f"output is for files, and data is a {type(data).__name__}; write the dataset that "
            "impute returns without output, for example by its write_parquet."
        )
    # an error of Ray before the output folder is made
    connected_ray()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors" if isinstance(model, Imputer) else Path(model)
        if isinstance(model, Imputer):
            model.save(path)
        return impute_files(
            path,
            data,
            output,
            multiple=multiple,
            random_state=random_state,
            rows_per_file=rows_per_file,
            ignore=ignore,
            na=na,
            device="cpu",
            on_error=on_error,
            force=force,
            engine=pool,
            block_rows=BLOCK_ROWS[pool.device],
            progress=progress,
        )


def _are_paths(data: Any) -> bool:
    """Return whether files are named, and not a dataset given."""
    paths = data if isinstance(data, list | tuple) else [data]
    return all(isinstance(one, str | os.PathLike) for one in paths)


def _opened(data: Any, na: Sequence[str]) -> Any:
    if _are_paths(data):
        return FileTable.open(data, na=na)
    if not hasattr(data, "map_batches"):
        raise TypeError(f"data must be paths or a ray.data.Dataset, got {type(data).__name__}.")
    return BlockTable.of(data)


def _split(job: Job, size: int) -> list[Job]:
    """Return the jobs of all rows, ``size`` rows each."""
    n_rows = job.table.n_rows
    return [
        replace(job, start=start, stop=min(start + size, n_rows))
        for start in range(0, n_rows, size)
    ]
