"""What the mechanisms share: a table as numbers, the rate that is met, what they return."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit

from psmvae.table.cells import MAX_WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from psmvae.table.cells import Cells

    # By name or by position; a lone name or position is one column.
    Columns = Sequence[str | int] | str | int

_BISECTIONS = 60
_STREAM = 0x686F6C6573
_CLOSE = 1e-6


def generator(seed: int) -> np.random.Generator:
    """A generator for holes, whose numbers no table is made of.

    A table that was itself drawn by ``default_rng(seed)`` would be met by the very numbers that it
    was made of, and its holes depend on its values.

    Examples
    --------
    >>> import numpy as np
    >>> bool(generator(0).random() == np.random.default_rng(0).random())
    False
    """
    return np.random.default_rng([seed, _STREAM])


@dataclass(frozen=True)
class Simulated:
    """What a mechanism did to a table.

    Parameters
    ----------
    m : ndarray of bool, (row, column)
        True where the cell is observed. A natively missing cell is never observed.
    sets : ndarray of int, (row,)
        The true pattern set of each row, from 0; each mechanism says what its sets are.
    columns : tuple of int
        The self-masked columns; empty if no column goes missing by its own value.
    """

    m: NDArray[np.bool_]
    sets: NDArray[np.int64]
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Numbers:
    """A table as numbers: levels are counted from 0, in the data type's order or else sorted.

    Parameters
    ----------
    x : ndarray of float, (row, column)
        The cells; NaN where natively missing.
    names : tuple of str
        The columns; x0, x1, ... in an array.

    Examples
    --------
    >>> numbers = Numbers.of([["b", 1.5], ["a", None], ["b", 0.5]])
    >>> numbers.x.tolist()
    [[1.0, 1.5], [0.0, nan], [1.0, 0.5]]
    >>> numbers.positions("x1"), numbers.positions(None)
    ((1,), (0, 1))
    """

    x: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Any) -> Numbers:
        """Read a frame, an array or a list of rows.

        Raises
        ------
        ValueError
            If it is no table, or has no cell.
        """
        array = None if hasattr(table, "columns") else np.asarray(table)
        if array is not None and (array.ndim != 2 or 0 in array.shape):
            message = f"this must be a table (row, column) with at least one cell: {array.shape}"
            raise ValueError(message)
        if array is not None and array.dtype.kind in "fiub":
            whole = array.dtype.kind in "iu"
            x = np.column_stack([_told_apart(c) for c in array.T]) if whole else array
            return cls(x.astype(np.float64), tuple(f"x{j}" for j in range(array.shape[1])))
        from psmvae.table.frames import open_table

        frame = open_table(table)
        columns = [_as_numbers(frame.cells(j)) for j in range(len(frame.names))]
        return cls(np.column_stack(columns), frame.names)

    def positions(self, columns: Columns | None, option: str = "columns") -> tuple[int, ...]:
        """Where the named columns are, in the table's order; all of them by default.

        Raises
        ------
        ValueError
            If a column is not in the table, has nothing observed or is named twice, or none is
            named.
        """
        if columns is None:
            return tuple(range(len(self.names)))
        listed = [columns] if isinstance(columns, str | int) else list(columns)
        found = [self._position(column, option) for column in listed]
        if not found or len(set(found)) < len(found):
            message = f"{option} must name at least one column, and none twice: {listed!r}"
            raise ValueError(message)
        for j in found:
            if np.isnan(self.x[:, j]).all():
                message = f"{option}: column {self.names[j]!r} has no observed cell"
                raise ValueError(message)
        return tuple(sorted(found))

    def _position(self, column: str | int, option: str) -> int:
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        if not isinstance(column, str) and 0 <= column < len(self.names):
            return int(column)
        message = f"{option}: no column {column!r} in the table of {len(self.names)} columns"
        raise ValueError(message)

    def observed(self) -> NDArray[np.bool_]:
        """Where a cell is there, to be written to."""
        return ~np.isnan(self.x)

    def varies(self, j: int) -> bool:
        """Whether a column holds two different values at least."""
        seen = self.x[~np.isnan(self.x[:, j]), j]
        return len(seen) > 0 and bool(seen.min() < seen.max())

    def standardised(self, j: int) -> NDArray[np.float64]:
        """A column with mean zero and variance one, NaN where missing.

        Raises
        ------
        ValueError
            If it holds infinity, or nothing that varies.
        """
        column = self.x[:, j]
        if np.isinf(column).any():
            message = f"column {self.names[j]!r} contains infinity; expected finite numbers"
            raise ValueError(message)
        if not self.varies(j):
            message = f"column {self.names[j]!r} does not vary: nothing can depend on its values"
            raise ValueError(message)
        return standardised(column)


def standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values with mean zero and variance one, NaN where missing.

    Examples
    --------
    >>> import numpy as np
    >>> standardised(np.array([0.0, np.nan, 2.0])).tolist()
    [-1.0, nan, 1.0]
    """
    # squares of very large numbers are no floats
    small = values / np.nanmax(np.abs(values))
    scaled: NDArray[np.float64] = (small - np.nanmean(small)) / np.nanstd(small)
    return scaled


