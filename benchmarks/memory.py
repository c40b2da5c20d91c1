"""Peak memory of `transform` with 100 draws on 100,000 rows x 20 columns, above the import.

Every row has all its draws, as where held-out cells ask for them.

The measurement runs in a fresh process: import and fit on few rows, reset the kernel's high-water
mark, transform the big table, read the mark again (Linux only). The table itself and the result
count as part of what `transform` needs. Run with

    python benchmarks/memory.py [--rows 100000] [--columns 20] [--draws 100]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "memory.json"
GIB = 2**20  # the kernel counts in KiB


def resident(field: str) -> int:
    """A memory figure of this process in KiB: VmRSS now, VmHWM at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    message = f"/proc/self/status has no {field}"
    raise OSError(message)


def reset_high_water_mark() -> bool:
    """Lower VmHWM to what is resident now; without the right to, the figure is an upper bound."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def measure(rows: int, columns: int, draws: int) -> dict[str, float | bool]:
    """Import, fit on few rows, then transform the big table."""
    import numpy as np

    # otherwise loaded by `fit`, and no part of what `transform` takes
    import torch  # noqa: F401

    from psmvae import PSMVAEImputer
    from psmvae.simulate import mcar

    imported = resident("VmRSS")
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, columns))

    def table(n: int) -> np.ndarray:
        x = rng.normal(size=(n, 5)) @ loadings + 0.3 * rng.normal(size=(n, columns))
        x[~mcar(x, 0.2, rng).m] = np.nan
        return x

    settings = {"n_draws": draws, "target_ess": None, "max_epochs": 2, "device": "cpu"}
    imputer = PSMVAEImputer(random_state=0, **settings)
    imputer.fit(table(2000))
    # two epochs decide nothing about draws
    imputer.model_.weight_power.fill_(1.0)
    imputer.model_.use_posterior_mean.zero_()

    mark_was_reset = reset_high_water_mark()
    big = table(rows)
    start = time.perf_counter()
    filled = imputer.transform(big)
    seconds = time.perf_counter() - start
    peak = resident("VmHWM")
    if np.isnan(filled).any():
        message = "transform left cells missing"
        raise ValueError(message)
    return {
        "imported_gib": imported / GIB,
        "peak_gib": peak / GIB,
        "above_import_gib": (peak - imported) / GIB,
        "seconds": seconds,
        "includes_fit": not mark_was_reset,
    }


def main() -> None:
    """Measure in a fresh process and record the result."""
    parser = argparse.ArgumentParser(description="Peak memory of transform.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = {name: getattr(options, name) for name in ("rows", "columns", "draws")}
    if options.here:
        print(json.dumps(measure(**size)))
        return

    arguments = [f"--{name}={value}" for name, value in size.items()]
    command = [sys.executable, __file__, "--here", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result = {"settings": size, "cpus": os.cpu_count(), **json.loads(done.stdout)}
    print(
        f"transform of {size['rows']:,} x {size['columns']} with {size['draws']} draws: "
        f"{result['above_import_gib']:.2f} GiB above the import, {result['seconds']:.0f} s"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
