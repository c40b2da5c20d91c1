"""Rows a second of several workers, and an estimate for a cluster from them.

A table of numbers with 20 % of the cells missing is written to one Parquet file for each job, and a
model is fitted to a sample. `psmvae.streaming.impute_part` then imputes the files, single and five
times: by processes of Python's standard library and, where Ray is installed, by `psmvae.ray`. Each
worker has one thread. Rates are measured from when each worker has done one job, so that the start
of processes is not part of them, and is recorded separately for Ray. ``run`` also measures what
one process does for a whole table: the sample of a fit, the opening of files, the manifest. A run
replaces the record of an earlier one on a machine with as many cores.

    python benchmarks/workers.py run [--workers 1 2 4 8 16] [--ray 1 2] [--jobs 64]
    python benchmarks/workers.py page
"""

from __future__ import annotations

import os

# one thread for each worker; set before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
import importlib.util
import json
import multiprocessing
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import psmvae
from breast import machine
from pages import DOCS, write_page
from psmvae.sources import open_source
from psmvae.sources.sample import sample_rows
from psmvae.streaming import FileTable, Job, impute_part
from psmvae.streaming.manifest import Manifest, identity_of

RESULTS, PAGE = Path(__file__).parent / "results" / "workers.json", DOCS / "scale.md"
COLUMNS, IMPUTATIONS = 20, 5
FILES_OF_MANIFEST = 1000
# The table and the cluster of the estimate.
ROWS, NODES, CORES, FILES_PER_WORKER = 10**9, 32, 16, 4

UNITS = (("h", 3600), ("min", 60), ("s", 1))
Jobs = list[Job]


def make(folder: Path, n_files: int, rows: int) -> None:
    """Write files of correlated numbers."""
    loadings = np.random.default_rng(0).normal(size=(5, COLUMNS))
    folder.mkdir()
    for number in range(n_files):
        rng = np.random.default_rng([1, number])
        x = rng.normal(size=(rows, 5)) @ loadings + rng.normal(size=(rows, COLUMNS))
        missing = rng.random(x.shape) < 0.2
        columns = {f"x{j}": pa.array(x[:, j], mask=missing[:, j]) for j in range(COLUMNS)}
        pq.write_table(pa.table(columns), folder / f"{number:05}.parquet")


def checksum(jobs: Jobs) -> str:
    """Return the checksum of the outputs of all jobs."""
    digest = hashlib.sha256()
    for job in jobs:
        digest.update(Path(job.outputs[0]).read_bytes())
    return digest.hexdigest()[:16]


_IMPUTER: Any = None


def start_worker(model: Path, barrier: Any) -> None:
    """Load the model in a worker, and wait for the others."""
    import torch

    global _IMPUTER
    torch.set_num_threads(1)
    _IMPUTER = psmvae.load(model, device="cpu")
    barrier.wait()


def do_job(job: Job) -> None:
    """Impute the rows of a job in a worker."""
    impute_part(_IMPUTER, job)


def by_processes(model: Path, jobs: Jobs, workers: int) -> Iterator[None]:
    """Impute jobs by processes of the standard library; yield when one is done."""
    context = multiprocessing.get_context("spawn")
    started = (model, context.Barrier(workers))
    with ProcessPoolExecutor(workers, context, start_worker, started) as pool:
        for future in as_completed([pool.submit(do_job, job) for job in jobs]):
            yield future.result()


