"""The masks, the splits and the score of the paper's published program.

The program draws masks and splits with NumPy's legacy generator, seeded with 0 to 4. With these,
mean imputation and MICE reproduce the printed figures to the digit (truncated, not rounded) on all
data sets but credit.

Its score compares imputations with a shifted truth: the complete table, standardised by the mean
and deviation of all its cells and rescaled by those of the observed cells. Under MCAR this is the
truth up to sampling error. Under MNAR it removes the bias that the missing cells cause, so the
score is not the error of the imputations. It is used to check that a method is the paper's; all
other results are scored against the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psmvae_paper.metrics import column_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Integers = NDArray[np.int64]

__all__ = ["MECHANISMS", "printed_mask", "printed_order", "printed_rmse"]

MECHANISMS = ("mcar", "mnar", "mnar-mcar")
# A column can be made MNAR if the share of its rows above the median is between these.
LEAST, MOST = 0.1, 0.9
# Missing rate of the cells above the median under MNAR+MCAR.
HALF = 0.5
# Added to standard deviations.
TINY = 1e-6
FEW_VALUES = 20


def printed_mask(x: Floats, mechanism: str, rate: float, seed: int) -> tuple[Bools, Integers]:
    """Draw the mask of the paper's program and the true pattern set of each row.

    Parameters
    ----------
    x : ndarray of float, (row, column)
        The table; NaN where natively missing.
    mechanism : {"mcar", "mnar", "mnar-mcar"}
        As in `psmvae.simulate`.
    rate : float
        Missing rate of all cells (MCAR), or of the cells above the median of a column (MNAR).
    seed : int
        The paper used 0 to 4.

    Returns
    -------
    m : ndarray of bool, (row, column)
        True where observed.
    sets : ndarray of int, (row,)
        1 for rows above the median of the MNAR column, else 0.

    Raises
    ------
    ValueError
        If the paper has no such mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(20.0).reshape(10, 2)
    >>> m, sets = printed_mask(x, "mnar", 1.0, 0)
    >>> m.all(1).tolist() == (sets == 0).tolist(), int(sets.sum())
    (True, 5)
    """
    if mechanism not in MECHANISMS:
        raise ValueError(f"the paper's masks are for {', '.join(MECHANISMS)}, got {mechanism!r}")
    rng = np.random.RandomState(seed)
    missing = np.zeros(x.shape, dtype=bool)
    sets = np.zeros(len(x), dtype=np.int64)
    if mechanism != "mnar":
        missing = rng.binomial(1, rate, size=x.shape) == 1
    if mechanism != "mcar":
        column, above = _drawn_column(x, rng)
        missing[:, column] = False
        chance = rate if mechanism == "mnar" else HALF
        missing[above, column] = rng.binomial(1, chance, size=above.sum()) == 1
        sets = above.astype(np.int64)
    return ~missing & ~np.isnan(x), sets


def _drawn_column(x: Floats, rng: np.random.RandomState) -> tuple[int, Bools]:
    """Draw a column that can be split at its median, and find the rows above it."""
    above = x > np.nanmedian(x, axis=0)
    n_above = above.sum(0)
    if not ((n_above > LEAST * len(x)) & (n_above < MOST * len(x))).any():
        raise ValueError("no column has between 10 % and 90 % of its rows above its median")
    while True:
        column = int(rng.choice(x.shape[1]))
        if LEAST * len(x) < n_above[column] < MOST * len(x):
            return column, above[:, column]


def printed_order(n_rows: int, seed: int) -> Integers:
    """Draw the permutation of rows that the paper's program splits 8:1:1.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    seed : int
        The seed.

    Returns
    -------
    ndarray of int, (row,)
        The permutation.

    Examples
    --------
    >>> printed_order(4, 0).tolist()
    [2, 3, 1, 0]
    """
    order: Integers = np.random.RandomState(seed).permutation(n_rows)
    return order


def printed_rmse(truth: Floats, filled: Floats, m: Bools) -> float:
    """Root mean squared error against the shifted truth, as the paper's program computes it.

    Parameters
    ----------
    truth : ndarray of float, (row, column)
        The complete table; NaN where natively missing.
    filled : ndarray of float, (row, column)
        The imputed table, in the units of `truth`.
    m : ndarray of bool, (row, column)
        True where observed.

    Returns
    -------
    float
        The error, divided by the range of the columns; NaN if nothing is scored.

    Examples
    --------
    The upper half of a column is missing and imputed by the mean of the lower half. The shifted
    truth has the same mean, so the score is lower than the error:

    >>> import numpy as np
    >>> from psmvae_paper.metrics import rmse
    >>> truth = np.arange(40.0)[:, None]
    >>> m = truth < 20
    >>> filled = np.where(m, truth, 9.5)
    >>> round(printed_rmse(truth, filled, m), 2)
    0.3
    >>> round(rmse(truth, filled, m, np.array([39.0]), np.array([False])), 2)
    0.53
    """
    observed = np.where(m, truth, np.nan)
    std, mean = np.nanstd(observed, axis=0) + TINY, np.nanmean(observed, axis=0)
    shifted = (truth - np.nanmean(truth, axis=0)) / (np.nanstd(truth, axis=0) + TINY)
    shifted = shifted * std + mean
    few = [len(np.unique(column[~np.isnan(column)])) < FEW_VALUES for column in truth.T]
    values = np.where(few, np.round(filled), filled)
    error = ((values - shifted) / column_range(shifted))[~m & ~np.isnan(truth)]
    error = error[~np.isnan(error)]
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")
