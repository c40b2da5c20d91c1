"""Comparisons with the paper, with other records, and between methods.

Methods are compared within a seed, on the same table with the same mask. Under MNAR the seed
determines which column is missing, and the error depends more on this column than on the method.
The standard deviation over seeds is therefore no measure of the difference between two methods.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from psmvae_paper.table_writer import MISSING, ResultTable, decimals
from psmvae_paper.tables import failures, paper_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psmvae_paper.grid import Column, Entry, Grid, Row
    from psmvae_paper.paper import Figure, PaperKey

__all__ = [
    "Pair",
    "Rank",
    "Verdict",
    "beside_other",
    "beside_paper",
    "order_agreement",
    "paired",
    "paired_table",
    "probability",
    "rank_table",
    "ranks",
    "verdicts",
]

# Tolerances for agreement with the paper: relative for errors, absolute for accuracies.
CLOSE = {
    "mean": 0.03,
    "mice": 0.03,
    "missforest": 0.03,
    "psmvae-b": 0.05,
    "psmvae-b-10000": 0.05,
}
CLOSE_OTHERS = 0.10
CLOSE_SHARES = 0.05


class Pair(NamedTuple):
    """Two rows on one column, paired by seed: `difference` is the first minus the second."""

    column: Column
    n: int
    difference: float | None
    wins: int
    ties: int
    p_value: float | None


@dataclass(frozen=True)
class Rank:
    """The rank of a row among the others.

    Parameters
    ----------
    row : Row
        The row.
    mean_rank : float or None
        The mean of its ranks within each column and seed, 1 is best; None if it lacks records. A
        failed cell has the last rank.
    firsts : int
        In how many of these it is the best, including ties.
    best_columns : int
        On how many columns its mean over seeds is the best.
    n_missing : int
        The number of records it lacks.
    """

    row: Row
    mean_rank: float | None
    firsts: int
    best_columns: int
    n_missing: int


class Verdict(NamedTuple):
    """A mean and the paper's; ``verdict`` is "agrees", "lower" or "higher"."""

    row: Row
    column: Column
    ours: float
    paper: float
    verdict: str


def paired(grid: Grid, row: Row, other: Row) -> list[Pair]:
    """Compare two rows of a grid on each column, over the seeds that both have.

    The p-value is that of a two-sided paired t test, without correction for multiple testing; it
    is None for fewer than two seeds.

    Parameters
    ----------
    grid : Grid
        The results.
    row, other : Row
        The two rows.

    Returns
    -------
    list of Pair
        One for each column.

    Examples
    --------
    >>> from psmvae_paper.grid import METRICS, Column, Entry, Grid, Row
    >>> wine, a, b = Column("wine", "mnar", 0.2), Row("a"), Row("b")
    >>> entries = {(a, wine): Entry({0: 1.0, 1: 2.0}), (b, wine): Entry({0: 1.5, 1: 2.7})}
    >>> (pair,) = paired(Grid(METRICS["rmse"], entries), a, b)
    >>> pair.wins, round(pair.difference, 3), round(pair.p_value, 3)
    (2, -0.6, 0.105)
    """
    return [_pair(grid, row, other, column) for column in grid.columns]


def _pair(grid: Grid, row: Row, other: Row, column: Column) -> Pair:
    mine, theirs = grid.at(row, column).values, grid.at(other, column).values
    seeds = [seed for seed in mine if seed in theirs]
    differences = [mine[seed] - theirs[seed] for seed in seeds]
    gains = [grid.metric.loss(theirs[seed]) - grid.metric.loss(mine[seed]) for seed in seeds]
    return Pair(
        column,
        len(seeds),
        statistics.fmean(differences) if seeds else None,
        sum(gain > 0 for gain in gains),
        sum(gain == 0 for gain in gains),
        _t_test(differences),
    )


