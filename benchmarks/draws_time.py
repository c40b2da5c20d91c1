"""Time of a fit and the regressions of proper draws, as a ratio to a fit without them.

Simulated tables of a factor model with 20 % of the cells missing; default `PSMVAEImputer`, one fit
after the other in one process, on a CPU. The time is that of the processor, which other programs
on the machine change little. Run with

    python benchmarks/draws_time.py [--sizes 300x5 2000x10]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from breast import machine
from psmvae import PSMVAEImputer

RESULTS = Path(__file__).parent / "results" / "draws_time.json"


def make_table(n_rows: int, n_columns: int) -> np.ndarray:
    """Numbers with three factors, 20 % missing."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_columns))
    table += 0.5 * rng.normal(size=table.shape)
    return np.where(rng.random(table.shape) < 0.2, np.nan, table)


def measure(n_rows: int, n_columns: int) -> dict[str, float]:
    """Return the seconds of both fits and of drawing 20 tables."""
    table = make_table(n_rows, n_columns)
    found: dict[str, float] = {"rows": n_rows, "columns": n_columns}
    for draws in ("model", "proper"):
        began = time.process_time()
        imputer = PSMVAEImputer(draws=draws, device="cpu", random_state=0).fit(table)
        # the regressions are fitted when they are first needed
        _ = imputer.chains_
        found[f"fit {draws}"] = round(time.process_time() - began, 2)
        began = time.process_time()
        imputer.sample(table, n=20)
        found[f"sample {draws}"] = round(time.process_time() - began, 2)
    found["ratio"] = round(found["fit proper"] / found["fit model"], 2)
    return found


def main() -> None:
    """Measure all sizes and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["300x5", "2000x10"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # imports on first use belong to no fit
    PSMVAEImputer(max_epochs=1, device="cpu").fit(make_table(60, 3))
    sizes = [tuple(int(part) for part in size.split("x")) for size in options.sizes]
    records = [measure(*size) for size in sizes]
    for record in records:
        print(record)
    result = {"machine": machine(), "records": records}
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
