"""Error of single imputations where one column is incomplete, with and without residual trees.

In tables of 2,000 rows or more with one to three incomplete columns of numbers, the default
`PSMVAEImputer` corrects its predictions by trees that are grown on the residuals. For each seed, a
random column of numbers of a data set of the paper has 20 % of its cells missing completely at
random; see `since_0_1` for rows and errors. Natively missing cells are not scored.
``PSMVAE_DATA_HOME`` is the folder with the data. The seconds are those of the processor, with one
thread. Run with

    PSMVAE_DATA_HOME=... python benchmarks/one_column.py [--seeds 0 1 2 3] [--workers 2]
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
from psmvae import MissForestImputer, PSMVAEImputer
from since_0_1 import score, split

RESULTS = Path(__file__).parent / "results" / "one_column.json"
TABLES = ("adult", "credit", "letter", "spam", "wine")
# Columns of numbers with at least so many distinct values are drawn.
MIN_DISTINCT = 10


def fit_all(job: tuple[str, int]) -> dict[str, Any]:
    """Impute one column by all methods."""
    import torch

    from psmvae.imputers import residual_trees

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    table, seed = job
    truth, m, discrete = split(table, seed)
    # the masks of `split`, in one column only
    distinct = np.array([len(np.unique(column[~np.isnan(column)])) for column in truth.T])
    j = int(np.random.default_rng(seed).choice(np.flatnonzero(distinct >= MIN_DISTINCT)))
    native = np.isnan(truth)
    m = np.where(np.arange(truth.shape[1]) == j, m, ~native)
    incomplete = np.where(m, truth, np.nan)
    # libraries are loaded before the clock runs
    PSMVAEImputer(max_epochs=1, device="cpu").fit(incomplete[:60])
    forests: list[float] = []
    fit = residual_trees.ResidualTrees.fit

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        found = fit(*arguments)
        forests.append(time.process_time() - began)
        return found

    residual_trees.ResidualTrees.fit = timed  # type: ignore[method-assign, assignment]
    imputer = PSMVAEImputer(random_state=seed, device="cpu", mask_model="none")
    began = time.process_time()
    imputer.fit(incomplete)
    seconds = time.process_time() - began
    residual_trees.ResidualTrees.fit = fit  # type: ignore[method-assign]
    filled = {"rmse": imputer.transform(incomplete)}
    trees = imputer.residual_trees_
    imputer.residual_trees_ = None
    filled["without"] = imputer.transform(incomplete)
    filled["missforest"] = MissForestImputer(random_state=seed).fit_transform(incomplete)
    return {
        "table": table,
        "seed": seed,
        "column": j,
        "weight": 0.0 if trees is None else float(trees.weight[j]),
        "seconds": round(seconds, 1),
        "seconds_of_trees": round(sum(forests), 1),
        **{
            name: float(f"{score(truth, values, m, discrete):.5g}")
            for name, values in filled.items()
        },
    }


def markdown(records: list[dict[str, Any]]) -> str:
    """Means over seeds, one row for each table; ratios are means of the ratios."""
    lines = [
        "| table | columns | RMSE | without trees | ratio | lowest | highest | MissForest "
        "| weight | s | s of the trees |",
        "| --- " + "| ---: " * 10 + "|",
    ]
    for table in dict.fromkeys(one["table"] for one in records):
        own = [one for one in records if one["table"] == table]

        def mean(name: str, own: list[dict[str, Any]] = own) -> float:
            return float(np.mean([one[name] for one in own]))

        ratios = [one["rmse"] / one["without"] for one in own]
        cells = [
            table, str(len(own)), f"{mean('rmse'):.4f}", f"{mean('without'):.4f}",
            f"{np.mean(ratios):.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}",
            f"{mean('missforest'):.4f}", f"{mean('weight'):.2f}", f"{mean('seconds'):.1f}",
            f"{mean('seconds_of_trees'):.1f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    jobs = [(table, seed) for table in options.tables for seed in options.seeds]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        records = list(pool.map(fit_all, jobs))
    options.out.write_text(json.dumps({"machine": machine(), "records": records}, indent=1) + "\n")
    print(markdown(records))


if __name__ == "__main__":
    main()
