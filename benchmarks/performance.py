"""Write the tables of docs/performance.md from the records of the speed benchmarks.

Each table stands between two comments that name its record. A table without a record is not
changed. Nothing is measured here. Run with

    python benchmarks/performance.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import columns
import command
import cores
import cpu
import one_column
import scaling
import since_0_1
import small_tables
import streaming

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
RESULTS = Path(__file__).parent / "results"


def gpu(record: dict[str, Any]) -> str:
    """Tables of steps, of imputation and of the profiles of a step."""
    steps = record["steps_ms"]
    asked = {"1 member": 0.5, "100 members": 0.05}
    lines = ["| a training step | ms | ms a member | asked |", "| --- | ---: | ---: | ---: |"]
    for name, taken in steps.items():
        count = int(name.split()[0]) if name[0].isdigit() else 1
        limit = asked.get(name, "")
        lines.append(f"| {name} | {taken:.3f} | {taken / count:.4f} | {limit} |")
    imputation = record["imputation"]
    lines += ["", *draws(imputation["cells"])]
    lines += ["", "| profile of a step | kernels | their ms | of it products | first call, s |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for each in record["profiles"]:
        name = f"{each['members']} member{'s' if each['members'] > 1 else ''}"
        lines.append(
            f"| {name}{', compiled' if each['compiled'] else ''} | {each['kernels']:.0f} "
            f"| {each['kernel_ms']:.2f} | {each['products_ms']:.2f} "
            f"| {each['first_call_seconds']:.1f} |"
        )
    about, limits = imputation["profile"], record["limits"]
    lines += [
        "",
        f"An imputation of {about['n_rows']:,} rows with all of {about['n_draws']:,} draws is "
        f"{about['kernels']:.0f} kernels of {about['kernel_ms']:.1f} ms, "
        f"{about['products_ms']:.1f} of it products. A large copy moves "
        f"{limits['copy_gb_s']:,.0f} GB a second here, and a large product of float32 does "
        f"{limits['product_tflop_s']:.0f} TFLOP a second.",
    ]
    lines += [
        "",
        f"{record['gpu']}, torch {record['versions']['torch']}, {record['table']}; the model of "
        f"the second table was trained for {imputation['epochs']} epochs.",
    ]
    if record["accuracy"] is not None:
        lines += ["", accuracy(*record["accuracy"])]
    return "\n".join(lines)


def accuracy(plain: dict[str, Any], fast: dict[str, Any]) -> str:
    """One sentence on the RMSE with and without compiling and TF32."""
    gain = np.array(fast["rmse"]) - np.array(plain["rmse"])
    return (
        f"Accuracy: five seeds trained for {plain['epochs']} epochs (K = 1), float32 and not "
        f"compiled: RMSE {np.mean(plain['rmse']):.4f} ± {np.std(plain['rmse'], ddof=1):.4f} in "
        f"{plain['fit_seconds']:.1f} s; with tensor cores and compiled: "
        f"{np.mean(fast['rmse']):.4f} ± {np.std(fast['rmse'], ddof=1):.4f} in "
        f"{fast['fit_seconds']:.1f} s, compiling included. Differences by seed {gain.mean():+.4f} "
        f"± {gain.std(ddof=1):.4f}."
    )


def draws(cells: list[dict[str, Any]]) -> list[str]:
    """Table of time and error of imputation, and the error relative to that of all draws."""
    most = max(cell["n_draws"] for cell in cells)
    all_draws = next(c["rmse"] for c in cells if c["n_draws"] == most and c["target_ess"] is None)
    lines = ["| draws | target effective sample size | ms a row | RMSE | against all draws |"]
    lines.append("| ---: | ---: | ---: | ---: | ---: |")
    for cell in cells:
        target = "all draws" if cell["target_ess"] is None else f"{cell['target_ess']:g}"
        lines.append(
            f"| {cell['n_draws']:,} | {target} | {cell['ms_a_row']:.4f} | {cell['rmse']:.4f} "
            f"| {cell['rmse'] / all_draws - 1:+.2%} |"
        )
    return lines


def memory(record: dict[str, Any]) -> str:
    """One sentence on the memory of `transform`."""
    settings = record["settings"]
    return (
        f"`transform` of {settings['rows']:,} x {settings['columns']}, {settings['draws']} draws: "
        f"{record['above_import_gib']:.2f} GiB above the import, {record['seconds']:.0f} s on "
        f"{record['cpus']} cores."
    )


def scales(record: dict[str, Any]) -> str:
    """One table of all measured devices."""
    records = list(record["records"])
    gpu = RESULTS / "scaling_cuda.json"
    if gpu.exists():
        records += json.loads(gpu.read_text())["records"]
    return scaling.markdown(records)


def streams(record: dict[str, Any]) -> str:
    """One table of all devices and methods."""
    found = [record] + [json.loads(path.read_text()) for path in RESULTS.glob("streaming_*.json")]
    records = [
        one | {"cores": each["machine"]["cpus"]} for each in found for one in each["records"]
    ]
    return streaming.markdown(sorted(records, key=lambda one: (one["device"], one["rows"])))


PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "gpu": gpu,
    "cpu": lambda record: (
        f"{cpu.markdown(record['records'])}\n\n{cpu.profile_text(record['profiles'])}"
    ),
    "cores": lambda record: cores.markdown(record["records"]),
    "since_0_1": lambda record: since_0_1.markdown(record["records"]),
    "one_column": lambda record: one_column.markdown(record["records"]),
    "small_tables": lambda record: small_tables.markdown(record["records"]),
    "streaming": streams,
    "command": lambda record: command.markdown(record["records"]),
    "columns": lambda record: columns.markdown(record["records"]),
    "scaling": scales,
    "memory": memory,
}


def main() -> None:
    """Write every table that has a record."""
    page = PAGE.read_text()
    for name, table in PARTS.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            text = table(json.loads(path.read_text()))
            place = re.compile(f"(<!-- {name}: begin -->).*?(<!-- {name}: end -->)", re.DOTALL)
            page = place.sub(lambda found, text=text: f"{found[1]}\n{text}\n{found[2]}", page)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