def _t_test(differences: Sequence[float]) -> float | None:
    n = len(differences)
    if n < 2:
        return None
    mean, deviation = statistics.fmean(differences), statistics.stdev(differences)
    if deviation == 0:
        return 1.0 if mean == 0 else 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(n - 1, -abs(mean) / (deviation / math.sqrt(n))))


def paired_table(grid: Grid, rows: Sequence[Row], against: Row, title: str) -> ResultTable:
    """Make a table of rows against another: mean difference, wins and p-value by column.

    Parameters
    ----------
    grid : Grid
        The results.
    rows : sequence of Row
        The rows.
    against : Row
        The row they are compared with.
    title : str
        The title.

    Returns
    -------
    ResultTable
        The table.
    """
    names, columns = grid.row_names(), grid.column_names()
    body: list[list[str]] = []
    facts: list[dict[str, Any]] = []
    for row in rows:
        pairs = paired(grid, row, against)
        body += [[names[row], columns[pair.column], *_pair_texts(grid, pair)] for pair in pairs]
        facts += [
            {"method": row.method, "against": against.method, **_column_and(pair)} for pair in pairs
        ]
    notes = [
        f"{grid.metric.title}: the method's minus that of {names[against]}, mean over the seeds "
        "that both have. Wins are the seeds on which the method is better; p is that of a "
        "two-sided paired t test."
    ]
    head = ["method", "on", "difference", "wins", "paired t test"]
    return ResultTable(title, head, body, notes=[*notes, *failures(grid)], facts=facts)


def _pair_texts(grid: Grid, pair: Pair) -> list[str]:
    wins = f"{pair.wins} of {pair.n}" + (f", {pair.ties} equal" if pair.ties else "")
    return [
        decimals(pair.difference, digits=grid.metric.digits, sign=True),
        wins if pair.n else MISSING,
        probability(pair.p_value),
    ]


def probability(p_value: float | None) -> str:
    """Format a p-value.

    Parameters
    ----------
    p_value : float or None
        The p-value.

    Returns
    -------
    str
        The text; a dash for None.

    Examples
    --------
    >>> probability(0.0312), probability(0.0004), probability(None)
    ('p .031', 'p < .001', '–')
    """
    if p_value is None:
        return MISSING
    return "p < .001" if p_value < 0.001 else f"p {decimals(p_value, digits=3)}"


def _column_and(pair: Pair) -> dict[str, Any]:
    return {**pair.column._asdict(), **{k: v for k, v in pair._asdict().items() if k != "column"}}


def ranks(grid: Grid) -> list[Rank]:
    """Rank the rows within each column and seed, and average the ranks.

    Ranks are taken on the columns and seeds that at least half of the rows have. Only rows that
    have all of these are ranked, so that all mean ranks are over the same tables.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    list of Rank
        Best first; rows without a rank last.

    Examples
    --------
    >>> from psmvae_paper.grid import METRICS, Column, Entry, Grid, Row
    >>> wine, a, b = Column("wine", "mcar", 0.2), Row("a"), Row("b")
    >>> entries = {(a, wine): Entry({0: 1.0, 1: 2.0}), (b, wine): Entry({0: 0.5, 1: 2.0})}
    >>> found = ranks(Grid(METRICS["rmse"], entries))
    >>> [(rank.row.method, rank.mean_rank, rank.firsts) for rank in found]
    [('b', 1.25, 2), ('a', 1.75, 1)]
    """
    rows, units = grid.rows, shared_units(grid)
    known = {row: _losses(grid, row) for row in rows}
    ranked = [row for row in rows if units and all(unit in known[row] for unit in units)]
    places: dict[Row, list[float]] = {row: [] for row in ranked}
    firsts = dict.fromkeys(ranked, 0)
    for unit in units:
        losses = {row: known[row][unit] for row in ranked}
        least = min(losses.values(), default=math.inf)
        for row, loss in losses.items():
            places[row].append(_place(loss, list(losses.values())))
            firsts[row] += loss == least < math.inf
    best = [row for column in grid.columns for row in grid.best(column)]
    found = [
        Rank(
            row,
            statistics.fmean(places[row]) if row in places else None,
            firsts.get(row, 0),
            best.count(row),
            sum(unit not in known[row] for unit in units),
        )
        for row in rows
    ]
    return sorted(found, key=lambda rank: math.inf if rank.mean_rank is None else rank.mean_rank)


