"""Mechanisms whose chances are sigmoids of a score, the intercept found so that the rate is met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate.table import (
    Numbers,
    Simulated,
    calibrated,
    check_probability,
    check_slope,
    lose,
    numbered,
    standardised,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psmvae.simulate.table import Columns

# Of the columns that could drive a MAR mechanism, one in so many does.
_ONE_IN = 3


def mar(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    given: Columns | None = None,
    slope: float = 2.0,
) -> Simulated:
    """Missing at random: the chance follows a score of columns that stay fully observed.

    The score of a row is the sum of the standardised driving columns, with weights drawn between
    0.5 and 1.5, standardised again; a cell goes missing with chance sigmoid(b + slope · score).
    Each column has the b at which the mean chance of its cells is the rate. Levels count by their
    order.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Share in [0, 1] of each column's cells that goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing; by default all that do not drive.
    given : sequence of str or int, optional
        The columns that drive; by default a third, drawn, of those without a natively missing
        cell that do not go missing themselves, one at least.
    slope : float, default=2.0
        By how much the logit of the chance rises for a standard deviation of the score.

    Returns
    -------
    Simulated
        Set 1 are the rows whose score lies on the side of its mean where cells go missing more
        often. No self-masked column.

    Raises
    ------
    ValueError
        If a driving column has missing cells, does not vary or is to go missing itself, or there
        is no column left to drive or to go missing.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.column_stack([np.arange(1000.0), np.ones(1000)])
    >>> simulated = mar(table, 0.3, np.random.default_rng(0), given=[0], slope=50.0)
    >>> bool(simulated.m[:650, 1].all()), bool(simulated.m[750:, 1].any())
    (True, False)
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    check_slope(slope)
    masked = () if columns is None else numbers.positions(columns)
    drivers = _drivers(numbers, masked, given, rng)
    masked = masked or tuple(j for j in numbers.positions(None) if j not in drivers)
    if not masked:
        message = "no column is left to go missing: all are given"
        raise ValueError(message)
    weights = rng.uniform(0.5, 1.5, len(drivers))
    parts = np.column_stack([numbers.standardised(j) for j in drivers])
    score = _sloped(standardised(parts @ weights), slope)
    m = numbers.observed()
    for j in masked:
        lose(m, j, calibrated(score[m[:, j]], rate), rng)
    return Simulated(m=m, sets=(score > 0).astype(np.int64))


