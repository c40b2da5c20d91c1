"""Mechanisms with logistic missingness probabilities, calibrated to meet a given rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import (
    Numbers,
    Simulated,
    calibrated,
    check_probability,
    numbered,
    remove_cells,
    standardised,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# By default, the MAR mechanism uses one in this many of the possible predictors.
_PREDICTORS_ONE_IN = 3


def mar(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    given: Columns | None = None,
    slope: float = 2.0,
) -> Simulated:
    """Missing at random (MAR): missingness depends on columns that stay fully observed.

    The score of a row is the standardised weighted sum of the standardised predictors, with
    weights drawn from U(0.5, 1.5). A cell is missing with probability sigmoid(b + slope · score).
    The intercept b of each column is chosen such that the mean probability over its observed cells
    is the rate. Levels are numbered by their order.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Share in [0, 1] of each column's observed cells that becomes missing.
    rng : numpy.random.Generator
        The random generator.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. By default all but the predictors.
    given : sequence of str or int, optional
        Names or positions of the predictors. By default a random third, at least one, of the fully
        observed columns that vary and are not in `columns`.
    slope : float, default=2.0
        Change in the logit of the probability per standard deviation of the score.

    Returns
    -------
    Simulated
        Set 1 contains the rows with slope · score > 0, set 0 the others. No column is self-masked.

    Raises
    ------
    ValueError
        If `rate` is not a probability, the slope is 0 or too steep, a column is unknown or has no
        observed cell, a predictor has missing cells, does not vary or is also in `columns`, or no
        column is left.

    Examples
    --------
    >>> table = np.column_stack([np.arange(1000.0), np.ones(1000)])
    >>> simulated = mar(table, 0.3, np.random.default_rng(0), given=[0], slope=50.0)
    >>> bool(simulated.m[:650, 1].all()), bool(simulated.m[750:, 1].any())
    (True, False)
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    masked = () if columns is None else numbers.positions(columns)
    predictors = _predictors(numbers, masked, given, rng)
    masked = masked or tuple(j for j in numbers.positions(None) if j not in predictors)
    if not masked:
        raise ValueError("no column is left to get missing cells: all are given")
    weights = rng.uniform(0.5, 1.5, len(predictors))
    parts = np.column_stack([numbers.standardised(j) for j in predictors])
    score = _sloped(standardised(parts @ weights), slope)
    m = numbers.observed()
    for j in masked:
        remove_cells(m, j, calibrated(score[m[:, j]], rate), rng)
    return Simulated(m=m, sets=(score > 0).astype(np.int64))


