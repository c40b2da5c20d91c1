"""Time and error of the default imputer against those of version 0.1 and of MissForest.

Tables are CSV files in the folder ``PSMVAE_DATA_HOME``: categories are numbers 1 ... k, and some
cells of adult are natively missing. The protocol is that of the paper: for each seed, every cell
goes missing with probability .2; a permutation splits the rows 8:1:1; a method is fitted to the
80 % and imputes the missing cells of these rows; columns with fewer than 20 distinct values are
rounded; the error is the root mean squared error of these cells in ranges of the columns. Natively
missing cells are missing for every method and not scored. All columns are numeric for every method.
For each table and seed, processes with two cores each run

- `PSMVAEImputer()` of version 0.1, with all its time,
- `PSMVAEImputer()` as it is now,
- `MissForestImputer()`, whose seconds of fit and transform are a time limit,
- `PSMVAEImputer(max_time=...)` with 97 % of that limit, less the seconds of its import.

Seconds are those of fit and transform, the imports of scikit-learn and of PyTorch included.
``--old`` is a folder with the package of version 0.1, made by
``git archive b3e2cd2 src | tar x -C FOLDER``. Run with

    PSMVAE_DATA_HOME=... python benchmarks/since_0_1.py --old FOLDER/src [--lanes 1] [--seeds 0 1 2]

With several lanes, several processes run at the same time, each on two cores of its own. Records of
other tables, seeds and processors in the results are kept.
``--keep`` names methods that are not run again, "psmvae 0.1" or "missforest": their records are
kept too, which needs the same processor and number of lanes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Record = dict[str, Any]

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "since_0_1.json"
TABLES = ("adult", "credit", "letter", "spam", "wine", "breast")
KEPT = ("psmvae 0.1", "missforest")
RATE, DISCRETE_BELOW = 0.2, 20
# Time limit of psmvae as a fraction of MissForest's seconds; `transform` takes the rest.
TIME_FRACTION = 0.97
# Asked: seconds relative to version 0.1, and RMSE relative to version 0.1.
ASKED = {"adult": 60 / 338, "letter": 100 / 201, "wine": 25 / 61, "breast": 8 / 15}


def split(table: str, seed: int) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """True values and mask of 80 % of the rows, and which columns are rounded."""
    home = os.environ.get("PSMVAE_DATA_HOME")
    path = Path(home or "") / f"{table}.csv.gz"
    if not home or not path.is_file():
        message = f"PSMVAE_DATA_HOME must be a folder with {path.name}; it is {home!r}."
        raise SystemExit(message)
    complete = pd.read_csv(path).to_numpy(dtype=np.float64)
    rng = np.random.default_rng(seed)
    m = (rng.random(complete.shape) >= RATE) & ~np.isnan(complete)
    train = rng.permutation(len(complete))[: int(0.8 * len(complete))]
    n_values = np.array([len(np.unique(x[~np.isnan(x)])) for x in complete.T])
    return complete[train], m[train], n_values < DISCRETE_BELOW


def score(
    truth: Floats, filled: Floats, m: NDArray[np.bool_], discrete: NDArray[np.bool_]
) -> float:
    """RMSE of the missing cells with a known value, in ranges of their columns."""
    filled = np.where(discrete, np.rint(filled), filled)
    error = (filled - truth) / (np.nanmax(truth, axis=0) - np.nanmin(truth, axis=0))
    return float(np.sqrt(np.mean(error[~m & ~np.isnan(truth)] ** 2)))


def fit_one(table: str, seed: int, method: str, max_time: float | None) -> Record:
    """Fit and impute in this process, with the package that it finds."""
    truth, m, discrete = split(table, seed)
    incomplete = np.where(m, truth, np.nan)
    warnings.simplefilter("ignore")
    import psmvae

    start = time.perf_counter()
    if method == "missforest":
        imputer: Any = psmvae.MissForestImputer(random_state=seed)
    else:
        # the class is looked up first, so that the seconds of its import count
        imputer = psmvae.PSMVAEImputer(random_state=seed, device="cpu")
        if max_time is not None:
            imputer.set_params(max_time=max_time - (time.perf_counter() - start))
    imputer.fit(incomplete)
    fitted = time.perf_counter()
    filled = imputer.transform(incomplete)
    end = time.perf_counter()
    return {
        "rmse": score(truth, filled, m, discrete),
        "fit_seconds": fitted - start,
        "seconds": end - start,
    }


def processor() -> str:
    """Name of the processor, or its architecture where the kernel does not give one."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def run(job: dict[str, Any], cores: set[int], old: Path | None) -> Record:
    """Run one method in a process of its own on two cores."""
    source = old if job["method"] == "psmvae 0.1" else HERE.parent / "src"
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "2",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, str(HERE / "since_0_1.py"), "--job", json.dumps(job)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    if done.returncode:
        raise SystemExit(f"{job}: {done.stderr[-2000:]}")
    return {**job, **json.loads(done.stdout.splitlines()[-1])}


