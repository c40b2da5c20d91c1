"""Error, accuracy and time of every imputer with its default settings, compared on three tables.

Tables: *breast* (scikit-learn, 569 x 30 real numbers), *digits* (scikit-learn, 1,797 images of
8 x 8 whole numbers), *mixed* (simulated, 1,500 rows of real and positive numbers, counts and
levels with three common latent factors).

The protocol is that of the paper: for each seed, cells go missing; a permutation splits the rows
8:1:1; a method is fitted to the 80 % and imputes the missing cells of these rows. Every method gets
only the incomplete table, and the kinds of the mixed table's columns. Columns that are constant in
the 80 % are left out.

- MCAR: every cell goes missing with probability `rate`.
- MNAR: one random column of numbers, above its median, goes missing with probability `rate`, and
  nothing else (`psmvae.simulate.mnar_column`); in the mixed table one random column with levels
  too, above its median level. Most of the variation over seeds is then due to the choice of the
  column: compare methods by their ranks, which are computed within each seed.

RMSE is that of the missing numbers in ranges of their columns in the 80 %; accuracy is the fraction
of missing levels that are imputed correctly. Seconds are those of fit and transform on one thread.
Records are written as they come. Run with

    python benchmarks/models.py [--workers 2] [--resume] [--write] [--tables breast ...]
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from threadpoolctl import threadpool_limits

import psmvae
from breast import machine
from pages import DOCS, write_page
from psmvae.imputers.deep import DeepImputer
from psmvae.simulate import mcar, mnar_column
from psmvae.table.paths import atomic_path

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from numpy.typing import NDArray

    Record = dict[str, Any]

RESULTS = Path(__file__).parent / "results" / "models.json"
PAGE = DOCS / "models.md"

METHODS: dict[str, tuple[type, dict[str, Any]]] = {
    "mean": (psmvae.MeanImputer, {}),
    "mice": (psmvae.MICEImputer, {}),
    "missforest": (psmvae.MissForestImputer, {}),
    "gain": (psmvae.GAINImputer, {}),
    "vae": (psmvae.VAEImputer, {}),
    "gmvae": (psmvae.GMVAEImputer, {}),
    "gmvae-mask": (psmvae.GMVAEImputer, {"mask_model": "latent"}),
    "dlgm": (psmvae.DLGMImputer, {}),
    "miwae": (psmvae.MIWAEImputer, {}),
    "not-miwae": (psmvae.NotMIWAEImputer, {}),
    # as many sets as the GMVAE and the DLGM have by default
    "psmvae-none": (psmvae.PSMVAEImputer, {"mask_model": "none", "n_sets": 4}),
    "psmvae-latent": (psmvae.PSMVAEImputer, {"mask_model": "latent", "n_sets": 4}),
    "psmvae-self": (psmvae.PSMVAEImputer, {"mask_model": "logistic-ceiling", "n_sets": 4}),
}
# Further settings and versions of the records.
WITH = {"threads_a_worker": 1, **{name: version(name) for name in ("pandas", "scipy")}}
METRICS = {"rmse": "RMSE", "accuracy": "accuracy"}


@dataclass(frozen=True)
class Table:
    """A complete table, the kinds to declare, and the columns with levels."""

    complete: pd.DataFrame
    kinds: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[str, ...] = ()

    def codes(self) -> NDArray[np.float64]:
        """All columns as numbers, levels as their codes."""
        coded = {name: self.complete[name].astype("category").cat.codes for name in self.levels}
        return self.complete.assign(**coded).to_numpy(dtype=np.float64)


def breast() -> Table:
    """Thirty positive measurements with nearly linear relations."""
    data = load_breast_cancer()
    return Table(pd.DataFrame(data.data, columns=list(data.feature_names)))


def digits() -> Table:
    """Grey levels from 0 to 16 of handwritten digits, without constant pixels."""
    pixels = load_digits().data
    varying = np.flatnonzero(np.ptp(pixels, axis=0) > 0)
    return Table(pd.DataFrame(pixels[:, varying], columns=[f"pixel{j}" for j in varying]))


def mixed(n_rows: int = 1500) -> Table:
    """Columns of every kind with three common latent factors; the same table each time."""
    rng = np.random.default_rng(2021)
    f = rng.normal(size=(n_rows, 3))

    def signal(*weights: float, noise: float = 0.5) -> NDArray[np.float64]:
        return f @ np.array(weights) + noise * rng.normal(size=n_rows)

    def cut(value: NDArray[np.float64], names: str) -> Any:
        levels = names.split()
        return pd.qcut(value, len(levels), labels=levels)

    def choice(names: str) -> NDArray[np.str_]:
        levels = np.array(names.split())
        logits = 1.5 * f @ rng.normal(size=(3, len(levels)))
        return levels[(logits + rng.gumbel(size=logits.shape)).argmax(1)]

    complete = pd.DataFrame(
        {
            "score": signal(1.0, 0.5, 0.0),
            "pressure": 120 + 12 * signal(0.3, -1.0, 0.4),
            "change": f[:, 0] * f[:, 1] + signal(0.0, 0.0, 0.5),
            "income": np.exp(10 + 0.5 * signal(0.8, 0.0, -0.6)),
            "weight": np.exp(4.2 + 0.2 * signal(0.0, 0.9, 0.5)),
            "visits": rng.poisson(np.exp(1 + 0.5 * signal(0.0, 0.7, 0.7, noise=0.0))),
            "falls": rng.poisson(rng.gamma(2.0, 0.5 * np.exp(0.6 * f[:, 1]))),
            "age": np.rint(50 + 10 * signal(-0.5, 0.6, 0.5)),
            "health": cut(signal(0.9, -0.6, 0.0), "poor fair good great superb"),
            "education": cut(signal(0.6, 0.0, -0.9), "primary lower upper tertiary"),
            "smoker": np.where(signal(-0.6, 0.7, 0.0) > 0.3, "yes", "no"),
            "region": choice("north east south west"),
            "diet": choice("all fish plants"),
        }
    )
    kinds = {"income": "positive", "weight": "positive", "visits": "count", "falls": "count"}
    return Table(complete, kinds, ("health", "education", "smoker", "region", "diet"))


TABLES: dict[str, Callable[[], Table]] = {"breast": breast, "digits": digits, "mixed": mixed}


def simulate_mask(
    table: Table, mechanism: str, rate: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which cells are observed, ``(row, column)``."""
    codes = table.codes()
    if mechanism == "mcar":
        return mcar(codes, rate, rng).m
    m = np.ones(codes.shape, dtype=np.bool_)
    has_levels = table.complete.columns.isin(table.levels)
    for group in (~has_levels, has_levels):
        if group.any():
            m[:, group] = mnar_column(codes[:, group], rate, rng).m
    return m


