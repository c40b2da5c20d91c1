"""PSMVAE(a) under MCAR: the error during training, by imputation rule.

Under MCAR p(m|x,r) cannot be learned from the values, but p(m|x,r) and p(x_mis|z,r) can explain the
mask together. The same model is imputed during training by three rules:

- *tilted*: p(x_mis|z,r) p(m_j missing|x_j,r), Bayes' rule (``LogisticMask(tilt=True)``);
- *x_mis*: p(x_mis|z,r), as in the paper's text and ``PSMVAEImputer.paper("a")``;
- *x_obs*: p(x_obs|z,r), as in the published program, also in the importance weights.

The protocol is the paper's (errors in ranges of the columns), on the first rows. Run with

    PSMVAE_DATA_HOME=... python scripts/tilt.py [--table wine] [--rate 0.2] [--epochs 300]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from psmvae import PSMVAEImputer
from psmvae_paper import Cell
from psmvae_paper.metrics import rmse
from psmvae_paper.protocol import make_problem
from resumable import RECORDS, machine

RESULTS = RECORDS / "tilt.json"
MARKS = (1, 3, 10, 30, 60, 100, 150, 200, 300, 500, 1000)


class Follower:
    """A callback of `fit` that measures all rules at some epochs."""

    def __init__(self, imputer: PSMVAEImputer, problem: Any, n_rows: int) -> None:
        self.imputer, self.problem, self.n_rows = imputer, problem, n_rows
        self.records: list[dict[str, float]] = []

    def error(self) -> float:
        """RMSE of the first rows with the current model."""
        n, problem = self.n_rows, self.problem
        filled = self.imputer.transform(problem.incomplete.iloc[:n]).to_numpy(float)
        return rmse(problem.truth[:n], filled, problem.m[:n], problem.scale, problem.discrete)

    def __call__(self, progress: Any) -> None:
        """Called by `fit` after every epoch."""
        if progress.epoch not in MARKS:
            return
        model = self.imputer.model_
        tilts = model.p_m.tilts
        found: dict[str, float] = {"epoch": progress.epoch}
        for rule in ("tilted", "x_mis", "x_obs"):
            model.p_m.tilts = rule == "tilted"
            if rule == "x_obs":
                model.x_mis = lambda p_x_obs, _: p_x_obs
            found[rule] = self.error()
        del model.x_mis
        model.p_m.tilts = tilts
        self.records.append(found)
        print(json.dumps(found), flush=True)


def main() -> None:
    """Train, measure and write the record."""
    parser = argparse.ArgumentParser(description="PSMVAE(a) under MCAR, by imputation rule.")
    parser.add_argument("--table", default="wine")
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--rows", type=int, default=600, help="number of rows that are imputed")
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    problem = make_problem(Cell(options.table, "mcar", options.rate, 0, "psmvae-a"), None)
    imputer = PSMVAEImputer.paper(
        "a",
        max_epochs=options.epochs,
        n_draws=options.draws,
        kinds=dict.fromkeys(problem.columns, "real"),
        bounds=dict.fromkeys(problem.columns, (None, None)),
        random_state=0,
    )
    follower = Follower(imputer, problem, options.rows)
    imputer.fit(problem.incomplete, callback=follower)
    settings = {k: v for k, v in vars(options).items() if k != "out"}
    record = {"settings": settings, "machine": machine(), "records": follower.records}
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