def race(
    table: str, seed: int, cores: set[int], old: Path | None, kept: list[Record]
) -> list[Record]:
    """Run all methods without a record in ``kept`` on one table and seed, one after the other."""
    job: dict[str, Any] = {"table": table, "seed": seed, "max_time": None}
    at_hand = {one["method"]: one for one in kept if (one["table"], one["seed"]) == (table, seed)}
    found = [
        at_hand.get(name) or run({**job, "method": name}, cores, old)
        for name in ("psmvae 0.1", "psmvae", "missforest")
    ]
    limit = TIME_FRACTION * found[-1]["seconds"]
    found.append(run({**job, "method": "psmvae, same time", "max_time": limit}, cores, old))
    return found


def markdown(records: list[Record]) -> str:
    """Means over seeds, one row for each table and processor."""
    lines = [
        "| table | processor | RMSE of 0.1 | now | now / 0.1 | s of 0.1 | now | now / 0.1 | asked "
        "| RMSE of MissForest | psmvae in its time | s of MissForest | psmvae | seeds |",
        "| --- | --- " + "| ---: " * 12 + "|",
    ]
    methods = ("psmvae 0.1", "psmvae", "missforest", "psmvae, same time")
    for table, cpu in dict.fromkeys((record["table"], record["cpu"]) for record in records):
        here = [one for one in records if (one["table"], one["cpu"]) == (table, cpu)]
        of_method = {name: [one for one in here if one["method"] == name] for name in methods}
        rmse, seconds = (
            {name: float(np.mean([one[what] for one in of_method[name]])) for name in methods}
            for what in ("rmse", "seconds")
        )
        n_seeds = len({one["seed"] for one in here})
        asked = f"{ASKED[table]:.2f}" if table in ASKED else ""
        lines.append(
            f"| {table} | {cpu} | {rmse['psmvae 0.1']:.4f} | {rmse['psmvae']:.4f} "
            f"| {rmse['psmvae'] / rmse['psmvae 0.1']:.3f} "
            f"| {seconds['psmvae 0.1']:.1f} | {seconds['psmvae']:.1f} "
            f"| {seconds['psmvae'] / seconds['psmvae 0.1']:.2f} | {asked} "
            f"| {rmse['missforest']:.4f} | {rmse['psmvae, same time']:.4f} "
            f"| {seconds['missforest']:.1f} | {seconds['psmvae, same time']:.1f} | {n_seeds} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run on the given tables and seeds."""
    parser = argparse.ArgumentParser(description="psmvae against version 0.1 and MissForest.")
    parser.add_argument("--old", type=Path, help="source folder of version 0.1")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--keep", nargs="+", choices=KEPT, default=[], help="methods not to run")
    parser.add_argument("--lanes", type=int, default=1, help="processes at the same time")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job = json.loads(options.job)
        print(json.dumps(fit_one(job["table"], job["seed"], job["method"], job["max_time"])))
        return
    if options.old is None and "psmvae 0.1" not in options.keep:
        parser.error("--old is needed: the source folder of version 0.1")
    # imported here: a job must import the package that its environment names
    from breast import machine

    old = None if options.old is None else options.old.resolve()
    jobs: queue.Queue[tuple[str, int]] = queue.Queue()
    for table in options.tables:
        for seed in options.seeds:
            jobs.put((table, seed))
    wanted = {(table, seed) for table in options.tables for seed in options.seeds}
    records: list[Record] = []
    kept: list[Record] = []
    lock, about = threading.Lock(), {"cpu": processor(), "lanes": options.lanes}
    if options.out.exists():
        earlier = json.loads(options.out.read_text())["records"]
        again = [
            (one["table"], one["seed"]) in wanted and one["cpu"] == about["cpu"] for one in earlier
        ]
        records = [one for one, out in zip(earlier, again, strict=True) if not out]
        kept = [
            one
            for one, out in zip(earlier, again, strict=True)
            if out and one["method"] in options.keep
        ]
    if any(one["lanes"] != options.lanes for one in kept):
        raise SystemExit(f"the records were not measured with {options.lanes} lanes")
    if len(kept) < len(options.keep) * len(wanted):
        raise SystemExit(f"there are no records of {options.keep} to keep")

    def work(lane: int) -> None:
        while True:
            try:
                table, seed = jobs.get_nowait()
            except queue.Empty:
                return
            found = race(table, seed, {2 * lane, 2 * lane + 1}, old, kept)
            with lock:
                records.extend({**one, **about} for one in found)
                records.sort(key=lambda r: (TABLES.index(r["table"]), r["cpu"], r["seed"]))
                result = {"machine": machine(), "records": records}
                options.out.write_text(json.dumps(result, indent=1) + "\n")
            for one in found:
                print(
                    f"{one['table']} {one['seed']} {one['method']}: {one['rmse']:.4f} in "
                    f"{one['seconds']:.1f} s", flush=True,
                )  # fmt: skip

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(options.lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(markdown(records))


if __name__ == "__main__":
    main()
