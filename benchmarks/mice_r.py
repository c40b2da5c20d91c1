"""Pooled estimates of `MICEImputer` beside those of R's mice, on the same tables.

The tables are boys, nhanes2 and selfreport of R's mice, exported by benchmarks/mice_r.R, and two
stacked studies: y is measured in the first only, and the indicator of the study and the dose do not
vary where y is observed. Both programs impute numbers by "norm" and "pmm" and levels by logistic
regressions, 20 times for each of several seeds. The results are means over seeds.

Needs R with mice and jsonlite. Takes ten minutes. Run with

    python benchmarks/mice_r.py [--seeds 5] [--page]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from breast import machine
from pages import DOCS, write_page
from psmvae import MICEImputer

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "mice_r.json"
PAGE = DOCS / "multiple_imputation.md"
M = 20
TABLES = ("nhanes2", "boys", "selfreport", "stacked")
ORDERED = {"gen": ["G1", "G2", "G3", "G4", "G5"], "phb": ["P1", "P2", "P3", "P4", "P5", "P6"]}
# R does not round draws of "norm", and has no bounds
REAL = {"nhanes2": ("chl",), "boys": ("tv",), "selfreport": ("age", "hr", "wr"), "stacked": ()}
FORMULAS = {
    "nhanes2": {"mean": "bmi ~ 1", "regression": "chl ~ bmi + C(hyp)"},
    "boys": {"mean": "tv ~ 1", "regression": "tv ~ age + hgt"},
    "selfreport": {"mean": "wm ~ 1", "regression": "wm ~ hm + age"},
    "stacked": {"mean": "y ~ 1", "regression": "y ~ x"},
}
TERMS = {"Intercept": "(Intercept)", "C(hyp)[T.yes]": "hypyes"}


def stacked_studies(n: int = 100) -> pd.DataFrame:
    """Two studies: y is observed in the first only, where the study and the dose are constant."""
    rng = np.random.default_rng(0)
    study = np.repeat([1, 2], n)
    x = rng.normal(size=2 * n) + 0.5 * (study == 2)
    w = 0.5 * x + rng.normal(size=2 * n)
    y = 1 + x + 0.5 * w + rng.normal(size=2 * n)
    dose = np.where(study == 1, 0.0, rng.uniform(1, 3, 2 * n))
    table = pd.DataFrame({"study": study, "dose": dose, "x": x, "w": w, "y": y})
    table.loc[study == 2, "y"] = np.nan
    table.loc[rng.random(2 * n) < 0.1, "w"] = np.nan
    return table.round(6)


def read(path: Path) -> pd.DataFrame:
    """Read an exported table."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    for name in set(ORDERED) & set(table.columns):
        table[name] = pd.Categorical(table[name], ORDERED[name], ordered=True)
    return table


def measure(name: str, table: pd.DataFrame, method: str, seed: int) -> list[dict[str, Any]]:
    """Impute a table and pool its analyses."""
    kinds = dict.fromkeys(REAL[name], "real")
    bounds = dict.fromkeys(table.select_dtypes("float"), (None, None))
    with warnings.catch_warnings():
        # predictors that are left out, and much missing information
        warnings.simplefilter("ignore", UserWarning)
        imputer = MICEImputer(method=method, kinds=kinds, bounds=bounds, random_state=seed)
        imputer.fit(table)
        mi = imputer.impute_multiple(table, m=M)
        records = []
        for analysis, formula in FORMULAS[name].items():
            fits = mi.analyse(lambda d, formula=formula: smf.ols(formula, d).fit())
            for row in fits.pool().summary().to_dict("records"):
                known = {"table": name, "method": method, "seed": seed, "analysis": analysis}
                values = {k: round(row[k], 8) for k in ("estimate", "std_error", "b", "fmi")}
                records.append(known | {"term": TERMS.get(row["term"], row["term"])} | values)
    return records


def run_r(folder: Path, seeds: int) -> dict[str, Any]:
    """Impute by R's mice, which also exports the tables to the folder."""
    stacked_studies().to_csv(folder / "stacked.csv", index=False)
    program = shutil.which("Rscript")
    if program is None:
        raise FileNotFoundError("R is needed: Rscript was not found.")
    subprocess.run([program, str(HERE / "mice_r.R"), str(folder), str(seeds)], check=True)
    found: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return found


def markdown(record: dict[str, Any]) -> str:
    """One row for each table, method and term: ours and R's, means over seeds."""
    keys = ["table", "method", "analysis", "term"]
    columns = ["estimate", "std_error", "fmi"]
    ours, theirs = (
        pd.DataFrame(record[name]).groupby(keys, sort=False)[columns].mean()
        for name in ("psmvae", "R")
    )
    lines = [
        "| table | method | analysis | term | estimate | R | std. error | R | fmi | R |",
        "| --- | --- | --- | --- " + "| ---: " * 6 + "|",
    ]
    for key in ours.index:
        formula = FORMULAS[key[0]][key[2]].replace("C(hyp)", "hyp")
        pairs = (
            f"{one:.{digits}f} | {other:.{digits}f}"
            for one, other, digits in zip(ours.loc[key], theirs.loc[key], (3, 3, 2), strict=True)
        )
        lines.append(f"| {key[0]} | {key[1]} | `{formula}` | {key[3]} | {' | '.join(pairs)} |")
    return "\n".join(lines)


def as_text(record: dict[str, Any]) -> str:
    """JSON with one line for each record."""
    lists = {name: record[name] for name in ("psmvae", "R")}
    head = json.dumps({k: v for k, v in record.items() if k not in lists}, indent=1)[:-2]
    parts = [
        f' "{name}": [\n' + ",\n".join(json.dumps(one) for one in found) + "\n ]"
        for name, found in lists.items()
    ]
    return head + ",\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Measure, print the table, write the record and, if asked, the page."""
    parser = argparse.ArgumentParser(description="MICEImputer beside R's mice.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        theirs = run_r(folder, options.seeds)
        tables = {name: read(folder / f"{name}.csv") for name in TABLES}
    ours = [
        record
        for name, table in tables.items()
        for method in ("norm", "pmm")
        for seed in range(options.seeds)
        for record in measure(name, table, method, seed)
    ]
    versions = {name: theirs[name] for name in ("R", "mice")}
    settings = {"seeds": options.seeds, "m": M, "versions": versions, "machine": machine()}
    record = {**settings, "psmvae": ours, "R": theirs["records"]}
    options.out.write_text(as_text(record))
    print(markdown(record))
    if options.page:
        write_page(PAGE, "mice_r", markdown(record))


if __name__ == "__main__":
    main()
