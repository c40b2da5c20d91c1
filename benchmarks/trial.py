"""The demo's comparison over several simulated trials.

Each seed is a trial of 800 patients with known true values and dropout reasons. It is imputed by
the mean, by MICE and by PSMVAE with its defaults and a mask model in which the outcome's
missingness depends on its own value. The default seeds were not used to choose any setting. Run
with

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
    sets: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        study = run_study(seed=seed)
        records += [{"seed": seed, **vars(score)} for score in study.scores]
        sets.append(
            {
                "seed": seed,
                "accuracy": study.accuracy,
                "rand_index": study.rand_index,
                "seconds": study.seconds,
            }
        )
    print(markdown(records))
    for name in ("accuracy", "rand_index", "seconds"):
        print(f"{name}: {np.mean([record[name] for record in sets]):.3f}")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"scores": records, "sets": sets}, indent=1) + "\n")


if __name__ == "__main__":
    main()
