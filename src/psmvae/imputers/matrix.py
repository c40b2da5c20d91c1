"""Tables as matrices of numbers, for methods without column kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks

if TYPE_CHECKING:
    from psmvae.kinds import Column

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Matrix:
    """Encoding of a table as a matrix of numbers with NaN, and its inverse.

    A number stays as it is, in the table's units or standardised. A categorical column with more
    than two levels becomes one indicator for each level; the inverse takes the argmax. Ordinal and
    binary columns become their codes.

    ``center`` and ``scale`` ``(matrix column,)`` are 0 and 1 without standardisation. ``lowest``
    ``(column,)`` is the smallest observed value in the table's units (a code for levels).
    """

    columns: tuple[Column, ...]
    center: Floats
    scale: Floats
    lowest: Floats

    def __post_init__(self) -> None:
        """Check the shapes, which may come from a file."""
        for name in ("center", "scale"):
            checks.shape(name, getattr(self, name), (len(self.group),))
        checks.shape("lowest", self.lowest, (len(self.columns),))

    @classmethod
    def fit(cls, columns: Sequence[Column], x: Floats, m: Bools, *, standardise: bool) -> Self:
        """Learn the standardisation from the observed cells ``x, m`` ``(row, column)``."""
        widths = [_width(column) for column in columns]
        n = sum(widths)
        plain = cls(tuple(columns), np.zeros(n), np.ones(n), np.zeros(len(widths)))
        values = plain.encode(x, m)
        starts = np.cumsum([0, *widths[:-1]])
        lowest = np.nanmin(values[:, starts], axis=0)
        center, scale = plain.center, plain.scale
        if standardise:
            # scaled by a power of two near the largest value, so that no square overflows
            largest = np.nanmax(np.abs(values), axis=0)
            unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
            center, scale = (f(values / unit, axis=0) * unit for f in (np.nanmean, np.nanstd))
            scale = np.where(scale > 1e-14 * np.abs(center), scale, 1.0)
        return cls(tuple(columns), center, np.where(scale > 0, scale, 1.0), lowest)

    @property
    def is_indicator(self) -> Bools:
        """Whether each matrix column is the indicator of a level."""
        widths = [_width(column) for column in self.columns]
        return np.repeat([width > 1 for width in widths], widths)

    @property
    def group(self) -> list[int]:
        """Table column of each matrix column."""
        return [j for j, column in enumerate(self.columns) for _ in range(_width(column))]

    def encode(self, x: Floats, m: Bools) -> Floats:
        """Encode model values ``(row, column)`` as a matrix with NaN for missing cells."""
        from psmvae.kinds.numeric import standardised

        parts = []
        for j, column in enumerate(self.columns):
            part = x[:, [j]]
            if _width(column) > 1:
                part = (part == np.arange(column.n_levels)).astype(np.float64)
            parts.append(np.where(m[:, [j]], part, np.nan))
        return standardised(np.hstack(parts), self.center, self.scale)

    def decode(self, matrix: NDArray[Any]) -> Floats:
        """Decode a matrix without NaN to model values."""
        from psmvae.kinds import KINDS

        most = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            values = np.clip(matrix * self.scale + self.center, -most, most)
        x = np.zeros((len(matrix), len(self.columns)))
        start = 0
        for j, column in enumerate(self.columns):
            kind, width = KINDS[column.kind], _width(column)
            part = values[:, start : start + width]
            start += width
            if width > 1:
                x[:, j] = part.argmax(1)
            elif kind.has_levels:
                x[:, j] = np.clip(np.rint(part[:, 0]), 0, max(column.n_levels - 1, 0))
            else:
                # methods without kinds may predict values outside the domain of these
                bounded = column.kind in ("positive", "count")
                low = self.lowest[j] if bounded else -np.inf
                standard = kind.standardise(np.maximum(part[:, 0], low), column)
                x[:, j] = np.clip(standard, -kind.limit, kind.limit)
        return x


def _width(column: Column) -> int:
    """Number of matrix columns of a table column."""
    return column.n_levels if column.n_levels > 2 and column.kind != "ordinal" else 1