def shared_units(grid: Grid) -> list[tuple[Column, int]]:
    """Return the columns and seeds that at least half of the rows have records of.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    list of (Column, int)
        Column and seed.
    """
    known = [_losses(grid, row) for row in grid.rows]
    units = dict.fromkeys(unit for losses in known for unit in losses)
    return [unit for unit in units if 2 * sum(unit in losses for losses in known) >= len(known)]


def ranked_columns(grid: Grid) -> str:
    """Return the number of columns that ranks are taken on, as "12" or "8 of 12".

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    str
        The text.
    """
    n, of = len({column for column, _ in shared_units(grid)}), len(grid.columns)
    return str(of) if n == of else f"{n} of {of}"


def _losses(grid: Grid, row: Row) -> dict[tuple[Column, int], float]:
    losses: dict[tuple[Column, int], float] = {}
    for column in grid.columns:
        entry = grid.at(row, column)
        losses |= {(column, seed): grid.metric.loss(v) for seed, v in entry.values.items()}
        losses |= {(column, seed): math.inf for seed in entry.errors}
    return losses


def _place(loss: float, all_losses: Sequence[float]) -> float:
    """The rank of a loss; ties share their mean rank."""
    below = sum(other < loss for other in all_losses)
    equal = sum(other == loss for other in all_losses)
    return below + (equal + 1) / 2


def rank_table(grid: Grid, title: str) -> ResultTable:
    """Make a table of the ranks of all rows.

    Parameters
    ----------
    grid : Grid
        The results.
    title : str
        The title.

    Returns
    -------
    ResultTable
        The table.
    """
    names, found = grid.row_names(), ranks(grid)
    n_columns = len(grid.columns)
    body, facts = [], []
    n_units = sum(rank.firsts for rank in found)
    for rank in found:
        lacks = f"lacks {rank.n_missing}" if rank.n_missing else MISSING
        body.append(
            [
                names[rank.row],
                lacks if rank.mean_rank is None else f"{rank.mean_rank:.2f}",
                str(rank.firsts) if rank.mean_rank is not None else MISSING,
                str(rank.best_columns),
            ]
        )
        facts.append({"method": rank.row.method, **_without_row(rank)})
    notes = [
        f"{grid.metric.title}, over {ranked_columns(grid)} columns. Ranks are taken within each "
        "column and seed that at least half of the rows have (1 is best) and averaged; a failed "
        "cell has the last rank. A row that lacks one of these is not ranked."
    ]
    head = ["method", "mean rank", "best seeds", f"best of {n_columns} means"]
    if not n_units:
        notes.append("There are too few records to rank any row.")
    return ResultTable(title, head, body, notes=notes, facts=facts)


def _without_row(rank: Rank) -> dict[str, Any]:
    return {
        "mean_rank": rank.mean_rank,
        "best_seeds": rank.firsts,
        "best_means": rank.best_columns,
        "n_missing": rank.n_missing,
    }


def beside_paper(grid: Grid, paper: Mapping[PaperKey, Figure], title: str) -> ResultTable:
    """Make a table of our means, the paper's, and their ratios.

    Parameters
    ----------
    grid : Grid
        Our results.
    paper : dict
        As `psmvae_paper.paper.paper` returns it.
    title : str
        The title.

    Returns
    -------
    ResultTable
        The table.
    """

    def theirs(row: Row, column: Column) -> float | None:
        figure = paper_figure(paper, row, column)
        return None if figure is None else figure.mean

    others = {at: theirs(*at) for at in grid.entries}
    return _beside(grid, others, title, "the paper's")


