"""Coverage of intervals by Rubin's rules, on simulated tables with a known truth.

For each design and number of rows, tables are drawn, their missing cells imputed 20 times, and the
estimates pooled with the degrees of freedom of Barnard and Rubin. The methods are the default
`PSMVAEImputer`, `MICEImputer` with Bayesian regression ("norm") and with predictive mean matching
("pmm"), complete cases and the full data. With ``--r FOLDER``, R's mice imputes the same tables by
`coverage.R`.

With a CUDA device, the default is trained on many tables at once as one stacked model; what follows
the training is done table by table, as in `fit`. In the design with mixed kinds, tables are fitted
one after another. Where y is missing by x1, ``mask_model="latent"`` is recorded too. Run with

    python benchmarks/coverage.py run [--designs NAME ...] [--rows 100 300] [--tables 400]
        [--default-only | --others-only] [--first 200]
    python benchmarks/coverage.py r FOLDER [--designs NAME ...] [--rows 300] [--tables 400]
        [--first 100]
    python benchmarks/coverage.py page
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# one thread for each worker; set before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from coverage_designs import DESIGNS, LINEAR, analyse, frame, make, names
from pages import DOCS, write_page
from psmvae import MICEImputer, PSMVAEImputer
from psmvae.multiple.rubin import pool_scalars

RESULTS = Path(__file__).parent / "results" / "coverage.json"
PAGE = DOCS / "coverage.md"
N_IMPUTATIONS, N_TRUTH = 20, 2_000_000
OURS = "PSMVAEImputer"
LATENT = f"{OURS}, latent"
METHODS = ("full data", "complete cases", OURS, LATENT, "MICE norm", "MICE pmm", "R norm", "R pmm")
COUNTED = ("full data", "complete cases", OURS, "MICE norm", "MICE pmm")
CHOSEN = "own value chosen"
# methods whose records are from before the last change of their draws
EARLIER = "earlier code"
# methods that are run
ALL, DEFAULT, OTHERS = "all", "default", "others"
# Tables trained as one stack; results do not depend on it but for random numbers.
STACK = 200

Table = tuple[float, float, float, float]
"""Estimate, standard error, degrees of freedom and √B of one term."""


def table_of(design: str, n: int, number: int) -> tuple[Any, Any]:
    """Return the complete table and the missing cells of one replication."""
    key = [list(DESIGNS).index(design), n, number]
    return make(design, np.random.default_rng(key), n)


def pooled(design: str, tables: Iterable[Any], n: int) -> dict[str, Table]:
    """Analyse completed tables and pool."""
    each = [analyse(design, table) for table in tables]
    terms = list(each[0])
    estimate = np.array([[one[term][0] for term in terms] for one in each])
    variance = np.array([[one[term][1] ** 2 for term in terms] for one in each])
    found = pool_scalars(estimate, variance, n - 3)
    columns = (found.estimate, np.sqrt(found.t), found.df, np.sqrt(found.b))
    return {term: tuple(float(c[k]) for c in columns) for k, term in enumerate(terms)}


def one_table(job: tuple[str, int, int, Any, str]) -> dict[str, Any]:
    """Return the pooled estimates of the methods for one table, and whether y was corrected."""
    warnings.simplefilter("ignore")
    design, n, number, trained, which = job
    table, missing = table_of(design, n, number)
    found: dict[str, Any] = {} if which == DEFAULT else _others(design, table, missing, number)
    return found if which == OTHERS else found | _ours(design, table, missing, number, trained)


def _others(design: str, table: Any, missing: Any, number: int) -> dict[str, dict[str, Table]]:
    data, n, found = frame(design, table, missing), len(table), {}
    for name, rows in (("full data", slice(None)), ("complete cases", ~missing.any(1))):
        estimates = analyse(design, table[rows])
        freedom = len(table[rows]) - 3
        found[name] = {term: (b, s, freedom, 0.0) for term, (b, s) in estimates.items()}
    for method in ("norm", "pmm"):
        imputer = MICEImputer(method=method, random_state=number).fit(data)
        found[f"MICE {method}"] = _pool_frames(design, imputer.sample(data, N_IMPUTATIONS), n)
    return found


def _ours(design: str, table: Any, missing: Any, number: int, trained: Any) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    data = frame(design, table, missing)

    def drawn(mask_model: str) -> tuple[Any, dict[str, Table]]:
        imputer: Any = PSMVAEImputer(mask_model=mask_model, random_state=number, device="cpu")
        if trained is None:
            imputer.fit(data)
        else:
            imputer, encoded, held_out = pickle.loads(trained)  # noqa: S301
            imputer.set_params(mask_model=mask_model)
            PSMVAEImputer._fit_draws(imputer, encoded, held_out, time.perf_counter())  # noqa: SLF001
        return imputer, _pool_frames(design, imputer.sample(data, N_IMPUTATIONS), len(table))

    imputer, estimates = drawn("auto")
    found: dict[str, Any] = {OURS: estimates}
    mechanism = imputer.mechanism_
    found[CHOSEN] = "y" in mechanism and mechanism["y"].chosen == "own value"
    if design.endswith("MAR"):
        found[LATENT] = found[OURS]
        if mechanism.drawn_tilts:
            found[LATENT] = drawn("latent")[1]
    return found


def _pool_frames(design: str, tables: list[Any], n: int) -> dict[str, Table]:
    return pooled(design, [table.to_numpy(dtype=float) for table in tables], n)


class Recorded(PSMVAEImputer):
    """Keeps the training table; the workers do what follows the training."""

    def _fit_draws(self, encoded: Any, held_out: Any, began: float) -> None:
        del began
        self.recorded_ = encoded, None if held_out is None else held_out.cpu()


def stacked(design: str, n: int, numbers: range) -> list[bytes]:
    """Train the default on tables as one stack; return pickled imputers and their tables."""
    from psmvae_paper.stacked_fit import fit_stacked

    tables = [table_of(design, n, number) for number in numbers]
    data = [frame(design, table, missing) for table, missing in tables]
    fitted: Any = fit_stacked([Recorded(random_state=number) for number in numbers], data)
    jobs = []
    for imputer in fitted:
        encoded, held_out = imputer.__dict__.pop("recorded_")
        imputer.model_.cpu()
        # as bytes: tensors would be sent to the workers by open files
        jobs.append(pickle.dumps((imputer.set_params(device="cpu"), encoded, held_out)))
    return jobs


def _one_core(order: Any) -> None:
    """Run a worker on one core: forests grow on all the cores that they may use."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[order.get() % len(cores)]})