def calibrated(score: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Chances sigmoid(b + score), with the b at which their mean is the rate.

    Raises
    ------
    ValueError
        If the score is so steep that no b gives the rate.

    Examples
    --------
    >>> import numpy as np
    >>> chance = calibrated(np.array([-1.0, 0.0, 4.0]), 0.3)
    >>> round(float(chance.mean()), 9)
    0.3
    """
    if rate in (0.0, 1.0) or len(score) == 0:
        return np.full(len(score), rate)
    if np.isfinite(score).all():
        # At these two all chances are at most, and at least, the rate.
        low, high = float(logit(rate) - score.max()), float(logit(rate) - score.min())
        for _ in range(_BISECTIONS):
            b = (low + high) / 2
            low, high = (b, high) if expit(score + b).mean() < rate else (low, b)
        chance: NDArray[np.float64] = expit(score + high)
        if abs(chance.mean() - rate) < _CLOSE:
            return chance
    message = f"the slope is too steep to meet the rate {rate:g}: choose a smaller one"
    raise ValueError(message)


def lose(
    m: NDArray[np.bool_], j: int, chance: NDArray[np.float64], rng: np.random.Generator
) -> None:
    """Let the cells of a column that are still observed go missing with these chances, in place."""
    rows = np.flatnonzero(m[:, j])
    m[rows, j] = rng.random(len(rows)) >= chance


def numbered(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the distinct rows of codes (row, column) in their order; a lone column stays.

    Examples
    --------
    >>> import numpy as np
    >>> numbered(np.array([[1, 0], [0, 0], [1, 1], [1, 0]])).tolist()
    [1, 0, 2, 1]
    """
    if codes.shape[1] == 1:
        return codes[:, 0]
    _, sets = np.unique(codes, axis=0, return_inverse=True)
    # some releases of NumPy keep the axes here
    return sets.reshape(-1).astype(np.int64)


def check_probability(name: str, value: float) -> None:
    """Refuse what is no probability."""
    if not 0.0 <= value <= 1.0:
        message = f"{name} must be a probability between 0 and 1, got {value!r}"
        raise ValueError(message)


def check_slope(slope: float) -> None:
    """Refuse a slope by which nothing depends on anything."""
    if slope == 0 or not math.isfinite(slope):
        message = f"slope must be a number other than 0, got {slope!r}"
        raise ValueError(message)


def _as_numbers(cells: Cells) -> NDArray[np.float64]:
    if cells.family == "string" or cells.storage == "category":
        return cells.codes(cells.levels())
    if cells.raw.dtype.kind in "iu":
        return np.where(cells.missing, np.nan, _told_apart(cells.raw, ~cells.missing))
    return cells.values()


def _told_apart(
    column: NDArray[Any], observed: NDArray[np.bool_] | slice = slice(None)
) -> NDArray[np.float64]:
    """Integers as floats; those that are too large to be are counted from the least of them."""
    if column[observed].size:
        low, high = column[observed].min(), column[observed].max()
        if max(abs(int(low)), abs(int(high))) > MAX_WHOLE:
            # differences of 64 bits fit into 64 bits without a sign
            column = column.astype(np.uint64) - low.astype(np.uint64)
    return column.astype(np.float64)
