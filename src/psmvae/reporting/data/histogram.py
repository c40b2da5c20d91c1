"""Histograms of observed values: of numbers in bins, or of levels.

Signatures
----------
``histogram(columns, position, *, as_levels=None) -> Histogram``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from psmvae.reporting.data.columns import OTHER, Columns, Floats, is_missing, level_text, take
from psmvae.reporting.schema import Histogram

N_BINS = 30
"""Bins of a numeric column; fewer if it holds few whole numbers."""
MAX_LEVELS = 20
"""Levels that are shown; the rarer ones are summed."""
# lengths of ISO dates: with the time, the day, the month, the year
_DATE_PARTS = (19, 10, 7, 4)


def histogram(columns: Columns, position: int, *, as_levels: bool | None = None) -> Histogram:
    """Count the observed values of a column.

    Parameters
    ----------
    columns : Columns
        The table.
    position : int
        Position of the column.
    as_levels : bool, optional
        Whether to count levels; by default the kind of the column decides.

    Returns
    -------
    Histogram
        At most 30 bins, or 20 levels and one for all others.
    """
    numeric = columns.is_numeric(position) if as_levels is None else not as_levels
    if not numeric or columns.kinds[position] == OTHER:
        return level_histogram(observed_levels(columns, position))
    values = columns.values(position)
    values = values[~np.isnan(values)]
    if values.size == 0:
        return {"edges": None, "levels": None, "counts": []}
    edges = _edges(values)
    counts, _ = np.histogram(values, edges)
    return {"edges": edges.tolist(), "levels": None, "counts": counts.tolist()}


def level_histogram(counts: Mapping[str, int]) -> Histogram:
    """Return counts of levels as a histogram.

    Parameters
    ----------
    counts : mapping of str to int
        Numbers of cells, in the order of the levels.

    Returns
    -------
    Histogram
        The most frequent levels in their order, then the others together.
    """
    kept = kept_levels(counts)
    values = [counts[level] for level in kept]
    rest = sum(counts.values()) - sum(values)
    if len(counts) > len(kept):
        kept, values = [*kept, others_text(len(counts) - len(kept))], [*values, rest]
    return {"edges": None, "levels": kept, "counts": values}


def observed_levels(columns: Columns, position: int) -> dict[str, int]:
    """Count the observed levels of a column, in the order of the levels.

    Parameters
    ----------
    columns : Columns
        The table.
    position : int
        Position of the column.

    Returns
    -------
    dict of str to int
        Dates are counted by day, month or year, so that there are few.
    """
    if columns.kinds[position] == OTHER:
        items = take(columns.table, position)
        return _date_counts([str(item) for item in items if not is_missing(item)])
    cells = columns.frame.cells(position)
    levels = cells.levels() if cells.n_observed else ()
    codes = cells.codes(levels)
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.intp), minlength=len(levels))
    found: dict[str, int] = {}
    for level, n in zip(levels, counts.tolist(), strict=True):
        found[level_text(level)] = found.get(level_text(level), 0) + n
    return found


def kept_levels(counts: Mapping[str, float]) -> list[str]:
    """Return the most frequent levels, in their order.

    Parameters
    ----------
    counts : mapping of str to float
        Numbers of cells, in the order of the levels.

    Returns
    -------
    list of str
        At most 20.
    """
    levels = list(counts)
    if len(levels) <= MAX_LEVELS + 1:
        return levels
    frequent = sorted(range(len(levels)), key=lambda k: (-counts[levels[k]], k))[:MAX_LEVELS]
    return [levels[k] for k in sorted(frequent)]


def others_text(n: int) -> str:
    """Return the name of the levels that are not shown.

    Parameters
    ----------
    n : int
        Their number.

    Returns
    -------
    str
        The name.
    """
    return f"{n:,} other levels"


def _date_counts(texts: Sequence[str]) -> dict[str, int]:
    counts = Counter(texts)
    for length in _DATE_PARTS:
        if len(counts) <= MAX_LEVELS:
            break
        counts = Counter(text[:length] for text in texts)
    return dict(sorted(counts.items()))


def _edges(values: Floats) -> Floats:
    low, high = float(values.min()), float(values.max())
    whole = bool(np.all(values == np.rint(values)))
    if whole and high - low < N_BINS:
        return np.arange(low, high + 2) - 0.5 if abs(low) < 1e9 else _around(low, high)
    if low == high:
        return _around(low, high)
    # no difference of the limits, which may overflow
    share = np.linspace(0.0, 1.0, N_BINS + 1)
    # where values differ in their last digits only, edges coincide
    edges = np.unique(np.clip(low * (1 - share) + high * share, low, high))
    edges[[0, -1]] = low, high
    return edges


def _around(low: float, high: float) -> Floats:
    """Return the edges of a single bin."""
    largest = np.finfo(float).max
    half = 0.5 * max(abs(low), 1.0) * 1e-3
    return np.clip([low - half, high + half], -largest, largest)
