"""Cells that are missing because of their value: estimates, intervals, errors and time.

Four parts, on simulated tables with a known truth:

a. Linear regression with y missing by its own value (logistic) or by x1: bias, √B and coverage of
   intervals by Rubin's rules with 20 imputations, and how often "auto" chose the own value.
b. Kinds of columns, missing at random or by their own value: error of single imputations with
   ``mask_model="auto"``, divided by that of the imputer without it; imputations out of range.
c. Several self-masked columns, both tails, a ceiling of 1, missing by another column.
d. Time of a fit with "auto", divided by that with "latent".

Records are written after each design; those that have as many tables already are not run again.
``--corrected-again`` runs the tables of part a with y missing by its own value again, with the
mechanism only: the other records are kept.

    python benchmarks/self_masking.py run [--parts a b c d] [--tables 400] [--imputers MICE ...]
    python benchmarks/self_masking.py run --corrected-again [--imputers MICE ...] [--rows 300]
    python benchmarks/self_masking.py page
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# one thread for each worker; set before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from coverage import Table, summary
from coverage_designs import mean, slopes
from pages import DOCS, write_page
from psmvae import MICEImputer, MissForestImputer, PSMVAEImputer, SelfMask
from psmvae.multiple.rubin import pool_scalars
from self_masking_designs import CHECKS, KIND_MASKS, KINDS, check, kind_frame, linear, of_kind

RESULTS = Path(__file__).parent / "results" / "self_masking.json"
PAGE = DOCS / "self_masking.md"
N_IMPUTATIONS, N_SINGLE_DRAWS = 20, 5
TERMS = {"E[y]": 1.0, "b1": 1.0, "b2": 0.5}
NAMED, STRAIGHT = SelfMask(columns=["y"]), SelfMask(columns=["y"], shape="straight")
IMPUTERS: dict[str, Callable[..., Any]] = {
    "MICE": MICEImputer,
    "MissForest": MissForestImputer,
    "PSMVAE": PSMVAEImputer,
}
BASE = {"MICE": "none", "MissForest": "none", "PSMVAE": "latent"}
# rows of the tables of parts b and c, and those of part d as (rows, columns)
N_ROWS_KINDS, N_ROWS_CHECKS, SHAPES = 500, 1000, ((1000, 10), (5000, 16))
MAX_TIME = 10


def estimates(tables: list[Any]) -> dict[str, Table]:
    """Analyse completed tables ``y, x1, x2`` and pool."""
    each = []
    for table in tables:
        y, a, b = np.asarray(table, dtype=float).T
        each.append([mean(y), *slopes(y, {"b1": a, "b2": b}).values()])
    found = np.array(each)
    n = len(tables[0])
    if len(tables) == 1:
        return {t: (*map(float, found[0, k]), n - 3.0, 0.0) for k, t in enumerate(TERMS)}
    pooled = pool_scalars(found[..., 0], found[..., 1] ** 2, n - 3)
    columns = (pooled.estimate, np.sqrt(pooled.t), pooled.df, np.sqrt(pooled.b))
    return {t: tuple(float(c[k]) for c in columns) for k, t in enumerate(TERMS)}  # type: ignore[misc]


def make(imputer: str, mask_model: Any, number: int, **options: Any) -> Any:
    """Return an imputer; networks on the processor."""
    if imputer == "PSMVAE":
        import torch

        torch.set_num_threads(1)
        options["device"] = "cpu"
    return IMPUTERS[imputer](mask_model=mask_model, random_state=number, **options)


def chose_own(imputer: Any, column: str) -> bool:
    """Return whether the value of a column was chosen as the explanation of its mask."""
    return column in imputer.mechanism_ and imputer.mechanism_[column].chosen == "own value"


def _is_certain(imputer: Any, column: str) -> bool:
    """Return whether all draws of a column are by its own value."""
    if not chose_own(imputer, column):
        return False
    return bool(imputer.mechanism_[column].share_by_value == 1)


def one_linear(job: tuple[str, str, int, int], *, only_corrected: bool = False) -> dict[str, Any]:
    """Return the pooled estimates of one table of part a, by mask model.

    ``only_corrected`` leaves out the imputer without a mechanism where the own value was chosen.
    """
    import pandas as pd

    warnings.simplefilter("ignore")
    imputer, mechanism, n, number = job
    rng = np.random.default_rng([n, number, mechanism == "own value"])
    table, missing = linear(rng, n, mechanism)
    data = pd.DataFrame(np.where(missing, np.nan, table), columns=["y", "x1", "x2"])

    def drawn(mask_model: Any) -> tuple[Any, dict[str, Table]]:
        fitted = make(imputer, mask_model, number).fit(data)
        return fitted, estimates(fitted.sample(data, N_IMPUTATIONS))

    found: dict[str, Any] = {"full data": estimates([table])}
    found["complete cases"] = estimates([table[~missing[:, 0]]])
    fitted, found["auto"] = drawn("auto")
    found["chosen"] = chose_own(fitted, "y")
    # y is the only incomplete column: where all draws have one explanation, "auto" is one of the
    # others
    base = BASE[imputer]
    if not only_corrected:
        found[base] = drawn(base)[1] if fitted.mechanism_.drawn_tilts else found["auto"]
    if mechanism == "own value":
        found["SelfMask"] = found["auto"] if _is_certain(fitted, "y") else drawn(NAMED)[1]
        if imputer == "MICE":
            found["SelfMask, straight"] = drawn(STRAIGHT)[1]
    return found


def error(imputed: Any, truth: Any) -> float:
    """Return the root mean squared error, or the share of wrong levels."""
    if np.asarray(truth).dtype.kind in "OUT":
        return float(np.mean(np.asarray(imputed) != np.asarray(truth)))
    difference = np.asarray(imputed, dtype=float) - np.asarray(truth, dtype=float)
    return float(np.sqrt(np.mean(difference**2)))


def is_outside(imputed: Any, observed: Any) -> bool:
    """Return whether an imputed value is not between the observed ones, or no observed level."""
    if np.asarray(observed).dtype.kind in "OUT":
        return not set(imputed) <= set(observed)
    imputed, observed = np.asarray(imputed, dtype=float), np.asarray(observed, dtype=float)
    slack = 1e-9 * (1 + np.abs(observed).max())
    return bool(
        (imputed < observed.min() - slack).any() or (imputed > observed.max() + slack).any()
    )


def options_of(imputer: str) -> dict[str, Any]:
    """Return the options of an imputer in parts b and c."""
    return {"max_time": MAX_TIME} if imputer == "PSMVAE" else {}


def one_kind(job: tuple[str, str, str, int]) -> dict[str, Any]:
    """Return errors of one table of part b, and what was chosen."""
    warnings.simplefilter("ignore")
    imputer, kind, mechanism, number = job
    seed = [list(KINDS).index(kind), list(KIND_MASKS).index(mechanism), number]
    table, missing = of_kind(np.random.default_rng(seed), N_ROWS_KINDS, kind, mechanism)
    complete = kind_frame(kind, table, np.zeros_like(missing))["y"]
    data = kind_frame(kind, table, missing)
    options = options_of(imputer)
    if kind in ("ordinal", "count"):
        options["kinds"] = {"y": kind}
    found: dict[str, Any] = {}
    for mask_model in (BASE[imputer], "auto"):
        fitted = make(imputer, mask_model, number, **options).fit(data)
        single = fitted.transform(data)["y"][missing]
        draws = [one["y"][missing] for one in fitted.sample(data, N_SINGLE_DRAWS)]
        seen = complete[~missing]
        found[mask_model] = {
            "error": error(single, complete[missing]),
            "outside": is_outside(single, seen),
            "draws outside": any(is_outside(one, seen) for one in draws),
        }
    found["chosen"] = chose_own(fitted, "y")
    return found


def one_check(job: tuple[str, str, int]) -> dict[str, Any]:
    """Return errors of one table of part c, and which columns were chosen."""
    import pandas as pd

    warnings.simplefilter("ignore")
    imputer, name, number = job
    table, missing = check(
        np.random.default_rng([list(CHECKS).index(name), number]), N_ROWS_CHECKS, name
    )
    columns = [f"x{k + 1}" for k in range(5)]
    data = pd.DataFrame(np.where(missing, np.nan, table), columns=columns)
    found: dict[str, Any] = {}
    for mask_model in (BASE[imputer], "auto"):
        fitted = make(imputer, mask_model, number, **options_of(imputer)).fit(data)
        found[mask_model] = {
            "error": error(fitted.transform(data).to_numpy()[missing], table[missing])
        }
    incomplete = [column for column in columns if data[column].isna().any()]
    found["chosen"] = float(np.mean([chose_own(fitted, column) for column in incomplete]))
    return found


def one_time(job: tuple[int, int, str, int]) -> dict[str, float]:
    """Return the seconds of a fit by mask model, of one table of part d."""
    import pandas as pd

    warnings.simplefilter("ignore")
    n, k, mechanism, number = job
    rng = np.random.default_rng([n, k, number])
    table = 0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, k))
    missing = rng.random(table.shape) < 0.2
    if mechanism == "one column by own value":
        missing[:, 0] = rng.random(n) < 0.6 * (table[:, 0] > 0)
    data = pd.DataFrame(np.where(missing, np.nan, table)).add_prefix("x")
    # libraries are loaded before the clock runs
    make("PSMVAE", "auto", 0, max_epochs=1).fit(data[:100])
    seconds = {}
    for mask_model in ("latent", "auto"):
        began = time.perf_counter()
        make("PSMVAE", mask_model, number).fit(data)
        seconds[mask_model] = time.perf_counter() - began
    return seconds


def summary_linear(each: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise the tables of a design of part a."""
    methods = [name for name in each[0] if name != "chosen"]
    found: dict[str, Any] = {
        method: {t: summary([one[method][t] for one in each], truth) for t, truth in TERMS.items()}
        for method in methods
    }
    return found | {"chosen": _rounded(np.mean([one["chosen"] for one in each]))}


