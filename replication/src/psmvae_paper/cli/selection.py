"""The options that select a part of an experiment."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from psmvae_paper.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A part of an experiment, by size, seeds, data sets, methods and mechanisms."""

    quick: Annotated[
        bool,
        typer.Option("--quick", help="The small version: shipped data, two seeds, few epochs."),
    ] = False
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="0-4", show_default=False, help="These seeds."),
    ] = None
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            "--datasets",
            metavar="NAMES",
            show_default=False,
            help="These data sets (repeatable, or with commas).",
        ),
    ] = None
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            show_default=False,
            help="These methods (repeatable, or with commas).",
        ),
    ] = None
    mechanisms: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanisms",
            metavar="NAMES",
            show_default=False,
            help="These mechanisms, such as mcar or mnar (repeatable, or with commas).",
        ),
    ] = None

    def of(self, name: str, records: list[dict[str, Any]] | None = None) -> Experiment:
        """The selected part of an experiment.

        The small version reduces the size of tables. Of a user's file it takes at most the rows and
        columns that the file has, or that `records` were made with.
        """
        from psmvae_paper import find_experiment

        try:
            whole = find_experiment(name)
            whole = whole.quick() if self.quick else whole
            seeds, datasets = _seeds(self.seeds), _names(self.datasets)
            part = whole.only(seeds, datasets, _names(self.methods), _names(self.mechanisms))
        except ValueError as error:
            raise UsageError(str(error)) from error
        if not self.quick:
            return part
        return _within_files(part) if records is None else _within_records(part, records)

    def options(self) -> str:
        """The same selection as options of a shell command."""
        text = " --quick" if self.quick else ""
        for option, values in (
            ("--datasets", self.datasets),
            ("--methods", self.methods),
            ("--mechanisms", self.mechanisms),
        ):
            text += f" {option} {shlex.quote(','.join(values))}" if values else ""
        return text + (f" --seeds {shlex.quote(self.seeds)}" if self.seeds else "")


def _names(given: list[str] | None) -> list[str] | None:
    """Names from an option that is repeated, or holds several separated by commas."""
    if given is None:
        return None
    # a path may contain a comma
    texts = [[text] if Path(text).is_file() else text.split(",") for text in given]
    return [name.strip() for parts in texts for name in parts if name.strip()]


def _seeds(text: str | None) -> list[int] | None:
    """Seeds from a text such as 0-4 or 0,2,7."""
    if text is None:
        return None
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            message = f"--seeds must be of the form 0-4 or 0,2,7, got {text!r}"
            raise UsageError(message)
        seeds += range(int(match[1]), int(match[2] or match[1]) + 1)
    return seeds


def _within_files(experiment: Experiment) -> Experiment:
    """The experiment with at most as many rows and columns as the user's files have."""
    from psmvae_paper.datasets import load

    for path in experiment.datasets:
        if Path(path).is_file():
            try:
                experiment = experiment.within(*load(path).X.shape)
            except (ValueError, OSError):
                # the run reports a file that cannot be read before it begins
                continue
    return experiment


def _within_records(experiment: Experiment, records: list[dict[str, Any]]) -> Experiment:
    """The experiment with the rows and columns that most of its records were made with."""
    cells = [record.get("cell") or {} for record in records if not record.get("error")]
    own = [cell for cell in cells if cell.get("dataset") in experiment.datasets]
    shapes = {(cell.get("n_rows"), cell.get("n_columns")) for cell in own}
    keys = {record["key"] for record in records}
    found = [
        experiment.within(rows, columns)
        for rows, columns in shapes
        if isinstance(rows, int) and isinstance(columns, int)
    ]
    return max([experiment, *found], key=lambda one: sum(c.key in keys for c in one.cells()))
