"""Variation between multiple imputations, against that of Bayesian normal regression.

Rubin's rules need *proper* imputations, whose variation includes the uncertainty of the model. The
data are simulated tables y = .7 a + .7 b + .7 e of 150 rows, with 20 imputations of each. Measured
are, for the mean of y and for the slope of a in the regression of y: the standard deviation √B of
the estimate between imputations, its standard error √U within them, the coverage of the 95 %
interval (degrees of freedom by Barnard and Rubin) and its width. There are two designs: in *y*, y
is missing at random given a; in *all*, every cell is missing with probability .3. The reference is
Bayesian normal regression, implemented here; in the design *all* it runs a separate chain for each
imputation, as the method "norm" of R's mice does.

The deep imputers have their defaults and at most 20 epochs. Because of their run time they get
fewer tables and the first design only. Takes twenty minutes of one core. Run with

    python benchmarks/proper.py [--tables 50] [--quick-tables 200] [--workers 2] [--page]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats

from breast import machine
from pages import DOCS, write_page
from psmvae import MICEImputer, PSMVAEImputer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "proper.json"
PAGE = DOCS / "models.md"
N_ROWS, N_DRAWS, LEVEL = 150, 20, 0.95
TRUTH = {"mean": 0.0, "slope": 0.7}


def make_table(design: str, seed: int) -> Floats:
    """Columns a, b and y with missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_ROWS, 2))
    table = np.column_stack([x, x @ [0.7, 0.7] + 0.7 * rng.normal(size=N_ROWS)])
    if design == "y":
        table[rng.random(N_ROWS) < 0.8 / (1 + np.exp(-1.5 * x[:, 0])), 2] = np.nan
    else:
        table[rng.random(table.shape) < 0.3] = np.nan
    return table


def normal_regression(table: Floats, seed: int, n_rounds: int = 10) -> list[Floats]:
    """Imputation by Bayesian normal regression, chained over the incomplete columns."""
    rng, missing, completed = np.random.default_rng(seed), np.isnan(table), []
    for _ in range(N_DRAWS):
        filled = np.where(missing, np.nanmean(table, axis=0), table)
        columns = np.flatnonzero(missing.any(0))
        for j in np.tile(columns, n_rounds if len(columns) > 1 else 1):
            seen = ~missing[:, j]
            x = np.column_stack([np.ones(len(table)), np.delete(filled, j, axis=1)])
            inverse = np.linalg.inv(x[seen].T @ x[seen])
            line = inverse @ x[seen].T @ filled[seen, j]
            squares = ((filled[seen, j] - x[seen] @ line) ** 2).sum()
            sigma = np.sqrt(squares / rng.chisquare(seen.sum() - x.shape[1]))
            line = line + sigma * np.linalg.cholesky(inverse) @ rng.normal(size=len(line))
            filled[~seen, j] = x[~seen] @ line + sigma * rng.normal(size=(~seen).sum())
        completed.append(filled)
    return completed


def psmvae(**parameters: Any) -> Callable[[Floats, int], list[Floats]]:
    """Draws of a PSMVAE without a mask model: both designs are missing at random."""

    def draw(table: Floats, seed: int) -> list[Floats]:
        imputer = PSMVAEImputer("none", max_epochs=20, random_state=seed, **parameters)
        completed: list[Floats] = imputer.fit(table).sample(table, n=N_DRAWS)
        return completed

    return draw


def mice(table: Floats, seed: int) -> list[Floats]:
    """Draws of MICEImputer."""
    imputer = MICEImputer(random_state=seed).fit(table)
    completed: list[Floats] = imputer.sample(table, n=N_DRAWS)
    return completed


REFERENCE = "Bayesian normal regression (reference)"
METHODS: dict[str, Callable[[Floats, int], list[Floats]]] = {
    REFERENCE: normal_regression,
    "`MICEImputer()`": mice,
    "`PSMVAEImputer('none')`": psmvae(),
    "`PSMVAEImputer('none', n_members=5)`": psmvae(n_members=5),
    "`PSMVAEImputer('none', n_members=5, bootstrap=True)`": psmvae(n_members=5, bootstrap=True),
    "`PSMVAEImputer('none', n_members=20, bootstrap=True)`": psmvae(n_members=20, bootstrap=True),
}