def summary_errors(each: list[dict[str, Any]]) -> dict[str, Any]:
    """Summarise the tables of a design of parts b and c.

    The ratio of errors is the geometric mean over tables.
    """
    base = next(name for name in each[0] if name not in ("auto", "chosen"))
    errors = np.array([[one[name]["error"] for name in (base, "auto")] for one in each])
    if (errors == 0).any():
        raise ValueError("An error of 0 has no ratio: the design is too easy.")
    ratio = errors[:, 1] / errors[:, 0]
    found = {
        "ratio": _rounded(np.exp(np.log(ratio).mean())),
        "worst": _rounded(ratio.max()),
        "error": _rounded(errors[:, 1].mean()),
        "chosen": _rounded(np.mean([one["chosen"] for one in each])),
    }
    for name in ("outside", "draws outside"):
        if name in each[0]["auto"]:
            for label, method in ((name, "auto"), (f"{name}, {base}", base)):
                found[label] = _rounded(np.mean([one[method][name] for one in each]))
    return found


def summary_time(each: list[dict[str, float]]) -> dict[str, Any]:
    """Summarise the fits of a table of part d."""
    seconds = {name: np.array([one[name] for one in each]) for name in each[0]}
    ratio = seconds["auto"] / seconds["latent"]
    medians = {name: _rounded(np.median(value)) for name, value in seconds.items()}
    return medians | {"ratio": _rounded(np.median(ratio)), "worst": _rounded(ratio.max())}


