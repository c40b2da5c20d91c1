"""Tables of results: mean and standard deviation over seeds, one row for each method."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from psmvae_paper.cell import Cell
from psmvae_paper.grid import Grid, pivot
from psmvae_paper.methods import METHODS, added_methods
from psmvae_paper.table_writer import ResultTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psmvae_paper.experiment import Experiment
    from psmvae_paper.grid import Column, Metric, Record, Row
    from psmvae_paper.paper import Figure, PaperKey

__all__ = [
    "cells_to_show",
    "experiment_tables",
    "failures",
    "paper_figure",
    "split_by_dataset",
    "to_table",
]

# The number of failures that are listed below a table.
_MAX_FAILURES = 5
# The number of columns that fit on a page.
_MAX_COLUMNS = 8


def cells_to_show(experiment: Experiment, records: Iterable[Record]) -> list[Cell]:
    """Return the cells of an experiment, and the cells of methods that a user added.

    Records of an added method on the tables of the experiment are shown below its own methods.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    records : iterable of dict
        All records.

    Returns
    -------
    list of Cell
        The cells to show.
    """
    cells = experiment.cells()
    places = {_place(cell) for cell in cells}
    recorded = [record.get("cell", {}) for record in records]
    more = [_known(cell) for cell in recorded if _is_added(cell.get("method"), experiment)]
    return [*cells, *dict.fromkeys(cell for cell in more if cell and _place(cell) in places)]


def _known(cell: Mapping[str, Any]) -> Cell | None:
    """The cell of a record; None if another version of this package wrote it differently."""
    try:
        return Cell.from_json(dict(cell))
    except (TypeError, ValueError):
        return None


def _is_added(method: Any, experiment: Experiment) -> bool:
    if not isinstance(method, str) or method in experiment.methods:
        return False
    return method not in METHODS or bool(added_methods([method]))


def _place(cell: Cell) -> Cell:
    """The cell without its method: the table that methods are compared on."""
    return dataclasses.replace(cell, method="any", epochs=None, settings=())


def experiment_tables(
    experiment: Experiment,
    records: Sequence[Record],
    *,
    metric: str | Metric | None = None,
    paper: Mapping[PaperKey, Figure] | None = None,
) -> list[ResultTable]:
    """Make the tables of an experiment: one, or one for each data set if it is too wide.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    records : sequence of dict
        All records.
    metric : str, optional
        The metric; by default the main one of its measure.
    paper : dict, optional
        Printed figures to show beside ours, as `psmvae_paper.paper.paper` returns them.

    Returns
    -------
    list of ResultTable
        The tables.
    """
    grid = pivot(records, cells_to_show(experiment, records), metric)
    return [
        to_table(part, title, paper=paper)
        for title, part in split_by_dataset(grid, experiment.title)
    ]


def split_by_dataset(grid: Grid, title: str) -> list[tuple[str, Grid]]:
    """Split a large grid by data set.

    Parameters
    ----------
    grid : Grid
        The grid.
    title : str
        Its title.

    Returns
    -------
    list of (str, Grid)
        The parts with their titles; the whole grid if it is small enough.
    """
    datasets = list(dict.fromkeys(column.dataset for column in grid.columns))
    if len(datasets) < 2 or min(len(grid.columns), len(grid.rows)) <= _MAX_COLUMNS:
        return [(title, grid)]
    return [
        (f"{title}: {name}", grid.only(c for c in grid.columns if c.dataset == name))
        for name in datasets
    ]


def to_table(
    grid: Grid, title: str, *, paper: Mapping[PaperKey, Figure] | None = None
) -> ResultTable:
    """Make the table of a grid, with the paper's figures in brackets if given.

    Methods are the rows, or the columns if that keeps the table narrow.

    Parameters
    ----------
    grid : Grid
        The values.
    title : str
        The title of the table.
    paper : dict, optional
        As `psmvae_paper.paper.paper` returns it.

    Returns
    -------
    ResultTable
        The table.

    Examples
    --------
    >>> from psmvae_paper.grid import METRICS, Column, Entry, Row
    >>> at = Row("mean"), Column("wine", "mcar", 0.2)
    >>> grid = Grid(METRICS["rmse"], {at: Entry({0: 0.17, 1: 0.18}, {}, 2)})
    >>> print(to_table(grid, "Errors").write("text"))
    Errors
    <BLANKLINE>
    method             wine
    -----------------------
    mean    .1750 ± .0071 *
    <BLANKLINE>
    * the best of its column
    RMSE of the missing cells, in ranges of their columns, MCAR, 20 % missing. Mean ± standard
    deviation over 2 seeds.
    """
    rows, columns = grid.row_names(), grid.column_names()
    best = {column: grid.best(column) for column in columns}
    texts: list[list[str]] = []
    bold, facts = set(), []
    for i, row in enumerate(rows):
        texts.append([])
        for j, column in enumerate(columns):
            entry, figure = grid.at(row, column), paper_figure(paper, row, column)
            texts[-1].append(entry.text(grid.metric, paper=figure))
            facts.append(_fact(grid, row, column, figure))
            if row in best[column]:
                bold.add((i, j))
    subject = ", ".join(text for text in (grid.metric.title, grid.shared()) if text)
    spread = f"Mean ± standard deviation over {grid.n_seeds} seeds."
    over = "One seed." if grid.n_seeds == 1 else spread
    notes = [f"{subject}. {over}"]
    if paper:
        notes[0] += " The paper's means are in brackets."
    notes += failures(grid)
    if len(columns) > _MAX_COLUMNS > len(rows):
        # one line for each column, sorted by data set and mechanism
        order = sorted(range(len(columns)), key=lambda j: list(columns)[j][:2])
        body = [[list(columns.values())[j], *(line[j] for line in texts)] for j in order]
        marked = {(order.index(j), i + 1) for i, j in bold}
        head = ["on", *rows.values()]
        return ResultTable(title, head, body, marked, notes, facts, mark="the best of its line")
    body = [[name, *line] for name, line in zip(rows.values(), texts, strict=True)]
    marked = {(i, j + 1) for i, j in bold}
    return ResultTable(title, ["method", *columns.values()], body, marked, notes, facts)


def paper_figure(
    paper: Mapping[PaperKey, Figure] | None, row: Row, column: Column
) -> Figure | None:
    """Return the paper's figure for a row and column.

    Parameters
    ----------
    paper : dict or None
        As `psmvae_paper.paper.paper` returns it.
    row : Row
        The method.
    column : Column
        The table.

    Returns
    -------
    Figure or None
        None if the paper has none; it has none for parts of a data set.
    """
    from psmvae_paper.paper import PaperKey

    if not paper or column.n_rows is not None or column.n_columns is not None:
        return None
    return paper.get(PaperKey(column.dataset, column.mechanism, column.rate, row.method))


def failures(grid: Grid) -> list[str]:
    """Return a sentence for each of the first failures, and the number of the others.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    list of str
        The sentences.
    """
    rows, columns = grid.row_names(), grid.column_names()
    texts = [
        f"Failed: {rows[row]}, {columns[column]}, seed {seed}: {' '.join(error.split())}"
        for (row, column), entry in grid.entries.items()
        for seed, error in entry.errors.items()
    ]
    more = len(texts) - _MAX_FAILURES
    return texts if more <= 0 else [*texts[:_MAX_FAILURES], f"{more} more failed."]


def _fact(grid: Grid, row: Row, column: Column, figure: Figure | None) -> dict[str, Any]:
    entry = grid.at(row, column)
    return {
        "method": row.method,
        "settings": " ".join(f"{name}={value}" for name, value in row.settings),
        "epochs": row.epochs,
        **column._asdict(),
        "metric": grid.metric.name,
        "mean": entry.mean,
        "std": entry.std,
        "n_seeds": len(entry.values),
        "n_asked": entry.n_seeds,
        "n_failed": len(entry.errors),
        "paper_mean": None if figure is None else figure.mean,
        "paper_std": None if figure is None else figure.std,
    }
