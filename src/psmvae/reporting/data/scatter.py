"""Two numeric columns in the first imputation, by whether a value was imputed.

Signatures
----------
``scatter_data(read, mi, mask, shown, pairs, max_rows, random_state) -> list of ScatterData``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.reporting.data.columns import Bools, Columns, Floats, Rows, rounded, take_numbers
from psmvae.reporting.data.table import sampled_rows
from psmvae.reporting.schema import ScatterData
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.multiple import MultipleImputation

MAX_POINTS = 1_000
"""Points of each colour."""


def scatter_data(
    read: Columns,
    mi: MultipleImputation,
    mask: Bools,
    shown: list[str],
    pairs: Sequence[tuple[str, str]] | None,
    max_rows: int,
    random_state: int,
) -> list[ScatterData]:
    """Return the points of scatter plots.

    Parameters
    ----------
    read : Columns
        The incomplete table.
    mi : MultipleImputation
        The imputations, of which the first is used.
    mask : ndarray of bool, shape (n_rows, n_columns)
        True where a cell was imputed.
    shown : list of str
        Columns from which a pair is chosen.
    pairs : sequence of pairs of str or None
        Names of the columns of each plot.
    max_rows : int
        Rows that are drawn from.
    random_state : int
        Seed of the samples.

    Returns
    -------
    list of ScatterData
        One for each pair; empty if there is none.

    Raises
    ------
    TypeError
        If ``pairs`` are not pairs of names.
    ValueError
        If a column of ``pairs`` is unknown or not numeric.
    """
    if not mi.tables:
        return []
    rows = sampled_rows(read.n_rows, max_rows, random_state)
    if pairs is None:
        positions = [read.position(name) for name in shown]
        chosen = _strongest(mi, mask, [j for j in positions if read.is_numeric(j)], rows)
    else:
        chosen = pair_positions(read, pairs)
    rng = np.random.default_rng(random_state)
    return [_scatter(read, mi, mask, pair, rows, rng) for pair in chosen]


def pair_positions(read: Columns, pairs: Any) -> list[tuple[int, int]]:
    """Return the positions of pairs of numeric columns.

    Parameters
    ----------
    read : Columns
        The incomplete table.
    pairs : sequence of pairs of str
        Names of two columns each.

    Returns
    -------
    list of (int, int)
        Positions of the columns.

    Raises
    ------
    TypeError
        If ``pairs`` are not pairs of names.
    ValueError
        If a column is unknown or not numeric.
    """
    # a text of two letters would be taken for a pair
    each = [() if isinstance(pair, str) else tuple(pair) for pair in pairs]
    if isinstance(pairs, str) or any(len(pair) != 2 for pair in each):
        raise TypeError(f"pairs must be a list of pairs of column names, got {pairs!r}.")
    return [(_numeric(read, x), _numeric(read, y)) for x, y in each]


def _numeric(read: Columns, name: str) -> int:
    if name not in read.names:
        raise ValueError(
            f"pairs: there is no column {name!r}; the columns are {quoted(read.names)}."
        )
    position = read.position(name)
    if not read.is_numeric(position):
        kind = read.kinds[position]
        raise ValueError(f"pairs: column {name!r} is {kind}; a scatter plot needs numbers.")
    return position


def _values(mi: MultipleImputation, j: int, rows: Rows) -> Floats:
    return take_numbers(mi.tables[0], j, rows)


def _strongest(
    mi: MultipleImputation, mask: Bools, numeric: list[int], rows: Rows
) -> list[tuple[int, int]]:
    """Return the pair with the largest absolute correlation.

    Both columns have imputed cells; if there is no such pair, one of them.
    """
    each = ((j, _standardised(_values(mi, j, rows))) for j in numeric)
    values = {j: z for j, z in each if z is not None}
    varying = list(values)
    if len(varying) < 2:
        return []
    z = np.column_stack(list(values.values()))
    strength = np.triu(np.abs(z.T @ z), 1)
    imputed: Bools = np.asarray(mask[:, varying].any(0))
    for allowed in (imputed[:, None] & imputed, imputed[:, None] | imputed):
        candidates = np.where(allowed, strength, 0.0)
        if candidates.max() > 0:
            a, b = np.unravel_index(int(candidates.argmax()), candidates.shape)
            return [(varying[int(a)], varying[int(b)])]
    return []


def _standardised(values: Floats) -> Floats | None:
    """Return values with mean 0 and sum of squares 1; None if they are constant."""
    seen = ~np.isnan(values)
    if not seen.any():
        return None
    # squares of very large values must not overflow
    largest = float(np.abs(values[seen]).max())
    values = values / largest if largest > 0 else values
    values = np.where(seen, values - values[seen].mean(), 0.0)
    norm = float(np.sqrt((values**2).sum()))
    return values / norm if norm > 1e-12 else None


def _scatter(
    read: Columns,
    mi: MultipleImputation,
    mask: Bools,
    pair: tuple[int, int],
    rows: Rows,
    rng: np.random.Generator,
) -> ScatterData:
    points = np.column_stack([_values(mi, j, rows) for j in pair])
    known = np.isfinite(points).all(1)
    imputed = mask[rows][:, pair].any(1)
    return {
        "x": read.names[pair[0]],
        "y": read.names[pair[1]],
        "observed": _points(points[known & ~imputed], rng),
        "imputed": _points(points[known & imputed], rng),
    }


def _points(points: Floats, rng: np.random.Generator) -> list[list[float]]:
    if len(points) > MAX_POINTS:
        points = points[np.sort(rng.choice(len(points), MAX_POINTS, replace=False))]
    return [rounded(point) for point in points]
