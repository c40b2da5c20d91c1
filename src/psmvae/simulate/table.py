"""Shared parts of the mechanisms: the table as numbers, calibration and the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from psmvae.table.cells import MAX_WHOLE
from psmvae.table.frames import open_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from psmvae.table.cells import Cells

    # Names or positions; a single name or position is one column.
    Columns = Sequence[str | int] | str | int

# Bisection steps for the intercept, and the tolerance of the mean probability.
_BISECTIONS, _TOLERANCE = 60, 1e-6
# Distinguishes the generator of a mechanism from `default_rng(seed)`.
_STREAM = 0x686F6C6573


def generator(seed: int) -> np.random.Generator:
    """Return a generator for a mechanism, independent of ``default_rng(seed)``.

    With the random numbers that a table was drawn with, its missing cells would depend on its
    values.
    """
    return np.random.default_rng([seed, _STREAM])


@dataclass(frozen=True)
class Simulated:
    """The result of a mechanism.

    Parameters
    ----------
    m : ndarray of bool of shape (row, column)
        The mask, True where a cell is observed. Cells that were missing before are False.
    sets : ndarray of int of shape (row,)
        The true pattern set of each row, from 0. Each mechanism defines its sets.
    columns : tuple of int, default=()
        Positions of the self-masked columns, whose missingness depends on their own values.

    Examples
    --------
    >>> from psmvae.simulate import mnar_column
    >>> simulated = mnar_column(np.array([[1.0], [2.0]]), 1.0, np.random.default_rng(0))
    >>> simulated.m.tolist(), simulated.sets.tolist(), simulated.columns
    ([[True], [False]], [0, 1], (0,))
    """

    m: NDArray[np.bool_]
    sets: NDArray[np.int64]
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """A table as numbers ``x`` ``(row, column)``, NaN where missing.

    Levels are numbered from 0, in the order of the data type or sorted. Columns of an array have
    the names x0, x1, ...
    """

    x: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Any) -> Numbers:
        """Convert a table."""
        frame = open_table(table)
        columns = [_as_numbers(frame.cells(j)) for j in range(len(frame.names))]
        return cls(np.column_stack(columns), frame.names)

    def positions(self, columns: Columns | None, option: str = "columns") -> tuple[int, ...]:
        """Return the positions of columns, in the order of the table."""
        if columns is None:
            return tuple(range(len(self.names)))
        listed = [columns] if isinstance(columns, str | int) else list(columns)
        found = [self._position(column, option) for column in listed]
        if not found or len(set(found)) < len(found):
            message = f"{option} must name at least one column, and none twice, got {listed!r}"
            raise ValueError(message)
        for j in found:
            if np.isnan(self.x[:, j]).all():
                raise ValueError(f"{option}: column {self.names[j]!r} has no observed cell")
        return tuple(sorted(found))

    def _position(self, column: str | int, option: str) -> int:
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if not isinstance(column, str) and 0 <= column < len(self.names):
            return int(column)
        message = f"{option}: no column {column!r} in the table of {len(self.names)} columns"
        raise ValueError(message)

    def observed(self) -> NDArray[np.bool_]:
        """Return the mask as a new array."""
        return ~np.isnan(self.x)

    def varies(self, j: int) -> bool:
        """Whether a column has at least two distinct values."""
        seen = self.x[~np.isnan(self.x[:, j]), j]
        return len(seen) > 0 and bool(seen.min() < seen.max())

    def standardised(self, j: int) -> NDArray[np.float64]:
        """Return a column with mean 0 and variance 1, NaN where missing."""
        column = self.x[:, j]
        if np.isinf(column).any():
            raise ValueError(f"column {self.names[j]!r} contains infinity; expected finite numbers")
        if not self.varies(j):
            message = f"column {self.names[j]!r} does not vary: missingness cannot depend on it"
            raise ValueError(message)
        return standardised(column)


def standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with mean 0 and variance 1, NaN where missing."""
    # the squares of very large numbers would overflow
    small = values / np.nanmax(np.abs(values))
    scaled: NDArray[np.float64] = (small - np.nanmean(small)) / np.nanstd(small)
    return scaled


def calibrated(score: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return the probabilities sigmoid(b + score), with the b at which their mean is the rate."""
    if rate in (0.0, 1.0) or len(score) == 0:
        return np.full(len(score), rate)
    if np.isfinite(score).all():
        # at these two intercepts all probabilities are at most, and at least, the rate
        low, high = float(logit(rate) - score.max()), float(logit(rate) - score.min())
        for _ in range(_BISECTIONS):
            b = (low + high) / 2
            low, high = (b, high) if expit(score + b).mean() < rate else (low, b)
        chance: NDArray[np.float64] = expit(score + high)
        if abs(chance.mean() - rate) < _TOLERANCE:
            return chance
    raise ValueError(f"the slope is too steep to meet the rate {rate:g}: choose a smaller one")


def remove_cells(
    m: NDArray[np.bool_], j: int, chance: NDArray[np.float64], rng: np.random.Generator
) -> None:
    """Remove observed cells of a column from the mask, in place, with the given probabilities."""
    rows = np.flatnonzero(m[:, j])
    m[rows, j] = rng.random(len(rows)) >= chance


def numbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number distinct rows of codes (row, column) in sorted order; a single column is unchanged."""
    if codes.shape[1] == 1:
        return codes[:, 0]
    _, sets = np.unique(codes, axis=0, return_inverse=True)
    # some releases of NumPy return a column
    return sets.reshape(-1).astype(np.int64)


def check_probability(name: str, value: float) -> None:
    """Refuse a value that is not a probability."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be a probability between 0 and 1, got {value!r}")


def _as_numbers(cells: Cells) -> NDArray[np.float64]:
    """Cells as floats or level numbers, NaN where missing."""
    if cells.family == "string" or cells.storage == "category":
        return cells.codes(cells.levels())
    if cells.raw.dtype.kind in "iu":
        return np.where(cells.missing, np.nan, _distinct_floats(cells.raw, ~cells.missing))
    return cells.values()


def _distinct_floats(column: NDArray[Any], observed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Integers as floats; differences from the smallest where a float cannot hold them exactly."""
    if column[observed].size:
        low, high = column[observed].min(), column[observed].max()
        if max(abs(int(low)), abs(int(high))) > MAX_WHOLE:
            # the difference of two 64-bit integers fits into an unsigned one
            column = column.astype(np.uint64) - low.astype(np.uint64)
    return column.astype(np.float64)
