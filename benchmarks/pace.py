"""What a CPU in a hurry should do: held-out error of both paces in the same time.

`imputers/sizing.py` has two paces, and takes the hurried one where ``max_time`` leaves a CPU less
than SECONDS_A_ROW a row. Both are fitted here to tables at 20 % MCAR in about the time that
MissForest takes, or at the edge of what counts as a hurry (``--edge``), and judged by a tenth of
the observed cells that neither has seen: what a user could do, and not the cells that results are
reported of. Errors in ranges of the columns. Run with

    PSMVAE_DATA_HOME=... python benchmarks/pace.py [--tables letter adult] [--edge]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from breast import machine
from psmvae import PSMVAEImputer
from psmvae.imputers import sizing
from race import load, score, split, timed

RESULTS = Path(__file__).parent / "results" / "pace.json"
SECONDS = {"letter": 36.0, "adult": 38.0, "wine": 11.0, "spam": 20.0, "credit": 40.0}
RATE, HELD_OUT = 0.2, 0.1


def compare(table: str, seed: int, *, edge: bool) -> list[dict[str, Any]]:
    """A record a pace."""
    truth, m, discrete = split(load(table), RATE, seed)
    unseen = m & ~np.isnan(truth) & (np.random.default_rng(seed).random(m.shape) < HELD_OUT)
    incomplete = np.where(m & ~unseen, truth, np.nan)
    usual = sizing.SECONDS_A_ROW
    seconds = 0.99 * usual * len(truth) if edge else SECONDS[table]
    records = []
    for name, threshold in (("usual", 0.0), ("hurried", usual)):
        sizing.SECONDS_A_ROW = threshold
        imputer = PSMVAEImputer(max_time=seconds, device="cpu", random_state=seed)
        filled, taken = timed(imputer, incomplete)
        error = score(truth, filled, ~unseen, discrete)
        found = {"table": table, "seed": seed, "pace": name, "max_time": seconds, "rmse": error}
        records.append(found | {"fast_preset": imputer.fast_preset_} | taken)
        print(f"{table}, seed {seed}, {name}: {error:.4f} in {taken['seconds']:.1f} s", flush=True)
    sizing.SECONDS_A_ROW = usual
    return records


def main() -> None:
    """Compare on every table and seed asked for."""
    parser = argparse.ArgumentParser(description="Held-out error of both paces in the same time.")
    parser.add_argument("--tables", nargs="+", choices=SECONDS, default=list(SECONDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--edge", action="store_true", help="all the time that counts as a hurry")
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
