"""Section 1: the report in five sentences, and all warnings."""

from __future__ import annotations

from collections.abc import Sequence

from psmvae.reporting.data.cautions import cautions
from psmvae.reporting.data.sections import Sections
from psmvae.reporting.data.texts import count, error_words, listed
from psmvae.reporting.schema import SummaryData
from psmvae.sensitivity.wording import p_value
from psmvae.table.numbers import share

# Level of Little's test in the sentence.
ALPHA = 0.05


def summary_data(parts: Sections, notes: Sequence[str] = ()) -> SummaryData:
    """Return five sentences and all warnings.

    Parameters
    ----------
    parts : Sections
        The other sections, and the objects that they were made from.
    notes : sequence of str
        Warnings that were given while imputations were made.

    Returns
    -------
    SummaryData
        As the schema of the report describes it.
    """
    warned = list(dict.fromkeys([*cautions(parts), *notes]))
    sentences = [
        _how_much(parts),
        _which_sets(parts),
        _mechanism(parts),
        _how_good(parts),
        _beware(warned),
    ]
    return {"sentences": sentences, "warnings": warned}


def _how_much(parts: Sections) -> str:
    table = parts.table
    complete = (
        f"{count(table['n_complete_rows'], 'row')} "
        f"({share(table['n_complete_rows'] / table['n_rows'])}) "
        f"{'is' if table['n_complete_rows'] == 1 else 'are'} complete"
        if table["n_complete_rows"]
        else "no row is complete"
    )
    size = f"{count(table['n_rows'], 'row')} and {count(table['n_columns'], 'column')}"
    if not table["n_missing"]:
        return f"No cell is missing in {size}."
    worst = max(parts.missing["columns"], key=lambda one: one["n_missing"])
    return (
        f"Of {count(table['n_cells'], 'cell')} in {size}, {table['n_missing']:,} "
        f"({share(table['n_missing'] / table['n_cells'])}) are missing, most in "
        f"{listed([worst['name']])} ({share(worst['fraction'])}); "
        f"{complete}."
    )


def _which_sets(parts: Sections) -> str:
    patterns = parts.missing["patterns"]
    incomplete = [row for row in patterns["rows"] if row["n_missing"]]
    if not incomplete:
        return "All rows have the same pattern, without missing cells."
    first = incomplete[0]
    pairs = zip(patterns["columns"], first["observed"], strict=True)
    names = [name for name, observed in pairs if not observed]
    text = f"The rows have {count(patterns['n_patterns'], 'pattern')} of missing cells; "
    if first["n"] == 1 and len(incomplete) > 1:
        text += "no two incomplete rows have the same one"
    else:
        text += (
            f"the most frequent incomplete one lacks {listed(names)} ({count(first['n'], 'row')}, "
            f"{share(first['fraction'])})"
        )
    sets = parts.mechanism["sets"]
    if len(sets) > 1:
        sizes = ", ".join(share(one["fraction"]) for one in sets)
        text += f", and the imputer found {len(sets)} sets of rows ({sizes})"
    return f"{text}."


def _mechanism(parts: Sections) -> str:
    little = parts.missing["little"]
    if not parts.table["n_missing"]:
        return "There is no mechanism to describe, because no cell is missing."
    if little["p_value"] is None:
        test = little["sentence"].removesuffix(".")
    elif little["p_value"] < ALPHA:
        p = p_value(little["p_value"])
        test = f"Little's test speaks against cells missing completely at random ({p})"
    else:
        p = p_value(little["p_value"])
        test = f"Little's test finds no evidence against cells missing completely at random ({p})"
    if not parts.mechanism["compared"]:
        return f"{test}; explanations of the masks were not compared."
    if not parts.by_own_value:
        return (
            f"{test}; in the comparison of explanations, no column had values that explain its own "
            "mask as well as the other columns do."
        )
    how = [
        f"{verb} for {listed(columns)}"
        for verb, columns in (
            ("assumed", parts.mechanism["own_value_assumed"]),
            ("chosen by a comparison", parts.mechanism["own_value_found"]),
        )
        if columns
    ]
    return f"{test}; that cells are missing because of their own values was {' and '.join(how)}."


def _how_good(parts: Sections) -> str:
    found = parts.validation
    if found is None or not found["methods"]:
        return "How good the imputations are was not measured on held-out cells."
    text = f"On {count(found['n_cells'], 'held-out cell')}, {error_words(found)}"
    if found["coverage"] is not None:
        text += f"; 90 % intervals contained {share(found['coverage'])} of the numeric values"
    return f"{text}."


def _beware(warned: Sequence[str]) -> str:
    if not warned:
        return "There are no warnings."
    if len(warned) == 1:
        return f"There is one warning: {warned[0]}"
    return f"There are {len(warned)} warnings, the first: {warned[0]}"
