"""All sections of a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.exceptions import NotFittedError

from psmvae._quiet import caught_warnings
from psmvae.imputers.base import Imputer
from psmvae.imputers.fit_warnings import ImproperDrawsWarning
from psmvae.multiple import MultipleImputation
from psmvae.reporting.data.columns import Columns, read_columns
from psmvae.reporting.data.imputed import imputed_data
from psmvae.reporting.data.mechanism import mechanism_data
from psmvae.reporting.data.methods import methods_data
from psmvae.reporting.data.missing import missing_data
from psmvae.reporting.data.relations import mask_relations
from psmvae.reporting.data.results import results_data
from psmvae.reporting.data.scatter import pair_positions
from psmvae.reporting.data.sections import Sections
from psmvae.reporting.data.summary import summary_data
from psmvae.reporting.data.table import table_data
from psmvae.reporting.data.validation import validation_data
from psmvae.reporting.schema import SCHEMA, ReportData
from psmvae.table.errors import OutsideRangeWarning
from psmvae.table.frames import Frame, open_table
from psmvae.table.wording import quoted

# Imputations that are made where none are given.
M = 5


def collect(
    X: Any,
    imputer: Imputer | None = None,
    mi: MultipleImputation | None = None,
    analyses: Any = None,
    sensitivity: Any = None,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    title: str = "Missing data",
    max_columns: int = 60,
    max_rows: int = 10_000,
    validate: bool = True,
    random_state: int = 0,
    command: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> ReportData:
    """Return the data of a report.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    imputer : imputer, optional
        Fitted to the columns of X. Without `mi`, five imputations are drawn from it.
    mi : MultipleImputation, optional
        Imputations of X.
    analyses : Analyses or PooledResults, optional
        Analyses of the imputations.
    sensitivity : TippingPoint, AssumptionComparison or list of both, optional
        Sensitivity analyses.
    pairs : sequence of pairs of str, optional
        Numeric columns of scatter plots. By default the two with the strongest correlation in the
        first imputation, of those with imputed cells.
    title : str, default="Missing data"
        Title of the report.
    max_columns : int, default=60
        Columns that are shown in full, those with the highest missing rates.
    max_rows : int, default=10_000
        Rows of Little's test, of predictors of missing cells and of scatter plots, at most.
    validate : bool, default=True
        Whether observed cells are hidden and the imputer is fitted again without them.
    random_state : int, default=0
        Seed of the samples and of the check on hidden cells. Imputations that are made here are
        drawn with the seed of the imputer.
    command : str, optional
        The command that made the report, for the section on methods. By default Python code.
    progress : callable, optional
        Called with the name of each step before it begins.

    Returns
    -------
    ReportData
        A dictionary that JSON can hold; `psmvae.reporting.schema` describes it.

    Raises
    ------
    NotFittedError
        If the imputer is not fitted.
    ValueError
        If the imputer has other columns than X, the imputations are of another table, or a column
        of `pairs` is unknown or not numeric.
    """
    say = progress or _quiet
    frame = open_table(X)
    _check_imputer(imputer, frame)
    _check_imputations(mi, frame)
    columns = read_columns(X)
    _check_pairs(pairs, columns, given=imputer is not None or mi is not None)
    notes: list[str] = []
    if mi is None and imputer is not None:
        say("imputations")
        mi, notes = _impute(imputer, X)
    say("missing values")
    table = table_data(columns, max_columns=max_columns, max_rows=max_rows)
    drawn: Any = {"shown": table["shown"], "max_rows": max_rows, "random_state": random_state}
    # Little's test and predictors of the masks, once for two sections
    relations = mask_relations(columns, **drawn)
    missing = missing_data(columns, report=relations, **drawn)
    mechanism = mechanism_data(columns, imputer, report=relations, **drawn)
    imputed = None
    if mi is not None:
        say("imputed values")
        imputed = imputed_data(mi, columns=columns, pairs=pairs, **drawn)
    validation = None
    if validate and imputer is not None:
        validation = validation_data(
            X, imputer, shown=table["shown"], random_state=random_state, progress=say
        )
    results = None
    if analyses is not None or sensitivity is not None:
        say("results")
        results = results_data(analyses, sensitivity)
    parts = Sections(table, missing, mechanism, imputed, validation, results, imputer, mi, analyses)
    return {
        "schema": SCHEMA,
        "title": title,
        "table": table,
        "summary": summary_data(parts, notes),
        "missing": missing,
        "mechanism": mechanism,
        "imputed": imputed,
        "validation": validation,
        "results": results,
        "methods": methods_data(
            parts, title=title, random_state=random_state, pairs=pairs, command=command
        ),
    }


def _check_imputer(imputer: Any, frame: Frame) -> None:
    """Raise unless an imputer is None, or fitted to the columns of the table."""
    if imputer is None:
        return
    if not isinstance(imputer, Imputer):
        raise TypeError(f"imputer must be an imputer of psmvae, got {type(imputer).__name__}.")
    name = type(imputer).__name__
    if not hasattr(imputer, "missing_rate_"):
        raise NotFittedError(
            f"this {name} is not fitted: call imputer.fit(X) first, or leave out imputer."
        )
    # raises ColumnMismatchError, or ValueError for arrays
    imputer._codec(frame).positions(frame)  # noqa: SLF001 (as `transform` matches columns)


def _check_imputations(mi: Any, frame: Frame) -> None:
    """Raise unless imputations are None, or those of the table."""
    if mi is None:
        return
    if not isinstance(mi, MultipleImputation):
        raise TypeError(
            "mi must be what imputer.impute_multiple or MultipleImputation.from_long returns, got "
            f"{type(mi).__name__}."
        )
    original = open_table(mi.original)
    if original.names != frame.names:
        differing = sorted({*original.names} ^ {*frame.names})
        what = f"differ in {quoted(differing)}" if differing else "have another order"
        raise ValueError(f"mi is of another table than X: the columns {what}.")
    if original.n_rows != frame.n_rows:
        raise ValueError(
            f"mi is of another table than X: it has {original.n_rows:,} rows, and X has "
            f"{frame.n_rows:,}."
        )


def _check_pairs(pairs: Sequence[tuple[str, str]] | None, columns: Columns, *, given: bool) -> None:
    """Raise unless pairs are None, or those of numeric columns whose imputations are given."""
    if pairs is None:
        return
    pair_positions(columns, pairs)
    if pairs and not given:
        raise ValueError("pairs are columns of imputations: give imputer or mi too.")


def _impute(imputer: Imputer, X: Any) -> tuple[MultipleImputation, list[str]]:
    """Return imputations, and the warnings that were given."""
    with caught_warnings() as caught:
        warnings.simplefilter("always")
        mi = imputer.impute_multiple(X, m=M)
    # the summary words these from the numbers
    known = (ImproperDrawsWarning, OutsideRangeWarning)
    others = [one for one in caught if not issubclass(one.category, known)]
    return mi, [_sentence(str(one.message)) for one in others]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _quiet(step: str) -> None:
    del step
