"""Coverage of intervals by Rubin's rules, on simulated tables with a known truth.

For each design and number of rows, tables are drawn, their missing cells imputed 20 times, and the
estimates pooled with the degrees of freedom of Barnard and Rubin. The methods are the default
`PSMVAEImputer`, `MICEImputer` with Bayesian regression ("norm") and with predictive mean matching
("pmm"), complete cases and the full data. With ``--r FOLDER``, R's mice imputes the same tables by
`coverage.R`.

The default is trained on many tables at once as one stacked model, which takes a CUDA device
seconds instead of hours; its draws are those of ``mask_model="latent"``. The design with mixed
kinds is fitted one table after another by the public interface, and so is "auto", the default, in
the other designs. Run with

    python benchmarks/coverage.py run [--designs NAME ...] [--rows 100 300] [--tables 400]
        [--default-only | --first 200]
    python benchmarks/coverage.py auto --designs "linear, MAR" --rows 300 [--tables 400]
    python benchmarks/coverage.py r FOLDER [--designs NAME ...] [--rows 300] [--tables 400]
        [--first 100]
    python benchmarks/coverage.py page
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
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
# OURS by the public interface, where the other records are of draws without a mechanism
AUTO = f'{OURS}("auto")'
METHODS = ("full data", "complete cases", OURS, AUTO, "MICE norm", "MICE pmm", "R norm", "R pmm")
COUNTED = ("full data", "complete cases", OURS, "MICE norm", "MICE pmm")
CHOSEN = "own value chosen"
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


def one_table(job: tuple[str, int, int, Any, bool]) -> dict[str, dict[str, Table]]:
    """Return the pooled estimates of all methods, or of the default only, for one table."""
    design, n, number, learned, only = job
    table, missing = table_of(design, n, number)
    found = {} if only else _others(design, table, missing, number)
    found[OURS] = _ours(design, table, missing, number, learned)
    return found


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


def _ours(design: str, table: Any, missing: Any, number: int, learned: Any) -> dict[str, Table]:
    if learned is None:
        return _fitted(design, table, missing, number)[1]
    from psmvae.chained.chains import Chains, settings_for

    columns, x, m, bounds, predictions, seed = learned
    settings = settings_for(*x.shape)
    chains = Chains.fit(
        columns, x, m, bounds=bounds, seed=seed, learned=predictions, settings=settings
    )
    drawn = chains.draw(x, m, N_IMPUTATIONS, seed + 1, predictions)
    center = np.array([column.center for column in columns])
    scale = np.array([column.scale for column in columns])
    filled = np.where(missing[:, None], drawn * scale + center, table[:, None])
    return pooled(design, filled.transpose(1, 0, 2), len(table))


def _fitted(
    design: str, table: Any, missing: Any, number: int
) -> tuple[PSMVAEImputer, dict[str, Table]]:
    """Return the default, fitted by the public interface, and its pooled estimates."""
    import torch

    torch.set_num_threads(1)
    data = frame(design, table, missing)
    imputer = PSMVAEImputer(random_state=number, device="cpu").fit(data)
    return imputer, _pool_frames(design, imputer.sample(data, N_IMPUTATIONS), len(table))


def one_auto(job: tuple[str, int, int]) -> tuple[dict[str, Table], bool]:
    """Return the pooled estimates of "auto", and whether y was corrected for its own value."""
    warnings.simplefilter("ignore")
    design, n, number = job
    imputer, found = _fitted(design, *table_of(design, n, number), number)
    mechanism: Any = imputer.mechanism_
    return found, "y" in mechanism and mechanism["y"].chosen == "own value"


def run_auto(designs: list[str], rows: list[int], numbers: range, workers: int, out: Path) -> None:
    """Run "auto" by the public interface and add its records."""
    context = __import__("multiprocessing").get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for n in rows:
            for design in designs:
                each = list(pool.map(one_auto, [(design, n, k) for k in numbers], chunksize=2))
                record(out, design, n, [{AUTO: found} for found, _ in each])
                records = json.loads(out.read_text())
                share = float(np.mean([chosen for _, chosen in each]))
                records[f"{design}, {n}"][CHOSEN] = float(f"{share:.4g}")
                _write(out, records)


def _write(out: Path, records: dict[str, Any]) -> None:
    out.write_text(json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def _pool_frames(design: str, tables: list[Any], n: int) -> dict[str, Table]:
    return pooled(design, [table.to_numpy(dtype=float) for table in tables], n)


def stacked(design: str, n: int, numbers: range) -> list[Any]:
    """Train the default on tables as one stack; return what the chains need of each."""
    import torch
    from psmvae_paper.stacked_fit import fit_stacked

    from psmvae.imputers.proper import learn
    from psmvae.kinds.bounds import model_bounds

    class Recorded(PSMVAEImputer):
        """Keeps the validation cells; the chains are fitted by the workers."""

        def _fit_draws(self, encoded: Any, held_out: Any, began: float) -> None:
            del began
            self.recorded_ = (encoded, held_out)

    tables = [table_of(design, n, number) for number in numbers]
    data = [np.where(missing, np.nan, table) for table, missing in tables]
    fitted = fit_stacked([Recorded(random_state=number) for number in numbers], data)
    jobs = []
    for imputer in fitted:
        encoded, held_out = imputer.recorded_
        with torch.no_grad():
            learned = learn(imputer, encoded, held_out)
        columns = imputer.schema_.modelled
        bounds = [model_bounds(column) for column in columns]
        jobs.append((columns, encoded.x, encoded.m, bounds, learned, imputer._seed(5)))  # noqa: SLF001
    return jobs


def run(
    designs: list[str], rows: list[int], numbers: range, workers: int, out: Path, *, only: bool
) -> None:
    """Run the study, or the default imputer only, and write the records of each design."""
    import torch

    stacks = torch.cuda.is_available()
    context = __import__("multiprocessing").get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = []
        for n in rows:
            for design in designs:
                began = time.perf_counter()
                jobs: list[Any] = [None] * len(numbers)
                if stacks and not design.startswith("mixed"):
                    parts = [numbers[k : k + STACK] for k in range(0, len(numbers), STACK)]
                    jobs = [job for part in parts for job in stacked(design, n, part)]
                print(f"{design}, {n} rows: trained in {time.perf_counter() - began:.0f} s")
                tasks = [(design, n, k, job, only) for k, job in zip(numbers, jobs, strict=True)]
                waiting.append((design, n, pool.map(one_table, tasks, chunksize=2)))
                # what is finished is written while the next stack trains
        for design, n, found in waiting:
            record(out, design, n, list(found), numbers.start)


def record(
    out: Path, design: str, n: int, each: list[dict[str, dict[str, Table]]], first: int = 0
) -> None:
    """Summarise the tables of one design, from number ``first``, and add them to the records."""
    truth_table, _ = make(design, np.random.default_rng(0), N_TRUTH)
    truth = {term: b for term, (b, _) in analyse(design, truth_table).items()}
    records = json.loads(out.read_text()) if out.exists() else {}
    entry = records.setdefault(f"{design}, {n}", {})
    for method in each[0]:
        found = {
            term: summary([one[method][term] for one in each], value)
            for term, value in truth.items()
        }
        if first:
            found = {term: joined(entry[method][term], one, first) for term, one in found.items()}
        entry[method] = found
    _write(out, records)
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
        (key.rsplit(", ", 1)[0] in LINEAR, {method: entry[method][term] for method in compared})
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
        'below those of `MICEImputer(method="pmm")`.\n',
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
        if method == AUTO:
            label += f", own value chosen in {entry[CHOSEN]:.0%}"
        lines.append(f"| {label} | {' | '.join(cells)} |")
    yardstick = entry.get("MICE norm")
    if design in LINEAR and yardstick and OURS in entry:
        ratios = [entry[OURS][term]["sqrt_b"] / yardstick[term]["sqrt_b"] for term in terms]
        lines.append(f"| √B, ratio to norm | {' | '.join(f'{r:.2f}' for r in ratios)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the study, R's part of it, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "auto", "r", "page"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--designs", nargs="+", choices=tuple(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 300, 1000, 5000])
    parser.add_argument("--tables", type=int, default=400)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--default-only", action="store_true", help="keep the other records")
    choice.add_argument("--first", type=int, default=0, help="join with the tables before it")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = range(options.first, options.tables)
    if options.what == "page":
        write_page(PAGE, "coverage", page(json.loads(options.out.read_text())))
    elif options.what == "auto":
        run_auto(options.designs, options.rows, numbers, options.workers, options.out)
    elif options.what == "r":
        run_r(options.designs, options.rows, numbers, options.folder, options.out)
    else:
        settings = (options.designs, options.rows, numbers, options.workers, options.out)
        run(*settings, only=options.default_only)


if __name__ == "__main__":
    main()
