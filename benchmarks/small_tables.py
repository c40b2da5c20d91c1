"""Error of single imputations of tables with 640 and 1,280 rows, with and without a regression.

In tables of 500 to 1,999 rows the default `PSMVAEImputer` has a regression network where nonlinear
terms improve linear regressions of the columns on each other. Each table is a random part of a data
set of the paper with 20 % of its cells missing completely at random; see `since_0_1` for masks and
errors. ``PSMVAE_DATA_HOME`` is the folder with the data. The seconds are those of the processor,
with one thread. Run with

    PSMVAE_DATA_HOME=... python benchmarks/small_tables.py [--seeds 0 1 2] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# one thread for each worker; set before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from breast import machine
from psmvae import MICEImputer, MissForestImputer, PSMVAEImputer
from since_0_1 import score, split

RESULTS = Path(__file__).parent / "results" / "small_tables.json"
TABLES, SIZES = ("adult", "credit", "letter", "wine"), (640, 1280)
METHODS = ("psmvae", "psmvae, no regression", "missforest", "mice")


def fit_all(job: tuple[str, int, int]) -> list[dict[str, Any]]:
    """Impute one table by all methods."""
    import torch

    from psmvae.imputers import resolve

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    table, n_rows, seed = job
    truth, m, discrete = split(table, seed)
    truth, m = truth[:n_rows], m[:n_rows]
    # columns that are constant in these rows have no range
    keep = np.nanmax(truth, axis=0) > np.nanmin(truth, axis=0)
    truth, m, discrete = truth[:, keep], m[:, keep], discrete[keep]
    incomplete = np.where(m, truth, np.nan)
    # libraries are loaded before the clock runs
    PSMVAEImputer(max_epochs=1, device="cpu").fit(incomplete[:60])
    threshold, found = resolve.MIN_NONLINEAR_GAIN, []
    for method in METHODS:
        imputer: Any = {"missforest": MissForestImputer, "mice": MICEImputer}.get(method)
        if imputer is None:
            without = method.endswith("no regression")
            resolve.MIN_NONLINEAR_GAIN = np.inf if without else threshold
            made = PSMVAEImputer(random_state=seed, device="cpu")
        else:
            made = imputer(random_state=seed)
        began = time.process_time()
        filled = made.fit_transform(incomplete)
        record = {"table": table, "rows": n_rows, "seed": seed, "method": method}
        record["seconds"] = round(time.process_time() - began, 2)
        record["rmse"] = float(f"{score(truth, filled, m, discrete):.5g}")
        if method == "psmvae":
            record["regression"] = made.config_.regression is not None
        found.append(record)
        # the worker imputes other tables
        resolve.MIN_NONLINEAR_GAIN = threshold
    return found


def markdown(records: list[dict[str, Any]]) -> str:
    """Means over seeds, one row for each table and size."""
    lines = [
        "| table | rows | with a regression | RMSE | RMSE without one | ratio | MissForest | MICE "
        "| s | s without one | s of MissForest |",
        "| --- " + "| ---: " * 10 + "|",
    ]
    for table, n_rows in dict.fromkeys((one["table"], one["rows"]) for one in records):
        of_table = [one for one in records if (one["table"], one["rows"]) == (table, n_rows)]

        def mean(method: str, name: str, of_table: list[dict[str, Any]] = of_table) -> float:
            return float(np.mean([one[name] for one in of_table if one["method"] == method]))

        rmse = {method: mean(method, "rmse") for method in METHODS}
        seconds = {method: mean(method, "seconds") for method in METHODS}
        used = [one["regression"] for one in of_table if one["method"] == "psmvae"]
        ratio = rmse["psmvae"] / rmse["psmvae, no regression"]
        cells = [
            table, f"{n_rows:,}", f"{sum(used)} of {len(used)}", f"{rmse['psmvae']:.4f}",
            f"{rmse['psmvae, no regression']:.4f}", f"{ratio:.3f}", f"{rmse['missforest']:.4f}",
            f"{rmse['mice']:.4f}",
            *(f"{seconds[name]:.1f}" for name in METHODS[:3]),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    jobs = [(t, n, s) for t in options.tables for n in options.rows for s in options.seeds]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        records = [one for found in pool.map(fit_all, jobs) for one in found]
    result = {"machine": machine(), "records": records}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(markdown(records))


if __name__ == "__main__":
    main()