def run(
    designs: list[str], rows: list[int], numbers: range, workers: int, out: Path, which: str
) -> None:
    """Run the study and write the records of each design."""
    import torch

    stacks = torch.cuda.is_available() and which != OTHERS
    context = get_context("spawn")
    order = context.Queue()
    for k in range(workers):
        order.put(k)

    def train(design: str, n: int) -> list[Any]:
        began = time.perf_counter()
        if not stacks or design.startswith("mixed"):
            return [None] * len(numbers)
        parts = [numbers[k : k + STACK] for k in range(0, len(numbers), STACK)]
        jobs = [job for part in parts for job in stacked(design, n, part)]
        print(f"{design}, {n} rows: trained in {time.perf_counter() - began:.0f} s", flush=True)
        return jobs

    options = {"initializer": _one_core, "initargs": (order,)}
    with (
        ProcessPoolExecutor(workers, mp_context=context, **options) as pool,
        ThreadPoolExecutor(1) as trainer,
    ):
        waiting = [
            (design, n, trainer.submit(train, design, n)) for n in rows for design in designs
        ]
        before: tuple[str, int, Any] | None = None
        for design, n, trained in waiting:
            jobs = zip(numbers, trained.result(), strict=True)
            tasks = [(design, n, k, job, which) for k, job in jobs]
            found = pool.map(one_table, tasks, chunksize=2)
            # while the next stack trains
            if before is not None:
                record(out, *before[:2], list(before[2]), numbers.start)
            before = design, n, found
        if before is not None:
            record(out, *before[:2], list(before[2]), numbers.start)


