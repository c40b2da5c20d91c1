"""Peak memory of `transform` with 100 draws on 100,000 x 20 cells, above that of the imports.

Every row gets all its draws, the most expensive case.

The measurement runs in a fresh process (Linux only): import, fit to few rows, reset the kernel's
high-water mark, transform the large table, read the mark. The figure includes the table and the
result. Run with

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
    """Lower VmHWM to VmRSS; without permission, the figure is an upper bound."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def measure(rows: int, columns: int, draws: int) -> dict[str, float | bool]:
    """Import, fit to few rows, then transform the large table."""
    import numpy as np

    # imported here, so that it does not count as memory of `transform`
    import torch  # noqa: F401

    from psmvae import Advanced, PSMVAEImputer
    from psmvae.simulate import mcar

    imported = resident("VmRSS")
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, columns))

    def table(n: int) -> np.ndarray:
        x = rng.normal(size=(n, 5)) @ loadings + 0.3 * rng.normal(size=(n, columns))
        x[~mcar(x, 0.2, rng).m] = np.nan
        return x

    imputer = PSMVAEImputer(
        draws="model",
        n_draws=draws,
        advanced=Advanced(target_ess=None),
        max_epochs=2,
        device="cpu",
        random_state=0,
    )
    imputer.fit(table(2000))
    # use draws, whatever two epochs of training would choose
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
    """Measure in a fresh process and write the record."""
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
        f"{result['above_import_gib']:.2f} GiB above the imports, {result['seconds']:.0f} s"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
