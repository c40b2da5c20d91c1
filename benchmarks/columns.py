"""CPU seconds and memory against the number of columns: 100 rows, up to 20,000 columns.

Each task runs in a fresh process, for each number of columns. CPU seconds are those of the task
without the imports, so other programs on the machine change them little. MICE and MissForest do one
round instead of ten. Run with

    python benchmarks/columns.py [--columns 1000 5000 20000] [--tasks "MICE"]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "columns.json"
ROWS, COLUMNS = 100, (1_000, 5_000, 20_000)
# what is measured, and what prepares it from a table and an empty folder
Work = Callable[[], Any]
Prepare = Callable[[Any, Path], Work]


def table(n_columns: int) -> Any:
    """Make an Arrow table of correlated columns; one cell in ten is missing."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)) @ rng.normal(size=(3, n_columns))
    x += rng.normal(size=x.shape)
    x[rng.random(x.shape) < 0.1] = np.nan
    names = [f"x{j}" for j in range(n_columns)]
    return pa.table({name: pa.array(x[:, j], from_pandas=True) for j, name in enumerate(names)})


def reading(suffix: str) -> Prepare:
    """Read a file as the command line does."""

    def prepare(made: Any, folder: Path) -> Work:
        from pyarrow import csv, parquet

        from psmvae.table.io import read_table

        path = folder / f"table{suffix}"
        csv.write_csv(made, path) if suffix == ".csv" else parquet.write_table(made, path)
        return lambda: read_table(path)

    return prepare


def imputing(name: str, library: str = "pyarrow", **options: Any) -> Prepare:
    """Fit and transform."""

    def prepare(made: Any, folder: Path) -> Work:
        del folder
        import polars as pl

        import psmvae

        frame = made
        if library != "pyarrow":
            frame = made.to_pandas() if library == "pandas" else pl.from_arrow(made)
        make = partial(getattr(psmvae, name), random_state=0, **options)
        # what is imported at the first fit does not count
        make().fit(made.select(range(3)))
        return lambda: make().fit(frame).transform(frame)

    return prepare


def files(made: Any, folder: Path) -> Work:
    """Save and load a fitted model."""
    import psmvae

    # few predictors make the fit short; there are as many arrays as with many
    imputer = psmvae.MICEImputer(random_state=0, max_iter=1, n_nearest_features=20).fit(made)
    path = folder / "model.safetensors"

    def work() -> None:
        imputer.save(path)
        psmvae.load(path)

    return work


def command(made: Any, folder: Path) -> Work:
    """Impute a CSV file by the command line, imports included."""
    from pyarrow import csv

    csv.write_csv(made, folder / "table.csv")
    impute = ["impute", "table.csv", "-o", "filled.csv", "--method", "mean"]
    arguments = [sys.executable, "-m", "psmvae", *impute]
    return partial(subprocess.run, arguments, cwd=folder, check=True, capture_output=True)


TASKS: dict[str, Prepare] = {
    "read CSV": reading(".csv"),
    "read Parquet": reading(".parquet"),
    "mean, Arrow": imputing("MeanImputer"),
    "mean, pandas": imputing("MeanImputer", "pandas"),
    "mean, polars": imputing("MeanImputer", "polars"),
    "MICE, one round": imputing("MICEImputer", max_iter=1),
    "MissForest, one round": imputing("MissForestImputer", max_iter=1, n_jobs=1),
    "save and load MICE with 20 nearest features": files,
    "`psmvae impute --method mean`, CSV to CSV": command,
}


def used() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(task: str, n_columns: int) -> dict[str, Any]:
    """Run a task in this process."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        work = TASKS[task](table(n_columns), Path(folder))
        started = used()
        work()
        seconds = used() - started
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(each).ru_maxrss for each in who)
    return {"task": task, "columns": n_columns, "cpu_seconds": seconds, "peak_gib": peak / 2**20}


def markdown(records: list[dict[str, Any]]) -> str:
    """Table of CPU seconds and memory; the last column is the growth of the last two sizes."""
    sizes = sorted({one["columns"] for one in records})
    lines = [
        "| CPU seconds, 100 rows | "
        + " | ".join(f"{size:,} columns" for size in sizes)
        + " | GiB | growth by column, last two |",
        "| --- |" + " ---: |" * (len(sizes) + 2),
    ]
    for task in TASKS:
        own = {one["columns"]: one for one in records if one["task"] == task}
        if set(own) != set(sizes):
            continue
        small, large = (own[size] for size in sizes[-2:])
        growth = (large["cpu_seconds"] / small["cpu_seconds"]) / (sizes[-1] / sizes[-2])
        cells = " | ".join(f"{own[size]['cpu_seconds']:.1f}" for size in sizes)
        lines.append(f"| {task} | {cells} | {large['peak_gib']:.2f} | {growth:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure each task in fresh processes and write the records."""
    parser = argparse.ArgumentParser(description="Time against the number of columns.")
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.tasks[0], options.columns[0])))
        return
    records = json.loads(options.out.read_text())["records"] if options.out.exists() else []
    for task in options.tasks:
        for size in options.columns:
            here = ["--here", "--tasks", task, "--columns", str(size)]
            done = subprocess.run(
                [sys.executable, __file__, *here], check=True, stdout=subprocess.PIPE, text=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"{task}, {size:,}: {found['cpu_seconds']:.1f} s", flush=True)
            same = (task, size)
            records = [one for one in records if (one["task"], one["columns"]) != same]
            records.append(found)
            options.out.write_text(json.dumps({"rows": ROWS, "records": records}, indent=1) + "\n")
    print(markdown(records))


if __name__ == "__main__":
    main()
