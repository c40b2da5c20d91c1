"""Seconds and peak memory of imputing a table in Parquet files, beside the table in memory.

A table of n x 50 numbers with 20 % of the cells missing is written to files, about 4 GB for 10^7
rows. A model is fitted to a sample of it. Each measurement then runs in a fresh process: the files
are imputed to files, and up to 10^6 rows also read, imputed and written as one table in memory. The
peak is that of the resident memory of the whole process (Linux only). Run with

    python benchmarks/streaming.py [--rows 100000 1000000] [--method psmvae] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "streaming.json"
COLUMNS, ROWS_PER_FILE, GROUP_ROWS = 50, 500_000, 100_000
MOST_IN_MEMORY = 1_000_000
GIB = 2**20  # the kernel counts in KiB


def make(folder: Path, rows: int) -> None:
    """Write a table of correlated numbers to Parquet files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    loadings = np.random.default_rng(0).normal(size=(8, COLUMNS))
    names = [f"x{j}" for j in range(COLUMNS)]
    folder.mkdir(parents=True, exist_ok=True)
    # at least four files, so that there are boundaries between them
    per_file = min(ROWS_PER_FILE, -(-rows // 4))
    for number, start in enumerate(range(0, rows, per_file)):
        path = folder / f"part-{number:05}.parquet"
        with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
            stop = min(start + per_file, rows)
            for at in range(start, stop, GROUP_ROWS):
                rng, n = np.random.default_rng([1, at]), min(GROUP_ROWS, stop - at)
                x = rng.normal(size=(n, 8)) @ loadings + rng.normal(size=(n, COLUMNS))
                missing = rng.random(x.shape) < 0.2
                columns = [pa.array(x[:, j], mask=missing[:, j]) for j in range(COLUMNS)]
                file.write_table(pa.table(columns, names=names))


def fit(data: Path, model: Path, method: str, seconds: float) -> None:
    """Fit a model to a sample of the rows."""
    import psmvae

    made: Any = {
        # single imputations need no regressions for draws and no comparison of mechanisms
        "psmvae": lambda: psmvae.PSMVAEImputer(
            "latent", draws="model", max_time=seconds, random_state=0
        ),
        "mice": lambda: psmvae.MICEImputer(max_iter=3, random_state=0),
        "mean": lambda: psmvae.MeanImputer(random_state=0),
    }[method]()
    made.fit(data, sample_rows=20_000).save(model)


def stream(data: Path, model: Path, out: Path) -> None:
    """Impute the files to files."""
    from psmvae.streaming import impute_files

    impute_files(model, data, out, device="cpu")


def in_memory(data: Path, model: Path, out: Path) -> None:
    """Read the table, impute it and write it to one file."""
    import pyarrow.parquet as pq

    import psmvae

    out.mkdir()
    table = pq.read_table(data)
    pq.write_table(psmvae.load(model, device="cpu").transform(table), out / "all.parquet")


def peak() -> int:
    """Peak of the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    message = "/proc/self/status has no VmHWM"
    raise OSError(message)


WORK = {"stream": stream, "memory": in_memory}


def measure(how: str, data: Path, model: Path, out: Path) -> dict[str, float]:
    """Impute in this process; the imports are not counted as time."""
    import pyarrow.parquet  # noqa: F401
    import torch  # noqa: F401

    import psmvae

    psmvae.load(model, device="cpu")
    began = time.perf_counter()
    WORK[how](data, model, out)
    return {"seconds": time.perf_counter() - began, "peak_gib": peak() / GIB}


def child(*arguments: object) -> dict[str, float]:
    """Run this script in a fresh process and return what it prints."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, rows: int, method: str, seconds: float) -> dict[str, Any]:
    """Measure one size of the table."""
    data, model = folder / f"data-{rows}", folder / f"{method}.safetensors"
    if not data.exists():
        make(data, rows)
    if not model.exists():
        fit(data, model, method, seconds)
    record: dict[str, Any] = {
        "rows": rows,
        "columns": COLUMNS,
        "method": method,
        "input_gb": sum(path.stat().st_size for path in data.iterdir()) / 1e9,
    }
    for how in WORK:
        if how == "memory" and rows > MOST_IN_MEMORY:
            continue
        with tempfile.TemporaryDirectory(dir=folder) as out:
            found = child("--child", how, data, model, Path(out) / "filled")
        record[how] = found | {"rows_per_second": rows / found["seconds"]}
        print(
            f"{rows:>12,} rows {how:<7} {found['seconds']:8.1f} s "
            f"{rows / found['seconds']:10,.0f} rows/s {found['peak_gib']:6.2f} GiB",
            flush=True,
        )
    return record


def main() -> None:
    """Measure all sizes and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--method", choices=["psmvae", "mice", "mean"], default="psmvae")
    parser.add_argument("--fit-seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where data and models are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        how, *paths = given.child
        print(json.dumps(measure(how, *map(Path, paths))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        records = [
            compare(folder, rows, given.method, given.fit_seconds) for rows in sorted(given.rows)
        ]
    # imported here, so that it does not count as memory of the child processes
    from breast import machine

    result = {"machine": machine(), "records": records}
    given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