def mnar_self(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    slope: float = 2.0,
) -> Simulated:
    """Logistic self-masking: the missingness of a cell depends on its own value.

    The probability is sigmoid(b + slope · standardised value). The intercept b of each column is
    chosen such that the mean probability over its observed cells is the rate. Levels are numbered
    by their order.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Share in [0, 1] of each column's observed cells that becomes missing.
    rng : numpy.random.Generator
        The random generator.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. By default all that vary.
    slope : float, default=2.0
        Change in the logit of the probability per standard deviation of the column. If it is
        negative, low values are missing more often.

    Returns
    -------
    Simulated
        With one column, set 1 contains the rows on the side of the mean with the higher
        probability. With several columns, each combination of sides that occurs is a set, numbered
        in the order of (first column, second column, ...).

    Raises
    ------
    ValueError
        If `rate` is not a probability, the slope is 0 or too steep to meet the rate, or a column is
        unknown, does not vary or contains infinity.

    Examples
    --------
    >>> table = np.arange(1000.0).reshape(-1, 1)
    >>> simulated = mnar_self(table, 0.3, np.random.default_rng(0), slope=-50.0)
    >>> bool(simulated.m[:250].any()), bool(simulated.m[350:].all())
    (False, True)
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    chosen = numbers.positions(columns)
    if columns is None:
        chosen = tuple(filter(numbers.varies, chosen))
    if not chosen:
        raise ValueError("no column varies: missingness cannot depend on the values")
    scores = np.column_stack([_sloped(numbers.standardised(j), slope) for j in chosen])
    m = numbers.observed()
    for j, score in zip(chosen, scores.T, strict=True):
        remove_cells(m, j, calibrated(score[m[:, j]], rate), rng)
    # the score of a missing cell is NaN, which compares as False
    return Simulated(m=m, sets=numbered((scores > 0).astype(np.int64)), columns=chosen)


def label_patterns(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    label: str | int,
    columns: Columns | None = None,
    spread: float = 2.0,
) -> Simulated:
    """Missing rates that depend on a label column: each value has its own rate in each column.

    The logits of the rates are normal draws, one for each label and column. For each column they
    are shifted by a constant such that the mean probability over its observed cells is the rate.

    Parameters
    ----------
    table : DataFrame or array-like of shape (row, column)
        The table. Null and NaN are cells that are missing already.
    rate : float
        Share in [0, 1] of each column's observed cells that becomes missing.
    rng : numpy.random.Generator
        The random generator.
    label : str or int
        Name or position of the label column. It stays fully observed.
    columns : sequence of str or int, optional
        Names or positions of the columns that get missing cells. By default all others.
    spread : float, default=2.0
        Standard deviation of the logits, above 0.

    Returns
    -------
    Simulated
        The sets are the values of the label, in sorted order. No column is self-masked.

    Raises
    ------
    ValueError
        If `rate` is not a probability, `spread` is not above 0, a column is unknown or has no
        observed cell, or the label has missing cells, does not vary or is in `columns`.

    Examples
    --------
    >>> table = np.column_stack([np.repeat([4.0, 7.0], 500), np.zeros(1000)])
    >>> simulated = label_patterns(table, 0.3, np.random.default_rng(0), label=0)
    >>> simulated.sets[[0, -1]].tolist()
    [0, 1]
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    if not 0 < spread < np.inf:
        raise ValueError(f"spread must be a number above 0, got {spread!r}")
    (at,) = numbers.positions(label, "label")
    _check_predictor(numbers, at, "the label")
    others = [j for j in numbers.positions(None) if j != at]
    chosen = tuple(others) if columns is None else numbers.positions(columns)
    if at in chosen or not chosen:
        raise ValueError(f"the label {numbers.names[at]!r} stays observed: name other columns")
    values, sets = np.unique(numbers.x[:, at], return_inverse=True)
    shifts = rng.normal(0.0, spread, (len(values), len(chosen)))
    m = numbers.observed()
    for j, shift in zip(chosen, shifts.T, strict=True):
        remove_cells(m, j, calibrated(shift[sets][m[:, j]], rate), rng)
    return Simulated(m=m, sets=sets.astype(np.int64))


def _predictors(
    numbers: Numbers, masked: tuple[int, ...], given: Columns | None, rng: np.random.Generator
) -> tuple[int, ...]:
    """Positions of the predictors of a MAR mechanism, given or drawn."""
    if given is None:
        complete = np.flatnonzero(~np.isnan(numbers.x).any(axis=0)).tolist()
        candidates = [j for j in complete if j not in masked and numbers.varies(j)]
        if not candidates:
            raise ValueError(
                "no column can be a predictor: none of those that stay observed is without missing "
                "cells and varies"
            )
        drawn = rng.choice(candidates, max(1, len(candidates) // _PREDICTORS_ONE_IN), replace=False)
        return tuple(sorted(drawn.tolist()))
    predictors = numbers.positions(given, "given")
    for j in predictors:
        _check_predictor(numbers, j, "the given column")
        if j in masked:
            message = f"column {numbers.names[j]!r} is given and cannot get missing cells as well"
            raise ValueError(message)
    return predictors


def _check_predictor(numbers: Numbers, j: int, what: str) -> None:
    """Refuse a column with missing cells or a single value."""
    missing = int(np.count_nonzero(np.isnan(numbers.x[:, j])))
    if missing:
        message = f"{what} {numbers.names[j]!r} must be fully observed: {missing} cells are missing"
        raise ValueError(message)
    if not numbers.varies(j):
        message = f"{what} {numbers.names[j]!r} does not vary: missingness cannot depend on it"
        raise ValueError(message)


def _sloped(score: NDArray[np.float64], slope: float) -> NDArray[np.float64]:
    """The slope times the score."""
    if slope == 0 or not np.isfinite(slope):
        raise ValueError(f"slope must be a number other than 0, got {slope!r}")
    # `calibrated` refuses a score that overflows
    with np.errstate(over="ignore"):
        return slope * score
