"""Helpers of the commands: find records, check options, print tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.paths import check_place

if TYPE_CHECKING:
    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Grid, Row
    from psmvae_paper.paper import Figure, PaperKey
    from psmvae_paper.table_writer import ResultTable


# The default folder of new records, in the current folder.
RESULTS = Path("results")
# The records of the repository, there in an editable installation.
_REPOSITORY_RECORDS = Path(__file__).parents[3] / "records"


class Format(StrEnum):
    """Formats of tables."""

    TEXT = "text"
    MD = "md"
    CSV = "csv"
    TEX = "tex"


def folder_or_default(folder: Path | None) -> Path:
    """The given folder; else `results` if it has records, else the records of the repository."""
    from psmvae_paper.records import has_records

    if folder is not None:
        return folder
    if not has_records(RESULTS) and has_records(_REPOSITORY_RECORDS):
        return _REPOSITORY_RECORDS
    return RESULTS


def records_in(folder: Path) -> list[dict[str, Any]]:
    """The records of a folder; an error if it has none."""
    from psmvae_paper import load_records

    try:
        return load_records(folder)
    except (FileNotFoundError, ValueError) as error:
        raise UsageError(" ".join(str(error).split())) from error


def grid_of(
    experiment: Experiment, records: list[dict[str, Any]], folder: Path, metric: str | None
) -> Grid:
    """The records of an experiment in rows and columns; an error if it has none."""
    from psmvae_paper.grid import metrics_in, pivot
    from psmvae_paper.tables import cells_to_show

    cells = cells_to_show(experiment, records)
    keys = {cell.key for cell in cells}
    own = [record for record in records if record["key"] in keys]
    if not own:
        message = f"{folder}: there are no records of {experiment.name}"
        quick = {cell.key for cell in experiment.quick().cells()}
        if any(record["key"] in quick for record in records):
            message += " in full size; --quick shows the records of the small version"
        raise UsageError(message)
    known = metrics_in(own)
    # where all cells failed, no metric is known
    if metric is not None and known and metric not in known:
        message = f"--metric: no record of {experiment.name} holds {metric!r}; they hold "
        raise UsageError(message + ", ".join(known))
    return pivot(own, cells, metric)


def paper_of(experiment: Experiment, grid: Grid) -> dict[PaperKey, Figure]:
    """The paper's figures for the cells of a grid; an error if it printed none."""
    from psmvae_paper.grid import METRICS, default_metric
    from psmvae_paper.paper import paper
    from psmvae_paper.tables import paper_figure

    figures = paper(experiment.name)
    if not figures:
        message = f"--to paper: the paper prints no table for {experiment.name}"
        raise UsageError(message)
    printed = METRICS[default_metric(experiment.measure, experiment.masks)]
    if grid.metric != printed:
        message = f"--to paper: the paper prints {printed.name} for {experiment.name}, not "
        raise UsageError(message + grid.metric.name)
    if not any(paper_figure(figures, *at) for at in grid.entries):
        message = f"--to paper: none of these cells of {experiment.name} is in the paper's tables"
        raise UsageError(message)
    return figures


def row_of(grid: Grid, method: str) -> Row:
    """The row of a method; an error if there is none, or several."""
    found = [row for row in grid.rows if row.method == method]
    if not found:
        names = ", ".join(dict.fromkeys(row.method for row in grid.rows))
        message = f"--against: no method {method!r} in the experiment; its methods are {names}"
        raise UsageError(message)
    if len(found) > 1:
        message = f"--against: the experiment runs {method} with several settings"
        raise UsageError(message)
    return found[0]


def has_one_row(grid: Grid, method: str) -> bool:
    """Whether a method has exactly one row with records, so that others can be compared with it."""
    found = [row for row in grid.rows if row.method == method]
    return len(found) == 1 and any(grid.at(found[0], column).values for column in grid.columns)


def print_tables(tables: list[ResultTable], form: Format) -> None:
    """Write tables to standard output."""
    texts = [table.write(form) for table in tables]
    if form is Format.CSV:
        # one table: the parts have the same columns
        first, *rest = texts
        texts = ["\n".join([first, *(text.split("\n", 1)[1] for text in rest)])]
    typer.echo("\n\n".join(texts))


def check_file(path: Path, ending: str, option: str, *, force: bool) -> None:
    """Raise an error if a file cannot or may not be written at this path."""
    if path.suffix.lower() != ending:
        message = f"{option}: {path} must end in {ending}"
        raise UsageError(message)
    try:
        check_place(path, force=True)
    except TableError as error:
        raise UsageError(f"{option}: {error}") from error
    if path.exists() and not force:
        message = f"{option}: {path}: the file exists; --force replaces it"
        raise UsageError(message)
