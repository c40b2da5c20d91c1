"""Section 7: a methods paragraph, van Buuren's questions, and what repeats the analysis."""

from __future__ import annotations

from collections.abc import Sequence

from psmvae.reporting.data import repeat
from psmvae.reporting.data.questions import degrees_of_freedom, questions
from psmvae.reporting.data.sections import Sections
from psmvae.reporting.data.texts import count, error_words
from psmvae.reporting.schema import MethodsData
from psmvae.table.numbers import share


def methods_data(
    parts: Sections,
    *,
    title: str,
    random_state: int,
    pairs: Sequence[tuple[str, str]] | None = None,
    command: str | None = None,
) -> MethodsData:
    """Return what an author writes about the imputation.

    Parameters
    ----------
    parts : Sections
        The other sections, and the objects that they were made from.
    title : str
        Title of the report.
    random_state : int
        Seed of the report.
    pairs : sequence of pairs of str, optional
        Columns of scatter plots, where they were chosen.
    command : str, optional
        The command that made the report. By default Python code.

    Returns
    -------
    MethodsData
        As the schema of the report describes it.
    """
    return {
        "paragraph": _paragraph(parts),
        "questions": questions(parts),
        "versions": repeat.versions(),
        "seed": parts.seed,
        "parameters": repeat.parameters(parts.imputer),
        "command": command or repeat.code(parts, title, random_state, pairs),
    }


def _paragraph(parts: Sections) -> str:
    texts = [_amount(parts)]
    if parts.imputed is not None:
        texts += _imputation(parts)
    texts += _checks(parts)
    texts += _analyses(parts)
    return " ".join(texts)


def _amount(parts: Sections) -> str:
    table = parts.table
    return (
        f"The table has {count(table['n_rows'], 'row')} and {count(table['n_columns'], 'column')}; "
        f"{share(table['n_missing'] / table['n_cells'])} of the cells were missing, in "
        f"{count(table['n_incomplete_columns'], 'column')}, and "
        f"{count(table['n_complete_rows'], 'row')} "
        f"({share(table['n_complete_rows'] / table['n_rows'])}) had no missing cell."
    )


def _imputation(parts: Sections) -> list[str]:
    seed = "" if parts.seed is None else f", seed {parts.seed}"
    name = "" if parts.imputer_name is None else f"{parts.imputer_name}, "
    texts = [
        f"Missing values were imputed {parts.m} times by {parts.method} "
        f"({name}{parts.software}{seed}).",
        f"Cells were taken to be {parts.assumption}.",
    ]
    if parts.imputer is not None:
        n = len(parts.imputer.schema_.modelled)
        texts.append(f"The imputation model included {count(n, 'column')}.")
    if shifts := parts.info.get("shift"):
        texts.append(f"Imputed values were then shifted ({count(len(shifts), 'adjustment')}).")
    return texts


def _checks(parts: Sections) -> list[str]:
    found = parts.validation
    if found is None or not found["methods"]:
        return []
    own = found["methods"][0]
    covered = (
        ""
        if found["coverage"] is None
        else f"; 90 % intervals contained {share(found['coverage'])} of the numeric values"
    )
    return [
        f"In a check on {count(found['n_cells'], 'observed cell')} hidden from a second fit of "
        f"{own}, {error_words(found)}{covered}."
    ]


def _analyses(parts: Sections) -> list[str]:
    results = parts.results
    if results is None:
        return []
    texts: list[str] = []
    if results["estimates"]:
        texts.append(
            f"The analysis was repeated on each of {results['m']} completed tables, and estimates "
            "and standard errors were pooled by Rubin's rules, with "
            f"{degrees_of_freedom(results)}."
        )
    for sentence in (
        results["assumptions_sentence"],
        results["tipping"]["sentence"] if results["tipping"] else None,
    ):
        texts += [sentence] if sentence else []
    return texts
