"""Twelve questions for reports, answered as far as the analysis tells.

They are worded after the guideline of van Buuren, S. (2018), Flexible Imputation of Missing Data,
2nd ed., section 12.2. What the objects do not tell is for the author to add, in square brackets.
"""

from __future__ import annotations

from collections.abc import Callable

from psmvae.multiple import PooledResults
from psmvae.reporting.data import imputer_words, repeat
from psmvae.reporting.data.results import imputations_needed
from psmvae.reporting.data.sections import Sections
from psmvae.reporting.data.texts import MAX_NAMES, count, joined, listed, predictor_words, short
from psmvae.reporting.schema import PredictorData, Question, ResultsData
from psmvae.table.numbers import share

NO_IMPUTATIONS = "No imputations were given."


def questions(parts: Sections) -> list[Question]:
    """Return the twelve questions with their answers."""
    return [{"question": text, "answer": answer(parts)} for text, answer in _QUESTIONS]


def _amount(parts: Sections) -> str:
    table = parts.table
    incomplete = [one for one in parts.missing["columns"] if one["n_missing"]]
    if not incomplete:
        return f"No cell is missing in {count(table['n_rows'], 'row')}."
    worst = sorted(incomplete, key=lambda one: -one["n_missing"])
    each = [
        f"{short(one['name'])} {one['n_missing']:,} ({share(one['fraction'])})" for one in worst
    ]
    return (
        f"{table['n_missing']:,} of {count(table['n_cells'], 'cell')} "
        f"({share(table['n_missing'] / table['n_cells'])}), in {len(incomplete):,} of "
        f"{count(table['n_columns'], 'column')}: {joined(each, 10)}. "
        f"{table['n_complete_rows']:,} of {count(table['n_rows'], 'row')} are complete "
        f"({share(table['n_complete_rows'] / table['n_rows'])}). "
        "[Add: numbers by time point, if people dropped out.]"
    )


def _reasons(parts: Sections) -> str:
    texts = []
    if found := parts.mechanism["own_value_found"]:
        texts.append(
            f"The values of {listed(found)} were chosen as the explanation of which of them are "
            "missing, by a comparison with the other columns."
        )
    if assumed := parts.mechanism["own_value_assumed"]:
        texts.append(f"Values of {listed(assumed)} were assumed to be missing because of them.")
    related = [
        f"for {short(one['name'])}, {_strongest(one['predictors'][0])}"
        for one in parts.mechanism["columns"]
        if one["predictors"] and _is_related(one["predictors"][0])
    ]
    if related:
        more = len(related) - MAX_NAMES
        rest = f"; and {more:,} more" if more > 0 else ""
        texts.append(
            f"The best predictors of missing cells: {'; '.join(related[:MAX_NAMES])}{rest}."
        )
    texts.append(
        "[Add: what is known about the reasons, whether values are missing by design, and whether "
        "the reasons are related to the outcome.]"
    )
    return " ".join(texts)


def _strongest(predictor: PredictorData) -> str:
    return predictor_words(short(predictor["predictor"]), predictor["by"])


def _is_related(predictor: PredictorData) -> bool:
    low, high = predictor["conf_low"], predictor["conf_high"]
    return low is not None and high is not None and not low <= 0.5 <= high


def _consequences(parts: Sections) -> str:
    table, little = parts.table, parts.missing["little"]
    lost = table["n_rows"] - table["n_complete_rows"]
    texts = [
        f"An analysis of complete rows would leave out {count(lost, 'row')} "
        f"({share(lost / table['n_rows'])}).",
        little["sentence"],
    ]
    texts.append("[Add: how complete and incomplete rows differ in the key variables.]")
    return " ".join(text for text in texts if text)


def _method(parts: Sections) -> str:
    if parts.imputed is None:
        return f"{NO_IMPUTATIONS} [Add: how missing values were handled.]"
    how = "[Add: how the columns were imputed.]"
    if parts.imputer is not None:
        how = imputer_words.procedure(parts.imputer)
    return (
        f"Multiple imputation by {parts.method}. Cells were taken to be {parts.assumption}. {how}"
    )


def _software(parts: Sections) -> str:
    found = ", ".join(f"{name} {version}" for name, version in repeat.versions().items())
    if parts.imputer is None:
        made_by = "" if parts.imputed is None else f"Imputations: {parts.software}. "
        return f"{made_by}This report: {found}. [Add: settings of the imputation.]"
    changed = repeat.parameters(parts.imputer)
    settings = ", ".join(f"{name}={value}" for name, value in changed.items())
    settings = f"Settings other than the defaults: {settings}." if changed else "Default settings."
    seed = "No seed was kept." if parts.seed is None else f"Seed {parts.seed}."
    return f"{found}; class {parts.imputer_name}. {settings} {seed}"


def _number(parts: Sections) -> str:
    if parts.m is None:
        return NO_IMPUTATIONS
    text = f"{count(parts.m, 'completed table')}."
    needed = None if parts.results is None else imputations_needed(parts.results)
    if needed is not None:
        text += (
            f" The largest fraction of missing information is estimated as {needed[1]:.2f}. By its "
            f"upper confidence limit, {needed[0]:,} are needed for standard errors with a "
            "coefficient of variation of 0.05 (von Hippel 2020)."
        )
    return text