def mnar_self(
    table: Any,
    rate: float,
    rng: np.random.Generator,
    *,
    columns: Columns | None = None,
    slope: float = 2.0,
) -> Simulated:
    """Logistic self-masking: the chance of a cell to go missing follows its own value.

    It is sigmoid(b + slope · standardised value), with the b of each column at which the mean
    chance of its cells is the rate. Levels count by their order.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Share in [0, 1] of each column's cells that goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    columns : sequence of str or int, optional
        The columns, by name or position, that go missing; by default all that vary.
    slope : float, default=2.0
        By how much the logit of the chance rises for a standard deviation of the column; below 0
        low values go missing.

    Returns
    -------
    Simulated
        In which of the columns the row lies on the side of the mean where cells go missing more
        often: each combination that occurs is a set, numbered as (first column, second column,
        ...) sort. Of one column, set 1 are the rows on that side.

    Raises
    ------
    ValueError
        If a named column does not vary, or none does, or the slope is zero or too steep.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(1000.0).reshape(-1, 1)
    >>> simulated = mnar_self(table, 0.3, np.random.default_rng(0), slope=-50.0)
    >>> bool(simulated.m[:250].any()), bool(simulated.m[350:].all())
    (False, True)
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    check_slope(slope)
    chosen = numbers.positions(columns)
    if columns is None:
        chosen = tuple(j for j in chosen if numbers.varies(j))
    if not chosen:
        message = "no column varies: none can go missing by its own value"
        raise ValueError(message)
    scores = np.column_stack([_sloped(numbers.standardised(j), slope) for j in chosen])
    m = numbers.observed()
    for j, score in zip(chosen, scores.T, strict=True):
        lose(m, j, calibrated(score[m[:, j]], rate), rng)
    # a natively missing cell compares as not on that side
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
    """Each value of a label column has its own pattern: its own rate for every column.

    The logits of the rates differ between labels by normal draws; each column's are shifted
    together so that the mean chance of its cells is the rate.

    Parameters
    ----------
    table : DataFrame or array-like, (row, column)
        The table; null or NaN where natively missing.
    rate : float
        Share in [0, 1] of each column's cells that goes missing.
    rng : numpy.random.Generator
        The only source of randomness.
    label : str or int
        The label column, by name or position; it stays as it is.
    columns : sequence of str or int, optional
        The columns that go missing; all others by default.
    spread : float, default=2.0
        Standard deviation, above 0, of the draws.

    Returns
    -------
    Simulated
        The sets are the label's values, in their order. No self-masked column.

    Raises
    ------
    ValueError
        If the label has missing cells or does not vary, or is to go missing itself.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.column_stack([np.repeat([4.0, 7.0], 500), np.zeros(1000)])
    >>> simulated = label_patterns(table, 0.3, np.random.default_rng(0), label=0)
    >>> simulated.sets[[0, -1]].tolist()
    [0, 1]
    >>> bool(abs((~simulated.m[:, 1]).mean() - 0.3) < 0.05)
    True
    """
    numbers = Numbers.of(table)
    check_probability("rate", rate)
    if not 0 < spread < np.inf:
        message = f"spread must be a number above 0, got {spread!r}"
        raise ValueError(message)
    (at,) = numbers.positions(label, "label")
    _check_driver(numbers, at, "the label")
    chosen = numbers.positions(columns)
    if columns is None:
        chosen = tuple(j for j in chosen if j != at)
    if at in chosen or not chosen:
        message = f"the label {numbers.names[at]!r} stays: name other columns to go missing"
        raise ValueError(message)
    values, sets = np.unique(numbers.x[:, at], return_inverse=True)
    shifts = rng.normal(0.0, spread, (len(values), len(chosen)))
    m = numbers.observed()
    for j, shift in zip(chosen, shifts.T, strict=True):
        lose(m, j, calibrated(shift[sets][m[:, j]], rate), rng)
    return Simulated(m=m, sets=sets.astype(np.int64))


def _drivers(
    numbers: Numbers, masked: tuple[int, ...], given: Columns | None, rng: np.random.Generator
) -> tuple[int, ...]:
    """The columns that drive a MAR mechanism, given or drawn."""
    if given is None:
        able = [
            j
            for j in numbers.positions(None)
            if j not in masked and numbers.varies(j) and not np.isnan(numbers.x[:, j]).any()
        ]
        if not able:
            message = (
                "no column can drive the mechanism: none that stays observed is without missing "
                "cells and varies"
            )
            raise ValueError(message)
        drawn = rng.choice(able, max(1, len(able) // _ONE_IN), replace=False)
        return tuple(sorted(drawn.tolist()))
    drivers = numbers.positions(given, "given")
    for j in drivers:
        _check_driver(numbers, j, "the given column")
        if j in masked:
            message = f"column {numbers.names[j]!r} is given and cannot go missing as well"
            raise ValueError(message)
    return drivers


def _check_driver(numbers: Numbers, j: int, what: str) -> None:
    missing = int(np.count_nonzero(np.isnan(numbers.x[:, j])))
    if missing:
        message = f"{what} {numbers.names[j]!r} must be fully observed: {missing} cells are missing"
        raise ValueError(message)
    if not numbers.varies(j):
        message = f"{what} {numbers.names[j]!r} does not vary: nothing can depend on its values"
        raise ValueError(message)


def _sloped(score: NDArray[np.float64], slope: float) -> NDArray[np.float64]:
    # what is no float any more is refused when it is calibrated
    with np.errstate(over="ignore"):
        return slope * score
