"""Sentences about a set of records, computed: how they were made, and what they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psmvae_paper.clock import at_work, is_gpu
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
    "places",
    "table_time",
]

DEFAULT = "psmvae"
# What the default is compared with in pairs.
AGAINST = ("missforest", "mice", "psmvae-b-10000")


def made_with(records: Sequence[Record], n_other: int = 0) -> list[str]:
    """Say how records were made: how many, when, on what, with which versions, in what time.

    Parameters
    ----------
    records : sequence of dict
        The records that are shown.
    n_other : int
        How many more there are.
    """
    failed = sum(bool(record.get("error")) for record in records)
    told = [f"{len(records):,} records, {failed:,} of them failures."]
    if n_other:
        told[0] += f" {n_other:,} more belong to no experiment in full size and are left out."
    days = sorted(str(record["finished"])[:10] for record in records if record.get("finished"))
    if days:
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        told.append(f"Finished {span}.")
    devices: dict[str, list[Record]] = {}
    for record in records:
        devices.setdefault(str(record.get("device") or "unknown"), []).append(record)
    for device, own in sorted(devices.items()):
        told.append(f"{device}: {len(own):,} cells, {_seconds(own):,.0f} s.")
    on_gpu = [record for record in records if is_gpu(record)]
    if on_gpu:
        told.append(
            "What was trained together is shared out in these seconds, and programs that ran side "
            f"by side each count in full. By the clock, a GPU was at work for "
            f"{at_work(on_gpu):,.0f} s."
        )
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in (record.get("versions") or {}).items():
            versions.setdefault(name, {})[str(version)] = None
    if versions:
        listed = (f"{name} {' and '.join(found)}" for name, found in versions.items())
        told.append(f"Versions: {', '.join(listed)}.")
    return [*told, *older(records)]


def older(records: Sequence[Record]) -> list[str]:
    """Say of which methods there are records from before a change that `CHANGES` tells of.

    Parameters
    ----------
    records : sequence of dict
        The records that are asked about.

    Returns
    -------
    list of str
        A sentence for each such change.

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
    told = []
    for name, (methods, change) in CHANGES.items():
        counts: dict[str, int] = {}
        for record in records:
            method, settings = record["cell"]["method"], record.get("settings") or {}
            if method in methods and settings and name not in settings:
                counts[method] = counts.get(method, 0) + 1
        rows = ", ".join(f"{label_of(method)} ({n:,} records)" for method, n in counts.items())
        if rows:
            told.append(f"Not run again since {change}: {rows}.")
    return told


def table_time(records: Sequence[Record], keys: Iterable[str]) -> str:
    """Say how long a GPU was at work on the cells of some tables; empty where on none."""
    wanted = set(keys)
    on_gpu = [record for record in records if record["key"] in wanted and is_gpu(record)]
    if not on_gpu:
        return ""
    told = (
        f"{len(on_gpu):,} cells of both tables were run on a GPU. By the clock it was at work on "
        f"at least one of them for {at_work(on_gpu):,.0f} s, cells of other experiments beside "
        "them included."
    )
    others = [record for record in records if record["key"] in wanted and not is_gpu(record)]
    rows = dict.fromkeys(label_of(record["cell"]["method"]) for record in others)
    return told + (f" On a CPU: cells of {', '.join(sorted(rows))}." if rows else "")


def _seconds(records: Iterable[Record]) -> float:
    """What all took; a training that serves several cells, K = 1 and K = 10,000, counts once."""
    fits: set[tuple[str, float]] = set()
    total = 0.0
    for record in records:
        seconds = record.get("seconds") or {}
        total += float(seconds.get("impute") or 0.0)
        # cells that were trained on their own took another time
        fits.add((_training(record["cell"]), float(seconds.get("fit") or 0.0)))
    return total + sum(seconds for _, seconds in fits)


def _training(cell: Mapping[str, Any]) -> str:
    method, settings = cell["method"], cell.get("settings") or {}
    fit = METHODS[method].fit if method in METHODS else method
    settings = {name: value for name, value in settings.items() if name != "n_draws"}
    return json.dumps({**cell, "method": fit, "settings": settings}, sort_keys=True)


def agreement(grid: Grid, paper: Mapping[PaperKey, Figure]) -> list[str]:
    """Say how many means of a table agree with the paper's, and in which order the rows come."""
    judged = verdicts(grid, paper)
    if not judged:
        return ["There are no complete means to compare with the paper's yet."]
    if grid.metric.best == "high" or grid.metric.name == "rmse_printed":
        return [_counted("All cells", judged)]
    told = []
    exact = [verdict for verdict in judged if verdict.column.mechanism == "mcar"]
    if exact:
        told.append(_counted("MCAR", exact))
    mnar = [column for column in grid.columns if column.mechanism != "mcar"]
    orders = {column: order_agreement(grid, paper, column) for column in mnar}
    known = [
        f"{column.dataset} {decimals(value, digits=2)}"
        for column, value in orders.items()
        if value is not None
    ]
    if known:
        told.append(
            "MNAR: other columns were drawn here than in the paper, which scored in another way "
            "too, so its figures cannot be met. Rank correlation of its rows with ours: "
            + ", ".join(known)
            + "."
        )
    return told


def _counted(what: str, judged: Sequence[Verdict]) -> str:
    said = [verdict.verdict for verdict in judged]
    return (
        f"{what}: {said.count('agrees')} of {len(said)} means agree with the paper's; "
        f"{said.count('lower')} lower, {said.count('higher')} higher."
    )


def places(grid: Grid) -> str:
    """Say who is ranked best, and where the default stands."""
    ranked = [rank for rank in ranks(grid) if rank.mean_rank is not None]
    if not ranked:
        return "There are too few records to rank any row."
    names = grid.row_names()
    first = "; ".join(f"{names[rank.row]} {rank.mean_rank:.2f}" for rank in ranked[:3])
    told = f"Mean ranks over {ranked_columns(grid)} cells, of {len(ranked)} rows: {first}."
    mine = [(place, rank) for place, rank in enumerate(ranked, 1) if rank.row.method == DEFAULT]
    for place, rank in mine:
        told += (
            f" {names[rank.row]} is {place} of {len(ranked)} ({rank.mean_rank:.2f}) and has the "
            f"best mean on {rank.best_columns} of {len(grid.columns)} cells."
        )
    return told


def mnar_wins(grid: Grid) -> list[str]:
    """Say how often the default has the lower error, on the MNAR cells of a grid."""
    part = grid.only(_mnar(grid))
    told = []
    for method in AGAINST:
        pairs = [pair for pair in paired(part, Row(DEFAULT), Row(method)) if pair.n]
        if pairs:
            lower = sum((pair.difference or 0.0) < 0 for pair in pairs)
            told.append(
                f"{label_of(DEFAULT)} against {label_of(method)}, MNAR: lower error on "
                f"{sum(pair.wins for pair in pairs)} of {sum(pair.n for pair in pairs)} seeds, "
                f"lower mean on {lower} of {len(pairs)} cells."
            )
    return told


def mnar_table(grid: Grid) -> ResultTable:
    """Make the table of the default against others, paired by seed, on the MNAR cells."""
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
        f"RMSE of {label_of(DEFAULT)} less that of the other, mean over the seeds both have: below "
        "zero the default is better. In brackets its wins, and p of a two-sided paired t test, "
        "not corrected for the number of cells."
    )
    return ResultTable("", ["on", *map(label_of, AGAINST)], body, notes=[note])


def _mnar(grid: Grid) -> list[Column]:
    return [column for column in grid.columns if column.mechanism == "mnar"]
