"""Tables as plain matrices of numbers, for methods that know nothing else."""

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
    """The numbers of a table and the codes of its levels as a matrix with NaN, and back.

    A number becomes itself, in the table's units or standardised. A column with more than two
    levels becomes an indicator for each level (the largest one wins on the way back), unless its
    levels have an order; these and two levels become their code.

    Parameters
    ----------
    columns : sequence of Column
        The modelled columns.
    center, scale : ndarray of shape (matrix column,)
        Of the standardisation; 0 and 1 for none.
    lowest : ndarray of shape (column,)
        Smallest observed value of each column in the table's units (a code for levels).

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae.kinds import Column
    >>> colour = Column("colour", "categorical", "String", 3, levels=("blue", "green", "red"))
    >>> x, m = np.array([[2.0], [0.0]]), np.array([[True], [False]])
    >>> matrix = Matrix.fit([colour], x, m, standardise=False)
    >>> matrix.open(x, m)
    array([[ 0.,  0.,  1.],
           [nan, nan, nan]])
    >>> matrix.close(np.array([[0.1, 0.7, 0.2]]))
    array([[1.]])
    """

    columns: tuple[Column, ...]
    center: Floats
    scale: Floats
    lowest: Floats

    def __post_init__(self) -> None:
        """Check the sizes, which may come from a file."""
        n = len(self.group)
        checks.shape("center", self.center, (n,))
        checks.shape("scale", self.scale, (n,))
        checks.shape("lowest", self.lowest, (len(self.columns),))

    @classmethod
    def fit(cls, columns: Sequence[Column], x: Floats, m: Bools, *, standardise: bool) -> Self:
        """Learn the standardisation from the observed cells ``x, m`` ``(row, column)``."""
        widths = [_width(column) for column in columns]
        n = sum(widths)
        plain = cls(tuple(columns), np.zeros(n), np.ones(n), np.zeros(len(widths)))
        values = plain.open(x, m)
        starts = np.cumsum([0, *widths[:-1]])
        lowest = np.nanmin(values[:, starts], axis=0)
        center, scale = plain.center, plain.scale
        if standardise:
            # in units of a power of two near the largest, so that no square overflows
            largest = np.nanmax(np.abs(values), axis=0)
            unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
            center, scale = (f(values / unit, axis=0) * unit for f in (np.nanmean, np.nanstd))
            scale = np.where(scale > 1e-14 * np.abs(center), scale, 1.0)
        return cls(tuple(columns), center, np.where(scale > 0, scale, 1.0), lowest)

    @property
    def is_indicator(self) -> Bools:
        """Which columns of the matrix are indicators of a level."""
        widths = [_width(column) for column in self.columns]
        return np.repeat([width > 1 for width in widths], widths)

    @property
    def group(self) -> list[int]:
        """The table column each matrix column is of."""
        return [j for j, column in enumerate(self.columns) for _ in range(_width(column))]

    def open(self, x: Floats, m: Bools) -> Floats:
        """The matrix of numbers and codes ``(row, column)``, NaN where missing."""
        parts = []
        for j, column in enumerate(self.columns):
            part = x[:, [j]]
            if _width(column) > 1:
                part = (part == np.arange(column.n_levels)).astype(np.float64)
            parts.append(np.where(m[:, [j]], part, np.nan))
        opened: Floats = (np.hstack(parts) - self.center) / self.scale
        return opened

    def close(self, matrix: NDArray[Any]) -> Floats:
        """Model values of a matrix without NaN."""
        from psmvae.kinds import KINDS

        values = matrix * self.scale + self.center
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
                # a method that knows no kinds may go where this one cannot follow
                bounded = column.kind in ("positive", "count")
                low = self.lowest[j] if bounded else -np.inf
                x[:, j] = kind.standardise(np.maximum(part[:, 0], low), column)
        return x


def _width(column: Column) -> int:
    """Matrix columns of a table column."""
    return column.n_levels if column.n_levels > 2 and column.kind != "ordinal" else 1
