"""Records sorted into rows (methods) and columns (what they are compared on).

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
    """A measured quantity: its name in the records, in words, and which value is the best.

    ``best`` is ``"low"``, ``"high"``, the value to be close to, or None where none is better.
    """

    name: str
    title: str
    best: str | float | None = "low"
    digits: int = 4

    def loss(self, value: float) -> float:
        """How far from the best, so that less is better; 0 for all where none is.

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
        Metric("set_majority", "pattern-set accuracy, each learned set by its majority", "high"),
        Metric("adjusted_rand", "adjusted Rand index of the pattern sets", "high"),
        Metric("crps", "CRPS of the draws, in ranges of their columns"),
        Metric("coverage", "share of true values in the 90 % interval of the draws", 0.9),
        Metric("width", "width of the 90 % interval, in ranges of the columns", None),
        Metric("bias", "size of the bias of the columns' means, in their ranges"),
        Metric("fit", "seconds to fit", "low", 1),
        Metric("impute", "seconds to impute", "low", 1),
    )
}

# Mechanisms that a table names in another way than a user types.
_NAMES = {"mcar": "MCAR", "mar": "MAR", "mnar-mcar": "MNAR+MCAR"}
_OF_MEASURE = {"sets": "set_accuracy", "multiple": "accuracy"}


class Column(NamedTuple):
    """What the methods are compared on."""

    dataset: str
    mechanism: str
    rate: float
    n_rows: int | None = None
    n_columns: int | None = None

    def texts(self) -> tuple[str, ...]:
        """Each part in words, empty where there is nothing to say.

        Examples
        --------
        >>> Column("wine", "mnar-mcar", 0.2).texts()
        ('wine', 'MNAR+MCAR', '20 %', '', '')
        """
        return (
            # of a file its name without the folder
            Path(self.dataset).name,
            _NAMES.get(self.mechanism, self.mechanism.replace("-", " ", 1).replace("mnar", "MNAR")),
            f"{100 * self.rate:g} %",
            "" if self.n_rows is None else f"{self.n_rows:,} rows",
            "" if self.n_columns is None else f"{self.n_columns} columns",
        )


class Row(NamedTuple):
    """What is compared: a method with its settings."""

    method: str
    settings: tuple[tuple[str, Any], ...] = ()
    epochs: int | None = None


@dataclass(frozen=True)
class Entry:
    """What the seeds of one row and column gave.

    Parameters
    ----------
    values : dict of int to float
        The value of each seed that has one.
    errors : dict of int to str
        What went wrong for each seed that failed.
    n_seeds : int
        How many seeds were asked for.

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
        """The mean over the seeds there are."""
        return statistics.fmean(self.values.values()) if self.values else None

    @property
    def std(self) -> float | None:
        """Their standard deviation (n - 1 below the fraction); None for one seed."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    @property
    def complete(self) -> bool:
        """Whether every seed has its value."""
        return 0 < self.n_seeds <= len(self.values)

    def text(self, metric: Metric, *, paper: Figure | None = None) -> str:
        """The entry in a table: ``.0738 ± .0023 (.0738)`` with the paper's figure."""
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
    """A metric of every row on every column.

    Parameters
    ----------
    metric : Metric
        The quantity.
    entries : dict of (Row, Column) to Entry
        What was found; a pair that no cell asks for is not in it.
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
        """The most seeds that were asked for."""
        return max((entry.n_seeds for entry in self.entries.values()), default=0)

    @property
    def empty(self) -> bool:
        """Whether there is neither a value nor a failure to show."""
        return not any(entry.values or entry.errors for entry in self.entries.values())

    def at(self, row: Row, column: Column) -> Entry:
        """The entry, an empty one if no cell asks for it."""
        return self.entries.get((row, column), Entry())

    def only(self, columns: Iterable[Column]) -> Grid:
        """The same with these columns alone."""
        kept = set(columns)
        return Grid(self.metric, {at: e for at, e in self.entries.items() if at[1] in kept})

    def best(self, column: Column) -> list[Row]:
        """The rows with the best mean of those that have all seeds; none if none is better."""
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
        """Each row in words: its label and those settings that differ between rows."""
        rows = self.rows
        shared = set.intersection(*(set(row.settings) for row in rows)) if rows else set()
        # a classical method has no epochs
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
        """Each column in words: the parts that differ between columns."""
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
        """What the names of the columns leave out because all share it."""
        columns = list(self._texts().values())
        parts = [set(part) for part in zip(*columns, strict=True)]
        # a single column is named by its data set
        start = 1 if len(columns) == 1 else 0
        texts = [next(iter(part)) if len(part) == 1 else "" for part in parts]
        if texts and texts[2]:
            texts[2] += " missing"
        return ", ".join(text for text in texts[start:] if text)

    def _texts(self) -> dict[Column, tuple[str, ...]]:
        """The parts of each column in words, such that no two columns have the same."""
        columns = self.columns
        names = dataset_names(column.dataset for column in columns)
        return {column: (names[column.dataset], *column.texts()[1:]) for column in columns}


def dataset_names(datasets: Iterable[str]) -> dict[str, str]:
    """Each data set in words: of a file its name, with the folder only where two have the same.

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
    """The key of a cell; it takes a hash, and a page asks for each many times."""
    return cell.key


def default_metric(measure: str, masks: str = "own") -> str:
    """The metric that a measure is about; on the paper's masks an error is scored as there.

    Examples
    --------
    >>> default_metric("sets"), default_metric("impute")
    ('set_accuracy', 'rmse')
    """
    return _OF_MEASURE.get(measure, "rmse_printed" if masks == "paper" else "rmse")


def metrics_in(records: Iterable[Record]) -> list[str]:
    """The metrics that some of the records hold a figure of, pictures aside.

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
    """Sort the records of some cells into rows and columns.

    Parameters
    ----------
    records : iterable of dict
        Records; those of other cells are left aside, and the last of a cell counts.
    cells : sequence of Cell
        What was asked for, such as ``EXPERIMENTS["rmse20"].cells()``.
    metric : str or Metric, optional
        What to show; by default what the measure of the cells is about.

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
    """The figure of a record; of a curve its end, and None where there is none.

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