def by_ray(model: Path, jobs: Jobs, workers: int) -> Iterator[None]:
    """Impute jobs by a local Ray; yield when one is done."""
    import ray

    from psmvae.ray.engine import Pool

    ray.init(num_cpus=workers, object_store_memory=500 * 2**20, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        for _ in Pool(workers)(psmvae.load(model, device="cpu"), jobs):
            yield None
    finally:
        ray.shutdown()


Engine = Callable[[Path, Jobs, int], Iterator[None]]


def measure(engine: Engine, model: Path, jobs: Jobs, workers: int) -> dict[str, Any]:
    """Return the rate from the end of the job with the number of the workers to the last end."""
    began = time.perf_counter()
    ends = [time.perf_counter() - began for _ in engine(model, jobs, workers)]
    rows, first = jobs[0].stop - jobs[0].start, ends[workers - 1]
    return {
        "workers": workers,
        "rows_per_second": rows * (len(jobs) - workers) / (ends[-1] - first),
        "seconds_to_first_job": ends[0],
        "checksum": checksum(jobs),
    }


def measure_engines(
    given: argparse.Namespace, model: Path, table: FileTable, out: Path
) -> Iterator[dict[str, Any]]:
    """Measure all numbers of workers, single and multiple."""
    engines: dict[str, tuple[Engine, list[int]]] = {"processes": (by_processes, given.workers)}
    if given.ray and importlib.util.find_spec("ray") is not None:
        engines["ray"] = by_ray, given.ray
    for multiple in (None, IMPUTATIONS):
        for name, (engine, numbers) in engines.items():
            for workers in numbers:
                folder = out / f"{name}-{workers}-{multiple}"
                jobs = [
                    Job(table, part.start, part.stop, (f"{folder}/{part.place.name}",), multiple)
                    for part in table.parts
                ]
                record = {"engine": name, "multiple": multiple}
                record |= measure(engine, model, jobs, workers)
                print(
                    f"{name:<9} {workers:>3} workers, {multiple or 1} imputations: "
                    f"{record['rows_per_second']:10,.0f} rows/s",
                    flush=True,
                )
                yield record


def measure_driver(data: Path, model: Path, table: FileTable, out: Path) -> dict[str, float]:
    """Measure what is done by one process, for each row or each file."""

    def seconds(work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    n_files = len(table.parts)
    sampling = seconds(lambda: sample_rows(open_source(data), 10_000, 0))
    opening = seconds(lambda: FileTable.open(data))
    out.mkdir()
    manifest = Manifest(str(out), identity_of(model, table, {}))
    record = {"start": 0, "stop": 0, "sizes": [0], "missing": 0, "drift": [], "warnings": []}
    manifest.outputs = {f"{k:05}.parquet": dict(record) for k in range(FILES_OF_MANIFEST)}
    n_bytes = sum(part.size for part in table.parts)
    return {
        "sampled_rows_per_second": table.n_rows / sampling,
        "opening_seconds_per_file": opening / n_files,
        # grows with the number of files, since it is written as a whole
        "manifest_seconds": min(seconds(manifest.write) for _ in range(5)),
        "job_bytes_per_file": len(pickle.dumps(table)) / n_files,
        "bytes_per_row": n_bytes / table.n_rows,
    }


def run(given: argparse.Namespace) -> None:
    """Measure and write the record."""
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        folder = Path(temporary)
        data, model = folder / "data", folder / "model.safetensors"
        make(data, given.jobs, given.rows)
        settings = {"max_time": given.fit_seconds, "device": "cpu", "random_state": 0}
        psmvae.PSMVAEImputer(**settings).fit(data, sample_rows=20_000).save(model)
        table = FileTable.open(data)
        record = {
            "machine": machine(),
            "load": os.getloadavg()[0],
            "columns": COLUMNS,
            "rows_per_job": given.rows,
            "jobs": given.jobs,
            "driver": measure_driver(data, model, table, folder / "manifest"),
            "rates": list(measure_engines(given, model, table, folder)),
        }
    for multiple in (None, IMPUTATIONS):
        sums = {one["checksum"] for one in record["rates"] if one["multiple"] == multiple}
        if len(sums) > 1:
            raise ValueError(f"the values differ between numbers of workers: {sums}")
    records = [*_read(given.out), record]
    latest = {one["machine"]["cpus"]: one for one in records}
    given.out.write_text(json.dumps({"records": list(latest.values())}, indent=1) + "\n")


def page(records: list[dict[str, Any]]) -> str:
    """Return the tables of the documentation; the estimate is that of the machine with most cores.

    Parameters
    ----------
    records : list of dict
        The records of the machines.
    """
    records = sorted(records, key=lambda one: int(one["machine"]["cpus"]))
    parts = []
    for record in records:
        cores = record["machine"]["cpus"]
        parts.append(
            f"Rows a second on {cores} cores, and the ratio to one process ({COLUMNS} columns, "
            "`PSMVAEImputer`, one thread for each worker):"
        )
        parts.append(_rates(record))
    return "\n\n".join([*parts, _estimate(records[-1])])


def _rate(record: dict[str, Any], engine: str, workers: int, multiple: int | None) -> float | None:
    for one in record["rates"]:
        if (one["engine"], one["workers"], one["multiple"]) == (engine, workers, multiple):
            return float(one["rows_per_second"])
    return None


def _rates(record: dict[str, Any]) -> str:
    names = {"processes": "multiprocessing", "ray": "Ray"}
    lines = [
        f"| engine | workers | single | {IMPUTATIONS} imputations |",
        "| --- | --- | --- | --- |",
    ]
    keys = dict.fromkeys((one["engine"], one["workers"]) for one in record["rates"])
    for engine, workers in keys:
        cells = []
        for multiple in (None, IMPUTATIONS):
            rate = _rate(record, engine, workers, multiple)
            one = _rate(record, "processes", 1, multiple)
            cells.append("–" if rate is None or one is None else f"{rate:,.0f} ({rate / one:.2f})")
        lines.append(f"| {names[engine]} | {workers} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _estimate(record: dict[str, Any]) -> str:
    """Compute times for a large table from the rates of one node."""
    driver, workers = record["driver"], NODES * CORES
    files = FILES_PER_WORKER * workers
    most = max(one["workers"] for one in record["rates"] if one["engine"] == "processes")
    rates = {
        multiple: (_rate(record, "processes", most, multiple) or 0.0) * CORES / most * NODES
        for multiple in (None, IMPUTATIONS)
    }
    gigabytes = driver["bytes_per_row"] * ROWS / 1e9
    one, several = ROWS / rates[None], ROWS / rates[IMPUTATIONS]
    manifest = driver["manifest_seconds"] / FILES_OF_MANIFEST * files
    rows = [
        ("impute, single", _time(one), "all workers", f"{gigabytes / one:.1f} GB/s read"),
        (
            f"impute, {IMPUTATIONS} times",
            _time(several),
            "all workers",
            f"{gigabytes * (IMPUTATIONS + 1) / several:.1f} GB/s written",
        ),
        (
            "sample of `fit`",
            _time(ROWS / driver["sampled_rows_per_second"]),
            "one process",
            "reads all rows",
        ),
        (
            f"open {files:,} files",
            _time(files * driver["opening_seconds_per_file"]),
            "one process",
            "on a local disk; a request for each file otherwise",
        ),
        (
            f"one write of the manifest of {files:,} files",
            f"{1000 * manifest:.0f} ms",
            "one process",
            "a twentieth of a run at most",
        ),
    ]
    head = (
        f"{ROWS:,} rows ({gigabytes:,.0f} GB of Parquet) on {NODES} nodes with {CORES} cores, "
        f"computed from these rates with {most} workers on a node, not measured:"
    )
    lines = ["| step | time | by | |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return head + "\n\n" + "\n".join(lines)


def _time(seconds: float) -> str:
    unit, size = next((one for one in UNITS if seconds >= 2 * one[1]), UNITS[-1])
    return f"{seconds / size:.{0 if seconds >= 10 * size else 1}f} {unit}"


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.set_defaults(do=run)
    running.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    running.add_argument("--ray", type=int, nargs="*", default=[1, 2])
    running.add_argument("--jobs", type=int, default=64)
    running.add_argument("--rows", type=int, default=16_384, help="rows of a job")
    running.add_argument("--fit-seconds", type=float, default=30.0)
    running.add_argument("--folder", type=Path, help="where temporary files are written")
    paging = commands.add_parser("page")
    paging.set_defaults(do=lambda given: write_page(PAGE, "workers", page(_read(given.out))))
    for command in (running, paging):
        command.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    given.do(given)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the records so far."""
    found: list[dict[str, Any]] = []
    if path.exists():
        found = json.loads(path.read_text())["records"]
    return found


if __name__ == "__main__":
    main()
