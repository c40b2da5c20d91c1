"""Shared by the scripts: long trainings with one record each, in a file that a run can resume."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import psmvae
from psmvae.table.paths import atomic_path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "records"
PAGE = ROOT / "docs" / "running.md"

# The fields that identify a record.
Key = dict[str, Any]
Record = dict[str, Any]
Measure = Callable[[Key, dict[str, Any]], dict[str, list[float]]]


def machine() -> dict[str, Any]:
    """Return the machine and the versions that a record was made with."""
    packages = ("numpy", "scikit-learn", "torch")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "psmvae": psmvae.__version__,
        **{name: version(name) for name in packages},
    }


def add_arguments(parser: argparse.ArgumentParser, results: Path) -> None:
    """Add the options that the scripts share."""
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="trainings in parallel")
    parser.add_argument("--page", action="store_true", help="also update docs/running.md")
    parser.add_argument("--out", type=Path, default=results, help="the file of the records")


def run_all(
    measure: Measure, keys: Sequence[Key], options: dict[str, Any], out: Path, n_jobs: int
) -> list[Record]:
    """Measure the keys that have no record in the file, and return all records.

    ``measure`` returns the errors of each imputation rule, one for each seed. The file is written
    after each training, so that an interrupted run loses no finished training. All its records have
    the same options; only the device may differ.

    Raises
    ------
    SystemExit
        If the file has records with other options.
    """
    records: list[Record] = json.loads(out.read_text())["records"] if out.exists() else []
    for record in records:
        if record["settings"] | {"device": options["device"]} != options:
            raise SystemExit(f"{out} has records with {record['settings']}; give another --out")
    left = [key for key in keys if not any(key.items() <= record.items() for record in records)]
    for key, errors in _results(measure, left, options, n_jobs):
        records.append({**key, "settings": options, "machine": machine(), "errors": errors})
        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps({"records": records}, indent=1) + "\n")
    return records


def _results(
    measure: Measure, keys: Sequence[Key], options: dict[str, Any], n_jobs: int
) -> Iterator[tuple[Key, dict[str, list[float]]]]:
    """The results of the keys as they are completed."""
    if n_jobs == 1:
        for key in keys:
            yield key, measure(key, options)
        return
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(measure, key, options): key for key in keys}
        for done in as_completed(futures):
            yield futures[done], done.result()