def score(
    truth: pd.DataFrame, filled: pd.DataFrame, m: NDArray[np.bool_], levels: Container[Any]
) -> dict[str, float | None]:
    """RMSE of the missing numbers in ranges of their columns, accuracy of the missing levels."""
    errors: list[float] = []
    hits: list[bool] = []
    for name, missing in zip(truth, ~m.T, strict=True):
        if name in levels:
            hits += list((filled[name].astype(str) == truth[name].astype(str))[missing])
        else:
            true = truth[name].to_numpy(dtype=np.float64)
            off = filled[name].to_numpy(dtype=np.float64) - true
            errors += list(off[missing] / np.ptp(true))
    return {
        "rmse": float(np.sqrt(np.mean(np.square(errors)))) if errors else None,
        "accuracy": float(np.mean(hits)) if hits else None,
    }


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a table with one mask."""

    table: str
    mechanism: str
    rate: float
    seed: int
    method: str
    max_epochs: int | None
    device: str

    def imputer(self, kinds: Mapping[str, str]) -> Any:
        """The method with its defaults, on one thread."""
        cls, settings = METHODS[self.method]
        more: dict[str, Any] = {"random_state": self.seed, "kinds": dict(kinds) or None}
        if issubclass(cls, DeepImputer):
            more["device"] = self.device
            if self.max_epochs is not None:
                more["max_epochs"] = self.max_epochs
        if cls is psmvae.MissForestImputer:
            more["n_jobs"] = 1
        return cls(**settings, **more)


def evaluate(cell: Cell) -> Record:
    """Simulate the mask, fit, impute and score."""
    table = TABLES[cell.table]()
    rng = np.random.default_rng(cell.seed)
    m = simulate_mask(table, cell.mechanism, cell.rate, rng)
    n_rows = len(table.complete)
    train = rng.permutation(n_rows)[: int(0.8 * n_rows)]
    truth = table.complete.iloc[train].reset_index(drop=True)
    varies = (truth.nunique() > 1).to_numpy()
    truth, m = truth.loc[:, varies], m[train][:, varies]
    incomplete = truth.where(m)

    imputer = cell.imputer(table.kinds)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filled = imputer.fit_transform(incomplete)
    seconds = time.perf_counter() - start
    return {
        **score(truth, filled, m, table.levels),
        "seconds": seconds,
        "n_missing": int((~m).sum()),
        "epochs": getattr(imputer, "n_epochs_", None),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def one_thread() -> None:
    """Make this process use one thread."""
    torch.set_num_threads(1)
    threadpool_limits(1)


def save(result: dict[str, Any], path: Path) -> None:
    """Write the records atomically: a killed run leaves a complete file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def call(method: str) -> str:
    """The Python expression that makes the imputer of a method."""
    cls, settings = METHODS[method]
    return f"`{cls.__name__}({', '.join(f'{k}={v!r}' for k, v in settings.items())})`"