@cache
def truth_of(design: str) -> dict[str, float]:
    """Return the estimates of a large complete table."""
    table, _ = make(design, np.random.default_rng(0), N_TRUTH)
    return {term: b for term, (b, _) in analyse(design, table).items()}


def record(out: Path, design: str, n: int, each: list[dict[str, Any]], first: int = 0) -> None:
    """Summarise the tables of one design, from number ``first``, and add them to the records."""
    truth = truth_of(design)
    records = json.loads(out.read_text()) if out.exists() else {}
    entry = records.setdefault(f"{design}, {n}", {})
    recorded = set(each[0]) & set(METHODS)
    entry[EARLIER] = sorted(set(entry.get(EARLIER, [])) - recorded)
    for method in recorded:
        found = {
            term: summary([one[method][term] for one in each], value)
            for term, value in truth.items()
        }
        if first:
            found = {term: joined(entry[method][term], one, first) for term, one in found.items()}
        entry[method] = found
    if CHOSEN in each[0]:
        share = float(np.mean([one[CHOSEN] for one in each]))
        if first:
            share = (first * entry[CHOSEN] + len(each) * share) / (first + len(each))
        entry[CHOSEN] = float(f"{share:.4g}")
    out.write_text(json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{design}, {n} rows: recorded {len(each)} tables", flush=True)


def summary(each: list[Table], truth: float) -> dict[str, float]:
    """Return bias, mean width, coverage and mean √B of one term."""
    b, se, freedom, between = np.array(each).T
    half = stats.t.ppf(0.975, freedom) * se
    figures = {
        "bias": np.mean(b - truth),
        "width": 2 * np.mean(half),
        "coverage": np.mean(np.abs(b - truth) <= half),
        "se": np.mean(se),
        "sqrt_b": np.mean(between),
    }
    return {name: float(f"{value:.4g}") for name, value in figures.items()} | {"tables": len(each)}


def joined(before: dict[str, float], after: dict[str, float], first: int) -> dict[str, float]:
    """Join the figures of tables before number ``first`` with those of the tables from it on.

    Every figure is a mean over tables.
    """
    if before["tables"] != first:
        raise ValueError(f"The records have {before['tables']} tables, not {first}.")
    n = first + after["tables"]
    means = {
        name: float(f"{(first * before[name] + after['tables'] * after[name]) / n:.4g}")
        for name in before
    }
    return means | {"tables": n}


def run_r(designs: list[str], rows: list[int], numbers: range, folder: Path, out: Path) -> None:
    """Impute by R's mice and add the results to the records."""
    import pandas as pd

    for n in rows:
        for design in designs:
            place = folder / f"{design.replace(', ', '_')}_{n}"
            place.mkdir(parents=True, exist_ok=True)
            for k in numbers:
                data = frame(design, *table_of(design, n, k))
                data.to_csv(place / f"{k:04}.csv", index=False)
            each: list[dict[str, dict[str, Table]]] = [{} for _ in numbers]
            for method in ("norm", "pmm"):
                script = Path(__file__).parent / "coverage.R"
                subprocess.run(["Rscript", str(script), str(place), method], check=True)  # noqa: S607
                for k, found in zip(numbers, each, strict=True):
                    long = pd.read_csv(place / method / f"{k:04}.csv")
                    parts = [part for _, part in long.groupby(".imp")]
                    tables = [part[list(names(design))].to_numpy(dtype=float) for part in parts]
                    found[f"R {method}"] = pooled(design, tables, n)
            record(out, design, n, each, numbers.start)


def page(records: dict[str, Any]) -> str:
    """Return the tables of the documentation."""
    parts = [_page_counts(records)]
    for design, cells in DESIGNS.items():
        sizes = [n for n in (100, 300, 1000, 5000) if f"{design}, {n}" in records]
        if not sizes:
            continue
        parts.append(f"### {design[0].upper()}{design[1:]}\n\nMissing: {cells}.\n")
        parts.extend(_page_of(design, n, records[f"{design}, {n}"]) for n in sizes)
    return "\n".join(parts)


def _page_counts(records: dict[str, Any]) -> str:
    """How many coverages and biases are in a range, by method."""
    compared = COUNTED
    estimates = [
        (key.rsplit(", ", 1)[0] in LINEAR, {m: _figures(entry, m)[term] for m in compared})
        for key, entry in records.items()
        for term in entry[compared[0]]
    ]
    linear = [one for is_linear, one in estimates if is_linear]
    other = [one for is_linear, one in estimates if not is_linear]
    lines = [
        "### Counts\n",
        f"Of {len(linear)} estimates in linear designs: how many are covered in 93 to 97 %, and",
        "how many have a bias of more than a tenth of the standard error of the full data.",
        f"Of {len(other)} in the other designs: how many coverages are more than a point above and",
        'below those of `MICEImputer(method="pmm")`. `PSMVAEImputer` has `mask_model="latent"`',
        "where the default was not run.\n",
        "| | linear, 93 to 97 % | linear, biased | other, above | other, below |",
        "| --- | --- | --- | --- | --- |",
    ]
    for method in compared:
        inside = sum(0.93 <= one[method]["coverage"] <= 0.97 for one in linear)
        biased = sum(abs(one[method]["bias"]) > 0.1 * one["full data"]["se"] for one in linear)
        points = [1000 * (one[method]["coverage"] - one["MICE pmm"]["coverage"]) for one in other]
        above = sum(round(each, 2) > 10 for each in points)
        below = sum(round(each, 2) < -10 for each in points)
        lines.append(f"| {method} | {inside} | {biased} | {above} | {below} |")
    return "\n".join([*lines, ""])


def _figures(entry: dict[str, Any], method: str) -> Any:
    """Return the figures of a method; those of "latent" where the default was not run."""
    return entry[LATENT if method == OURS and OURS not in entry else method]


def _page_of(design: str, n: int, entry: dict[str, Any]) -> str:
    present = [method for method in METHODS if method in entry]
    terms = list(entry["full data"]) if "full data" in entry else list(entry[present[0]])
    counts = {method: entry[method][terms[0]]["tables"] for method in present}
    most = max(counts.values())
    lines = [f"{n:,} rows, {most} tables", "", f"| | {' | '.join(terms)} |"]
    lines.append("| --- |" + " --- |" * len(terms))
    for method in present:
        cells = []
        for term in terms:
            one, full = entry[method][term], entry["full data"][term]
            text = f"{one['bias'] / full['se']:+.2f} / {one['width']:.3g} / {one['coverage']:.1%}"
            cells.append(text.replace("%", ""))
        label = method if counts[method] == most else f"{method} ({counts[method]} tables)"
        if method in entry.get(EARLIER, []):
            label += ", earlier code"
        if method == OURS and entry.get(CHOSEN):
            label += f", own value chosen in {entry[CHOSEN]:.0%}"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    yardstick = entry.get("MICE norm")
    if design in LINEAR and yardstick:
        ours = _figures(entry, OURS)
        ratios = [ours[term]["sqrt_b"] / yardstick[term]["sqrt_b"] for term in terms]
        lines.append(f"| √B, ratio to norm | {' | '.join(f'{r:.2f}' for r in ratios)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the study, R's part of it, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "r", "page"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--designs", nargs="+", choices=tuple(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 300, 1000, 5000])
    parser.add_argument("--tables", type=int, default=400)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--default-only", action="store_true", help="keep the other records")
    choice.add_argument("--others-only", action="store_true", help="keep those of the default")
    parser.add_argument("--first", type=int, default=0, help="join with the tables before it")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = range(options.first, options.tables)
    if options.what == "page":
        write_page(PAGE, "coverage", page(json.loads(options.out.read_text())))
    elif options.what == "r":
        run_r(options.designs, options.rows, numbers, options.folder, options.out)
    else:
        which = DEFAULT if options.default_only else OTHERS if options.others_only else ALL
        run(options.designs, options.rows, numbers, options.workers, options.out, which)


if __name__ == "__main__":
    main()
