"""What a picture shows, in words with numbers, for those who do not see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from psmvae.graphics.labels import isolated, percent, short
from psmvae.reporting.data.texts import level
from psmvae.reporting.drawing.mechanism import predictor_label, set_columns
from psmvae.reporting.schema import (
    AssumptionRow,
    BarData,
    ColumnRate,
    ConvergenceData,
    CorrelationData,
    DensityData,
    EstimateRow,
    MechanismColumn,
    Number,
    PatternData,
    PredictorData,
    RowMapData,
    ScatterData,
    SetData,
    StripData,
    TippingData,
    TrainingData,
    ValidationColumn,
)

_ITEMS = 12  # items of a list that are told; a table of the page has the others


def rates(columns: Sequence[ColumnRate]) -> str:
    """Return the missing rates, the highest first."""
    rows = sorted(columns, key=lambda row: -row["fraction"])
    return "Missing rate by column: " + _listed(
        [f"{_name(row['name'])} {percent(row['fraction'])}" for row in rows]
    )


def patterns(data: PatternData) -> str:
    """Return the most frequent patterns."""
    each = []
    for row in data["rows"]:
        pairs = zip(data["columns"], row["observed"], strict=True)
        missing = [_name(name) for name, seen in pairs if not seen]
        what = f"{_listed(missing, 4).removesuffix('.')} missing" if missing else "complete"
        each.append(f"{row['n']:,} rows {what}")
    return f"Patterns of missing cells, {data['n_patterns']:,} in all: {_listed(each, 6, '; ')}"


def correlation(data: CorrelationData) -> str:
    """Return the strongest correlations."""
    pairs = [
        (value, data["columns"][i], data["columns"][j])
        for i, row in enumerate(data["values"])
        for j, value in enumerate(row[:i])
        if value is not None
    ]
    strongest = sorted(pairs, key=lambda pair: -abs(pair[0]))[:5]
    each = [f"{_name(one)} and {_name(two)} {value:.2f}" for value, one, two in strongest]
    return "Correlations between missing cells of columns, the strongest: " + _listed(each)


def flux(columns: Sequence[ColumnRate]) -> str:
    """Return influx and outflux of columns."""
    known = [row for row in columns if row["influx"] is not None and row["outflux"] is not None]
    rows = sorted(known, key=lambda row: row["outflux"] or 0.0)
    each = [f"{_name(row['name'])} {row['influx']:.2f} and {row['outflux']:.2f}" for row in rows]
    return "Influx and outflux by column, the lowest outflux first: " + _listed(each)


def row_map(data: RowMapData) -> str:
    """Return where in the table cells are missing."""
    each = []
    for j, name in enumerate(data["columns"]):
        values = [row[j] for row in data["fraction"]]
        each.append(f"{_name(name)} {percent(min(values))} to {percent(max(values))}")
    blocks = len(data["first_row"])
    return f"Missing rate in {blocks} blocks of consecutive rows: {_listed(each)}"


def odds(column: MechanismColumn) -> str:
    """Return the probability of going missing by value."""
    name = _name(column["name"])
    found = column["odds"]
    if found is None or not found["value"]:
        return f"Histogram of the {sum(column['observed']['counts']):,} observed values of {name}."
    if column["observed"]["levels"] is not None:
        each = [
            f"{_name(value)} {percent(p)}"
            for value, p in zip(found["value"], found["probability"], strict=True)
        ]
        return f"Probability that {name} goes missing, by level: {_listed(each)}"
    ends = [f"{percent(found['probability'][k])} at {_value(found['value'][k])}" for k in (0, -1)]
    return f"Probability that {name} goes missing, by value: {' to '.join(ends)}, with a 90 % band."


def predictors(name: str, rows: Sequence[PredictorData]) -> str:
    """Return the areas under the ROC curve."""
    each = [f"{predictor_label(row)} {row['auc']:.2f}" for row in rows if row["auc"] is not None]
    return f"Area under the ROC curve of predictors of missing {_name(name)}: {_listed(each)}"


def sets(rows: Sequence[SetData]) -> str:
    """Return the largest missing rates of each pattern set."""
    columns = set_columns(rows)
    each = []
    for row in rows:
        highest = sorted(columns, key=lambda name: -row["mask_rates"].get(name, 0.0))[:3]
        what = [f"{_name(name)} {percent(row['mask_rates'].get(name, 0.0))}" for name in highest]
        share = percent(row["fraction"])
        each.append(f"set {row['number']} ({share} of rows): {', '.join(what)}")
    return f"Missing rates by pattern set: {_listed(each, separator='; ')}"


def densities(name: str, data: DensityData) -> str:
    """Return the modes of the densities."""
    x = data["x"]
    mode = short(x[int(np.argmax(data["observed"]))])
    text = f"Densities of {_name(name)}: observed values with the mode {mode}"
    if not data["imputed"]:
        return f"{text}; too few cells are imputed for a density."
    modes = [x[int(np.argmax(each))] for each in data["imputed"]]
    return (
        f"{text}, {len(modes)} imputations with modes from {short(min(modes))} to "
        f"{short(max(modes))}."
    )


def bars(name: str, data: BarData) -> str:
    """Return the fractions of levels."""
    rows = zip(data["levels"], data["observed"], data["imputed"], strict=True)
    each = [f"{_name(level)} {percent(seen)} and {percent(drawn)}" for level, seen, drawn in rows]
    return f"Levels of {_name(name)}, observed and imputed: {_listed(each)}"


def strip(name: str, data: StripData) -> str:
    """Return the ranges of single values."""
    each = [f"observed {_range(data['observed'])}"]
    each += [f"imputation {k} {_range(v)}" for k, v in enumerate(data["imputed"], 1)]
    return f"Single values of {_name(name)}: {_listed(each)}"


def scatter(data: ScatterData) -> str:
    """Return the correlations of two columns."""
    parts = []
    for label, pairs in (
        ("observed", data["observed"]),
        ("with an imputed value", data["imputed"]),
    ):
        text = f"{len(pairs):,} pairs {label}"
        values = np.array(pairs, dtype=float).reshape(-1, 2)
        # squares of very large values overflow
        values /= np.abs(values).max(0, initial=np.finfo(float).tiny)
        if len(values) > 2 and (values.std(axis=0) > 0).all():
            text += f" (correlation {np.corrcoef(values.T)[0, 1]:.2f})"
        parts.append(text)
    return f"Scatter of {_name(data['y'])} by {_name(data['x'])}: {parts[0]}, {parts[1]}."


def overimputation(column: ValidationColumn) -> str:
    """Return the coverage of intervals."""
    inside = sum(
        low <= value <= high
        for value, low, high in zip(column["truth"], column["low"], column["high"], strict=True)
    )
    return (
        f"Held-out values of {_name(column['name'])} against their imputations: "
        f"{inside} of the {len(column['truth'])} intervals drawn contain the value; coverage of "
        f"90 % intervals over all {column['n']:,} cells: {percent(column['coverage'])}."
    )


def pit(counts: Sequence[int]) -> str:
    """Return the counts of the probability integral transform."""
    each = ", ".join(f"{count:,}" for count in counts)
    expected = short(sum(counts) / len(counts)) if counts else "0"
    return f"Counts of the probability integral transform by tenths: {each}; expected {expected}."


def errors(
    rows: Sequence[tuple[str, Mapping[str, Number]]], methods: Sequence[str], unit: str
) -> str:
    """Return the errors of the methods."""
    each = []
    for name, found in rows:
        values = ", ".join(f"{method} {short(found.get(method))}" for method in methods)
        each.append(f"{_name(name)}: {values}")
    return f"{unit[:1].upper()}{unit[1:]} by column: {_listed(each, separator='; ')}"


def training(data: TrainingData) -> str:
    """Return first, lowest and last error."""
    pairs = zip(data["epoch"], data["validation_error"], strict=True)
    known = [(error, epoch) for epoch, error in pairs if error is not None]
    if not known:
        return "Training curve without a validation error."
    error, epoch = min(known)
    return (
        f"Validation error over {data['epoch'][-1]} epochs: from {short(known[0][0])} to its "
        f"minimum {short(error)} in epoch {epoch}."
    )


def r_hat(data: ConvergenceData) -> str:
    """Return R-hat of columns."""
    rows = zip(data["columns"], data["r_hat_mean"], data["r_hat_sd"], strict=True)
    each = [f"{_name(name)} {short(mean)} and {short(sd)}" for name, mean, sd in rows]
    return f"R-hat of means and standard deviations of chains: {_listed(each)}"


def trace(name: str, chains: Sequence[Sequence[float]]) -> str:
    """Return where chains end."""
    ends = [chain[-1] for chain in chains if chain]
    return (
        f"Mean of the imputed cells of {_name(name)} over "
        f"{max(map(len, chains), default=0)} iterations in {len(chains)} chains, which end "
        f"between {_range(ends).replace(' to ', ' and ')}."
    )


def estimates(rows: Sequence[EstimateRow]) -> str:
    """Return estimates with their intervals."""
    each = []
    for row in rows:
        text = (
            f"{_name(row['term'])} {_interval(row['estimate'], row['conf_low'], row['conf_high'])}"
        )
        if row["complete_cases"] is not None:
            text += f", complete cases {_interval(*row['complete_cases'])}"
        each.append(text)
    return f"Pooled estimates with 95 % intervals: {_listed(each, separator='; ')}"


def assumptions(rows: Sequence[AssumptionRow]) -> str:
    """Return the estimates under each assumption; there is at least one."""
    each = [
        f"{_name(row['assumption'])} "
        f"{_interval(row['estimate'], row['conf_low'], row['conf_high'])}"
        for row in rows
    ]
    term, interval = _name(rows[0]["term"]), f"{level(rows[0]['alpha'])} interval"
    return f"Estimate of {term} with {interval} by assumption: {_listed(each, separator='; ')}"


def tipping(data: TippingData) -> str:
    """Return how the estimate moves over δ, and where the conclusion holds."""
    values = [each for row in data["estimate"] for each in row]
    holds = [each for row in data["holds"] for each in row]
    text = f"Estimate of {_name(data['term'])} over shifts δ of imputed {_name(data['column'])}: "
    text += f"{_range(values)}; the conclusion holds at {sum(holds)} of {len(holds)} values of δ"
    if len(data["axes"]) == 1:
        turns = [
            f"between {short(a)} and {short(b)}"
            for (a, one), (b, two) in pairwise(zip(data["axes"][0], holds, strict=True))
            if one != two
        ]
        text += f" and turns {' and '.join(turns)}" if turns else ""
    return text + "."


def _name(text: object) -> str:
    return isolated(text, 40)


def _value(value: float | str) -> str:
    return _name(value) if isinstance(value, str) else short(value)


def _range(values: Sequence[float]) -> str:
    return f"{short(min(values))} to {short(max(values))}" if values else "none"


def _interval(estimate: Number, low: Number, high: Number) -> str:
    return f"{short(estimate)} ({short(low)} to {short(high)})"


def _listed(items: Sequence[str], count: int = _ITEMS, separator: str = ", ") -> str:
    if not items:
        return "none."
    rest = len(items) - count
    return separator.join(items[:count]) + (f" and {rest} more." if rest > 0 else ".")
