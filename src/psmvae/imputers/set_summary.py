"""What distinguishes the pattern sets of a training table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Columns that are named at most.
N_NAMED = 3


@dataclass(frozen=True, eq=False)
class SetSummary:
    """Missing rates ``(set, column)`` and mean differences from the other sets, in deviations."""

    missing_rate: Floats
    difference: Floats

    @classmethod
    def of(cls, proba: Floats, x: Floats, m: Bools) -> Self:
        """Summarise the rows ``x, m`` whose sets have probabilities ``proba`` ``(row, set)``."""
        rate = (proba.T @ ~m) / np.maximum(proba.sum(0)[:, None], 1e-12)
        values = np.where(m, x, 0.0)
        count, total = proba.T @ m, proba.T @ values
        all_count, all_total = m.sum(0), values.sum(0)
        mean = total / np.maximum(count, 1e-12)
        rest = (all_total - total) / np.maximum(all_count - count, 1e-12)
        center = all_total / np.maximum(all_count, 1)
        variance = np.where(m, (x - center) ** 2, 0.0).sum(0) / np.maximum(all_count, 1)
        known = (count > 1) & (all_count - count > 1) & (variance > 0)
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        return cls(rate, np.where(known, (mean - rest) / deviation, 0.0))

    def frame(
        self,
        names: list[str],
        size: Floats,
        mechanism: list[str],
        backend: Literal["pandas", "polars", "pyarrow"],
    ) -> Any:
        """Return one row for each set."""
        data = {
            "set": list(range(len(size))),
            "size": size,
            "mechanism": mechanism,
            "missing": [
                _named(names, rate, [f"{100 * value:.0f} %" for value in rate], 0.005)
                for rate in self.missing_rate
            ],
            "differs_in": [
                _named(names, np.abs(row), [f"{value:+.1f} SD" for value in row], 0.1)
                for row in self.difference
            ],
        }
        return nw.from_dict(data, backend=backend).to_native()


def _named(names: list[str], amount: Floats, text: list[str], least: float) -> str:
    """Name the columns with the largest amounts."""
    order = np.argsort(-amount, kind="stable")[:N_NAMED]
    return ", ".join(f"{names[k]} {text[k]}" for k in order if amount[k] >= least)
