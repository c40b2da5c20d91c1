"""Computed sentences about records: how they were made, and what they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psmvae_paper.clock import busy_seconds, is_gpu
from psmvae_paper.compare import (
    order_agreement,
    paired,
    probability,
    ranked_columns,
    ranks,
    verdicts,
)
from psmvae_paper.grid import Row
from psmvae_paper.methods import METHODS, label_of
from psmvae_paper.remarks import CHANGES
from psmvae_paper.table_writer import MISSING, ResultTable, decimals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psmvae_paper.compare import Verdict
    from psmvae_paper.grid import Column, Grid, Record
    from psmvae_paper.paper import Figure, PaperKey

__all__ = [
    "AGAINST",
    "DEFAULT",
    "agreement",
    "made_with",
    "mnar_table",
    "mnar_wins",
    "older",
    "on_both",
    "rank_summary",
    "table_time",
]

DEFAULT = "psmvae"
# The methods that the default is compared with.
AGAINST = ("missforest", "mice", "psmvae-b-10000")


def made_with(records: Sequence[Record], n_other: int = 0) -> list[str]:
    """Summarise how records were made: number, dates, devices, times and versions.

    Parameters
    ----------
    records : sequence of dict
        The records that are shown.
    n_other : int, default=0
        The number of other records.

    Returns
    -------
    list of str
        Sentences.
    """
    failed = sum(bool(record.get("error")) for record in records)
    lines = [f"{len(records):,} records, {failed:,} of them failed."]
    if n_other:
        lines[0] += f" {n_other:,} more are not of an experiment in full size and are omitted."
    days = sorted(str(record["finished"])[:10] for record in records if record.get("finished"))
    if days:
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        lines.append(f"Finished {span}.")
    devices: dict[str, list[Record]] = {}
    for record in records:
        devices.setdefault(str(record.get("device") or "unknown"), []).append(record)
    for device, own in sorted(devices.items()):
        lines.append(f"{device}: {len(own):,} cells, {_seconds(own):,.0f} s.")
    on_gpu = [record for record in records if is_gpu(record)]
    if on_gpu:
        lines.append(
            "These seconds are sums over processes; the time of a stacked training is divided "
            "between its cells. The wall-clock time of GPU work is "
            f"{busy_seconds(on_gpu):,.0f} s."
        )
    if mixed := on_both(records):
        lines.append(mixed)
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in (record.get("versions") or {}).items():
            versions.setdefault(name, {})[str(version)] = None
    if versions:
        listed = (f"{name} {' and '.join(found)}" for name, found in versions.items())
        lines.append(f"Versions: {', '.join(listed)}.")
    return [*lines, *older(records)]


def on_both(records: Sequence[Record]) -> str:
    """Name the cells on a CPU of methods that otherwise ran on a GPU.

    Parameters
    ----------
    records : sequence of dict
        The records.

    Returns
    -------
    str
        A sentence; empty if there are none.

    Examples
    --------
    >>> cell = {"method": "psmvae", "dataset": "wine", "mechanism": "mnar"}
    >>> gpu, cpu = {"cell": cell, "device": "NVIDIA H200"}, {"cell": cell, "device": "cpu"}
    >>> on_both([gpu, cpu, cpu])
    'Run on a CPU, of methods otherwise run on a GPU: PSMVAE default: 2 cells of wine MNAR.'
    >>> on_both([cpu])
    ''
    """
    methods = {record["cell"]["method"] for record in records if is_gpu(record)}
    found: dict[str, dict[str, int]] = {}
    for record in records:
        cell = record["cell"]
        if record.get("device") == "cpu" and cell["method"] in methods:
            of_method = found.setdefault(label_of(cell["method"]), {})
            table = f"{cell['dataset']} {cell['mechanism'].upper().replace('-', '+')}"
            of_method[table] = of_method.get(table, 0) + 1
    if not found:
        return ""
    listed = "; ".join(
        f"{label}: " + ", ".join(f"{n} cells of {table}" for table, n in sorted(tables.items()))
        for label, tables in found.items()
    )
    return f"Run on a CPU, of methods otherwise run on a GPU: {listed}."


def older(records: Sequence[Record]) -> list[str]:
    """Name the methods with records from before a change in `CHANGES`.

    Parameters
    ----------
    records : sequence of dict
        The records.

    Returns
    -------
    list of str
        A sentence for each change.

    Examples
    --------
    >>> cell = {"method": "psmvae-b"}
    >>> old, new = {"cell": cell, "settings": {"pi": 0.5}}, {"cell": cell}
    >>> new["settings"] = {"pi": 0.5, "impute_from": "x_mis"}
    >>> older([old, new, old])
    ['Not run again since ...: PSMVAE(b) K=1 (2 records).']
    >>> older([new])
    []
    """
    lines = []
    for name, (methods, change) in CHANGES.items():
        counts: dict[str, int] = {}
        for record in records:
            method, settings = record["cell"]["method"], record.get("settings") or {}
            if method in methods and settings and name not in settings:
                counts[method] = counts.get(method, 0) + 1
        rows = ", ".join(f"{label_of(method)} ({n:,} records)" for method, n in counts.items())
        if rows:
            lines.append(f"Not run again since {change}: {rows}.")
    return lines


def table_time(records: Sequence[Record], keys: Iterable[str]) -> str:
    """Summarise the wall-clock time of GPU work on the cells of some tables.

    Parameters
    ----------
    records : sequence of dict
        All records.
    keys : iterable of str
        The keys of the cells.

    Returns
    -------
    str
        A sentence; empty if no cell ran on a GPU.
    """
    wanted = set(keys)
    on_gpu = [record for record in records if record["key"] in wanted and is_gpu(record)]
    if not on_gpu:
        return ""
    text = (
        f"{len(on_gpu):,} cells of both tables were run on a GPU, in {busy_seconds(on_gpu):,.0f} s "
        "of wall-clock time, including cells of other experiments that ran at the same time."
    )
    others = [record for record in records if record["key"] in wanted and not is_gpu(record)]
    rows = dict.fromkeys(label_of(record["cell"]["method"]) for record in others)
    return text + (f" On a CPU: cells of {', '.join(sorted(rows))}." if rows else "")


def _seconds(records: Iterable[Record]) -> float:
    """The total time; a training that several cells share (K = 1 and 10,000) counts once."""
    fits: set[tuple[str, float]] = set()
    total = 0.0
    for record in records:
        seconds = record.get("seconds") or {}
        total += float(seconds.get("impute") or 0.0)
        # cells that were trained separately have different times
        fits.add((_training(record["cell"]), float(seconds.get("fit") or 0.0)))
    return total + sum(seconds for _, seconds in fits)


def _training(cell: Mapping[str, Any]) -> str:
    method, settings = cell["method"], cell.get("settings") or {}
    fit = METHODS[method].fit if method in METHODS else method
    settings = {name: value for name, value in settings.items() if name != "n_draws"}
    return json.dumps({**cell, "method": fit, "settings": settings}, sort_keys=True)


def agreement(grid: Grid, paper: Mapping[PaperKey, Figure]) -> list[str]:
    """Summarise the agreement of a table with the paper's: means, and rank correlation.

    Parameters
    ----------
    grid : Grid
        Our results.
    paper : dict
        As `psmvae_paper.paper.paper` returns it.

    Returns
    -------
    list of str
        Sentences.
    """
    judged = verdicts(grid, paper)
    if not judged:
        return ["There are no complete means to compare with the paper's yet."]
    if grid.metric.best == "high" or grid.metric.name == "rmse_printed":
        return [_counted("All cells", judged)]
    lines = []
    exact = [verdict for verdict in judged if verdict.column.mechanism == "mcar"]
    if exact:
        lines.append(_counted("MCAR", exact))
    mnar = [column for column in grid.columns if column.mechanism != "mcar"]
    orders = {column: order_agreement(grid, paper, column) for column in mnar}
    known = [
        f"{column.dataset} {decimals(value, digits=2)}"
        for column, value in orders.items()
        if value is not None
    ]
    if known:
        lines.append(
            "MNAR: the missing columns are drawn differently from the paper's, and the paper's "
            "score is not the error, so the means are not comparable. Rank correlation of our "
            "means with the paper's: " + ", ".join(known) + "."
        )
    return lines


def _counted(what: str, judged: Sequence[Verdict]) -> str:
    found = [verdict.verdict for verdict in judged]
    return (
        f"{what}: {found.count('agrees')} of {len(found)} means agree with the paper's; "
        f"{found.count('lower')} lower, {found.count('higher')} higher."
    )


def rank_summary(grid: Grid) -> str:
    """Summarise the best mean ranks and the rank of the default.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    str
        Sentences.
    """
    ranked = [rank for rank in ranks(grid) if rank.mean_rank is not None]
    if not ranked:
        return "There are too few records to rank any row."
    names = grid.row_names()
    first = "; ".join(f"{names[rank.row]} {rank.mean_rank:.2f}" for rank in ranked[:3])
    text = f"Mean ranks over {ranked_columns(grid)} cells, of {len(ranked)} rows: {first}."
    mine = [(place, rank) for place, rank in enumerate(ranked, 1) if rank.row.method == DEFAULT]
    for place, rank in mine:
        text += (
            f" {names[rank.row]} is {place} of {len(ranked)} ({rank.mean_rank:.2f}) and has the "
            f"best mean on {rank.best_columns} of {len(grid.columns)} cells."
        )
    return text


def mnar_wins(grid: Grid) -> list[str]:
    """Count how often the default has the lower error, on the MNAR cells of a grid.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    list of str
        A sentence for each method of `AGAINST`.
    """
    part = grid.only(_mnar(grid))
    lines = []
    for method in AGAINST:
        pairs = [pair for pair in paired(part, Row(DEFAULT), Row(method)) if pair.n]
        if pairs:
            lower = sum((pair.difference or 0.0) < 0 for pair in pairs)
            lines.append(
                f"{label_of(DEFAULT)} against {label_of(method)}, MNAR: lower error on "
                f"{sum(pair.wins for pair in pairs)} of {sum(pair.n for pair in pairs)} seeds, "
                f"lower mean on {lower} of {len(pairs)} cells."
            )
    return lines


def mnar_table(grid: Grid) -> ResultTable:
    """Make the table of the default against others, paired by seed, on the MNAR cells.

    Parameters
    ----------
    grid : Grid
        The results.

    Returns
    -------
    ResultTable
        The table.
    """
    part = grid.only(_mnar(grid))
    names = part.column_names()
    found = {method: paired(part, Row(DEFAULT), Row(method)) for method in AGAINST}
    body = []
    for k, column in enumerate(part.columns):
        texts = []
        for pairs in found.values():
            pair = pairs[k]
            equal = f", {pair.ties} equal" if pair.ties else ""
            wins = f"{pair.wins} of {pair.n}{equal}"
            p_value = probability(pair.p_value)
            difference = decimals(pair.difference, sign=True)
            texts.append(f"{difference} ({wins}; {p_value})" if pair.n else MISSING)
        body.append([names[column], *texts])
    totals = [
        f"{sum(p.wins for p in pairs)} of {sum(p.n for p in pairs)}" for pairs in found.values()
    ]
    body.append(["all wins", *totals])
    note = (
        f"RMSE of {label_of(DEFAULT)} minus that of the other, mean over the seeds that both have: "
        "negative if the default is better. In brackets its wins, and p of a two-sided paired t "
        "test without correction for multiple testing."
    )
    return ResultTable("", ["on", *map(label_of, AGAINST)], body, notes=[note])


def _mnar(grid: Grid) -> list[Column]:
    return [column for column in grid.columns if column.mechanism == "mnar"]
