"""Trainings that take long, one record each, in a file that a later run goes on from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from breast import machine
from psmvae.table.paths import atomic_path

# What a record is of: names and values that no other record has.
Key = dict[str, Any]
Record = dict[str, Any]
Measure = Callable[[Key, dict[str, Any]], dict[str, list[float]]]


def add_arguments(parser: argparse.ArgumentParser, results: Path) -> None:
    """What every script of such trainings is asked in the same way."""
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side")
    parser.add_argument("--page", action="store_true", help="write docs/benchmark.md too")
    parser.add_argument("--out", type=Path, default=results)


def run_all(
    measure: Measure, keys: Sequence[Key], options: dict[str, Any], out: Path, n_jobs: int
) -> list[Record]:
    """Measure what has no record in the file yet, add it, and give all records.

    ``measure`` gives the errors of some rules, a number a seed. The file is written after each
    training, so that a run that is stopped loses none that is done. It holds records of the same
    options alone, wherever they were made.

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
    for key, found in _results(measure, left, options, n_jobs):
        records.append({**key, "settings": options, "machine": machine(), "errors": found})
        with atomic_path(out) as temporary:
            temporary.write_text(json.dumps({"records": records}, indent=1) + "\n")
    return records


def _results(
    measure: Measure, keys: Sequence[Key], options: dict[str, Any], n_jobs: int
) -> Iterator[tuple[Key, dict[str, list[float]]]]:
    """What is found of each key as it is done, several side by side where asked for."""
    if n_jobs == 1:
        for key in keys:
            yield key, measure(key, options)
        return
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        asked = {pool.submit(measure, key, options): key for key in keys}
        for done in as_completed(asked):
            yield asked[done], done.result()
