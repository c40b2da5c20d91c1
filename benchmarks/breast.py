"""Error of PSMVAE on the breast cancer data, against mean imputation, MICE and MissForest.

The data are scikit-learn's, the protocol is that of the paper. For each seed, every cell goes
missing with probability `rate`; a permutation splits the rows 8:1:1; a method is fitted to the 80 %
and imputes the missing cells of these rows; the error is the root mean squared error over those
cells, in ranges of the columns in the 80 % (by this definition, mean imputation has the error that
the paper reports). Every method gets only the incomplete table. The baselines get it standardised
by its observed cells, as in the paper. Run with

    python benchmarks/breast.py [--seeds 0 1 2 3 4] [--rates 0.2 0.8] [--methods mean mice ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge

import psmvae
from psmvae.simulate import mcar

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "breast.json"

# Columns with fewer distinct values than this are rounded after imputation.
DISCRETE_BELOW = 20


def standardised(impute: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Standardise by the observed cells, impute and scale back."""

    def run(x: Floats) -> Floats:
        center, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        return impute((x - center) / scale) * scale + center

    return run


def mice(seed: int) -> Callable[[Floats], Floats]:
    """IterativeImputer over BayesianRidge."""
    imputer = IterativeImputer(BayesianRidge(), random_state=seed)
    return standardised(imputer.fit_transform)


def missforest(seed: int) -> Callable[[Floats], Floats]:
    """IterativeImputer over 10 extremely randomised trees."""
    trees = ExtraTreesRegressor(n_estimators=10, random_state=seed, n_jobs=-1)
    return standardised(IterativeImputer(trees, random_state=seed).fit_transform)


METHODS: dict[str, Callable[[int], Callable[[Floats], Floats]]] = {
    "mean": lambda _seed: SimpleImputer().fit_transform,
    "mice": mice,
    "missforest": missforest,
    "psmvae": lambda seed: psmvae.PSMVAEImputer(random_state=seed).fit_transform,
    "psmvae x6": lambda seed: psmvae.PSMVAEImputer(n_members=6, random_state=seed).fit_transform,
}


def evaluate(method: str, rate: float, seed: int) -> dict[str, Any]:
    """Fit, impute and score one method."""
    complete = load_breast_cancer().data
    rng = np.random.default_rng(seed)
    m = mcar(complete, rate, rng).m
    train = rng.permutation(len(complete))[: int(0.8 * len(complete))]
    truth, observed = complete[train], m[train]

    impute = METHODS[method](seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # the baselines stop after their default number of iterations, as in the paper
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = impute(np.where(observed, truth, np.nan))
    seconds = time.perf_counter() - start

    for j in range(complete.shape[1]):
        if len(np.unique(complete[:, j])) < DISCRETE_BELOW:
            filled[:, j] = np.rint(filled[:, j])
    error = (filled - truth) / np.ptp(truth, axis=0)
    rmse = float(np.sqrt(np.mean(error[~observed] ** 2)))
    return {"method": method, "rate": rate, "seed": seed, "rmse": rmse, "seconds": seconds}


def markdown(records: list[dict[str, Any]]) -> str:
    """A table with one row for each method: RMSE (mean ± standard deviation) and mean seconds."""
    rates = sorted({record["rate"] for record in records})
    head = [f"{rate:.0%} MCAR: RMSE | seconds" for rate in rates]
    lines = ["| method | " + " | ".join(head) + " |", "| --- |" + " --- | ---: |" * len(rates)]
    for method in dict.fromkeys(record["method"] for record in records):
        cells = []
        for rate in rates:
            mine = [r for r in records if (r["method"], r["rate"]) == (method, rate)]
            rmse, seconds = [r["rmse"] for r in mine], [r["seconds"] for r in mine]
            cells.append(f"{np.mean(rmse):.4f} ± {np.std(rmse):.4f} | {np.mean(seconds):.1f}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Date, hardware and versions of a record."""
    packages = ("numpy", "scikit-learn", "torch")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "psmvae": psmvae.__version__,
        **{name: version(name) for name in packages},
    }


def main() -> None:
    """Evaluate the given methods, rates and seeds."""
    parser = argparse.ArgumentParser(description="Imputation error on the breast cancer data.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.8])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    records = []
    for method in options.methods:
        for rate in options.rates:
            for seed in options.seeds:
                record = evaluate(method, rate, seed)
                print(
                    f"{method:<11} {rate:.0%} seed {seed}: {record['rmse']:.4f} "
                    f"in {record['seconds']:.1f} s",
                    flush=True,
                )
                records.append(record)
    print()
    print(markdown(records))
    settings = {name: getattr(options, name) for name in ("seeds", "rates", "methods")}
    result = {"settings": settings, "machine": machine(), "records": records}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
