"""A report as Markdown text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from psmvae.reporting.data.texts import count, level, predictor_words
from psmvae.reporting.schema import (
    HeadData,
    ImputedColumn,
    ImputedData,
    MechanismColumn,
    MechanismData,
    MethodsData,
    MissingData,
    ReportData,
    ResultsData,
    SummaryData,
    TippingData,
    ValidationColumn,
    ValidationData,
)
from psmvae.table import numbers

# Rows of a table, and characters of a name or cell.
MAX_ROWS, MAX_LENGTH = 60, 80
# Characters with a meaning in Markdown or HTML, anywhere in a line and at its start.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
_AT_START = re.compile(r"^(\d*)([-+=#.):])")
# Control characters and line separators, and those that change the direction of the text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
QUANTILES = ("0 %", "5 %", "25 %", "50 %", "75 %", "95 %", "100 %")


def to_markdown(data: ReportData) -> str:
    """Return a report as Markdown.

    Parameters
    ----------
    data : ReportData
        What `collect` returns.

    Returns
    -------
    str
        Seven sections with tables. Names and values are escaped, so that they show as text.
    """
    blocks = [
        f"# {escape(data['title'])}",
        *_summary(data["summary"]),
        *_missing(data["missing"], data["table"]["shown"]),
        *_mechanism(data["mechanism"]),
        *_imputed(data["imputed"]),
        *_validation(data["validation"]),
        *_results(data["results"], data["table"]["n_complete_rows"]),
        *_methods(data["methods"]),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(text: Any) -> str:
    """Return a paragraph, on one line, that Markdown shows as it is."""
    return _AT_START.sub(r"\1\\\2", escape_cell(text))


def escape_cell(text: Any, max_length: int | None = None) -> str:
    """Return text within a line that Markdown shows as it is, cut where it is too long."""
    # half of a surrogate pair cannot be written to a file
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    line = " ".join(_CONTROL.sub(" ", whole).split())
    if max_length is not None and len(line) > max_length:
        line = f"{line[: max_length - 1]}…"
    return _SPECIAL.sub(r"\\\1", line)


def code_block(text: str) -> str:
    """Return text as a block of code, with a fence longer than any run of backticks in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], *, numeric_from: int = 1) -> str:
    """Return a table; columns from ``numeric_from`` on are aligned to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return ""
    left = len(cells) - MAX_ROWS
    aligned = ["---" if j < numeric_from else "---:" for j in range(len(names))]
    lines = [names, aligned, *cells[:MAX_ROWS]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n… and {left:,} more." if left > 0 else text


def _cell(value: Any) -> str:
    if value is None:
        return numbers.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return numbers.number(value)
    return escape_cell(value, MAX_LENGTH) or numbers.ABSENT


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape(text)}" for text in texts)


def _summary(data: SummaryData) -> list[str]:
    blocks = ["## In short", _bullets(data["sentences"])]
    if data["warnings"]:
        blocks += ["### Warnings", _bullets(data["warnings"])]
    return blocks


def _missing(data: MissingData, shown: Sequence[str]) -> list[str]:
    # the columns with the highest rates, where there are many
    order = {name: k for k, name in enumerate(shown)}
    columns = data["columns"]
    if len(columns) > MAX_ROWS:
        columns = sorted(columns, key=lambda one: order.get(one["name"], len(order)))
    rates = table(
        ["column", "kind", "missing", "share", "influx", "outflux"],
        (
            (one["name"], one["kind"], one["n_missing"], numbers.share(one["fraction"]),
             one["influx"], one["outflux"])
            for one in columns
        ),
        numeric_from=2,
    )  # fmt: skip
    patterns = data["patterns"]
    rows = [
        (
            row["n"],
            numbers.share(row["fraction"]),
            ", ".join(_absent(patterns["columns"], row["observed"])) or "none",
        )
        for row in patterns["rows"]
    ]
    return [
        "## What is missing",
        rates,
        "### Patterns",
        f"{patterns['n_patterns']:,} distinct, the most frequent first.",
        _patterns_table(rows),
        "### Little's test",
        escape(data["little"]["sentence"]),
    ]


def _absent(names: Sequence[str], observed: Sequence[bool]) -> list[str]:
    return [name for name, seen in zip(names, observed, strict=True) if not seen]


def _patterns_table(rows: Sequence[tuple[int, str | None, str]]) -> str:
    return table(
        ["missing columns", "rows", "share"], ((names, n, part) for n, part, names in rows)
    )


def _mechanism(data: MechanismData) -> list[str]:
    blocks = ["## Why"]
    if not data["columns"]:
        return [*blocks, "No shown column has missing cells."]
    names = ["column", "missing", "explained by", "strongest predictor", "AUC", "95 % interval"]
    blocks += [table(names, map(_mechanism_row, data["columns"]), numeric_from=4)]
    blocks += [_bullets(one["sentence"] for one in data["columns"][:MAX_ROWS])]
    if data["sets"]:
        rows = [
            (one["number"], numbers.share(one["fraction"]), one["mechanism"], one["missing"],
             one["differs_in"])
            for one in data["sets"]
        ]  # fmt: skip
        names = ["set", "share", "mechanism", "missing", "differs in"]
        blocks += ["### Pattern sets", table(names, rows, numeric_from=5)]
    return blocks


def _mechanism_row(one: MechanismColumn) -> tuple[Any, ...]:
    strongest = one["predictors"][0] if one["predictors"] else None
    chosen = f"{one['chosen']} (assumed)" if one["chosen"] and one["assumed"] else one["chosen"]
    if strongest is None:
        return one["name"], numbers.share(one["fraction"]), chosen, None, None, None
    label = predictor_words(strongest["predictor"], strongest["by"])
    limits = numbers.interval(strongest["conf_low"], strongest["conf_high"])
    return one["name"], numbers.share(one["fraction"]), chosen, label, strongest["auc"], limits


def _imputed(data: ImputedData | None) -> list[str]:
    title = "## What was imputed"
    if data is None:
        return [title, "No imputations were given."]
    numeric = [one for one in data["columns"] if one["observed"] is not None]
    with_levels = [one for one in data["columns"] if one["bars"] is not None]
    by = "" if data["imputer"] is None else f" by {escape(data['imputer'])}"
    blocks = [title, f"{count(data['m'], 'imputation')}{by}."]
    names = ["column", "imputed", "outside", "mean observed", "mean imputed", "SD observed",
             "SD imputed", "range observed", "range imputed"]  # fmt: skip
    blocks += [table(names, map(_numeric_row, numeric))]
    rows = [row for one in with_levels for row in _level_rows(one)]
    if rows:
        names = ["column", "level", "observed", "imputed", "between imputations"]
        blocks += [table(names, rows, numeric_from=2)]
    return [*blocks, "### First rows of the first imputation", *_head(data["head"])]


def _numeric_row(one: ImputedColumn) -> tuple[Any, ...]:
    observed, imputed = one["observed"], one["imputed"]
    parts: list[Any] = []
    for name in ("mean", "sd"):
        parts += [part and part[name] for part in (observed, imputed)]
    ranges = [part and numbers.interval(part["low"], part["high"]) for part in (observed, imputed)]
    return one["name"], one["n_imputed"], one["n_outside"], *parts, *ranges


def _level_rows(one: ImputedColumn) -> list[tuple[Any, ...]]:
    bars = one["bars"]
    if bars is None:
        return []
    each = zip(
        bars["levels"], bars["observed"], bars["imputed"], bars["imputed_low"],
        bars["imputed_high"], strict=True,
    )  # fmt: skip
    return [
        (
            one["name"],
            level,
            numbers.share(seen),
            numbers.share(filled),
            f"{numbers.share(low)} to {numbers.share(high)}",
        )
        for level, seen, filled, low, high in each
    ]


def _head(data: HeadData) -> list[str]:
    rows = [
        (
            str(number),
            *(f"{cell} ◆" if new else cell for cell, new in zip(cells, flags, strict=True)),
        )
        for number, cells, flags in zip(
            data["row_numbers"], data["cells"], data["imputed"], strict=True
        )
    ]
    names = ["row", *(escape_cell(name, MAX_LENGTH) or numbers.ABSENT for name in data["columns"])]
    return [table(names, rows), "◆ imputed"]


def _validation(data: ValidationData | None) -> list[str]:
    title = "## Can it be believed"
    if data is None:
        return [title, "No imputer was checked on held-out cells."]
    blocks = [title, escape(data["sentence"])]
    methods = data["methods"]
    if methods:
        errors = [
            (method, data["error_numbers"][method], numbers.share(data["error_levels"][method]))
            for method in methods
        ]
        blocks += [
            table(
                ["method", "mean RMSE, standard deviations", "mean share of wrong levels"], errors
            ),
            f"Coverage of 90 % intervals: {numbers.share(data['coverage'])}. Counts of ten bins "
            "of the probability integral transform, which are equal but for chance if intervals "
            f"are right: {', '.join(map(str, data['pit']))}.",
        ]
        names = ["column", "kind", "cells", *map(escape_cell, methods), "coverage"]
        rows = [_validation_row(one, methods) for one in data["columns"]]
        blocks += [table(names, rows, numeric_from=2)]
    return [*blocks, *_diagnostics(data)]


def _validation_row(one: ValidationColumn, methods: Sequence[str]) -> tuple[Any, ...]:
    errors = [one["error"].get(method) for method in methods]
    return one["name"], one["kind"], one["n"], *errors, numbers.share(one["coverage"])


def _diagnostics(data: ValidationData) -> list[str]:
    blocks: list[str] = []
    if (training := data["training"]) is not None:
        known = [value for value in training["validation_error"] if value is not None]
        best = f"; lowest validation error {min(known):.4g}" if known else ""
        blocks += ["### Training", f"{training['epoch'][-1]:,} epochs{best}."]
    if (sizes := data["effective_sample_size"]) is not None:
        blocks += [
            "### Effective sample sizes of the rows",
            table(QUANTILES, [sizes], numeric_from=0),
        ]
    if (chains := data["convergence"]) is not None:
        rows = zip(chains["columns"], chains["r_hat_mean"], chains["r_hat_sd"], strict=True)
        names = ["column", "R-hat of the mean", "R-hat of the SD"]
        blocks += ["### Convergence of the chains", table(names, rows)]
    return blocks


def _results(data: ResultsData | None, n_complete: int) -> list[str]:
    title = "## What follows"
    if data is None:
        return [title, "No analyses were given."]
    blocks = [title]
    if data["estimates"]:
        names = ["term", "estimate", "95 % interval", "std. error", "df", "p", "fmi",
                 "complete cases", "95 % interval"]  # fmt: skip
        rows = []
        for one in data["estimates"]:
            complete = one["complete_cases"]
            rows.append((
                one["term"], one["estimate"], numbers.interval(one["conf_low"], one["conf_high"]),
                one["std_error"], one["df"], numbers.p_value(one["p_value"]), one["fmi"],
                complete and complete[0], complete and numbers.interval(complete[1], complete[2]),
            ))  # fmt: skip
        blocks += [
            f"Pooled from {count(data['m'] or 0, 'imputation')}; complete cases are "
            f"{count(n_complete, 'row')}.",
            table(names, rows),
        ]
    if data["assumptions"]:
        compared = [
            (one["assumption"], one["term"], one["estimate"],
             numbers.interval(one["conf_low"], one["conf_high"]), numbers.p_value(one["p_value"]))
            for one in data["assumptions"]
        ]  # fmt: skip
        interval = f"{level(data['assumptions'][0]['alpha'])} interval"
        names = ["assumption", "term", "estimate", interval, "p"]
        blocks += ["### Assumptions side by side", table(names, compared, numeric_from=2)]
        blocks += [escape(data["assumptions_sentence"] or "")]
    if data["tipping"] is not None:
        blocks += _tipping(data["tipping"])
    return blocks


def _tipping(data: TippingData) -> list[str]:
    groups = data["groups"] or [""]
    heads = [f"δ {escape_cell(group)}".strip() for group in groups]
    first, second = data["axes"][0], data["axes"][1] if len(data["axes"]) > 1 else [None]
    rows = [
        (
            *([x] if y is None else [x, y]),
            data["estimate"][i][j],
            numbers.interval(data["conf_low"][i][j], data["conf_high"][i][j]),
            numbers.p_value(data["p_value"][i][j]),
            data["holds"][i][j],
        )
        for i, x in enumerate(first)
        for j, y in enumerate(second)
    ]
    interval = f"{level(data['alpha'])} interval"
    names = [*heads, "estimate", interval, "p", "conclusion holds"]
    return ["### Tipping point", escape(data["sentence"]), table(names, rows, numeric_from=0)]


def _methods(data: MethodsData) -> list[str]:
    questions = [
        f"{k}. **{escape(one['question'])}** {escape(one['answer'])}"
        for k, one in enumerate(data["questions"], 1)
    ]
    seed = [] if data["seed"] is None else [("seed", str(data["seed"]))]
    made = [*data["versions"].items(), *seed, *data["parameters"].items()]
    return [
        "## How to write it up",
        escape(data["paragraph"]),
        "### Twelve questions, after van Buuren's guideline for reporting",
        "\n".join(questions),
        "### Versions and parameters",
        table(["what", "value"], made, numeric_from=2),
        "### To repeat it",
        code_block(data["command"]),
    ]
