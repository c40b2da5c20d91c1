"""Time of the command line and of imports, each measured in a new process.

1. ``psmvae impute`` with its defaults on a CSV file of 1,000 rows and 10 columns: seven real, two
   categorical and one integer column, with a fifth of the cells missing. The time is that of the
   whole process. The output is checked: it must have every row and no missing cell.
2. Imports: ``import psmvae``, ``psmvae --help``, and the imputer class, which loads scikit-learn
   (torch is loaded by ``fit``). An empty program measures the start of Python. In the first round
   files may be read from disk, so the time of each round is recorded.
3. The parts of the imputer's import: seconds of the slowest packages, each without the packages it
   imports, from ``python -X importtime`` (which slows every import a little).

"asked" is the limit for the slowest round. With ``--old``, a folder with the package of version 0.1
(``git archive b3e2cd2 src | tar x -C FOLDER``), its ``psmvae impute`` runs in every round too. Run
with

    python benchmarks/command.py [--repeats 3] [--threads 2] [--old FOLDER/src]
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
IMPUTE, IMPUTE_OLD = "psmvae impute", "psmvae impute of version 0.1"
IMPUTER = "import psmvae; psmvae.PSMVAEImputer"
IMPORTS = {
    "python alone": ["-c", "pass"],
    "import psmvae": ["-c", "import psmvae"],
    "psmvae --help": ["-m", "psmvae", "--help"],
    "psmvae.PSMVAEImputer": ["-c", IMPUTER],
}
# Limits in seconds.
ASKED = {IMPUTE: 6.0, "import psmvae": 3.0, "psmvae.PSMVAEImputer": 3.0}


def make_table(path: Path, n_rows: int, n_columns: int) -> None:
    """Write a CSV file of real columns; the last three are categorical and integer."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_columns))
    x += 0.5 * rng.normal(size=x.shape)
    m = mcar(x, 0.2, rng).m

    def text(j: int, value: float) -> str:
        if j == n_columns - 1:
            return str(round(10 * value))
        if j >= n_columns - 3:
            return "high" if value > 1 else "low" if value < -1 else "medium"
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
    """Raise if a row or a cell is missing."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    if len(rows) != n_rows + 1 or any(cell == "" for row in rows for cell in row):
        message = f"{path.name} is not filled: {len(rows) - 1} of {n_rows} rows"
        raise ValueError(message)


def run(arguments: list[str], threads: int, source: Path | None = None) -> tuple[float, str]:
    """Run Python with these arguments; return the seconds and the text of stderr.

    ``source`` is a folder with the package, if it is not the installed one.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    # modules are compiled once, as for a user
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if source is not None:
        environment["PYTHONPATH"] = str(source.resolve())
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
    """Seconds of each package's own modules, slowest first, from the output of ``importtime``."""
    total: Counter[str] = Counter()
    for line in report.splitlines():
        own, _, name = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and own.strip().isdigit():
            total[name.rpartition("|")[2].strip().split(".")[0]] += int(own)
    return {name: microseconds / 1e6 for name, microseconds in total.most_common(n)}


def measure(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """One record per command, with the seconds of every round."""
    table, filled = folder / "table.csv", folder / "filled.csv"
    make_table(table, options.rows, options.columns)
    impute = ["-m", "psmvae", "impute", str(table), "-o", str(filled), "--force", "--quiet"]
    impute += ["--device", "cpu", *(["--epochs", str(options.epochs)] if options.epochs else [])]
    commands = {**IMPORTS, IMPUTE: impute}
    if options.old is not None:
        commands[IMPUTE_OLD] = impute
    rounds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.repeats):
        for name, arguments in commands.items():
            source = options.old if name == IMPUTE_OLD else None
            rounds[name].append(run(arguments, options.threads, source)[0])
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
    """One row per command."""
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
    """Measure everything and write the results."""
    parser = argparse.ArgumentParser(description="Time of the command line and of imports.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--epochs", type=int, help="maximum number of epochs")
    parser.add_argument("--old", type=Path, help="folder with the package of version 0.1")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        records = measure(options, Path(folder))
    packages = slowest_packages(run(["-X", "importtime", "-c", IMPUTER], options.threads)[1])
    print(f"\n{markdown(records)}\n")
    print("own seconds: " + ", ".join(f"{name} {taken:.2f}" for name, taken in packages.items()))
    settings = {name: value for name, value in vars(options).items() if name not in ("out", "old")}
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