def _model(parts: Sections) -> str:
    if parts.imputer is None:
        return "[Add: the columns of the imputation model and how each was imputed.]"
    columns = parts.imputer.schema_.modelled
    kinds: dict[str, list[str]] = {}
    for column in columns:
        kinds.setdefault(column.kind, []).append(column.name)
    each = "; ".join(f"{kind}: {listed(names)}" for kind, names in kinds.items())
    empty = [one.name for one in parts.imputer.schema_.columns if not one.n_observed]
    left_out = f" Left out, without an observed value: {listed(empty)}." if empty else ""
    return (
        f"{count(len(columns), 'column')}, by kind: {each}.{left_out} "
        f"{imputer_words.predictors(parts.imputer)} [Add: how clusters, strata or sampling weights "
        "were taken into account.]"
    )


def _derived(parts: Sections) -> str:
    formulas = parts.info.get("derived") or {}
    if parts.imputer is not None:
        formulas = parts.imputer.schema_.formulas
    if formulas:
        each = [f"{short(name)} = {formula}" for name, formula in formulas.items()]
        return f"Computed from the imputed columns, and not imputed: {joined(each, 10)}."
    return "No column was declared as derived. [Add: transformations made after imputation.]"


def _diagnostics(parts: Sections) -> str:
    texts = []
    found = parts.validation
    if found is not None and found["convergence"] is not None:
        chains = found["convergence"]
        r_hat = [v for v in (*chains["r_hat_mean"], *chains["r_hat_sd"]) if v is not None]
        if r_hat:
            texts.append(f"The largest split R-hat of the chains is {max(r_hat):.3f}.")
    if found is not None and found["training"] is not None:
        last = found["training"]["epoch"][-1]
        texts.append(f"The error of validation cells was monitored for {last:,} epochs.")
    if parts.imputed is not None:
        n_outside = sum(one["n_outside"] for one in parts.imputed["columns"])
        texts.append(
            "Distributions of observed and imputed values were compared in plots; "
            f"{count(n_outside, 'imputed value')} in the columns shown lie outside the observed "
            "range."
        )
    if found is not None and found["coverage"] is not None:
        texts.append(
            f"Of {count(found['n_cells'], 'held-out cell')}, the numeric ones were within their "
            f"90 % intervals in {share(found['coverage'])}."
        )
    return " ".join(texts) or "[Add: diagnostics.]"


def _pooling(parts: Sections) -> str:
    if parts.results is None or not parts.results["estimates"]:
        return "No analyses were given. [Add: how estimates were pooled.]"
    scale = parts.analyses.scale if isinstance(parts.analyses, PooledResults) else "identity"
    on = "without a transformation" if scale == "identity" else f"on the scale {scale!r}"
    return f"By Rubin's rules, {on}, with {degrees_of_freedom(parts.results)}."


def degrees_of_freedom(results: ResultsData) -> str:
    """Return which degrees of freedom pooled estimates have."""
    if results["df_rule"] == "barnard-rubin":
        return (
            f"degrees of freedom of Barnard and Rubin (1999) for {results['dfcom']:g} of complete "
            "data"
        )
    return "degrees of freedom of Rubin (1987), which are for large samples"


def _complete_cases(parts: Sections) -> str:
    rows = parts.results["estimates"] if parts.results is not None else []
    known = [one for one in rows if one["complete_cases"] is not None]
    if parts.results is None or not known:
        return "Not available. [Add: results of complete cases, and what explains differences.]"
    both = [one for one in known if one["conf_low"] is not None]
    differ = [
        one["term"]
        for one in both
        if _excludes_zero(one["conf_low"], one["conf_high"])
        != _excludes_zero(*(one["complete_cases"] or (None, None, None))[1:])
    ]
    verdict = (
        f"95 % intervals differ in whether they contain 0 for {listed(differ)}."
        if differ
        else "95 % intervals agree in whether they contain 0 for all terms."
    )
    return (
        f"The same analysis was made of {count(parts.table['n_complete_rows'], 'complete row')}. "
        f"{verdict} [Add: what might explain differences.]"
    )


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and not low <= 0 <= high


def _sensitivity(parts: Sections) -> str:
    found = parts.results
    texts = []
    if found is not None and found["assumptions_sentence"]:
        texts.append(found["assumptions_sentence"])
    if found is not None and found["tipping"] is not None:
        texts.append(found["tipping"]["sentence"])
    if not texts:
        texts.append(
            "No sensitivity analysis was given; psmvae.compare_assumptions and "
            "psmvae.tipping_point make one."
        )
    texts.append("[Add: whether the columns of the model make the assumption plausible.]")
    return " ".join(texts)


_QUESTIONS: tuple[tuple[str, Callable[[Sections], str]], ...] = (
    ("Amount: how many values are missing by column, and how many rows are complete?", _amount),
    ("Reasons: why are values missing, and is this related to the outcome or others?", _reasons),
    ("Consequences: what would an analysis of complete rows lose or distort?", _consequences),
    ("Method: how were missing values handled, under which assumptions?", _method),
    ("Software: which was used, with which settings other than the defaults?", _software),
    ("Number of imputations: how many completed tables were analysed?", _number),
    ("Imputation model: which columns, of which kinds, and what of the design?", _model),
    ("Derived variables: how were transformations, indices and the like handled?", _derived),
    ("Diagnostics: did the method converge, and are imputed values plausible?", _diagnostics),
    ("Pooling: how were the estimates of the completed tables combined?", _pooling),
    ("Complete cases: do they lead to the same conclusions?", _complete_cases),
    ("Sensitivity: do conclusions depend on why values are missing?", _sensitivity),
)