def markdown(records: list[Record], metric: str) -> str:
    """A table with one row for each method: mean ± standard deviation, mean rank, mean seconds.

    Ranks are computed for each mechanism, rate and seed that all methods have; the best is 1.
    """
    frame = pd.DataFrame(records)
    within = frame.pivot(index=["mechanism", "rate", "seed"], columns="method", values=metric)
    lower_is_better = metric == "rmse"
    ranks = within.dropna().rank(axis=1, ascending=lower_is_better).mean()
    over_seeds = within.groupby(level=["mechanism", "rate"])
    mean, deviation = over_seeds.mean().T, over_seeds.std(ddof=0).T
    best = mean.min() if lower_is_better else mean.max()
    seconds = frame.groupby("method").apply(usual_seconds)
    head = [f"{mechanism.upper()} {rate:.0%}" for mechanism, rate in mean.columns]
    lines = [
        "| " + " | ".join(["imputer", *head, "rank", "seconds"]) + " |",
        "| --- |" + " --- |" * len(head) + " ---: | ---: |",
    ]
    for method in (method for method in METHODS if method in mean.index):
        cells = [call(method)]
        for column in mean.columns:
            at, spread = mean.loc[method, column], deviation.loc[method, column]
            text = f"{decimals(at)} ± {decimals(spread)}"
            cells.append(f"**{text}**" if at == best[column] else "–" if np.isnan(at) else text)
        rank = f"{ranks[method]:.1f}" if np.isfinite(ranks[method]) else "–"
        lines.append("| " + " | ".join([*cells, rank, f"{seconds[method]:.1f}"]) + " |")
    return "\n".join(lines)


def usual_device(records: pd.DataFrame) -> str:
    """The device of most records."""
    return str(records["device"].mode().iloc[0])


def usual_seconds(records: pd.DataFrame) -> float:
    """Mean seconds of the records on the usual device."""
    return float(records.loc[records["device"] == usual_device(records), "seconds"].mean())


def decimals(value: float) -> str:
    """Four decimals without a leading zero."""
    return f"{value:.4f}".removeprefix("0")


