"""Columns as predictors of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Indicators of a categorical column at most.
MAX_INDICATORS = 12


@dataclass(frozen=True)
class Predictors:
    """Encoding of model values as standardised predictors.

    A number is one predictor, a count as log(1 + x). An ordinal or binary column is its code; a
    categorical column has an indicator for each of its most frequent levels but the first of them.

    ``levels`` are the codes that have an indicator, for each column; empty for other columns.
    ``group`` is the table column of each predictor; ``center`` and ``scale`` standardise it, and
    ``low`` and ``high`` are its range over the observed cells, after that.
    """

    columns: tuple[Column, ...]
    levels: tuple[tuple[int, ...], ...]
    group: NDArray[np.intp]
    center: Floats
    scale: Floats
    low: Floats
    high: Floats

    @classmethod
    def fit(cls, columns: Sequence[Column], x: Floats, m: Bools) -> Self:
        """Learn the standardisation from the observed cells of ``x, m`` ``(row, column)``."""
        levels = tuple(_indicated(column, x[m[:, j], j]) for j, column in enumerate(columns))
        parts = [_raw(column, x[m[:, j], j], levels[j]) for j, column in enumerate(columns)]
        widths = [part.shape[-1] for part in parts]
        center = np.concatenate([part.mean(0) for part in parts])
        scale = np.concatenate([part.std(0) for part in parts])
        scale = np.where(scale > 1e-12, scale, 1.0)
        low = np.concatenate([part.min(0) for part in parts])
        high = np.concatenate([part.max(0) for part in parts])
        group = np.repeat(np.arange(len(widths)), widths)
        standard = ((low - center) / scale, (high - center) / scale)
        return cls(tuple(columns), levels, group, center, scale, *standard)

    def encode(self, j: int, x: Floats) -> Floats:
        """Return the predictors of the model values ``x`` of column ``j``, on a new last axis."""
        at = self.of(j)
        encoded: Floats = (_raw(self.columns[j], x, self.levels[j]) - self.center[at]) / self.scale[
            at
        ]
        return encoded

    def limits(self, j: int, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return bounds of a numeric column's model values in units of its predictor."""
        if self.columns[j].levels:
            return bounds
        low, high = bounds
        if self.columns[j].kind == "count":
            # values above -0.5 are rounded to 0 or more
            low, high = np.log1p([max(low, -0.5), high])
        at = self.of(j)[0]
        center, scale = self.center[at], self.scale[at]
        return float((low - center) / scale), float((high - center) / scale)

    def of(self, j: int) -> NDArray[np.intp]:
        """Return the positions of the predictors of column ``j``."""
        return np.arange(*np.searchsorted(self.group, [j, j + 1]))


def _indicated(column: Column, values: Floats) -> tuple[int, ...]:
    """Return the levels that have an indicator."""
    if column.n_levels <= 2 or column.kind == "ordinal":
        return ()
    counts = np.bincount(values.astype(np.intp), minlength=column.n_levels)
    frequent = np.argsort(-counts, kind="stable")[: MAX_INDICATORS + 1]
    return tuple(int(level) for level in frequent[1:] if counts[level] > 0)


def _raw(column: Column, x: Floats, levels: tuple[int, ...]) -> Floats:
    """Return the predictors of one column before they are standardised, on a new last axis."""
    if column.kind == "count":
        return np.log1p(np.maximum(x, 0.0))[..., None]
    if column.n_levels > 2 and column.kind != "ordinal":
        return np.asarray(x[..., None] == np.array(levels), dtype=np.float64)
    return x[..., None]
