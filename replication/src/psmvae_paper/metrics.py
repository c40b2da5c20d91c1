"""Metrics of imputations: pure functions of arrays.

The arguments they share:

- `truth`, (row, column): the complete values, NaN where natively missing;
- `filled`, (row, column): the imputed table;
- `draws`, (draw, row, column): multiple imputations;
- `m`, (row, column): True where a cell is observed;
- `scale`, (column,): the unit of each column's errors, NaN for a column that is not scored;
- `discrete`, (column,): the columns whose imputations are rounded.

A cell is scored if it is missing, its true value is known and its column is scored. All functions
return NaN if no cell is scored.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


def column_range(x: Floats) -> Floats:
    """Range of each column's values; NaN for a constant or empty column.

    Examples
    --------
    >>> import numpy as np
    >>> column_range(np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan], [np.nan, 5.0, np.nan]]))
    array([ 2., nan, nan])
    """
    low = np.where(np.isnan(x), np.inf, x).min(0)
    high = np.where(np.isnan(x), -np.inf, x).max(0)
    return np.where(high > low, high - low, np.nan)


def scored(truth: Floats, m: Bools, scale: Floats) -> Bools:
    """Mask of the scored cells.

    Examples
    --------
    >>> import numpy as np
    >>> m = np.array([[False, False], [True, False]])
    >>> scored(np.array([[1.0, 2.0], [3.0, np.nan]]), m, np.array([1.0, 1.0])).tolist()
    [[True, True], [False, False]]
    """
    counts: Bools = ~m & ~np.isnan(truth) & ~np.isnan(scale)
    return counts


def rmse(truth: Floats, filled: Floats, m: Bools, scale: Floats, discrete: Bools) -> float:
    """Root mean squared error of the missing cells, divided by `scale`.

    Raises
    ------
    ValueError
        If a scored cell was not imputed.

    Examples
    --------
    >>> import numpy as np
    >>> truth, m = np.array([[0.0], [4.0]]), np.array([[True], [False]])
    >>> rmse(truth, np.array([[0.0], [3.4]]), m, np.array([4.0]), np.array([True]))
    0.25
    """
    error = _errors(truth, filled, m, scale, discrete)
    wrong = error[~np.isnan(error)]
    return float(np.sqrt(np.mean(wrong**2))) if wrong.size else math.nan


def accuracy(truth: Floats, filled: Floats, m: Bools, scale: Floats, discrete: Bools) -> float:
    """Share of the missing cells of discrete columns that are imputed correctly, after rounding.

    Examples
    --------
    >>> import numpy as np
    >>> truth, m = np.array([[0.0], [4.0]]), np.array([[False], [False]])
    >>> accuracy(truth, np.array([[0.2], [3.4]]), m, np.array([4.0]), np.array([True]))
    0.5
    """
    error = _errors(truth, filled, m, scale, discrete)[:, discrete]
    wrong = error[~np.isnan(error)]
    # division by the range is not exact
    return float(np.mean(np.abs(wrong) < 1e-12)) if wrong.size else math.nan


def column_bias(truth: Floats, filled: Floats, m: Bools, scale: Floats, discrete: Bools) -> Floats:
    """Mean error of each column's missing cells, divided by `scale`.

    Examples
    --------
    >>> import numpy as np
    >>> truth, m = np.array([[0.0, 1.0], [4.0, 1.0]]), np.array([[False, True], [False, True]])
    >>> column_bias(truth, truth + 1, m, np.array([4.0, 1.0]), np.array([False, False]))
    array([0.25,  nan])
    """
    error = _errors(truth, filled, m, scale, discrete)
    n = (~np.isnan(error)).sum(0)
    return np.where(n > 0, np.nansum(error, 0) / np.maximum(n, 1), np.nan)


def crps(truth: Floats, draws: Floats, m: Bools, scale: Floats) -> float:
    """Continuous ranked probability score of draws, divided by `scale`.

    E|X - y| - E|X - X'| / 2, averaged over the cells. The second expectation is over pairs of
    different draws, which makes the estimate unbiased for any number of draws; with one draw it is
    the absolute error.

    Examples
    --------
    >>> import numpy as np
    >>> m, one = np.array([[False]]), np.array([1.0])
    >>> crps(np.array([[0.0]]), np.array([[[-1.0]], [[1.0]]]), m, one)
    0.0
    """
    x, y = _drawn(truth, draws, m, scale)
    if y.size == 0:
        return math.nan
    n = len(x)
    distance = np.abs(x - y).mean(0)
    if n == 1:
        return float(distance.mean())
    # sum of |x_i - x_j| over all pairs, from the order statistics
    weight = 2 * np.arange(1, n + 1) - n - 1
    spread = 2 * (weight[:, None] * np.sort(x, axis=0)).sum(0) / (n * (n - 1))
    return float((distance - spread / 2).mean())


def coverage_and_width(
    truth: Floats, draws: Floats, m: Bools, scale: Floats, level: float = 0.9
) -> tuple[float, float]:
    """Coverage of the central interval of the draws, and its mean width divided by `scale`.

    The ends are Weibull quantiles: draws from the true distribution cover the truth with
    probability `level` for any number of draws from 2 / (1 - level) - 1.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.arange(20.0)[:, None, None]
    >>> coverage_and_width(np.array([[9.5]]), draws, np.array([[False]]), np.array([19.0]))
    (1.0, 0.99...)
    """
    x, y = _drawn(truth, draws, m, scale)
    if y.size == 0:
        return math.nan, math.nan
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(x, ends, axis=0, method="weibull")
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


def set_accuracy(true: NDArray[Any], learned: NDArray[Any], mnar: int = 1) -> float:
    """Pattern-set accuracy by the rule of the paper.

    The learned set with the highest share of rows of the true set `mnar` is matched with it; all
    other learned sets are matched with the rest.

    Parameters
    ----------
    true, learned : ndarray of int, (row,)
        The set of each row.
    mnar : int, default=1
        The true set of the rows whose values may be missing not at random.

    Examples
    --------
    >>> import numpy as np
    >>> set_accuracy(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))
    0.75
    """
    inside = true == mnar
    share = {k: float(inside[learned == k].mean()) for k in np.unique(learned)}
    best = max(share, key=lambda k: share[k])
    return float(np.mean((learned == best) == inside))


def set_majority(true: NDArray[Any], learned: NDArray[Any]) -> float:
    """Pattern-set accuracy with each learned set matched with the majority of its rows (purity).

    It is at least the share of the largest true set.

    Examples
    --------
    >>> import numpy as np
    >>> set_majority(np.array([0, 0, 0, 1]), np.array([1, 1, 0, 1]))
    0.75
    """
    right = sum(np.bincount(true[learned == k]).max() for k in np.unique(learned))
    return float(right / len(true))


def adjusted_rand(true: NDArray[Any], learned: NDArray[Any]) -> float:
    """Adjusted Rand index of the true and the learned sets: 1 if equal, 0 on average by chance.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(true, learned))


def _errors(truth: Floats, filled: Floats, m: Bools, scale: Floats, discrete: Bools) -> Floats:
    """Imputed minus true values, divided by `scale`; NaN for a cell that is not scored."""
    counts = scored(truth, m, scale)
    if left := int((~np.isfinite(filled[counts])).sum()):
        raise ValueError(
            f"{left} of {int(counts.sum())} missing cells were not imputed with finite numbers"
        )
    rounded = np.where(discrete, np.rint(filled), filled)
    return np.where(counts, (rounded - truth) / scale, np.nan)


def _drawn(truth: Floats, draws: Floats, m: Bools, scale: Floats) -> tuple[Floats, Floats]:
    """Draws ``(draw, cell)`` and truth ``(cell,)`` of the scored cells, divided by `scale`."""
    counts = scored(truth, m, scale)
    if not np.isfinite(draws[:, counts]).all():
        raise ValueError("draws must impute all missing cells with finite numbers")
    return (draws / scale)[:, counts], (truth / scale)[counts]
