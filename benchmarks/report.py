"""Seconds and bytes of a report on large tables, beyond fit and imputation.

    python benchmarks/report.py --tables 569x30 2000x60 --imputers MICE
    python benchmarks/report.py --tables 100000x60 --imputers mean PSMVAE
    python benchmarks/report.py --tables 20000x500 --imputers mean

Columns are Normal with common factors, every fifth one has levels, and a tenth of the cells is
missing. PSMVAE is fitted with ``max_time=60``. Of more than 10,000 rows it is fitted to 2,000, and
the imputations are those of the mean: the report does the same work, and only its time is measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import psmvae

RESULTS = Path(__file__).parent / "results" / "report.json"
IMPUTERS = {
    "MICE": lambda: psmvae.MICEImputer(random_state=0),
    "PSMVAE": lambda: psmvae.PSMVAEImputer(random_state=0, max_time=60),
    "mean": lambda: psmvae.MeanImputer(),
}


# Rows of the longest table that PSMVAE is fitted to and imputes.
MAX_FITTED = 10_000


def make_table(n_rows: int, n_columns: int) -> pd.DataFrame:
    """Make a table with missing cells."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_columns))
    x = factors + rng.normal(size=factors.shape)
    table = pd.DataFrame(x.round(3), columns=[f"x{j}" for j in range(n_columns)])
    for j in range(0, n_columns, 5):
        codes = np.digitize(x[:, j], [-1, 1])
        table[f"x{j}"] = np.array(["low", "middle", "high"])[codes]
    return table.mask(rng.random(table.shape) < 0.1)


def measure(n_rows: int, n_columns: int, name: str) -> dict[str, Any]:
    """Return seconds by step and bytes of the page."""
    table = make_table(n_rows, n_columns)
    start = time.perf_counter()
    is_long = name == "PSMVAE" and n_rows > MAX_FITTED
    imputer = IMPUTERS[name]().fit(table[:2000] if is_long else table)
    drawing = IMPUTERS["mean"]().fit(table) if is_long else imputer
    mi = drawing.impute_multiple(table, 5)
    fitted = time.perf_counter()
    steps: list[tuple[str, float]] = []
    report = psmvae.report(
        table, imputer=imputer, mi=mi, progress=lambda s: steps.append((s, time.perf_counter()))
    )
    made = time.perf_counter()
    page = report.html()
    end = time.perf_counter()
    times = [*steps, ("page", made), ("", end)]
    return {
        "imputer": name,
        "n_rows": n_rows,
        "n_columns": n_columns,
        "imputation": round(fitted - start, 1),
        "report": round(end - fitted, 1),
        "steps": {one[0]: round(after[1] - one[1], 1) for one, after in itertools.pairwise(times)},
        "bytes": len(page.encode()),
    }


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=["569x30", "100000x60", "20000x500"])
    parser.add_argument("--imputers", nargs="+", choices=tuple(IMPUTERS), default=["MICE"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    records: dict[str, Any] = (
        json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    )
    for size in arguments.tables:
        n_rows, n_columns = map(int, size.split("x"))
        for name in arguments.imputers:
            record = measure(n_rows, n_columns, name) | {"n_cpu": os.cpu_count()}
            print(record, flush=True)
            records[f"{size}, {name}"] = record
            arguments.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