def _rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")


Job = tuple[str, Callable[..., Any], tuple[Any, ...], Callable[..., dict[str, Any]]]


def designs(part: str, imputers: list[str], rows: list[int]) -> list[Job]:
    """Return the designs of a part: key of the record, function, arguments, summary."""
    if part == "a":
        return [
            (f"{imputer}, {mechanism}, {n}", one_linear, (imputer, mechanism, n), summary_linear)
            for imputer in imputers
            if imputer != "MissForest"
            for n in rows
            for mechanism in ("own value", "by x1")
        ]
    if part == "b":
        return [
            (f"{imputer}, {kind}, {mask}", one_kind, (imputer, kind, mask), summary_errors)
            for imputer in imputers
            for kind in KINDS
            for mask in KIND_MASKS
        ]
    if part == "c":
        return [
            (f"{imputer}, {name}", one_check, (imputer, name), summary_errors)
            for imputer in imputers
            for name in CHECKS
        ]
    return [
        (f"{n} × {k}, {mask}", one_time, (n, k, mask), summary_time)
        for n, k in SHAPES
        for mask in ("MCAR", "one column by own value")
    ]


def run(options: argparse.Namespace) -> None:
    """Run parts and write their records after each design."""
    out: Path = options.out
    # fits that are timed do not run side by side
    for part in options.parts:
        workers = 1 if part == "d" else options.workers
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for key, function, arguments, summarise in designs(
                part, options.imputers, options.rows
            ):
                records = json.loads(out.read_text()) if out.exists() else {}
                if records.get(part, {}).get(key, {}).get("tables", 0) >= options.tables:
                    continue
                jobs = [(*arguments, number) for number in range(options.tables)]
                entry = summarise(list(pool.map(function, jobs))) | {"tables": options.tables}
                records = json.loads(out.read_text()) if out.exists() else {}
                records.setdefault(part, {})[key] = entry
                text = json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True)
                out.write_text(text + "\n")
                print(f"{part}: {key}: {options.tables} tables", flush=True)


