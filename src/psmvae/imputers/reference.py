"""Distributions of the training table's columns, and how far those of other rows are from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from psmvae.imputers import checks
from psmvae.table.codec import Encoded
from psmvae.table.errors import Reported
from psmvae.table.wording import N_SHOWN

if TYPE_CHECKING:
    from psmvae.kinds import Column

__all__ = ["Drift", "DriftWarning"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Numbers are counted in bins between these quantiles of the training table.
QUANTILES = np.linspace(0.1, 0.9, 9)
# A population stability index above 0.25 is a major shift by the usual convention.
MAX_PSI = 0.25
# Largest difference of missing rates.
MAX_RATE_DIFFERENCE = 0.1
# Fewer cells say little about a distribution.
MIN_CELLS = 100
# Share of an empty bin, in which the index would be infinite.
EMPTY = 1e-4


@dataclass(frozen=True)
class Drift:
    """A column whose cells differ strongly from those of the training table.

    Parameters
    ----------
    column : str
        Name of the column.
    psi : float
        Population stability index of the observed cells, less its expectation without drift.
    missing_rate, training_missing_rate : float
        Fractions of missing cells.
    """

    column: str
    psi: float
    missing_rate: float
    training_missing_rate: float

    def __str__(self) -> str:
        parts = []
        if self.psi > MAX_PSI:
            parts.append(f"population stability index {self.psi:.2f} (above {MAX_PSI})")
        if abs(self.missing_rate - self.training_missing_rate) > MAX_RATE_DIFFERENCE:
            rates = f"{self.missing_rate:.0%} missing, {self.training_missing_rate:.0%} in training"
            parts.append(rates)
        return f"{self.column}: {', '.join(parts)}"

    def record(self) -> dict[str, Any]:
        """Return plain values that JSON can hold.

        Returns
        -------
        dict
            The fields by name.
        """
        return asdict(self)


@dataclass(eq=False, repr=False)
class DriftWarning(Reported, UserWarning):
    """Columns differ strongly from those of the training table: imputing them is extrapolation.

    A column is reported if the population stability index of its observed cells is above 0.25, in
    bins of a tenth of the training cells or by level, or if its missing rate differs by more than
    0.1.

    Attributes
    ----------
    found : tuple of Drift
        The columns.
    """

    found: tuple[Drift, ...]
    _problem = "columns differ strongly from the training table: {listed}"
    _remedy = "fit the imputer again with such rows, or check how they were recorded"

    def _texts(self) -> dict[str, str]:
        shown = "; ".join(map(str, self.found[:N_SHOWN]))
        more = len(self.found) - N_SHOWN
        return {"listed": f"{shown} and {more} more" if more > 0 else shown}


@dataclass(frozen=True, eq=False)
class Reference:
    """Shares of the training cells of each column in bins.

    ``edges`` and ``shares`` have one array for each column, of k and k + 1 numbers. A bin of a
    column with levels is a level.
    """

    edges: tuple[Floats, ...]
    shares: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], encoded: Encoded) -> Self:
        """Count the observed cells of the training table."""
        edges, shares = [], []
        for j, column in enumerate(columns):
            values = encoded.x[encoded.m[:, j], j]
            inner: Floats
            if column.levels:
                inner = np.arange(0.5, column.n_levels - 1, dtype=np.float64)
            else:
                inner = np.unique(np.quantile(values, QUANTILES)).astype(np.float64)
            count = counts(inner, values)
            edges.append(inner)
            shares.append(count / max(count.sum(), 1))
        return cls(tuple(edges), tuple(shares))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file; `from_arrays` is the inverse."""
        return {
            "reference.edges": np.concatenate(self.edges),
            "reference.shares": np.concatenate(self.shares),
            "reference.sizes": np.array([len(each) for each in self.edges], dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, n_columns: int, edges: Floats, shares: Floats, sizes: Ints) -> Self:
        """Restore from `arrays`; raise ValueError for arrays that do not fit."""
        checks.shape("reference.sizes", sizes, (n_columns,))
        if (sizes < 0).any() or sizes.sum() != len(edges) or len(shares) != len(edges) + n_columns:
            raise ValueError("the reference of the file does not fit its columns")
        if (shares < 0).any():
            raise ValueError("reference.shares must not be negative")
        at, after = np.cumsum(sizes)[:-1], np.cumsum(sizes + 1)[:-1]
        return cls(tuple(np.split(edges, at)), tuple(np.split(shares, after)))


class DriftCount:
    """Counts the cells of rows in the bins of a reference.

    Parameters
    ----------
    columns : sequence of Column
        The modelled columns.
    reference : Reference
        Distributions of the training table.
    missing_rate : ndarray
        Missing rates of the training table.
    """

    def __init__(
        self, columns: Sequence[Column], reference: Reference, missing_rate: Floats
    ) -> None:
        self._columns, self._reference, self._rate = columns, reference, missing_rate
        self._counts = [np.zeros(len(each), dtype=np.int64) for each in reference.shares]
        self._n_rows = 0

    def add(self, encoded: Encoded) -> None:
        """Count the cells of a batch."""
        self._n_rows += len(encoded.x)
        for j, edges in enumerate(self._reference.edges):
            self._counts[j] += counts(edges, encoded.x[encoded.m[:, j], j])

    def found(self) -> list[Drift]:
        """Return the columns that differ strongly from the training table."""
        if self._n_rows < MIN_CELLS:
            return []
        each = [self._drift(j) for j in range(len(self._columns))]
        return [
            one
            for one in each
            if one.psi > MAX_PSI
            or abs(one.missing_rate - one.training_missing_rate) > MAX_RATE_DIFFERENCE
        ]

    def _drift(self, j: int) -> Drift:
        column, count, shares = self._columns[j], self._counts[j], self._reference.shares[j]
        n = int(count.sum())
        index = 0.0
        if n >= MIN_CELLS:
            # the expectation of the index of two samples from one distribution is subtracted
            bias = (np.count_nonzero(shares) - 1) * (1 / n + 1 / max(column.n_observed, 1))
            index = max(psi(count / n, shares) - float(bias), 0.0)
        return Drift(column.name, index, 1 - n / self._n_rows, float(self._rate[j]))


def counts(edges: Floats, values: Floats) -> Ints:
    """Return the number of values in each bin, above one edge and up to the next."""
    found = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    return found.astype(np.int64)


def psi(found: Floats, expected: Floats) -> float:
    """Return the population stability index, the sum of (p - q) log(p / q) over bins."""
    p, q = np.maximum(found, EMPTY), np.maximum(expected, EMPTY)
    return float(((p - q) * np.log(p / q)).sum())
