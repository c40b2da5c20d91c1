"""The description of missing values in tables and sentences."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from psmvae.describe.auc import MIN_CELLS
from psmvae.describe.joint import MAX_COLUMNS
from psmvae.table.sections import MAX_SHOWN, Section

# single predictors listed for a column with holes
_N_STRONGEST = 3
_MAX_NAMES = 60
_LEVEL = 0.05

CANNOT_TELL = (
    "These data cannot tell whether a cell is missing because of its own value, which nobody saw. "
    "If observed values do not predict the mask, that is no evidence that the unseen ones do not; "
    "if they do, a dependence on the unseen ones may come on top. Compare results under several "
    "assumptions."
)


def sections(found: Mapping[str, Any]) -> list[Section]:
    """Return the sections of `MissingnessReport.to_dict`."""
    if found["n_missing"] == 0:
        counts = f"{_count(found['n_rows'], 'row')}, {_count(found['n_columns'], 'column')}"
        return [Section("Missing values", [], [f"{counts}: no cell is missing."])]
    return [
        _columns(found),
        _patterns(found["patterns"], found["n_rows"]),
        _little(found["little"]),
        _predictors(found),
        Section("What these data cannot tell", [], [CANNOT_TELL]),
    ]


def _columns(found: Mapping[str, Any]) -> Section:
    rates, flux = found["rates"], found["flux"]
    n_rows, n_cells = found["n_rows"], found["n_rows"] * found["n_columns"]
    names = ["column", "kind", "missing", "share", "influx", "outflux"]
    each = zip(
        rates["column"], rates["kind"], rates["n_missing"], rates["fraction"], flux["influx"],
        flux["outflux"], strict=True,
    )  # fmt: skip
    # all columns, unless there are many: then those with the most missing cells
    listed = list(each)
    if len(listed) > MAX_SHOWN:
        listed = sorted(listed, key=lambda row: -row[2])
    rows = [
        [name, kind, f"{n:,}", _share(share), _number(influx), _number(outflux)]
        for name, kind, n, share, influx, outflux in listed[:MAX_SHOWN]
    ]
    counts = (
        f"{_count(n_rows, 'row')}, {_count(found['n_columns'], 'column')}, "
        f"{_count(found['n_missing'], 'missing cell')} ({_share(found['n_missing'] / n_cells)}). "
        f"{found['n_complete']:,} of the rows are complete "
        f"({_share(found['n_complete'] / n_rows)})."
    )
    meaning = (
        "Influx: how many observed cells of other columns there are where the column is missing. "
        "Outflux: how often the column is observed where others are missing."
    )
    empty = [name for name, _, n, *_ in listed if n == n_rows]
    without = f"No value was observed of {_names(empty)}." if empty else ""
    more = _left(len(listed), "column", "rates and flux")
    texts = [more, counts, without, meaning if found["n_columns"] > 1 else ""]
    return Section("Missing cells", [names, *rows], [text for text in texts if text])


def _patterns(patterns: Mapping[str, Any], n_rows: int) -> Section:
    rows = [["rows", "share", "missing columns"]]
    for n, names in list(zip(patterns["n"], patterns["missing"], strict=True))[:MAX_SHOWN]:
        shown = textwrap.shorten(names, _MAX_NAMES, placeholder=" …") if names else "none"
        rows.append([f"{n:,}", _share(n / n_rows), shown])
    more = _left(len(patterns["n"]), "pattern", "patterns")
    return Section("Patterns", rows, [more] if more else [])


def _little(test: Mapping[str, Any]) -> Section:
    title = "Little's test"
    null = (
        "Null hypothesis: values are missing completely at random (MCAR), so that the means of the "
        "observed values are the same in all patterns. The test is derived for a multivariate "
        "Normal distribution; levels without an order are coded by indicators."
    )
    left_out = f"Not in the test: {_names(test['left_out'])}." if test["left_out"] else ""
    if test["reason"]:
        texts = [f"Not available: {test['reason']}.", left_out]
        return Section(title, [], [text for text in texts if text])
    p = test["p_value"]
    result = (
        f"d² = {test['statistic']:.2f}, df = {test['df']:,}, p {_p_value(p)}, from "
        f"{test['n_patterns']:,} patterns in {_count(test['n_rows'], 'row')}."
    )
    if p < _LEVEL:
        verdict = (
            "The means differ between patterns by more than chance explains: the data speak "
            "against MCAR. The test does not say whether values are missing at random (MAR) or not "
            "at random (MNAR)."
        )
    else:
        verdict = (
            "The test finds no evidence against MCAR. That is no evidence for it: in a small table "
            "it has little power, and it compares nothing but means of observed values."
        )
    effect = (
        f"Effect size: the means of patterns are {test['distance']:.2f} standard deviations from "
        f"those of all rows (95 % interval {test['distance_low']:.2f} to "
        f"{test['distance_high']:.2f}; root mean square, corrected for chance; 0 under the null "
        f"hypothesis); d²/df = {test['ratio']:.2f} (1 is expected under it)."
    )
    texts = [result, null, verdict, effect, left_out]
    return Section(title, [], [text for text in texts if text])


def _predictors(found: Mapping[str, Any]) -> Section:
    title = "Which columns predict which missing cells"
    single, joint = _records(found["predictors"]), _records(found["joint"])
    if not single and not joint:
        reason = "one column" if found["n_columns"] == 1 else "no column can be compared"
        return Section(title, [], [f"Not available: {reason}."])
    together = {row["column"]: row for row in joint}
    names = list(dict.fromkeys([*(row["column"] for row in single), *together]))
    rows = [["missing cells of", "all others", "strongest single columns"]]
    for name in names[:MAX_SHOWN]:
        known = [row for row in single if row["column"] == name and row["auc"] == row["auc"]]
        listed = ", ".join(_predictor(row) for row in known[:_N_STRONGEST])
        rows.append([name, _area(together.get(name)), listed or "–"])
    intervals = [row for row in (*single, *joint) if row["conf_low"] == row["conf_low"]]
    n = len(intervals)
    n_apart = sum(not row["conf_low"] <= 0.5 <= row["conf_high"] for row in intervals)
    meaning = (
        "Area under the ROC curve (AUC) for the mask of a column, with 95 % interval. Null "
        "hypothesis: an area of 0.5, the mask is unrelated to the column. Above 0.5, high values "
        "go with missing cells, below 0.5 low values; of masks, both are missing together. Levels "
        "without an order and all others together have cross-validated areas."
    )
    many = (
        f"{n_apart:,} of {_count(n, 'interval')} {'excludes' if n_apart == 1 else 'exclude'} 0.5. "
        f"If nothing were related, about {_LEVEL * n:.2g} would: intervals are not adjusted for "
        "their number, and the strongest of many is too extreme on average."
    )
    few = (
        f"Areas without a value have fewer than {MIN_CELLS} missing or {MIN_CELLS} observed cells."
    )
    wide = f"Tables of more than {MAX_COLUMNS} columns have no areas of all others together."
    known = [row for row in (*single, *joint) if row["auc"] == row["auc"]]
    separated = "An area without an interval separates all rows, or all within a fold."
    texts = [
        _left(len(names), "column", "predictors and joint"),
        meaning,
        many if n else "",
        separated if len(known) > n else "",
        few if len(known) < len(single) + len(joint) else "",
        wide if not joint and found["n_columns"] > MAX_COLUMNS else "",
    ]
    return Section(title, rows, [text for text in texts if text])


def _records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _predictor(row: Mapping[str, Any]) -> str:
    name = f"mask of {row['predictor']}" if row["by"] == "mask" else row["predictor"]
    return f"{name} {_area(row)}"


def _area(row: Mapping[str, Any] | None) -> str:
    if row is None or math.isnan(row["auc"]):
        return "–"
    if math.isnan(row["conf_low"]):
        return f"{row['auc']:.2f}"
    return f"{row['auc']:.2f} [{row['conf_low']:.2f}, {row['conf_high']:.2f}]"


def _left(n: int, what: str, where: str) -> str:
    more = n - MAX_SHOWN
    return f"… and {more:,} more {what}{'' if more == 1 else 's'}; see {where}." if more > 0 else ""


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:MAX_SHOWN])
    return listed if len(names) <= MAX_SHOWN else f"{listed} and {len(names) - MAX_SHOWN:,} more"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
