"""What was imputed: densities, bars, strips, scatter plots and the head of the filled table.

Signatures
----------
``imputed_data(mi, *, columns=None, shown=None, pairs=None, max_columns=60, max_rows=10_000,
random_state=0) -> ImputedData``; ``columns`` is ``read_columns(mi.original)``, if it was read
before, and ``pairs`` are the names of the columns of scatter plots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.reporting.data.columns import (
    OTHER,
    Bools,
    Columns,
    Floats,
    Rows,
    is_missing,
    level_text,
    number,
    read_columns,
    rounded,
    sampled,
    take,
    take_numbers,
)
from psmvae.reporting.data.density import density_data
from psmvae.reporting.data.head import head_data
from psmvae.reporting.data.histogram import kept_levels, others_text
from psmvae.reporting.data.scatter import scatter_data
from psmvae.reporting.data.table import MAX_COLUMNS, MAX_ROWS, shown_columns
from psmvae.reporting.schema import (
    BarData,
    ImputedColumn,
    ImputedData,
    StripData,
    ValueSummary,
)

if TYPE_CHECKING:
    from psmvae.multiple import MultipleImputation

MAX_DENSITIES = 10
"""Imputations whose densities are drawn."""
MAX_STRIPS = 5
"""Imputations in a strip plot."""
# values of one imputation in a density, and in a strip
_N_DENSITY, _N_STRIP = 2_000, 200


def imputed_data(
    mi: MultipleImputation,
    *,
    columns: Columns | None = None,
    shown: list[str] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    max_columns: int = MAX_COLUMNS,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> ImputedData:
    """Compare imputed with observed values.

    Parameters
    ----------
    mi : MultipleImputation
        The imputations.
    columns : Columns, optional
        The incomplete table, if it was read before.
    shown : list of str, optional
        Columns that are shown if they have imputed cells; by default those of `shown_columns`.
    pairs : sequence of pairs of str, optional
        Numeric columns of scatter plots. By default the two with the strongest correlation in the
        first imputation, of those with imputed cells.
    max_columns : int, default=60
        Largest number of columns, if ``shown`` is not given.
    max_rows : int, default=10_000
        Rows that scatter plots are drawn from. Counts, means and ranges use all cells.
    random_state : int, default=0
        Seed of the samples.

    Returns
    -------
    ImputedData
        Section 4 of a report.

    Raises
    ------
    ValueError
        If a column of ``pairs`` is unknown or not numeric.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae import MICEImputer
    >>> x = np.random.default_rng(0).uniform(size=(50, 2))
    >>> x[:9, 0] = np.nan
    >>> mi = MICEImputer(bounds={"x0": (0, 1)}, random_state=0).fit(x).impute_multiple(x, m=3)
    >>> made = imputed_data(mi)
    >>> [(column["name"], column["n_imputed"]) for column in made["columns"]]
    [('x0', 9)]
    """
    read = read_columns(mi.original) if columns is None else columns
    names = shown_columns(read, max_columns) if shown is None else shown
    mask = np.asarray(mi.mask, dtype=bool)
    rng = np.random.default_rng(random_state)
    positions = [j for name in names if mask[:, (j := read.position(name))].any()]
    made_by = mi.info.get("imputer")
    return {
        "imputer": None if made_by is None else str(made_by),
        "m": mi.m,
        "columns": [_column(read, mi, j, mask[:, j], rng) for j in positions],
        "scatters": scatter_data(read, mi, mask, names, pairs, max_rows, random_state),
        "head": head_data(read, mi, mask, names),
    }


def _column(
    read: Columns, mi: MultipleImputation, j: int, mask: Bools, rng: np.random.Generator
) -> ImputedColumn:
    rows = np.flatnonzero(mask)
    # a derived column may be computed again where it was observed
    kept = np.flatnonzero(~read.missing[:, j] & ~mask)
    if read.is_numeric(j):
        return _of_numbers(read, mi, j, rows, kept, rng)
    return _of_levels(read, mi, j, rows, kept)


def _of_numbers(
    read: Columns,
    mi: MultipleImputation,
    j: int,
    rows: Rows,
    kept: Rows,
    rng: np.random.Generator,
) -> ImputedColumn:
    observed = read.values(j)[kept]
    imputed = [_numbers(table, j, rows) for table in mi.tables]
    pooled = np.concatenate(imputed)
    n_outside = 0
    if observed.size:
        n_outside = int(((pooled < observed.min()) | (pooled > observed.max())).sum())
    density = density_data(
        sampled(observed, _N_DENSITY, rng),
        [sampled(values, _N_DENSITY, rng) for values in imputed[:MAX_DENSITIES]],
        whole=read.kinds[j] in {"integer", "count"},
    )
    return {
        "name": read.names[j],
        "kind": read.kinds[j],
        "n_imputed": len(rows),
        "n_outside": n_outside,
        "observed": _summary(observed),
        "imputed": _summary(pooled, len(rows)),
        "density": density,
        "bars": None,
        "strip": _strip(observed, imputed, rng),
    }


def _numbers(table: Any, j: int, rows: Rows) -> Floats:
    """Return the numbers of some cells of a completed table."""
    values = take_numbers(table, j, rows)
    return np.asarray(values[np.isfinite(values)])


def _summary(values: Floats, n: int | None = None) -> ValueSummary:
    """Return moments and range; ``n`` is the number of cells, if values are of several tables."""
    count = len(values) if n is None else n
    if values.size == 0:
        return {"n": count, "mean": None, "sd": None, "low": None, "high": None}
    with np.errstate(over="ignore", invalid="ignore"):
        sd = number(values.std(ddof=1)) if values.size > 1 else None
        return {
            "n": count,
            "mean": number(values.mean()),
            "sd": sd,
            "low": number(values.min()),
            "high": number(values.max()),
        }


def _strip(observed: Floats, imputed: list[Floats], rng: np.random.Generator) -> StripData:
    return {
        "observed": rounded(sampled(observed, _N_STRIP, rng)),
        "imputed": [rounded(sampled(one, _N_STRIP, rng)) for one in imputed[:MAX_STRIPS]],
    }


def _of_levels(
    read: Columns, mi: MultipleImputation, j: int, rows: Rows, kept: Rows
) -> ImputedColumn:
    observed = _counts(read.table, j, kept)
    imputed = [_counts(table, j, rows) for table in mi.tables]
    n_outside = sum(n for one in imputed for level, n in one.items() if level not in observed)
    return {
        "name": read.names[j],
        "kind": read.kinds[j],
        "n_imputed": len(rows),
        "n_outside": n_outside,
        "observed": None,
        "imputed": None,
        "density": None,
        "bars": _bars(_level_order(read, j), observed, imputed),
        "strip": None,
    }


def _counts(table: Any, j: int, rows: Rows) -> Counter[str]:
    texts: Counter[str] = Counter()
    for level, n in Counter(take(table, j, rows)).items():
        if not is_missing(level):
            texts[level_text(level)] += n
    return texts


def _level_order(read: Columns, j: int) -> list[str]:
    """Return the observed levels in the order of the data type, or sorted."""
    if read.kinds[j] == OTHER or read.frame.cells(j).n_observed == 0:
        return []
    return [level_text(level) for level in read.frame.cells(j).levels()]


def _bars(order: list[str], observed: Counter[str], imputed: list[Counter[str]]) -> BarData:
    """Return fractions of levels; those of rare levels are summed."""
    total: Counter[str] = sum(imputed, Counter()) + observed
    levels = [level for level in dict.fromkeys([*order, *sorted(total)]) if level in total]
    kept = kept_levels({level: total[level] for level in levels})
    shown = [*kept, others_text(len(levels) - len(kept))] if len(kept) < len(levels) else kept
    each = np.array([_fractions(counts, kept, len(shown)) for counts in imputed])
    return {
        "levels": shown,
        "observed": _fractions(observed, kept, len(shown)),
        "imputed": each.mean(0).tolist(),
        "imputed_low": each.min(0).tolist(),
        "imputed_high": each.max(0).tolist(),
    }


def _fractions(counts: Counter[str], kept: list[str], n_shown: int) -> list[float]:
    total = max(sum(counts.values()), 1)
    found = [counts[level] / total for level in kept]
    return found if n_shown == len(kept) else [*found, max(0.0, 1 - sum(found))]
