"""The masks, the split and the score behind the paper's printed figures.

With these, mean imputation and MICE give what the paper printed, to the digit (its are cut off, not
rounded) on all data sets but credit: its program drew masks and splits by NumPy's older generator,
seeded with 0 to 4. It scored against the complete table standardised by its *own* mean and
deviation and restored by those of its observed cells. Where cells go missing at random the two are
the same; where they go missing by their own value, the bias that the holes cause is taken out of
the truth, and the score is not an error any more. Here it serves to check that a method is the
paper's; every other figure is scored against the truth.
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
# Shares of rows above the median between which a column can be the one that goes missing.
LEAST, MOST = 0.1, 0.9
# Under MNAR+MCAR, of a cell above the median.
HALF = 0.5
# The program adds this to deviations.
TINY = 1e-6
FEW_VALUES = 20


def printed_mask(x: Floats, mechanism: str, rate: float, seed: int) -> tuple[Bools, Integers]:
    """Draw the paper's mask of a complete table, and the true pattern set of each row.

    Parameters
    ----------
    x : ndarray of float, (row, column)
        The table; NaN where natively missing.
    mechanism : {"mcar", "mnar", "mnar-mcar"}
        As in `psmvae.simulate`.
    rate : float
        Chance that a cell goes missing: any, or one above the median.
    seed : int
        The paper's were 0 to 4.

    Returns
    -------
    m : ndarray of bool, (row, column)
        True where observed.
    sets : ndarray of int, (row,)
        1 for rows above the median of the column that goes missing by its value, else 0.

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
        raise ValueError(
            f"the paper's masks are of {', '.join(MECHANISMS)}, and there are none of {mechanism!r}"
        )
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
    """A column that its median splits, and which rows are above it."""
    above = x > np.nanmedian(x, axis=0)
    n_above = above.sum(0)
    if not ((n_above > LEAST * len(x)) & (n_above < MOST * len(x))).any():
        raise ValueError("no column has between 10 % and 90 % of its rows above its median")
    while True:
        column = int(rng.choice(x.shape[1]))
        if LEAST * len(x) < n_above[column] < MOST * len(x):
            return column, above[:, column]


def printed_order(n_rows: int, seed: int) -> Integers:
    """Draw the order that the paper split 8:1:1.

    Examples
    --------
    >>> printed_order(4, 0).tolist()
    [2, 3, 1, 0]
    """
    order: Integers = np.random.RandomState(seed).permutation(n_rows)
    return order


def printed_rmse(truth: Floats, filled: Floats, m: Bools) -> float:
    """Score imputations as the paper did: against a truth that is moved to the observed cells.

    Parameters
    ----------
    truth : ndarray of float, (row, column)
        The complete table; NaN where natively missing.
    filled : ndarray of float, (row, column)
        The imputed table, in the units of `truth`.
    m : ndarray of bool, (row, column)
        True where observed.

    Examples
    --------
    The upper half of a column is missing and filled in with the mean of the lower half. The truth
    that this is held against has that mean too, and so is nearer.

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
    seen = np.where(m, truth, np.nan)
    spread, center = np.nanstd(seen, axis=0) + TINY, np.nanmean(seen, axis=0)
    moved = (truth - np.nanmean(truth, axis=0)) / (np.nanstd(truth, axis=0) + TINY)
    moved = moved * spread + center
    few = [len(np.unique(column[~np.isnan(column)])) < FEW_VALUES for column in truth.T]
    values = np.where(few, np.round(filled), filled)
    error = ((values - moved) / column_range(moved))[~m & ~np.isnan(truth)]
    error = error[~np.isnan(error)]
    return float(np.sqrt(np.mean(error**2))) if error.size else float("nan")
