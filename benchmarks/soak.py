"""Memory, file handles and threads of one process that fits and imputes many times.

Each fit is followed by `transform`, `sample`, `save` and `load`. The imputers take turns. The slope
of the resident memory over the fits after the warm-up must be under 1 MB a fit, and the numbers of
file handles and threads must not grow (Linux only)::

    python benchmarks/soak.py [--n 200] [--device cpu|cuda] [--rows 500]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import psmvae
from breast import machine

RESULTS = Path(__file__).parent / "results"
MB = 2**20
MAX_SLOPE = 1.0
# Libraries load parts of themselves, and allocators keep what was freed, during the first fits.
WARM_UP = 0.25


def imputers(device: str) -> dict[str, Any]:
    """Return imputers of every family, with short training."""
    small = {"network": psmvae.Network(width=32, depth=1), "max_epochs": 3, "device": device}
    return {
        "PSMVAE": psmvae.PSMVAEImputer(n_draws=10, random_state=0, **small),
        "MIWAE": psmvae.MIWAEImputer(n_draws=10, n_train_draws=4, random_state=0, **small),
        "GAIN": psmvae.GAINImputer(random_state=0, **small),
        "MICE": psmvae.MICEImputer(max_iter=2, random_state=0),
        "MissForest": psmvae.MissForestImputer(max_iter=1, n_estimators=3, random_state=0),
        "Mean": psmvae.MeanImputer(random_state=0),
    }


def table(rows: int) -> pd.DataFrame:
    """Return numbers and levels with missing cells."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=rows)
    columns: dict[str, Any] = {f"x{j}": z + rng.normal(size=rows) for j in range(6)}
    columns |= {"city": rng.choice(["a", "b", "c"], rows), "count": rng.poisson(3, rows) * 1.0}
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < 0.2)


def usage(device: str) -> dict[str, float]:
    """Return memory in MB, open files and threads of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    found = {
        "memory": pages * os.sysconf("SC_PAGE_SIZE") / MB,
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
    }
    if device == "cuda":
        import torch

        found["device_memory"] = torch.cuda.memory_allocated() / MB
    return found


def work(imputer: Any, frame: pd.DataFrame, folder: Path, device: str) -> None:
    """Fit, impute, save and load."""
    path = folder / "m.safetensors"
    imputer.fit(frame)
    imputer.transform(frame)
    imputer.sample(frame, 2)
    imputer.save(path)
    psmvae.load(path, device=device).transform(frame)


def slope(values: list[float]) -> float:
    """Return the least-squares slope over the fits after the warm-up."""
    after = values[int(WARM_UP * len(values)) :]
    return float(np.polyfit(np.arange(len(after)), after, 1)[0])


def soak(n: int, rows: int, device: str) -> list[dict[str, float]]:
    """Return the usage after each fit."""
    frame, turns = table(rows), imputers(device)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(n):
            name = list(turns)[k % len(turns)]
            work(turns[name], frame, Path(folder), device)
            found.append(usage(device))
            if (k + 1) % 20 == 0:
                print(f"{k + 1:4d} {found[-1]}", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Measure, write the record, and return 1 if something grows."""
    parser = argparse.ArgumentParser(description="Memory, files and threads of many fits.")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    found = soak(options.n, options.rows, options.device)
    series = {name: [one[name] for one in found] for name in found[0]}
    after = {name: values[int(WARM_UP * options.n) :] for name, values in series.items()}
    memory = [name for name in series if "memory" in name]
    grows = [name for name in memory if slope(series[name]) >= MAX_SLOPE]
    # a single higher value is no growth
    half = len(after["files"]) // 2
    grows += [
        name for name in ("files", "threads") if max(after[name][half:]) > max(after[name][:half])
    ]
    record = {
        "settings": {name: getattr(options, name) for name in ("n", "rows", "device")},
        "machine": machine(),
        "slope_mb_per_fit": {name: round(slope(series[name]), 4) for name in memory},
        "first_last": {name: [values[0], values[-1]] for name, values in after.items()},
        "files": sorted(set(after["files"])),
        "threads": sorted(set(after["threads"])),
        "grows": grows,
        "seconds": round(time.perf_counter() - began, 1),
    }
    slopes = ", ".join(f"{name} {slope(series[name]):+.3f} MB a fit" for name in memory)
    print(f"{options.n} fits on {options.device}: {slopes}; files {record['files']}, ", end="")
    print(f"threads {record['threads']}; {'grows: ' + ', '.join(grows) if grows else 'flat'}")
    out = options.out or RESULTS / f"soak_{options.device}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")
    return int(bool(grows))


if __name__ == "__main__":
    sys.exit(main())
