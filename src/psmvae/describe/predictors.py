"""Which columns predict which holes: areas under the ROC curve for the mask of a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from psmvae.describe.auc import (
    MIN_CELLS,
    N_FOLDS,
    Area,
    delong,
    folds_of,
    mean_area,
    score_area,
)
from psmvae.describe.masks import Columns
from psmvae.describe.variables import Bools, Floats, Variable

# cells of the largest temporary array
_MAX_CELLS = 4_000_000


def predictors(
    variables: Sequence[Variable],
    missing: Bools,
    rng: np.random.Generator,
    among: Sequence[int] | None = None,
) -> Columns:
    """Return the area of every column's values and mask for the mask of every other column.

    The rows of a column with holes are sorted by the distance of the area from 0.5. Values are
    compared among the rows where they are observed. ``among`` are the positions of the columns
    whose masks are predicted; by default all.
    """
    n_missing = missing.sum(0)
    holes = np.flatnonzero((n_missing > 0) & (n_missing < len(missing)))
    if among is not None:
        holes = np.intersect1d(holes, np.asarray(among, dtype=np.intp))
    found = [*_of_values(variables, missing, holes, rng), *_of_masks(missing, holes)]
    found.sort(key=lambda row: (row.hole, -row.strength, row.predictor, row.by))
    return {
        "column": [variables[row.hole].name for row in found],
        "predictor": [variables[row.predictor].name for row in found],
        "by": [row.by for row in found],
        "auc": [row.auc for row in found],
        "conf_low": [row.low for row in found],
        "conf_high": [row.high for row in found],
        "n_missing": [row.n_missing for row in found],
        "n_observed": [row.n_observed for row in found],
    }


class _Row:
    """One comparison: the holes of a column, and the values or the mask of another."""

    def __init__(
        self, hole: int, predictor: int, by: str, area: Area, counts: tuple[int, int]
    ) -> None:
        self.hole, self.predictor, self.by = int(hole), int(predictor), by
        self.n_missing, self.n_observed = map(int, counts)
        low, high = area.interval()
        enough = min(counts) >= MIN_CELLS
        self.auc, self.low, self.high = (
            float(value) if enough else float("nan") for value in (area.auc, low, high)
        )
        self.strength = abs(self.auc - 0.5) if enough else -1.0


def _of_values(
    variables: Sequence[Variable],
    missing: Bools,
    holes: NDArray[np.intp],
    rng: np.random.Generator,
) -> list[_Row]:
    found = []
    for k, variable in enumerate(variables):
        rows = np.flatnonzero(~missing[:, k])
        values = variable.values[rows]
        if len(values) == 0 or bool(np.all(values == values[0])):
            continue
        others = holes[holes != k]
        size = max(1, _MAX_CELLS // len(rows))
        for start in range(0, len(others), size):
            chunk = others[start : start + size]
            positive = missing[np.ix_(rows, chunk)]
            counts = positive.sum(0)
            if variable.nominal:
                areas = [level_area(values.astype(np.intp), one, rng) for one in positive.T]
            else:
                areas = [Area(*pair) for pair in zip(*score_area(values, positive), strict=True)]
            found += [
                _Row(hole, k, "value", area, (n, len(rows) - n))
                for hole, area, n in zip(chunk, areas, counts, strict=True)
            ]
    return found


def _of_masks(missing: Bools, holes: NDArray[np.intp]) -> list[_Row]:
    """Compare masks by their 2 × 2 tables: a missing cell has the higher score."""
    mask = missing[:, holes].astype(np.float64)
    both = np.rint(mask.T @ mask).astype(np.int64)
    total = np.diag(both)
    # axes: group (predictor observed, missing), hole, predictor
    positive = np.stack([total[:, None] - both, both])
    size = np.stack(np.broadcast_arrays(len(missing) - total[None, :], total[None, :]))
    area = delong(positive, size - positive)
    return [
        _Row(hole, predictor, "mask", Area(area.auc[a, b], area.variance[a, b]), counts)
        for a, hole in enumerate(holes)
        for counts in [(int(total[a]), len(missing) - int(total[a]))]
        for b, predictor in enumerate(holes)
        if a != b
    ]


def level_area(codes: NDArray[np.intp], positive: Bools, rng: np.random.Generator) -> Area:
    """Return the cross-validated area of levels without an order.

    The score of a level is its share of positive rows in the other folds, shrunk to the share of
    all rows by one pseudo-row.
    """
    if min(positive.sum(), len(positive) - positive.sum()) < MIN_CELLS:
        return Area(np.array(np.nan), np.array(np.nan))
    n_levels = int(codes.max()) + 1
    cell = folds_of(positive, rng) * n_levels + codes
    shape = (N_FOLDS, n_levels)
    size = np.bincount(cell, minlength=N_FOLDS * n_levels).reshape(shape)
    hits = np.bincount(cell[positive], minlength=N_FOLDS * n_levels).reshape(shape)
    areas = []
    for inside_size, inside_hits in zip(size, hits, strict=True):
        outside_size, outside_hits = size.sum(0) - inside_size, hits.sum(0) - inside_hits
        share = outside_hits.sum() / outside_size.sum()
        score: Floats = (outside_hits + share) / (outside_size + 1)
        _, group = np.unique(score, return_inverse=True)
        n_hits = np.bincount(group, inside_hits).astype(np.int64)
        areas.append(delong(n_hits, np.bincount(group, inside_size).astype(np.int64) - n_hits))
    return mean_area(areas)