def beside_other(grid: Grid, other: Grid, title: str, name: str) -> ResultTable:
    """Make a table of our means, those of other records, and their ratios.

    Parameters
    ----------
    grid, other : Grid
        Our results and the others.
    title : str
        The title.
    name : str
        The name of the other results in the note.

    Returns
    -------
    ResultTable
        The table.
    """
    others = {at: other.at(*at).mean for at in grid.entries}
    return _beside(grid, others, title, name)


def _beside(
    grid: Grid, others: Mapping[tuple[Row, Column], float | None], title: str, name: str
) -> ResultTable:
    rows, columns = grid.row_names(), grid.column_names()
    body, facts = [], []
    digits = grid.metric.digits
    for row, label in rows.items():
        texts = [label]
        for column in columns:
            entry, other = grid.at(row, column), others.get((row, column))
            ratio = entry.mean / other if entry.mean is not None and other else None
            texts.append(
                f"{_mean_text(entry, digits)} / {decimals(other, digits=digits)}"
                + ("" if ratio is None else f" = {ratio:.2f}")
            )
            facts.append(
                {
                    "method": row.method,
                    "settings": " ".join(f"{key}={value}" for key, value in row.settings),
                    **column._asdict(),
                    "metric": grid.metric.name,
                    "ours": entry.mean,
                    "n_seeds": len(entry.values),
                    "other": other,
                    "ratio": ratio,
                }
            )
        body.append(texts)
    notes = [f"{grid.metric.title}: our mean / {name} = ratio.", *failures(grid)]
    return ResultTable(title, ["method", *columns.values()], body, notes=notes, facts=facts)


def _mean_text(entry: Entry, digits: int) -> str:
    if entry.mean is None:
        return "failed" if entry.errors else MISSING
    fewer = "" if entry.complete else f" [{len(entry.values)} of {entry.n_seeds}]"
    return decimals(entry.mean, digits=digits) + fewer


def verdicts(grid: Grid, paper: Mapping[PaperKey, Figure]) -> list[Verdict]:
    """Compare each complete mean with the paper's.

    An error agrees within 3 % for mean, MICE and MissForest, within 5 % for PSMVAE(b), and within
    10 % for the others; an accuracy within 5 percentage points.

    Parameters
    ----------
    grid : Grid
        Our results.
    paper : dict
        As `psmvae_paper.paper.paper` returns it.

    Returns
    -------
    list of Verdict
        One for each mean that can be compared.
    """
    found = []
    for (row, column), entry in grid.entries.items():
        figure = paper_figure(paper, row, column)
        if figure is not None and entry.complete and entry.mean is not None:
            verdict = _verdict(
                row.method, entry.mean, figure.mean, share=grid.metric.best == "high"
            )
            found.append(Verdict(row, column, entry.mean, figure.mean, verdict))
    return found


def _verdict(method: str, ours: float, theirs: float, *, share: bool) -> str:
    if share:
        close = abs(ours - theirs) <= CLOSE_SHARES
    else:
        close = abs(ours - theirs) <= CLOSE.get(method, CLOSE_OTHERS) * theirs
    return "agrees" if close else "lower" if ours < theirs else "higher"


def order_agreement(grid: Grid, paper: Mapping[PaperKey, Figure], column: Column) -> float | None:
    """Return Spearman's correlation of our means and the paper's over the rows.

    Parameters
    ----------
    grid : Grid
        Our results.
    paper : dict
        As `psmvae_paper.paper.paper` returns it.
    column : Column
        The column.

    Returns
    -------
    float or None
        None for fewer than three rows, or if all means are equal.
    """
    both = [
        (entry.mean, figure.mean)
        for row in grid.rows
        if (entry := grid.at(row, column)).mean is not None
        and (figure := paper_figure(paper, row, column)) is not None
    ]
    if len(both) < 3:
        return None
    ours, theirs = zip(*both, strict=True)
    x, y = ([_place(value, values) for value in values] for values in (ours, theirs))
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        # all means are equal
        return None
