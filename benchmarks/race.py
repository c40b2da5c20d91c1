"""Error of PSMVAE in the time that MissForest takes, against that of MissForest.

Tables: *letter* (20,000 x 16), *adult* (32,561 x 12, categories as numbers 1 ... k, some cells
natively missing) and *wine* (6,497 x 13), as CSV files in the folder ``PSMVAE_DATA_HOME``. The
protocol is that of the paper: for each seed, every cell goes missing with probability `rate`; a
permutation splits the rows 8:1:1; a method is fitted to the 80 % and imputes the missing cells of
these rows; columns with fewer than 20 distinct values are rounded; the error is the root mean
squared error over those cells, in ranges of the columns in the 80 %. Natively missing cells are
missing for every method and not scored. All columns are numeric for every method.

For each table and seed:

- `MeanImputer`, to compare with the paper's figures (letter .1560, adult .2510, wine .1765);
- `MissForestImputer` on all cores. Its seconds of fit and transform are the time limit. (Its fit
  already imputes the training table, so a user may not need the transform; the two are reported
  separately.)
- `PSMVAEImputer` with its defaults, and `max_time` such that fit and transform together take as
  long as MissForest. The time of transform is estimated beforehand, which is not counted: networks
  of the same size are fitted for one epoch to few rows, and impute few rows.
- with ``--full``, `PSMVAEImputer` with its defaults and no time limit.

"of its time" is the time of fit and transform divided by that of MissForest. Run with

    PSMVAE_DATA_HOME=... python benchmarks/race.py [--seeds 0] [--tables letter adult wine] [--full]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from sklearn.exceptions import ConvergenceWarning

from breast import DISCRETE_BELOW, machine
from psmvae import MeanImputer, MissForestImputer, PSMVAEImputer
from psmvae.imputers.resolve import FAST_PRETRAINED
from psmvae.simulate import mcar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Record = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "race.json"
TABLES = ("letter", "adult", "wine")
# Rows that are fitted and imputed to estimate the time of transform.
PROBE_FIT, PROBE_IMPUTE = 1000, 200
# Least share of the time limit for fit, even if transform is estimated to take longer.
MIN_FIT_SHARE = 0.1


def load(name: str) -> Floats:
    """A table of numbers, NaN where natively missing."""
    home = os.environ.get("PSMVAE_DATA_HOME")
    path = Path(home or "") / f"{name}.csv.gz"
    if not home or not path.is_file():
        message = f"PSMVAE_DATA_HOME must be a folder with {name}.csv.gz; it is {home!r}."
        raise SystemExit(message)
    return pd.read_csv(path).to_numpy(dtype=np.float64)


def split(
    complete: Floats, rate: float, seed: int
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """True values and mask of the 80 %, and which columns are rounded."""
    rng = np.random.default_rng(seed)
    m = mcar(complete, rate, rng).m
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


def transform_seconds(incomplete: Floats, draws: int | None, seed: int) -> float:
    """Estimate the time of `transform` on few rows."""
    n_rows, few = len(incomplete), incomplete[:PROBE_IMPUTE]
    more: dict[str, Any] = {} if draws is None else {"n_draws": draws}
    imputer = PSMVAEImputer(
        draws="model",
        network=FAST_PRETRAINED.network,
        regression=FAST_PRETRAINED.regression,
        max_epochs=1,
        device="cpu",
        random_state=seed,
        **more,
    )
    with warnings.catch_warnings():
        # after one epoch, warnings about few effective draws are expected
        warnings.simplefilter("ignore", UserWarning)
        imputer.fit(incomplete[:PROBE_FIT]).transform(few[:10])
        start = time.perf_counter()
        imputer.transform(few)
    return (time.perf_counter() - start) / len(few) * n_rows


def timed(imputer: Any, incomplete: Floats) -> tuple[Floats, Record]:
    """Fit and impute; the completed table and the seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        # MissForest stops after its default number of rounds, as in the paper
        warnings.simplefilter("ignore", ConvergenceWarning)
        imputer.fit(incomplete)
    fitted = time.perf_counter()
    filled = imputer.transform(incomplete)
    end = time.perf_counter()
    return filled, {
        "fit_seconds": fitted - start,
        "transform_seconds": end - fitted,
        "seconds": end - start,
        "epochs": getattr(imputer, "n_epochs_", None),
    }


def race(
    complete: Floats, rate: float, seed: int, *, draws: int | None, full: bool
) -> list[Record]:
    """Run all methods on one table and seed; a record of each."""
    truth, m, discrete = split(complete, rate, seed)
    incomplete = np.where(m, truth, np.nan)
    more: dict[str, Any] = {"random_state": seed, "device": "cpu"}
    if draws is not None:
        more["n_draws"] = draws
    records: list[Record] = []

    def run(method: str, imputer: Any, **about: Any) -> Record:
        filled, seconds = timed(imputer, incomplete)
        record = {"method": method, "rmse": score(truth, filled, m, discrete), **seconds, **about}
        records.append(record)
        print(
            f"{method}: {record['rmse']:.4f} in {record['fit_seconds']:.1f} + "
            f"{record['transform_seconds']:.1f} s",
            flush=True,
        )
        return record

    run("mean", MeanImputer())
    time_of_race = run("missforest", MissForestImputer(random_state=seed))["seconds"]
    estimate = transform_seconds(incomplete, draws, seed)
    max_time = max(time_of_race - estimate, MIN_FIT_SHARE * time_of_race)
    about = {"max_time": max_time, "transform_estimate": estimate}
    run("psmvae, same time", PSMVAEImputer(max_time=max_time, draws="model", **more), **about)
    if full:
        run("psmvae", PSMVAEImputer(draws="model", **more))
    return [{**record, "of_its_time": record["seconds"] / time_of_race} for record in records]


def markdown(records: list[Record]) -> str:
    """A table of means over seeds, one row for each table and method."""
    lines = [
        "| table | method | RMSE | fit, s | transform, s | of its time |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for table, method in dict.fromkeys((r["table"], r["method"]) for r in records):
        mine = [r for r in records if (r["table"], r["method"]) == (table, method)]
        names = ("rmse", "fit_seconds", "transform_seconds", "of_its_time")
        rmse, fit, transform, share = (np.mean([r[name] for r in mine]) for name in names)
        lines.append(
            f"| {table} | {method} | {rmse:.4f} | {fit:.1f} | {transform:.1f} | {share:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run on the given tables and seeds."""
    parser = argparse.ArgumentParser(description="psmvae in the time that MissForest takes.")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--draws", type=int, help="n_draws of psmvae (default: its own)")
    parser.add_argument("--full", action="store_true", help="also psmvae without a time limit")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(os.cpu_count() or 1)

    settings = {name: value for name, value in vars(options).items() if name != "out"}
    records: list[Record] = []
    tables = {name: load(name) for name in options.tables}
    for name, complete in tables.items():
        for seed in options.seeds:
            print(f"-- {name}, seed {seed}", flush=True)
            found = race(complete, options.rate, seed, draws=options.draws, full=options.full)
            records += [{"table": name, "seed": seed, **record} for record in found]
            # a run takes minutes: records are written as they come
            result = {"settings": settings, "machine": machine(), "records": records}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\n{markdown(records)}")


if __name__ == "__main__":
    main()
