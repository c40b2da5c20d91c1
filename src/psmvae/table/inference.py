"""The kind of a column, inferred from its data type and its observed values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psmvae.table.cells import MAX_WHOLE, Cells

# Whole numbers are codes of an ordinal scale if there are so few of them, consecutive and near
# zero, and each is in at least this many cells and this share of them: counts have a tail of rare
# values.
_ORDINAL_LEVELS, _ORDINAL_CODES = (3, 10), (-5, 10)
_MIN_LEVEL_CELLS, _MIN_LEVEL_SHARE = 5, 0.02
# Two whole numbers other than 0 and 1 are codes only if both are repeated.
_MIN_CODE_CELLS = 2


class Inferred(NamedTuple):
    """A kind, and what it was inferred from in words."""

    kind: str
    reason: str


def infer_kind(cells: Cells, *, bounded: bool = False) -> Inferred:
    """Infer the kind of a column.

    Bools are binary. Strings and categories are binary if exactly two levels are observed, ordinal
    if there are more and the data type is ordered, and categorical otherwise. Whole numbers (pandas
    stores integers with missing values as floats) are binary if exactly two are observed, ordinal
    if they are three to ten consecutive small numbers and none of them is rare, and integer
    otherwise. With bounds, which allow values that were not observed, they are integer unless they
    are 0 and 1. Other numbers and decimals are real. Positive and count columns are never inferred:
    they have to be declared.
    """
    if cells.family == "nothing":
        return Inferred(_kind_of_empty(cells), "no observed value")
    if cells.family == "bool":
        return Inferred("binary", "bools")
    if cells.family == "string" or cells.storage == "category":
        return _kind_of_levels(cells)
    if cells.storage == "decimal" or cells.dtype.startswith("Decimal"):
        return Inferred("real", "decimal numbers")
    wide = cells.observed().astype(np.float64, copy=False)
    if bool(np.all((wide == np.rint(wide)) & (np.abs(wide) < MAX_WHOLE))):
        return _kind_of_whole_numbers(cells, bounded=bounded)
    if cells.storage == "integer":
        return Inferred("integer", "large whole numbers")
    fractions = bool(np.any(wide != np.rint(wide)))
    return Inferred("real", "numbers with fractions" if fractions else "very large numbers")


def _kind_of_empty(cells: Cells) -> str:
    if cells.storage in {"string", "category"}:
        return "categorical"
    return {"boolean": "binary", "integer": "integer"}.get(cells.storage, "real")


def _kind_of_levels(cells: Cells) -> Inferred:
    n_levels = len(cells.levels())
    text = "text" if cells.family == "string" else "categories"
    count = f"{text}, {n_levels:,} level{'' if n_levels == 1 else 's'}"
    if n_levels == 2:
        return Inferred("binary", count)
    if cells.ordered and n_levels > 2:
        return Inferred("ordinal", f"ordered categories, {n_levels:,} levels")
    return Inferred("categorical", count)


def _kind_of_whole_numbers(cells: Cells, *, bounded: bool) -> Inferred:
    values, counts = cells.distinct
    n_values, low, high = len(values), int(values[0]), int(values[-1])
    listed = f"whole numbers, {n_values:,} distinct value{'' if n_values == 1 else 's'}"
    if n_values == 2:
        zero_one = (low, high) == (0, 1)
        if zero_one or (not bounded and counts.min() >= _MIN_CODE_CELLS):
            return Inferred("binary", f"{listed} ({low} and {high})")
    few = _ORDINAL_LEVELS[0] <= n_values <= _ORDINAL_LEVELS[1]
    small = low >= _ORDINAL_CODES[0] and high <= _ORDINAL_CODES[1]
    enough = counts.min() >= max(_MIN_LEVEL_CELLS, _MIN_LEVEL_SHARE * cells.n_observed)
    if few and small and enough and high - low + 1 == n_values and not bounded:
        return Inferred("ordinal", f"whole numbers, the codes {low} to {high}")
    return Inferred("integer", listed)
