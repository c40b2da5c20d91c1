"""Error of the fast preset against that of the standard preset in the same time on a CPU.

`PSMVAEImputer` selects the fast preset if ``max_time`` leaves a CPU less than SECONDS_PER_ROW
seconds a row (`psmvae.imputers.resolve`). Both presets are fitted here to tables with 20 % MCAR in
about the time that MissForest takes, or, with ``--edge``, in the longest time for which the fast
preset is selected. The error is that of 10 % of the observed cells, held out from both fits, in
ranges of the columns. The cells that went missing, on which results are reported, are not used.
Run with

    PSMVAE_DATA_HOME=... python benchmarks/pace.py [--tables letter adult] [--edge]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from breast import machine
from psmvae import PSMVAEImputer
from psmvae.imputers import resolve
from since_0_1 import score, split

RESULTS = Path(__file__).parent / "results" / "pace.json"
SECONDS = {"letter": 36.0, "adult": 38.0, "wine": 11.0, "spam": 20.0, "credit": 40.0}
HELD_OUT = 0.1


def compare(table: str, seed: int, *, edge: bool) -> list[dict[str, Any]]:
    """Fit both presets; a record of each."""
    truth, m, discrete = split(table, seed)
    held_out = m & ~np.isnan(truth) & (np.random.default_rng(seed).random(m.shape) < HELD_OUT)
    incomplete = np.where(m & ~held_out, truth, np.nan)
    threshold = resolve.SECONDS_PER_ROW
    seconds = 0.99 * threshold * len(truth) if edge else SECONDS[table]
    records = []
    for preset, seconds_per_row in (("standard", 0.0), ("fast", threshold)):
        resolve.SECONDS_PER_ROW = seconds_per_row
        imputer = PSMVAEImputer(max_time=seconds, draws="model", device="cpu", random_state=seed)
        start = time.perf_counter()
        imputer.fit(incomplete)
        fitted = time.perf_counter()
        filled = imputer.transform(incomplete)
        end = time.perf_counter()
        taken = {"fit_seconds": fitted - start, "seconds": end - start}
        error = score(truth, filled, ~held_out, discrete)
        found = {"table": table, "seed": seed, "preset": preset, "max_time": seconds, "rmse": error}
        records.append(found | {"fast_preset": imputer.fast_preset_} | taken)
        print(
            f"{table}, seed {seed}, {preset}: {error:.4f} in {taken['seconds']:.1f} s", flush=True
        )
    resolve.SECONDS_PER_ROW = threshold
    return records


def main() -> None:
    """Compare the presets on the given tables and seeds."""
    parser = argparse.ArgumentParser(description="Error of both presets in the same time.")
    parser.add_argument("--tables", nargs="+", choices=SECONDS, default=list(SECONDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--edge", action="store_true", help="use the longest time of the fast preset"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    records: list[dict[str, Any]] = []
    for table in options.tables:
        for seed in options.seeds:
            records += compare(table, seed, edge=options.edge)
            result = {"settings": settings, "machine": machine(), "records": records}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
