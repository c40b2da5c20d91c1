"""What a reader should beware of: warnings, from the numbers of the sections and the imputer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from psmvae.imputers.fit_warnings import MIN_CELLS, MIN_ROWS, ImproperDrawsWarning
from psmvae.multiple.convergence import HIGH_R_HAT
from psmvae.multiple.pooling import HIGH_FMI
from psmvae.reporting.data.results import imputations_needed
from psmvae.reporting.data.sections import Sections
from psmvae.reporting.data.texts import count, joined, listed, short
from psmvae.reporting.schema import ResultsData, ValidationColumn, ValidationData
from psmvae.table.numbers import share

# Columns with a larger missing rate, or with fewer observed cells.
HIGH_RATE, FEW_OBSERVED = 0.5, 30
# Coverage of 90 % intervals that is well below, and standard errors that chance may explain.
LOW_COVERAGE, N_ERRORS = 0.85, 3.0
# Median effective sample size below which most imputations depend on one or two draws.
LOW_SAMPLE_SIZE = 2.0
MAX_OUTSIDE = 0.05


def cautions(parts: Sections) -> list[str]:
    """Return all warnings, those about the table first."""
    found = [*_about_table(parts), *_about_mechanism(parts)]
    if parts.imputer is not None:
        found += _about_fit(parts.imputer)
    if parts.validation is not None:
        found += _about_validation(parts.validation)
    found += _about_imputations(parts)
    if parts.results is not None:
        found += _about_results(parts.results)
    return found


def _about_table(parts: Sections) -> Iterator[str]:
    n_rows, columns = parts.table["n_rows"], parts.missing["columns"]
    empty = [one["name"] for one in columns if one["n_missing"] == n_rows]
    if empty:
        yield f"No value was observed of {listed(empty)}, which cannot be imputed."
    high = [
        f"{short(one['name'])} ({share(one['fraction'])})"
        for one in sorted(columns, key=lambda one: -one["fraction"])
        if HIGH_RATE < one["fraction"] < 1
    ]
    if high:
        yield f"More than half of the cells are missing in {joined(high)}."
    few = [
        f"{short(one['name'])} ({n_rows - one['n_missing']:,})"
        for one in columns
        if one["n_missing"] and 0 < n_rows - one["n_missing"] < FEW_OBSERVED
    ]
    if few:
        yield f"Fewer than {FEW_OBSERVED} values were observed of {joined(few)}."


def _about_mechanism(parts: Sections) -> Iterator[str]:
    if found := parts.mechanism["own_value_found"]:
        yield (
            f"The missing cells of {listed(found)} seem to depend on their own values (missing not "
            "at random). The imputations are corrected for this under assumptions that the data "
            "cannot check; compare several."
        )
    if assumed := parts.mechanism["own_value_assumed"]:
        yield (
            f"That the missing cells of {listed(assumed)} depend on their own values was assumed, "
            "and the data cannot check it; compare several assumptions."
        )
    if parts.table["n_missing"] and not parts.by_own_value:
        yield (
            "Masks and observed values cannot show whether cells are missing because of their own "
            "values; compare results under several assumptions."
        )


def _about_fit(imputer: Any) -> Iterator[str]:
    facts = imputer.describe()
    n_columns = len(imputer.schema_.modelled)
    n_cells = round(imputer.n_rows_ * float(np.sum(1 - imputer.missing_rate_)))
    small = imputer.n_rows_ < MIN_ROWS or n_cells < MIN_CELLS * n_columns
    if "config" in facts and small:
        yield (
            f"{type(imputer).__name__} was fitted to {count(imputer.n_rows_, 'row')} with "
            f"{count(n_cells, 'observed cell')}, fewer than it can learn from; compare with "
            "MICEImputer."
        )
    if dropped := facts.get("dropped"):
        yield (
            f"Constant or collinear predictors were left out for {listed(list(dropped))}; see "
            "dropped_ of the imputer."
        )
    if facts.get("converged") is False:
        yield (
            f"The conditional means of {type(imputer).__name__} did not converge in "
            f"{facts['n_rounds']} rounds; increase max_iter."
        )
    if not imputer._draws_are_proper():  # noqa: SLF001 (what `impute_multiple` warns of)
        text = str(ImproperDrawsWarning(type(imputer).__name__))
        yield f"{text[0].upper()}{text[1:].rstrip('.')}."


def _about_validation(found: ValidationData) -> Iterator[str]:
    if not found["methods"]:
        yield found["sentence"]
    n_numeric = sum(one["n"] for one in found["columns"] if one["coverage"] is not None)
    if found["coverage"] is not None and _is_low(found["coverage"], n_numeric):
        yield (
            f"90 % intervals of held-out cells contain the true value in {share(found['coverage'])}"
            " only: imputations are biased, or vary too little."
        )
    low = [
        f"{short(one['name'])} ({share(one['coverage'] or 0.0)})"
        for one in found["columns"]
        if one["coverage"] is not None and _is_low(one["coverage"], one["n"])
    ]
    if low:
        yield (
            f"Coverage of 90 % intervals is low in {joined(low)}: imputations are biased there, or "
            "vary too little."
        )
    if found["methods"]:
        own = found["methods"][0]
        worse = [one["name"] for one in found["columns"] if _is_worse_than_mean(one, own)]
        if worse and own != "MeanImputer":
            yield (
                f"Held-out cells of {listed(worse)} were predicted worse than by the mean or the "
                "most frequent level."
            )
    if (sizes := found["effective_sample_size"]) is not None:
        median = sizes[len(sizes) // 2]
        if median < LOW_SAMPLE_SIZE:
            yield (
                f"The median effective sample size of the rows is {median:.1f}: single imputations "
                "depend on few draws; increase n_draws."
            )
    if (chains := found["convergence"]) is not None:
        pairs = zip(chains["columns"], chains["r_hat_mean"], chains["r_hat_sd"], strict=True)
        largest = {name: max(mean or 0.0, sd or 0.0) for name, mean, sd in pairs}
        high = [
            f"{short(name)} ({value:.2f})" for name, value in largest.items() if value > HIGH_R_HAT
        ]
        if high:
            yield f"Chains have not converged: R-hat is above {HIGH_R_HAT} for {joined(high)}."


def _is_low(coverage: float, n: int) -> bool:
    """Return whether a coverage is well below 90 %, by more than chance explains."""
    error = float(np.sqrt(0.9 * 0.1 / n))
    return coverage < LOW_COVERAGE and coverage < 0.9 - N_ERRORS * error


def _is_worse_than_mean(one: ValidationColumn, own: str) -> bool:
    error, of_mean = one["error"].get(own), one["error"].get("MeanImputer")
    return error is not None and of_mean is not None and error > 1.05 * of_mean


def _about_imputations(parts: Sections) -> Iterator[str]:
    if parts.imputed is None:
        return
    m = parts.imputed["m"]
    outside = [
        f"{short(one['name'])} ({share(one['n_outside'] / (m * one['n_imputed']))})"
        for one in parts.imputed["columns"]
        if one["n_imputed"] and one["n_outside"] > MAX_OUTSIDE * m * one["n_imputed"]
    ]
    if outside:
        yield (
            f"Imputed values lie outside the observed range in {joined(outside)}; set bounds where "
            "such values are impossible."
        )
    if parts.info.get("shift"):
        yield "Imputed values were shifted for a sensitivity analysis."


def _about_results(found: ResultsData) -> Iterator[str]:
    fmi = {one["term"]: one["fmi"] for one in found["estimates"] if one["fmi"] is not None}
    high = [f"{short(term)} ({value:.2f})" for term, value in fmi.items() if value > HIGH_FMI]
    if high:
        yield (
            f"More than half of the information about {joined(high)} is missing (fmi): the result "
            "depends mostly on the imputation model."
        )
    needed = imputations_needed(found)
    if needed is not None and found["m"] is not None and found["m"] < needed[0]:
        yield (
            f"Standard errors of {count(found['m'], 'imputation')} would change by more than 5 % "
            f"if the table were imputed again: {needed[0]:,} are needed for the largest fraction "
            f"of missing information ({needed[1]:.2f}); see how_many."
        )
    if (tipping := found["tipping"]) is not None and not np.all(tipping["holds"]):
        yield (
            f"The conclusion about {short(tipping['term'])} turns within the shifts of "
            f"{short(tipping['column'])} that were tried."
        )
