"""The demo's comparison over several simulated trials.

Each seed is a trial of 800 patients with known true values and dropout reasons. It is imputed by
the mean, by MICE and by PSMVAE with its defaults, once and 20 times; the mean outcome and the
difference of the arms are pooled over the 20 imputations. The default seeds were not used to choose
any setting. Run with

    python benchmarks/trial.py [--seeds 10 11 12 13 14]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from psmvae.demo import run_study

RESULTS = Path(__file__).parent / "results" / "trial.json"


def markdown(records: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds, one row per method."""
    lines = [
        "| method | RMSE, all missing cells | RMSE, bad-outcome dropout | bias of the mean |",
        "| --- | --- | --- | --- |",
    ]
    for method in dict.fromkeys(record["method"] for record in records):
        mine = [record for record in records if record["method"] == method]
        cells = [f"| {method} "]
        for name in ("rmse", "rmse_outcome", "bias"):
            values = [record[name] for record in mine if record[name] is not None]
            cells.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "–")
        lines.append(" | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the trials, print the table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13, 14])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    records: list[dict[str, Any]] = []
    pooled: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        study = run_study(seed=seed)
        records += [{"seed": seed, **vars(score)} for score in study.scores]
        pooled += [
            {"seed": seed, "seconds": study.seconds, **vars(each)} for each in study.estimates
        ]
    print(markdown(records))
    for each in pooled:
        print(
            f"{each['seed']} {each['term']}: {each['estimate']:.2f} ({each['conf_low']:.2f} to "
            f"{each['conf_high']:.2f}), complete data {each['truth']:.2f}"
        )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"scores": records, "pooled": pooled}, indent=1) + "\n")


if __name__ == "__main__":
    main()
