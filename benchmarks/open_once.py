"""Seconds of `sample(n=20)` and `transform` on 100,000 x 10, against an earlier revision.

A table is opened once and each column is decoded once. Version 0.1 decoded every column again for
each completed table, and evaluated the decoder network twice for each draw. The earlier revision is
checked out into a temporary `git worktree`. Both revisions run in fresh processes, in turn, on the
same two pandas tables with 10 % of the cells missing: one of floats, and one whose last four
columns are integers, booleans coded as 0 and 1, and two columns of strings. The model is fitted on
2,000 rows for two epochs. The medians of the runs are compared. Run with

    python benchmarks/open_once.py [--baseline b3e2cd2] [--repeats 3] [--rows 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "open_once.json"
# the last revision before a table was opened once
BASELINE = "b3e2cd2"
N_FIT, MISSING = 2_000, 0.1
CALLS = ("sample", "transform")
TABLES = ("floats", "mixed")


def make_table(kind: str, rows: int, columns: int) -> Any:
    """Return a pandas table with missing cells."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, columns))
    x += 0.3 * rng.normal(size=x.shape)
    table = pd.DataFrame(x, columns=[f"x{j}" for j in range(columns)])
    if kind == "mixed":
        whole, binary, two, four = table.columns[-4:]
        table[whole] = table[whole].round()
        table[binary] = (table[binary] > 0).astype(float)
        table[two] = np.where(table[two] > 0, "yes", "no")
        table[four] = np.array(list("abcd"))[np.digitize(table[four], [-1, 0, 1])]
    return table.mask(rng.random(x.shape) < MISSING)


def measure(kind: str, rows: int, columns: int, n: int) -> dict[str, Any]:
    """Time the psmvae that this process imports."""
    import pandas as pd

    from psmvae import PSMVAEImputer

    table = make_table(kind, rows, columns)
    # parameters that both revisions have
    imputer = PSMVAEImputer(max_epochs=2, n_draws=20, device="cpu", random_state=0)
    if "draws" in imputer.get_params():
        # how the earlier revision draws
        imputer.set_params(draws="model")
    imputer.fit(table.iloc[:N_FIT])

    start = time.perf_counter()
    tables = imputer.sample(table, n=n)
    sampled = time.perf_counter()
    tables.append(imputer.transform(table))
    transformed = time.perf_counter()
    digest = hashlib.sha256()
    for filled in tables:
        if filled.isna().to_numpy().any():
            message = "cells are still missing"
            raise ValueError(message)
        digest.update(pd.util.hash_pandas_object(filled).to_numpy().tobytes())
    return {
        "sample": sampled - start,
        "transform": transformed - sampled,
        "sha256": digest.hexdigest(),
    }


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Yield a temporary worktree of a revision."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "baseline"
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def run(tree: Path, kind: str, size: dict[str, int]) -> dict[str, Any]:
    """Measure the source tree in a fresh process."""
    command = [sys.executable, __file__, "--here", kind, *(f"--{k}={v}" for k, v in size.items())]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return seconds of all runs, their medians, and the ratio of the medians."""
    result: dict[str, Any] = {}
    for call in CALLS:
        seconds = {name: [one[call] for one in done] for name, done in runs.items()}
        medians = {name: statistics.median(each) for name, each in seconds.items()}
        ratio = medians["current"] / medians["baseline"]
        result[call] = {"seconds": seconds, "median": medians, "ratio": ratio}
    digests = {one["sha256"] for done in runs.values() for one in done}
    return {**result, "same_values": len(digests) == 1}


def main() -> None:
    """Measure both revisions and record the result."""
    parser = argparse.ArgumentParser(description="Seconds of sample and transform.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--n", type=int, default=20, help="completed tables of sample")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--baseline", default=BASELINE, help="a git revision")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--here", choices=TABLES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = {name: getattr(options, name) for name in ("rows", "columns", "n")}
    if options.here:
        print(json.dumps(measure(options.here, **size)))
        return

    results = {}
    with checked_out(options.baseline) as tree:
        for kind in TABLES:
            runs: dict[str, list[dict[str, Any]]] = {"baseline": [], "current": []}
            for _ in range(options.repeats):
                runs["baseline"].append(run(tree, kind, size))
                runs["current"].append(run(ROOT, kind, size))
            results[kind] = summary(runs)
    for kind, found in results.items():
        for call in CALLS:
            median = found[call]["median"]
            print(
                f"{kind}, {call}: {median['current']:.2f} s, {median['baseline']:.2f} s at "
                f"{options.baseline}, ratio {found[call]['ratio']:.2f}"
            )
        print(f"{kind}, same values: {found['same_values']}")
    settings = {**size, "baseline": options.baseline, "repeats": options.repeats}
    result = {"settings": settings, "cpus": os.cpu_count(), "tables": results}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
