"""What the commands of ``psmvae benchmark`` share: records found, refused and printed."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.paths import check_place

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Grid, Row
    from psmvae_paper.paper import Figure, PaperKey
    from psmvae_paper.table_writer import Sheet


class Format(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MD = "md"
    CSV = "csv"
    TEX = "tex"


def records_in(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder; refuse one that has none."""
    from psmvae_paper import load_records

    try:
        return load_records(folder)
    except (FileNotFoundError, ValueError) as error:
        raise UsageError(" ".join(str(error).split())) from error


def within_records(experiment: Experiment, records: list[dict[str, Any]]) -> Experiment:
    """The small experiment on as much of a user's files as it was run on."""
    cells = [record.get("cell") or {} for record in records if not record.get("error")]
    own = [cell for cell in cells if cell.get("dataset") in experiment.datasets]
    shapes = {(cell.get("n_rows"), cell.get("n_columns")) for cell in own}
    there = {record["key"] for record in records}
    found = [
        experiment.within(rows, columns)
        for rows, columns in shapes
        if isinstance(rows, int) and isinstance(columns, int)
    ]
    return max([experiment, *found], key=lambda one: sum(c.key in there for c in one.cells()))


def grid_of(
    experiment: Experiment, records: list[dict[str, Any]], folder: Path, metric: str | None
) -> Grid:
    """The records of an experiment in rows and columns; refuse if there is nothing to show."""
    from psmvae_paper.grid import metrics_in, pivot
    from psmvae_paper.tables import asked

    cells = asked(experiment, records)
    keys = {cell.key for cell in cells}
    mine = [record for record in records if record["key"] in keys]
    if not mine:
        message = f"{folder}: there are no records of {experiment.name}"
        quick = {cell.key for cell in experiment.quick().cells()}
        if any(record["key"] in quick for record in records):
            message += " in full size; --quick shows those of the small version"
        raise UsageError(message)
    known = metrics_in(mine)
    # where all failed, there is nothing to hold a metric against
    if metric is not None and known and metric not in known:
        message = f"--metric: no record of {experiment.name} holds {metric!r}; they hold "
        raise UsageError(message + ", ".join(known))
    return pivot(mine, cells, metric)


def paper_of(experiment: Experiment, grid: Grid) -> dict[PaperKey, Figure]:
    """The paper's figures for what a grid shows; refuse if it printed none."""
    from psmvae_paper.grid import METRICS, default_metric
    from psmvae_paper.paper import paper
    from psmvae_paper.tables import paper_figure

    figures = paper(experiment.name)
    if not figures:
        message = f"--to paper: the paper prints no table for {experiment.name}"
        raise UsageError(message)
    about = METRICS[default_metric(experiment.measure, experiment.masks)]
    if grid.metric != about:
        message = f"--to paper: the paper prints {about.name} for {experiment.name}, and not "
        raise UsageError(message + grid.metric.name)
    if not any(paper_figure(figures, *at) for at in grid.entries):
        message = f"--to paper: none of these cells of {experiment.name} is in the paper's tables"
        raise UsageError(message)
    return figures


def row_of(grid: Grid, method: str) -> Row:
    """The row of a method; refuse if there is none, or several."""
    found = [row for row in grid.rows if row.method == method]
    if not found:
        names = ", ".join(dict.fromkeys(row.method for row in grid.rows))
        message = f"--against: no method {method!r} in the experiment; its methods are {names}"
        raise UsageError(message)
    if len(found) > 1:
        message = f"--against: the experiment runs {method} with several settings"
        raise UsageError(message)
    return found[0]


def compares(grid: Grid, method: str) -> bool:
    """Whether a method has one row with records, so that others can be held against it."""
    found = [row for row in grid.rows if row.method == method]
    return len(found) == 1 and any(grid.at(found[0], column).values for column in grid.columns)


def print_sheets(sheets: list[Sheet], form: Format) -> None:
    """Write tables to standard output."""
    texts = [sheet.write(form) for sheet in sheets]
    if form is Format.CSV:
        # one table: the parts have the same columns
        first, *rest = texts
        texts = ["\n".join([first, *(text.split("\n", 1)[1] for text in rest)])]
    typer.echo("\n\n".join(texts))


def check_file(path: Path, ending: str, option: str, *, force: bool) -> None:
    """Refuse a place where a file cannot or may not be written."""
    if path.suffix.lower() != ending:
        message = f"{option}: {path} must end in {ending}"
        raise UsageError(message)
    try:
        check_place(path, force=True)
    except TableError as error:
        raise UsageError(f"{option}: {error}") from error
    if path.exists() and not force:
        message = f"{option}: {path}: the file exists already; --force replaces it"
        raise UsageError(message)
