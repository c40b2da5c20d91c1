"""What is missing: rates, patterns, correlations of masks, a map of rows, and Little's test.

Signatures
----------
``missing_data(X, *, report=None, shown=None, max_rows=10_000, random_state=0) -> MissingData``;
``report`` is a `MissingnessReport` or the result of `mask_relations`, computed once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psmvae._blas import one_blas_thread
from psmvae.describe import masks
from psmvae.describe.result import MissingnessReport
from psmvae.reporting.data.columns import Bools, Columns, Floats, number, read_columns
from psmvae.reporting.data.relations import MaskRelations, mask_relations
from psmvae.reporting.data.table import MAX_ROWS, shown_columns
from psmvae.reporting.schema import (
    ColumnRate,
    CorrelationData,
    LittleData,
    MissingData,
    PatternData,
    RowMapData,
)
from psmvae.sensitivity.wording import p_value

MAX_PATTERNS = 25
"""Patterns that are listed."""
MAX_BLOCKS = 100
"""Blocks of the map of rows."""
# significance level of the words on Little's test
_LEVEL = 0.05


def missing_data(
    X: Any,
    *,
    report: MissingnessReport | MaskRelations | None = None,
    shown: list[str] | None = None,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> MissingData:
    """Describe the mask of a table.

    Parameters
    ----------
    X : table or Columns
        The incomplete table.
    report : MissingnessReport or MaskRelations, optional
        Gives Little's test; by default it is computed by `mask_relations`.
    shown : list of str, optional
        Columns of correlations and the map; by default those of `shown_columns`. Patterns are
        those of all columns.
    max_rows : int, default=10_000
        Largest number of rows of Little's test. Everything else uses all rows.
    random_state : int, default=0
        Seed of the sample of rows.

    Returns
    -------
    MissingData
        Section 2 of a report.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, np.nan, 2.0], [2.0, np.nan, 1.0], [3.0, 4.0, np.nan]])
    >>> made = missing_data(x)
    >>> made["patterns"]["columns"]
    ['x2', 'x1']
    >>> [[round(value) for value in row] for row in made["correlation"]["values"]]
    [[1, -1], [-1, 1]]
    """
    columns = read_columns(X)
    names = shown_columns(columns) if shown is None else shown
    relations = mask_relations(
        columns, report=report, shown=names, max_rows=max_rows, random_state=random_state
    )
    return {
        "columns": _rates(columns),
        "patterns": _patterns(columns),
        "correlation": _correlation(columns, names),
        "row_map": _row_map(columns, names),
        "little": little_data(relations),
    }


def _rates(columns: Columns) -> list[ColumnRate]:
    n_missing = columns.missing.sum(0).tolist()
    flux = masks.flux(columns.names, columns.missing)
    return [
        {
            "name": name,
            "kind": columns.kinds[j],
            "n_missing": n_missing[j],
            "fraction": n_missing[j] / columns.n_rows,
            "influx": number(flux["influx"][j]),
            "outflux": number(flux["outflux"][j]),
        }
        for j, name in enumerate(columns.names)
    ]


def _incomplete(columns: Columns, shown: list[str]) -> list[int]:
    """Return the positions of shown columns with missing cells, in the order of the table."""
    lacking: Bools = np.asarray(columns.missing.any(0))
    return [j for j in sorted(map(columns.position, shown)) if lacking[j]]


def _patterns(columns: Columns) -> PatternData:
    """Count the patterns of all columns: those of some would be fewer, and complete too often."""
    positions = _incomplete(columns, list(columns.names))
    positions.sort(key=lambda j: int(columns.missing[:, j].sum()))
    # a table without missing cells has one pattern, found by any of its columns
    missing = columns.missing[:, positions or [0]]
    distinct, _, counts = masks.distinct_patterns(missing)
    n_missing = distinct.sum(1)
    # the mask breaks ties, so that the order depends on the table alone
    order = np.lexsort((*distinct.T[::-1], n_missing, -counts))[:MAX_PATTERNS]
    return {
        "columns": [columns.names[j] for j in positions],
        "rows": [
            {
                "observed": (~distinct[k, : len(positions)]).tolist(),
                "n": int(counts[k]),
                "fraction": int(counts[k]) / columns.n_rows,
                "n_missing": int(n_missing[k]),
            }
            for k in order
        ],
        "n_patterns": len(counts),
    }


def _correlation(columns: Columns, shown: list[str]) -> CorrelationData:
    positions = [j for j in _incomplete(columns, shown) if not columns.missing[:, j].all()]
    if not positions:
        return {"columns": [], "values": []}
    values = _mask_correlations(columns.missing[:, positions])
    order = _clustered(values)
    values = values[np.ix_(order, order)]
    return {
        "columns": [columns.names[positions[k]] for k in order],
        "values": [[number(value) for value in row] for row in values.tolist()],
    }


def _mask_correlations(missing: Bools) -> Floats:
    """Return Pearson correlations of masks, none of which is constant."""
    mask = missing.astype(np.float64)
    mask -= mask.mean(0)
    mask /= np.sqrt((mask**2).sum(0))
    with one_blas_thread():
        values = np.clip(mask.T @ mask, -1.0, 1.0)
    np.fill_diagonal(values, 1.0)
    return np.asarray(values)


def _clustered(correlations: Floats) -> list[int]:
    """Return the order of leaves of an average linkage of 1 − r."""
    if len(correlations) < 3:
        return list(range(len(correlations)))
    # loads slowly
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = squareform(1 - correlations, checks=False)
    return [int(k) for k in leaves_list(linkage(distance, "average", optimal_ordering=True))]


def _row_map(columns: Columns, shown: list[str]) -> RowMapData:
    positions = _incomplete(columns, shown)
    n_blocks = min(MAX_BLOCKS, columns.n_rows)
    first = np.arange(n_blocks) * columns.n_rows // n_blocks
    size = np.diff(np.r_[first, columns.n_rows])
    counts = np.add.reduceat(columns.missing[:, positions].astype(np.int64), first, axis=0)
    return {
        "columns": [columns.names[j] for j in positions],
        "first_row": first.tolist(),
        "fraction": (counts / size[:, None]).tolist(),
    }


def little_data(relations: MaskRelations) -> LittleData:
    """Return Little's test with its result in words.

    Parameters
    ----------
    relations : MaskRelations
        The result of `mask_relations`.

    Returns
    -------
    LittleData
        Numbers are None where the test could not be made, and the sentence says why.
    """
    test = relations.little
    if test.reason:
        sentence = f"Little's test is not available: {test.reason}."
        return {"statistic": None, "df": None, "p_value": None, "sentence": sentence}
    return {
        "statistic": number(test.statistic),
        "df": number(test.df),
        "p_value": number(test.p_value),
        "sentence": _little_sentence(relations),
    }


def _little_sentence(relations: MaskRelations) -> str:
    test = relations.little
    part = ""
    if relations.n_tested < relations.n_columns:
        part = f" {relations.n_tested} of {relations.n_columns:,} columns in"
    p = p_value(test.p_value)
    used = f"d² = {test.statistic:.1f}, df = {test.df:,}, {p};{part} {test.n_rows:,} rows"
    if test.p_value < _LEVEL:
        verdict = (
            "means of observed values differ between patterns by more than chance explains, which "
            "speaks against values missing completely at random"
        )
    else:
        verdict = (
            "no evidence against values missing completely at random, which is no evidence for it"
        )
    return f"Little's test: {verdict} ({used})."
