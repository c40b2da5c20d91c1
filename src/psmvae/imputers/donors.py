"""Observed values that predictive mean matching may impute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.codec import snapped

if TYPE_CHECKING:
    from psmvae.chained.chains import Chains
    from psmvae.kinds import Column
    from psmvae.table.frames import Frame

Floats = NDArray[np.float64]


def donor_values(chains: Chains, frame: Frame) -> dict[int, Floats]:
    """Return the values that chains with predictive mean matching draw, by modelled column.

    The chains hold them standardised. Here they are those of the training table to the bit, in
    ascending order. Whole numbers are left out: a drawn value is rounded to them.
    """
    from psmvae.kinds import KINDS

    found = {}
    position = {name: at for at, name in enumerate(frame.names)}
    for target in chains.targets:
        column = chains.predictors.columns[target.j]
        if not target.pmm or column.kind not in ("real", "positive"):
            continue
        kept: list[Any] = chains.parameters[target.j]
        drawn = np.unique(np.concatenate([np.ravel(one.donor) for one in kept]))
        at = chains.predictors.of(target.j)[0]
        values = drawn * chains.predictors.scale[at] + chains.predictors.center[at]
        with np.errstate(over="ignore"):
            restored = np.asarray(KINDS[column.kind].restore(values, column), dtype=np.float64)
        observed = np.unique(frame.cells(position[column.name]).observed().astype(np.float64))
        found[target.j] = np.unique(snapped(restored, observed))
    return found


def check_donors(donors: Mapping[int, Floats], columns: Sequence[Column]) -> None:
    """Raise ValueError if the donors of a model file are not those of numeric columns."""
    for j, values in donors.items():
        if not 0 <= j < len(columns) or columns[j].levels:
            raise ValueError(f"donors.{j} is not of a numeric column")
        if values.ndim != 1 or values.dtype != np.float64 or not values.size:
            raise ValueError(f"donors.{j} must be a list of numbers")
        if not np.isfinite(values).all() or (np.diff(values) <= 0).any():
            raise ValueError(f"donors.{j} must ascend")
