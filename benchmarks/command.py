"""How long the command line and the imports take, in processes of their own, start to finish.

1. ``psmvae impute`` with its defaults on a CSV of 1,000 rows and 10 columns (seven of numbers, two
   of levels, one of whole numbers; a fifth of the cells missing): from the start of Python over
   reading, fit and transform to the written file. The filled table is looked at, not timed: it must
   have every row and no missing cell.
2. Imports: ``import psmvae``, ``psmvae --help``, and the imputer with all it needs to be made,
   scikit-learn among it (torch is loaded by ``fit``); an empty program beside them, for what Python
   itself takes. The first round may read files from the disk that later ones find in memory, so
   rounds are told apart.
3. What the imputer's import consists of: seconds of the slowest packages, each without the packages
   it loads, by ``python -X importtime`` (which slows every import a little).

"asked" is meant for the slowest round. Run with

    python benchmarks/command.py [--repeats 3] [--threads 2]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from breast import machine
from psmvae.simulate import mcar

RESULTS = Path(__file__).parent / "results" / "command.json"
IMPUTE = "psmvae impute"
IMPUTER = "import psmvae; psmvae.PSMVAEImputer"
IMPORTS = {
    "python alone": ["-c", "pass"],
    "import psmvae": ["-c", "import psmvae"],
    "psmvae --help": ["-m", "psmvae", "--help"],
    "psmvae.PSMVAEImputer": ["-c", IMPUTER],
}
# Seconds that these may take.
ASKED = {IMPUTE: 20.0, "import psmvae": 3.0, "psmvae.PSMVAEImputer": 3.0}


def make_table(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a CSV of numbers, with levels and whole numbers in the last three columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_columns))
    x += 0.5 * rng.normal(size=x.shape)
    m = mcar(x, 0.2, rng).m

    def text(j: int, value: float) -> str:
        if j == n_columns - 1:
            return str(round(10 * value))
        if j >= n_columns - 3:
            return "high" if value > 1 else "low" if value < -1 else "middle"
        return f"{value:.4f}"

    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{j}" for j in range(n_columns)])
        for row, observed in zip(x, m, strict=True):
            cells = zip(row, observed, strict=True)
            writer.writerow(
                [text(j, value) if there else "" for j, (value, there) in enumerate(cells)]
            )


def check_filled(path: Path, n_rows: int) -> None:
    """Raise where a row is lost or a cell is empty."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    if len(rows) != n_rows + 1 or any(cell == "" for row in rows for cell in row):
        message = f"{path.name} is not filled: {len(rows) - 1} of {n_rows} rows"
        raise ValueError(message)


def run(arguments: list[str], threads: int) -> tuple[float, str]:
    """Seconds of a Python process with these arguments, and what it wrote to stderr."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        message = f"python {' '.join(arguments)} failed:\n{done.stderr}"
        raise RuntimeError(message)
    return seconds, done.stderr


def slowest_packages(report: str, n: int = 8) -> dict[str, float]:
    """Seconds of each package's own modules, the slowest first, from what ``importtime`` wrote."""
    total: Counter[str] = Counter()
    for line in report.splitlines():
        own, _, name = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and own.strip().isdigit():
            total[name.rpartition("|")[2].strip().split(".")[0]] += int(own)
    return {name: microseconds / 1e6 for name, microseconds in total.most_common(n)}


def measure(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """A record a command, with the seconds of every round."""
    table, filled = folder / "table.csv", folder / "filled.csv"
    make_table(table, options.rows, options.columns)
    impute = ["-m", "psmvae", "impute", str(table), "-o", str(filled), "--force", "--quiet"]
    impute += ["--device", "cpu", *(["--epochs", str(options.epochs)] if options.epochs else [])]
    commands = {**IMPORTS, IMPUTE: impute}
    rounds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.repeats):
        for name, arguments in commands.items():
            rounds[name].append(run(arguments, options.threads)[0])
            print(f"{name}: {rounds[name][-1]:.2f} s", flush=True)
        check_filled(filled, options.rows)
    return [
        {
            "command": name,
            "seconds": float(np.median(taken)),
            "slowest": max(taken),
            "asked": ASKED.get(name),
            "rounds": taken,
        }
        for name, taken in rounds.items()
    ]


def markdown(records: list[dict[str, Any]]) -> str:
    """A row a command."""
    lines = [
        "| command | median, s | slowest, s | asked: under |",
        "| --- | ---: | ---: | ---: |",
    ]
    for record in records:
        asked = f"{record['asked']:g}" if record["asked"] else ""
        lines.append(
            f"| {record['command']} | {record['seconds']:.2f} | {record['slowest']:.2f} | {asked} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure all and write the record."""
    parser = argparse.ArgumentParser(description="Seconds of the command line and of imports.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--epochs", type=int, help="epochs at most, if not the default")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        records = measure(options, Path(folder))
    packages = slowest_packages(run(["-X", "importtime", "-c", IMPUTER], options.threads)[1])
    print(f"\n{markdown(records)}\n")
    print("own seconds: " + ", ".join(f"{name} {taken:.2f}" for name, taken in packages.items()))
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    result = {
        "settings": settings,
        "machine": machine() | {"torch_threads": options.threads},
        "records": records,
        "import_seconds": packages,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
