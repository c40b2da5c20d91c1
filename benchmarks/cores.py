"""Time of a fit and of its parts on 1, 2, 4, 8 and 16 cores.

A table of 10,000 rows and 16 numbers with nonlinear relations, 20 % of the cells missing. Each
number of cores is measured in a process that may use these cores only. The parts are

- training: `PSMVAEImputer(mask_model="latent").fit`,
- comparison of mask explanations: how much longer `fit` takes with ``mask_model="auto"``,
- single imputation: `transform`,
- proper draws: the first `sample` of five tables, with the regressions it needs,
- MissForest: one round of `MissForestImputer`.

Figures are seconds. Run with

    python benchmarks/cores.py [--cores 1 2 4 8 16]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "cores.json"
N_ROWS, N_COLUMNS, N_DRAWS, RATE = 10_000, 16, 5, 0.2
# Epochs of pre-training and of training at most: more would repeat the same work.
MAX_EPOCHS = 20


def table() -> Any:
    """Return numbers with common factors and nonlinear relations, NaN where missing."""
    import numpy as np

    rng = np.random.default_rng(0)
    z = rng.normal(size=(N_ROWS, 3))
    x = np.sin(z @ rng.normal(size=(3, N_COLUMNS))) + 0.2 * rng.normal(size=(N_ROWS, N_COLUMNS))
    return np.where(rng.random(x.shape) < RATE, np.nan, x)


def measure() -> dict[str, float]:
    """Return the seconds of each part in this process."""
    from psmvae import MissForestImputer, PSMVAEImputer

    warnings.simplefilter("ignore")
    data, found = table(), {}

    def seconds(name: str, call: Any) -> Any:
        began = time.perf_counter()
        result = call()
        found[name] = time.perf_counter() - began
        return result

    settings = {"max_epochs": MAX_EPOCHS, "device": "cpu", "random_state": 0}
    # the first fit imports PyTorch
    PSMVAEImputer(**(settings | {"max_epochs": 1})).fit(data[:500])
    seconds("training", lambda: PSMVAEImputer(mask_model="latent", **settings).fit(data))
    imputer = seconds("with comparison", lambda: PSMVAEImputer(**settings).fit(data))
    found["comparison of mask explanations"] = found.pop("with comparison") - found["training"]
    seconds("single imputation", lambda: imputer.transform(data))
    seconds("proper draws", lambda: imputer.sample(data, N_DRAWS))
    seconds("MissForest", lambda: MissForestImputer(max_iter=1, random_state=0).fit(data))
    return found


def markdown(records: dict[str, dict[str, float]]) -> str:
    """One row for each part, and how much faster it is on the most cores than on one."""
    counts = sorted(records, key=int)
    first, last = records[counts[0]], records[counts[-1]]
    titles = [f"{n} core{'s' if n != '1' else ''}, s" for n in counts]
    lines = [f"| | {' | '.join(titles)} | times as fast |"]
    lines.append("| --- |" + " ---: |" * (len(counts) + 1))
    for part in first:
        cells = " | ".join(f"{records[n][part]:.2f}" for n in counts)
        lines.append(f"| {part} | {cells} | {first[part] / last[part]:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Run each number of cores in a process of its own, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cores", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--here", action="store_true", help="measure in this process")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure()))
        return
    from breast import machine

    available = sorted(os.sched_getaffinity(0))
    records = {}
    for n in (n for n in options.cores if n <= len(available)):
        variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        cores = ",".join(map(str, available[:n]))
        command = ["taskset", "-c", cores, sys.executable, __file__, "--here"]
        done = subprocess.run(
            command, env=os.environ | dict.fromkeys(variables, str(n)),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        records[str(n)] = {k: round(v, 3) for k, v in json.loads(done.stdout).items()}
        print(n, records[str(n)], flush=True)
        options.out.write_text(
            json.dumps({"machine": machine(), "records": records}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
