"""Seconds and peak memory of imputing a table in Parquet files, beside the table in memory.

A table of n x 50 numbers with 20 % of the cells missing is written to files, about 4 GB for 10^7
rows. A model is fitted to a sample of each table, and that of the first one imputes all of them,
since the time of a row depends on the model. Each measurement runs in a fresh process: the files
are imputed to files, and up to 10^6 rows also read, imputed and written as one table in memory. The
peak is that of the resident memory of the whole process (Linux only). Run with

    python benchmarks/streaming.py [--rows 100000 1000000] [--method psmvae] [--folder FOLDER]

A CUDA device is measured with ``--columns 20 --sample-rows 500000 --device cuda``. ``--method
mean`` takes as long for reading, encoding, decoding and writing, and next to no time for the model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "streaming.json"
ROWS_PER_FILE, GROUP_ROWS = 500_000, 100_000
MOST_IN_MEMORY = 1_000_000
GIB = 2**20  # the kernel counts in KiB


def make(folder: Path, rows: int, columns: int) -> None:
    """Write a table of correlated numbers to Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    # at least four files, so that there are boundaries between them
    per_file = min(ROWS_PER_FILE, -(-rows // 4))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        starts = range(0, rows, per_file)
        paths = [folder / f"part-{number:05}.parquet" for number in range(len(starts))]
        stops = [min(start + per_file, rows) for start in starts]
        list(pool.map(make_file, paths, starts, stops, [columns] * len(paths)))


def make_file(path: Path, start: int, stop: int, columns: int) -> None:
    """Write some rows of the table."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    loadings = np.random.default_rng(0).normal(size=(8, columns))
    names = [f"x{j}" for j in range(columns)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
        for at in range(start, stop, GROUP_ROWS):
            rng, n = np.random.default_rng([1, at]), min(GROUP_ROWS, stop - at)
            x = rng.normal(size=(n, 8)) @ loadings + rng.normal(size=(n, columns))
            missing = rng.random(x.shape) < 0.2
            values = [pa.array(x[:, j], mask=missing[:, j]) for j in range(columns)]
            file.write_table(pa.table(values, names=names))


def fit(data: Path, model: Path, given: argparse.Namespace) -> None:
    """Fit a model to a sample of the rows."""
    import psmvae

    own = {"random_state": 0, "device": given.device}

    made: Any = {
        # single imputations need no regressions for draws and no comparison of mechanisms
        "psmvae": lambda: psmvae.PSMVAEImputer(
            "latent", draws="model", max_time=given.fit_seconds, **own
        ),
        "mice": lambda: psmvae.MICEImputer(max_iter=3, random_state=0),
        "mean": lambda: psmvae.MeanImputer(random_state=0),
    }[given.method]()
    made.fit(data, sample_rows=given.sample_rows).save(model)


def stream(data: Path, model: Path, out: Path, device: str) -> None:
    """Impute the files to files."""
    from psmvae.streaming import impute_files

    impute_files(model, data, out, device=device)


def in_memory(data: Path, model: Path, out: Path, device: str) -> None:
    """Read the table, impute it and write it to one file."""
    import pyarrow.parquet as pq

    import psmvae

    out.mkdir()
    table = pq.read_table(data)
    pq.write_table(psmvae.load(model, device=device).transform(table), out / "all.parquet")


def peak() -> int:
    """Peak of the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    message = "/proc/self/status has no VmHWM"
    raise OSError(message)


WORK = {"stream": stream, "memory": in_memory}


def measure(how: str, data: Path, model: Path, out: Path, device: str) -> dict[str, float]:
    """Impute in this process; the imports are not counted as time."""
    import pyarrow.parquet  # noqa: F401
    import torch  # noqa: F401

    import psmvae

    psmvae.load(model, device=device)
    began = time.perf_counter()
    WORK[how](data, model, out, device)
    return {"seconds": time.perf_counter() - began, "peak_gib": peak() / GIB}


def child(*arguments: object) -> dict[str, float]:
    """Run this script in a fresh process and return what it prints."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(folder: Path, rows: int, given: argparse.Namespace) -> dict[str, Any]:
    """Measure one size of the table."""
    data, method = folder / f"data-{rows}-{given.columns}", given.method
    fitted, model = (
        folder / f"{method}-{n}-{given.columns}.safetensors" for n in (rows, min(given.rows))
    )
    if not data.exists():
        make(data, rows, given.columns)
    began = time.perf_counter()
    fit(data, fitted, given)
    record: dict[str, Any] = {
        "rows": rows,
        "columns": given.columns,
        "method": method,
        "device": given.device,
        "sample_rows": given.sample_rows,
        "fit_seconds": time.perf_counter() - began,
        "input_gb": sum(path.stat().st_size for path in data.iterdir()) / 1e9,
    }
    for how in WORK:
        if how == "memory" and rows > MOST_IN_MEMORY:
            continue
        with tempfile.TemporaryDirectory(dir=folder) as out:
            found = child("--child", how, data, model, Path(out) / "filled", given.device)
        record[how] = found | {"rows_per_second": rows / found["seconds"]}
        print(
            f"{rows:>12,} rows {how:<7} {found['seconds']:8.1f} s "
            f"{rows / found['seconds']:10,.0f} rows/s {found['peak_gib']:6.2f} GiB",
            flush=True,
        )
    return record


def markdown(records: list[dict[str, Any]]) -> str:
    """One row for each measurement; ``cores`` are those of the machine."""
    lines = [
        "| table | GB | method | device | cores | fit, s | files to files, s | rows a second | GiB "
        "| in memory, s | GiB | rows a second, files / memory |",
        "| --- | ---: | --- | --- " + "| ---: " * 8 + "|",
    ]
    for one in records:
        there, here = one["stream"], one.get("memory")
        cells = [
            f"{one['rows']:,} × {one['columns']}", f"{one['input_gb']:.2f}", one["method"],
            one["device"], f"{one['cores']}", f"{one['fit_seconds']:.0f}",
            f"{there['seconds']:.1f}", f"{there['rows_per_second']:,.0f}",
            f"{there['peak_gib']:.2f}",
        ]  # fmt: skip
        ratio = here and there["rows_per_second"] / here["rows_per_second"]
        cells += (
            [f"{here['seconds']:.1f}", f"{here['peak_gib']:.2f}", f"{ratio:.2f}"]
            if here
            else ["", "", ""]
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--method", choices=["psmvae", "mice", "mean"], default="psmvae")
    parser.add_argument("--fit-seconds", type=float, default=60.0)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--sample-rows", type=int, default=20_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, help="where data and models are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        how, *paths, device = given.child
        print(json.dumps(measure(how, *map(Path, paths), device)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        records = [compare(folder, rows, given) for rows in sorted(given.rows)]
    # imported here, so that it does not count as memory of the child processes
    from breast import machine

    result = {"machine": machine(), "records": records}
    given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