def run_corrected_again(options: argparse.Namespace) -> None:
    """Replace the records of part a that depend on the mechanism, y missing by its own value."""
    out: Path = options.out
    function = partial(one_linear, only_corrected=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for key, _, arguments, _ in designs("a", options.imputers, options.rows):
            if "own value" not in key:
                continue
            jobs = [(*arguments, number) for number in range(options.tables)]
            entry = summary_linear(list(pool.map(function, jobs)))
            records = json.loads(out.read_text())
            kept = ("full data", "complete cases")
            records["a"][key] |= {name: one for name, one in entry.items() if name not in kept}
            text = json.dumps(records, indent=1, ensure_ascii=False, sort_keys=True)
            out.write_text(text + "\n")
            print(f"a: {key}: {options.tables} tables again", flush=True)


def page(records: dict[str, Any]) -> str:
    """Return the tables of the documentation."""
    writers = {"a": _page_linear, "b": _page_kinds, "c": _page_checks, "d": _page_time}
    return "\n\n".join(writers[part](records[part]) for part in writers if part in records)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _page_linear(records: dict[str, Any]) -> str:
    parts = ["## Bias and coverage"]
    for mechanism in ("own value", "by x1"):
        for n in (300, 1000, 5000):
            rows: list[list[str]] = []
            for imputer in ("MICE", "PSMVAE"):
                entry = records.get(f"{imputer}, {mechanism}, {n}")
                if entry is None:
                    continue
                names = ["full data", "complete cases", BASE[imputer], "auto"]
                names += ["SelfMask", "SelfMask, straight"]
                for method in names:
                    if method not in entry or (rows and method in names[:2]):
                        continue
                    label = method if method in names[:2] else f"{imputer}, {method}"
                    if method == "auto":
                        label += f" (own value chosen in {entry['chosen']:.0%})"
                    n_tables = entry[method]["E[y]"]["tables"]
                    rows.append([label, str(n_tables), *_cells(entry, method)])
            if rows:
                parts.append(f"y missing {_by(mechanism)}, {n:,} rows:")
                parts.append(_table(["", "tables", *TERMS], rows))
    return "\n\n".join(parts)


def _by(mechanism: str) -> str:
    return "by its own value" if mechanism == "own value" else "by x1"


def _cells(entry: dict[str, Any], method: str) -> list[str]:
    cells = []
    for term in TERMS:
        one, full = entry[method][term], entry["full data"][term]
        bias, coverage = one["bias"] / full["se"], 100 * one["coverage"]
        cells.append(f"{bias:+.2f} / {one['sqrt_b']:.3f} / {coverage:.1f}")
    return cells


def _page_kinds(records: dict[str, Any]) -> str:
    rows = []
    for key, one in sorted(records.items(), key=lambda item: _order(item[0])):
        imputer, kind, mask = key.split(", ")
        base = BASE[imputer]
        outside = [
            f"{one[name]:.0%} ({one[f'{name}, {base}']:.0%})"
            for name in ("outside", "draws outside")
        ]
        ratio = [f"{one[name]:.3f}" for name in ("ratio", "worst")]
        rows.append(
            [imputer, kind, mask, *ratio, f"{one['chosen']:.0%}", *outside, str(one["tables"])]
        )
    head = ["imputer", "y", "missing", "ratio", "worst table", "chosen", "outside", "draws outside"]
    return "## Kinds of columns\n\n" + _table([*head, "tables"], rows)


def _order(key: str) -> tuple[int, ...]:
    imputer, kind, mask = key.split(", ")
    orders: tuple[tuple[str, Any], ...] = ((imputer, IMPUTERS), (kind, KINDS), (mask, KIND_MASKS))
    return tuple(list(among).index(name) for name, among in orders)


def _page_checks(records: dict[str, Any]) -> str:
    rows = []
    for imputer in IMPUTERS:
        for name, cells in CHECKS.items():
            if (one := records.get(f"{imputer}, {name}")) is not None:
                ratio = [f"{one[figure]:.3f}" for figure in ("ratio", "worst")]
                rows.append([imputer, cells, *ratio, f"{one['chosen']:.0%}", str(one["tables"])])
    head = ["imputer", "missing", "ratio", "worst table", "columns chosen", "tables"]
    return "## Checks\n\n" + _table(head, rows)


def _page_time(records: dict[str, Any]) -> str:
    rows = [
        [
            key,
            f"{one['latent']:.1f}",
            f"{one['auto']:.1f}",
            f"{one['ratio']:.2f}",
            str(one["tables"]),
        ]
        for key, one in records.items()
    ]
    return "## Time\n\n" + _table(["table", '"latent", s', '"auto", s', "ratio", "tables"], rows)


def main() -> None:
    """Run parts of the study, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("--parts", nargs="+", choices=tuple("abcd"), default=list("abcd"))
    parser.add_argument("--imputers", nargs="+", choices=tuple(IMPUTERS), default=list(IMPUTERS))
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 1000])
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--corrected-again", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.what == "page":
        write_page(PAGE, "self_masking", page(json.loads(options.out.read_text())))
    elif options.corrected_again:
        run_corrected_again(options)
    else:
        run(options)


if __name__ == "__main__":
    main()