def estimates(table: Floats) -> dict[str, tuple[float, float, int]]:
    """Estimate, variance and degrees of freedom of the mean of y and of the slope of a."""
    n, y = len(table), table[:, 2]
    x = np.column_stack([np.ones(n), table[:, :2]])
    line, (squares,), _, _ = np.linalg.lstsq(x, y, rcond=None)
    variance = squares / (n - 3) * np.linalg.inv(x.T @ x)[1, 1]
    return {"mean": (y.mean(), y.var(ddof=1) / n, n - 1), "slope": (line[1], variance, n - 3)}


def pooled(found: list[tuple[float, float, int]], truth: float) -> dict[str, float]:
    """Pool by Rubin's rules, with the degrees of freedom of Barnard and Rubin (1999)."""
    values, variances, freedoms = (np.array(part) for part in zip(*found, strict=True))
    m, complete = len(values), freedoms[0]
    between, within = values.var(ddof=1), variances.mean()
    total = within + (1 + 1 / m) * between
    share = (1 + 1 / m) * between / total
    observed = (complete + 1) / (complete + 3) * complete * (1 - share)
    freedom = 1 / (share**2 / (m - 1) + 1 / observed)
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(total)
    return {
        "estimate": round(float(values.mean()), 6),
        "between": round(float(between), 8),
        "within": round(float(within), 8),
        "covered": int(abs(values.mean() - truth) < half),
        "width": round(float(2 * half), 6),
    }


def measure(design: str, method: str, seed: int) -> dict[str, Any]:
    """Impute and analyse one table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    each = [estimates(table) for table in METHODS[method](make_table(design, seed), seed)]
    found = {name: pooled([one[name] for one in each], truth) for name, truth in TRUTH.items()}
    seconds = round(time.perf_counter() - began, 2)
    return {"design": design, "method": method, "seed": seed, "seconds": seconds, **found}


def markdown(records: list[dict[str, Any]]) -> str:
    """Means over tables for each design; √B also relative to the reference on the same tables."""
    parts = []
    for design in dict.fromkeys(record["design"] for record in records):
        mine = [record for record in records if record["design"] == design]
        reference = {one["seed"]: one for one in mine if one["method"] == REFERENCE}
        where = "y, at random given a" if design == "y" else "every column, completely at random"
        lines = [
            f"Missing cells in {where}:",
            "",
            "| imputations by | estimate | tables | bias | √B | relative to the reference "
            "| √U | coverage | width |",
            "| --- | --- " + "| ---: " * 7 + "|",
        ]
        for name, truth in TRUTH.items():
            for method in dict.fromkeys(record["method"] for record in mine):
                found = [record for record in mine if record["method"] == method]
                own = {k: np.array([one[name][k] for one in found]) for k in found[0][name]}
                between = np.sqrt(own["between"]).mean()
                same = np.mean([reference[one["seed"]][name]["between"] ** 0.5 for one in found])
                lines.append(
                    f"| {method} | {name} | {len(found)} | {own['estimate'].mean() - truth:+.3f} "
                    f"| {between:.3f} | {between / same:.2f} | {np.sqrt(own['within']).mean():.3f} "
                    f"| {own['covered'].mean():.0%} | {own['width'].mean():.3f} |"
                )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def as_text(record: dict[str, Any]) -> str:
    """JSON with one line for each record."""
    lines = ",\n".join(json.dumps(one) for one in record["records"])
    head = json.dumps({k: v for k, v in record.items() if k != "records"}, indent=1)
    return f'{head[:-2]},\n "records": [\n{lines}\n ]\n}}\n'


def main() -> None:
    """Measure, print the tables, write the record and, if asked, the page."""
    parser = argparse.ArgumentParser(description="Variation between multiple imputations.")
    parser.add_argument(
        "--tables", type=int, default=50, help="simulated tables for the deep imputers"
    )
    parser.add_argument(
        "--quick-tables", type=int, default=200, help="simulated tables for the others"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write the table into docs/models.md")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    jobs = []
    for design in ("y", "all"):
        for method in METHODS:
            if "PSMVAE" not in method:
                jobs += [(design, method, seed) for seed in range(options.quick_tables)]
            elif design == "y":
                jobs += [(design, method, seed) for seed in range(options.tables)]
    with ProcessPoolExecutor(options.workers) as pool:
        records = list(pool.map(measure, *zip(*jobs, strict=True), chunksize=5))
    print(markdown(records))
    if options.page:
        write_page(PAGE, "proper", markdown(records))
    settings = {k: v for k, v in vars(options).items() if k not in ("out", "page")}
    record = {"settings": settings, "machine": machine(), "records": records}
    options.out.write_text(as_text(record))


if __name__ == "__main__":
    main()
