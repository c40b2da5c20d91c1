"""Records in a grid of rows (methods) and columns (data set, mechanism, rate and size).

Records are the dictionaries of :mod:`psmvae_paper.records`; nothing here trains or loads data.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae_paper.methods import label_of
from psmvae_paper.table_writer import MISSING, decimals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psmvae_paper.cell import Cell
    from psmvae_paper.paper import Figure

    Record = Mapping[str, Any]

__all__ = [
    "METRICS",
    "Column",
    "Entry",
    "Grid",
    "Metric",
    "Row",
    "dataset_names",
    "default_metric",
    "key_of",
    "metrics_in",
    "pivot",
    "value_of",
]


class Metric(NamedTuple):
    """A metric: its name in the records, its title in tables, the best value and the digits.

    ``best`` is ``"low"``, ``"high"``, a target value, or None if no value is better.
    """

    name: str
    title: str
    best: str | float | None = "low"
    digits: int = 4

    def loss(self, value: float) -> float:
        """Return a loss, lower is better: 0 if `best` is None.

        Parameters
        ----------
        value : float
            The value of the metric.

        Returns
        -------
        float
            The loss.

        Examples
        --------
        >>> METRICS["coverage"].loss(0.95) < METRICS["coverage"].loss(0.8)
        True
        """
        if self.best is None:
            return 0.0
        if isinstance(self.best, str):
            return value if self.best == "low" else -value
        return abs(value - self.best)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("rmse", "RMSE of the missing cells, in ranges of their columns"),
        Metric("rmse_printed", "RMSE of the missing cells as the paper scored it"),
        Metric("accuracy", "accuracy", "high"),
        Metric("set_accuracy", "pattern-set accuracy", "high"),
        Metric("set_majority", "pattern-set accuracy by majority", "high"),
        Metric("adjusted_rand", "adjusted Rand index of the pattern sets", "high"),
        Metric("crps", "CRPS of the draws, in ranges of their columns"),
        Metric("coverage", "share of true values in the 90 % interval of the draws", 0.9),
        Metric("width", "width of the 90 % interval, in ranges of the columns", None),
        Metric("bias", "absolute bias of the columns' means, in their ranges"),
        Metric("fit", "seconds to fit", "low", 1),
        Metric("impute", "seconds to impute", "low", 1),
    )
}

# Names of mechanisms in tables.
_NAMES = {"mcar": "MCAR", "mar": "MAR", "mnar-mcar": "MNAR+MCAR"}
_OF_MEASURE = {"sets": "set_accuracy", "multiple": "accuracy"}


class Column(NamedTuple):
    """A column of a grid: the incomplete tables that methods are compared on."""

    dataset: str
    mechanism: str
    rate: float
    n_rows: int | None = None
    n_columns: int | None = None

    def texts(self) -> tuple[str, ...]:
        """Return each part as text; empty for a size that is the whole table.

        Returns
        -------
        tuple of str
            Data set, mechanism, rate, rows and columns.

        Examples
        --------
        >>> Column("wine", "mnar-mcar", 0.2).texts()
        ('wine', 'MNAR+MCAR', '20 %', '', '')
        """
        return (
            # of a path the file name only
            Path(self.dataset).name,
            _NAMES.get(self.mechanism, self.mechanism.replace("-", " ", 1).replace("mnar", "MNAR")),
            f"{100 * self.rate:g} %",
            "" if self.n_rows is None else f"{self.n_rows:,} rows",
            "" if self.n_columns is None else f"{self.n_columns} columns",
        )


class Row(NamedTuple):
    """A row of a grid: a method with its settings."""

    method: str
    settings: tuple[tuple[str, Any], ...] = ()
    epochs: int | None = None


@dataclass(frozen=True)
class Entry:
    """The results of all seeds of one row and column.

    Parameters
    ----------
    values : dict of int to float
        The value of each seed.
    errors : dict of int to str
        The error of each seed that failed.
    n_seeds : int
        The number of seeds of the experiment.

    Examples
    --------
    >>> entry = Entry({0: 0.1, 1: 0.2}, {2: "ValueError: no"}, 3)
    >>> round(entry.mean, 2), round(entry.std, 2), entry.complete
    (0.15, 0.07, False)
    """

    values: Mapping[int, float] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    n_seeds: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over the seeds that have a value."""
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def std(self) -> float | None:
        """The sample standard deviation; None for one seed."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def complete(self) -> bool:
        """Whether every seed has a value."""
        return 0 < self.n_seeds <= len(self.values)

    def text(self, metric: Metric, *, paper: Figure | None = None) -> str:
        """Return the text of the entry, such as ``.0738 ± .0023 (.0738)`` with the paper's figure.

        Parameters
        ----------
        metric : Metric
            The number of digits.
        paper : Figure, optional
            The printed figure.

        Returns
        -------
        str
            The text.
        """
        beside = "" if paper is None else f" ({decimals(paper.mean)})"
        if self.mean is None:
            return ("failed" if self.errors else MISSING) + beside
        text = decimals(self.mean, digits=metric.digits)
        if self.std is not None:
            text += f" ± {decimals(self.std, digits=metric.digits)}"
        if self.complete:
            return text + beside
        failed = f", {len(self.errors)} failed" if self.errors else ""
        return f"{text}{beside} [{len(self.values)} of {self.n_seeds}{failed}]"


@dataclass(frozen=True)
class Grid:
    """The values of a metric for rows and columns.

    Parameters
    ----------
    metric : Metric
        The metric.
    entries : dict of (Row, Column) to Entry
        The results of each pair that has cells.
    """

    metric: Metric
    entries: Mapping[tuple[Row, Column], Entry]

    @property
    def rows(self) -> list[Row]:
        """The rows, in the order of the cells."""
        return list(dict.fromkeys(row for row, _ in self.entries))

    @property
    def columns(self) -> list[Column]:
        """The columns, in the order of the cells."""
        return list(dict.fromkeys(column for _, column in self.entries))

    @property
    def n_seeds(self) -> int:
        """The largest number of seeds of an entry."""
        return max((entry.n_seeds for entry in self.entries.values()), default=0)

    @property
    def empty(self) -> bool:
        """Whether there is neither a value nor a failure."""
        return not any(entry.values or entry.errors for entry in self.entries.values())

    def at(self, row: Row, column: Column) -> Entry:
        """Return an entry, empty if the pair has no cells.

        Parameters
        ----------
        row : Row
            The row.
        column : Column
            The column.

        Returns
        -------
        Entry
            The results.
        """
        return self.entries.get((row, column), Entry())

    def only(self, columns: Iterable[Column]) -> Grid:
        """Return the grid with only these columns.

        Parameters
        ----------
        columns : iterable of Column
            The columns.

        Returns
        -------
        Grid
            The smaller grid.
        """
        kept = set(columns)
        return Grid(self.metric, {at: e for at, e in self.entries.items() if at[1] in kept})

    def best(self, column: Column) -> list[Row]:
        """Return the rows with the best mean, among rows with all seeds.

        Parameters
        ----------
        column : Column
            The column.

        Returns
        -------
        list of Row
            Several if they are equal; none if no value of the metric is better.
        """
        if self.metric.best is None:
            return []
        losses = {
            row: self.metric.loss(entry.mean)
            for row in self.rows
            if (entry := self.at(row, column)).complete and entry.mean is not None
        }
        least = min(losses.values(), default=None)
        return [row for row, loss in losses.items() if loss == least]

    def row_names(self) -> dict[Row, str]:
        """The name of each row: its label and the settings that differ between rows."""
        rows = self.rows
        shared = set.intersection(*(set(row.settings) for row in rows)) if rows else set()
        # classical methods have no epochs
        same_epochs = len({row.epochs for row in rows} - {None}) < 2
        names = {}
        for row in rows:
            label = label_of(row.method, row.settings)
            own = [
                f"{name}={value}"
                for name, value in row.settings
                if (name, value) not in shared and not (name == "n_draws" and f"K={value}" in label)
            ]
            if not same_epochs and row.epochs is not None:
                own.append(f"{row.epochs} epochs")
            names[row] = ", ".join([label, *own])
        return names

    def column_names(self) -> dict[Column, str]:
        """The name of each column: the parts that differ between columns."""
        texts = self._texts()
        varying = [len(set(part)) > 1 for part in zip(*texts.values(), strict=True)]
        return {
            column: " ".join(
                text for text, shown in zip(own, varying, strict=True) if shown and text
            )
            or own[0]
            for column, own in texts.items()
        }

    def shared(self) -> str:
        """The parts that all columns share, which their names omit."""
        columns = list(self._texts().values())
        parts = [set(part) for part in zip(*columns, strict=True)]
        # the name of a single column is its data set
        start = 1 if len(columns) == 1 else 0
        texts = [next(iter(part)) if len(part) == 1 else "" for part in parts]
        if texts and texts[2]:
            texts[2] += " missing"
        return ", ".join(text for text in texts[start:] if text)

    def _texts(self) -> dict[Column, tuple[str, ...]]:
        """The parts of each column as text, distinct between columns."""
        columns = self.columns
        names = dataset_names(column.dataset for column in columns)
        return {column: (names[column.dataset], *column.texts()[1:]) for column in columns}


def dataset_names(datasets: Iterable[str]) -> dict[str, str]:
    """Return a name for each data set: of a path the file name, unless two files share it.

    Parameters
    ----------
    datasets : iterable of str
        Names and paths.

    Returns
    -------
    dict of str to str
        Name by data set.

    Examples
    --------
    >>> list(dataset_names(["wine", "a/mine.csv"]).values())
    ['wine', 'mine.csv']
    >>> list(dataset_names(["a/mine.csv", "b/mine.csv"]).values())
    ['a/mine.csv', 'b/mine.csv']
    """
    short = {dataset: Path(dataset).name for dataset in datasets}
    found = list(short.values())
    return {dataset: name if found.count(name) == 1 else dataset for dataset, name in short.items()}


@cache
def key_of(cell: Cell) -> str:
    """Return the key of a cell, cached: a page needs each hash many times.

    Parameters
    ----------
    cell : Cell
        The cell.

    Returns
    -------
    str
        The key.
    """
    return cell.key


def default_metric(measure: str, masks: str = "own") -> str:
    """Return the main metric of a measure; on the paper's masks the RMSE is the paper's score.

    Parameters
    ----------
    measure, masks : str
        As for `Cell`.

    Returns
    -------
    str
        The name of the metric.

    Examples
    --------
    >>> default_metric("sets"), default_metric("impute")
    ('set_accuracy', 'rmse')
    """
    return _OF_MEASURE.get(measure, "rmse_printed" if masks == "paper" else "rmse")


def metrics_in(records: Iterable[Record]) -> list[str]:
    """Return the names of the numeric metrics in some records.

    Parameters
    ----------
    records : iterable of dict
        The records.

    Returns
    -------
    list of str
        The names, without images.

    Examples
    --------
    >>> metrics_in([{"metrics": {"rmse": 0.2, "crps": None}, "seconds": {"fit": 1.0}}])
    ['rmse', 'fit']
    """
    names = {
        name: None
        for record in records
        for part in ("metrics", "seconds")
        for name in record.get(part) or {}
        if value_of(record, name) is not None
    }
    return list(names)


def pivot(
    records: Iterable[Record], cells: Sequence[Cell], metric: str | Metric | None = None
) -> Grid:
    """Arrange the records of some cells in a grid.

    Parameters
    ----------
    records : iterable of dict
        Records; records of other cells are ignored, and the last record of a cell is used.
    cells : sequence of Cell
        The cells, such as ``EXPERIMENTS["rmse20"].cells()``.
    metric : str or Metric, optional
        The metric; by default the main one of the cells' measure.

    Returns
    -------
    Grid
        The results of each row and column.

    Examples
    --------
    >>> from psmvae_paper.cell import Cell
    >>> cell = Cell("breast", "mcar", 0.2, seed=0, method="mean")
    >>> grid = pivot([{"key": cell.key, "metrics": {"rmse": 0.15}, "error": None}], [cell])
    >>> grid.at(Row("mean"), Column("breast", "mcar", 0.2)).mean
    0.15
    """
    if metric is None:
        metric = default_metric(cells[0].measure, cells[0].masks) if cells else "rmse"
    if isinstance(metric, str):
        metric = METRICS.get(metric, Metric(metric, metric.replace("_", " "), None))
    found = {record["key"]: record for record in records}
    gathered: dict[tuple[Row, Column], tuple[dict[int, float], dict[int, str], list[int]]] = {}
    for cell in cells:
        row = Row(cell.method, cell.settings, cell.epochs)
        column = Column(cell.dataset, cell.mechanism, cell.rate, cell.n_rows, cell.n_columns)
        values, errors, seeds = gathered.setdefault((row, column), ({}, {}, []))
        seeds.append(cell.seed)
        record = found.get(key_of(cell))
        if record is None:
            continue
        if record.get("error"):
            errors[cell.seed] = record["error"]
        elif (value := value_of(record, metric.name)) is not None:
            values[cell.seed] = value
    return Grid(metric, {at: Entry(v, e, len(set(s))) for at, (v, e, s) in gathered.items()})


def value_of(record: Record, metric: str) -> float | None:
    """Return the value of a metric in a record; of a curve its last value.

    Parameters
    ----------
    record : dict
        The record.
    metric : str
        The name of a metric, "fit" or "impute".

    Returns
    -------
    float or None
        None if there is no finite value.

    Examples
    --------
    >>> value_of({"metrics": {"rmse": [0.3, 0.2]}, "seconds": {"fit": 1.5}}, "fit")
    1.5
    """
    value = record.get("metrics", {}).get(metric, record.get("seconds", {}).get(metric))
    if isinstance(value, list):
        value = value[-1] if value else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
