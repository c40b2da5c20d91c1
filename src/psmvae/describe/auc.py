"""Areas under the ROC curve with DeLong's variance, from counts of ordered groups.

The rows with the same score are one group. Of g groups in ascending order of the score,
``positive[g]`` and ``negative[g]`` are numbers of rows. Further axes are further comparisons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.describe.variables import Bools, Floats

N_FOLDS = 5
"""Number of folds of cross-validated areas."""
MIN_CELLS = 10
"""Fewer missing or observed cells give no area: two of each are needed in each fold."""
_Z = 1.959963984540054


class Area(NamedTuple):
    """Areas under the ROC curve and their variances."""

    auc: Floats
    variance: Floats

    def interval(self) -> tuple[Floats, Floats]:
        """Return the limits of 95 % intervals, within 0 and 1; NaN where the variance is 0.

        The variance is 0 if the score separates all rows. An interval without width would claim
        more than the rows tell.
        """
        half = np.where(self.variance > 0, _Z * np.sqrt(self.variance), np.nan)
        return np.clip(self.auc - half, 0, 1), np.clip(self.auc + half, 0, 1)


def delong(positive: NDArray[np.integer], negative: NDArray[np.integer]) -> Area:
    """Return areas with the variance of DeLong, DeLong and Clarke-Pearson (1988).

    The area is P(score of a positive row > that of a negative row), ties counted half. With
    V10 the share of negative rows below a positive row, and V01 the share of positive rows above a
    negative row, its variance is var(V10) / n_positive + var(V01) / n_negative.
    """
    n_positive, n_negative = positive.sum(0), negative.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        v10 = (np.cumsum(negative, 0) - negative / 2) / n_negative
        v01 = 1 - (np.cumsum(positive, 0) - positive / 2) / n_positive
        auc = (positive * v10).sum(0) / n_positive
        s10 = (positive * (v10 - auc) ** 2).sum(0) / (n_positive - 1)
        s01 = (negative * (v01 - auc) ** 2).sum(0) / (n_negative - 1)
        return Area(auc, s10 / n_positive + s01 / n_negative)


def score_area(score: Floats, positive: Bools) -> Area:
    """Return the areas of one score for one or several responses, ``(row, response)``."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(score)]).reshape(-1, *[1] * (positive.ndim - 1))
    n_positive = np.add.reduceat(positive[order].astype(np.int64), starts, axis=0)
    return delong(n_positive, sizes - n_positive)


def folds_of(positive: Bools, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the fold of each row; every fold has the same share of positive rows."""
    folds = np.empty(len(positive), dtype=np.intp)
    for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        folds[rng.permutation(rows)] = np.arange(len(rows)) % N_FOLDS
    return folds


def mean_area(areas: list[Area]) -> Area:
    """Return the mean area of the folds of a cross-validation.

    Rows are compared within a fold, where the score does not depend on them: without a relation
    the expected area is 0.5 (LeDell, Petersen and van der Laan 2015). The area of a fold measures
    its agreement with the other folds, and without a relation these agreements are independent for
    each pair of folds. Each is in two areas, so that the variance of the mean is twice that of
    independent areas. With a relation it is less, and the interval is too wide rather than too
    narrow.
    """
    auc, variance = (np.stack(part) for part in zip(*areas, strict=True))
    return Area(auc.mean(0), 2 * variance.sum(0) / len(areas) ** 2)