def report(result: dict[str, Any]) -> str:
    """All tables, with a note on seeds and machines."""
    records = [r for r in result["records"] if "error" not in r]
    parts = []
    for table in TABLES:
        for metric, label in METRICS.items():
            mine = [r for r in records if r["table"] == table and r[metric] is not None]
            if mine:
                parts.append(f"**{table}**, {label}\n\n{markdown(mine, metric)}")
    capped = sorted({r["max_epochs"] for r in records if r["max_epochs"] is not None})
    used = [result["runs"][k]["machine"] for k in sorted({r["run"] for r in records})]
    made = sorted({f"psmvae {run['psmvae']}, {run['cpus']} cores, {run['date']}" for run in used})
    seeds = sorted({r["seed"] for r in records})
    note = f"Mean ± standard deviation over seeds {', '.join(map(str, seeds))} "
    note += f"({'; '.join(made)})."
    on_gpu = sorted({r["table"] for r in records if r["device"] != "cpu"})
    if on_gpu:
        gpus = ", ".join(sorted({run["cuda"] for run in used if run["cuda"]}))
        note += (
            f" Seconds of the deep methods on {', '.join(on_gpu)} were measured on a shared GPU "
            f"({gpus}), the others on one thread of a CPU."
        )
    if capped:
        note += f" Deep methods were trained for at most {' or '.join(map(str, capped))} epochs."
    return "\n\n".join([*parts, note])


def run(cells: list[Cell], result: dict[str, Any], out: Path, workers: int) -> None:
    """Measure the cells in processes of one thread each, saving records as they come."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=one_thread) as pool:
        waiting = {pool.submit(evaluate, cell): cell for cell in cells}
        for done, future in enumerate(as_completed(waiting), 1):
            cell, failure = waiting[future], future.exception()
            if isinstance(failure, BrokenProcessPool):
                raise failure
            found = {"error": repr(failure)} if failure else future.result()
            record = asdict(cell) | {"run": len(result["runs"]) - 1} | found
            result["records"].append(record)
            save(result, out)
            shown = {k: found[k] for k in ("rmse", "accuracy", "seconds", "error") if found.get(k)}
            text = ", ".join(f"{k} {v:.4g}" if k != "error" else str(v) for k, v in shown.items())
            place = f"{cell.table} {cell.mechanism} {cell.rate:.0%} seed {cell.seed}"
            print(f"[{done}/{len(cells)}] {place} {cell.method}: {text}", flush=True)


def main() -> None:
    """Measure the given methods, tables, mechanisms, rates and seeds."""
    parser = argparse.ArgumentParser(description="Every imputer on three tables.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.5])
    mechanisms = ("mcar", "mnar")
    parser.add_argument("--mechanisms", nargs="+", choices=mechanisms, default=mechanisms)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--max-epochs", type=int, help="maximum epochs of deep methods")
    parser.add_argument("--workers", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--device", default="cpu", help="device of deep methods")
    parser.add_argument("--resume", action="store_true", help="keep existing records")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/models.md")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    # records of classical methods do not depend on max_epochs and device
    asked = {"max_epochs": options.max_epochs, "device": options.device}
    plain = {"max_epochs": None, "device": "cpu"}

    def about(method: str) -> dict[str, Any]:
        return asked if issubclass(METHODS[method][0], DeepImputer) else plain

    result: dict[str, Any] = {"runs": [], "records": []}
    if options.resume and options.out.exists():
        result = json.loads(options.out.read_text())
        result["records"] = [r for r in result["records"] if "error" not in r]
    # a cell measured on another device is not repeated
    names = [f.name for f in fields(Cell) if f.name != "device"]
    there = {tuple(r[name] for name in names) for r in result["records"]}
    product = itertools.product(
        options.seeds, options.tables, options.mechanisms, options.rates, options.methods
    )
    cells = [Cell(t, m, rate, seed, how, **about(how)) for seed, t, m, rate, how in product]
    cells = [cell for cell in cells if tuple(getattr(cell, n) for n in names) not in there]
    settings = {k: v for k, v in vars(options).items() if k != "out"}
    if cells:
        result["runs"].append({"settings": settings, "machine": machine() | WITH})
        run(cells, result, options.out, options.workers)
    shown = [r for r in result["records"] if r["max_epochs"] == about(r["method"])["max_epochs"]]
    text = report(result | {"records": shown})
    print(f"\n{text}")
    if options.write:
        write_page(PAGE, "models", text)


if __name__ == "__main__":
    main()
