"""Fit the imputer of a cell and measure its imputations."""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae import Advanced
from psmvae_paper import metrics
from psmvae_paper.methods import Maker, find_method
from psmvae_paper.paper_masks import printed_rmse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from psmvae_paper.cell import Cell
    from psmvae_paper.protocol import Problem

    Floats = NDArray[np.float64]

# Number of multiple imputations, and of the rows that are scored by them.
N_IMPUTATIONS = 20
MOST_ROWS = 500
# Effective sample size at which a row gets no further importance draws, where K is larger: K is
# then the upper limit.
TARGET_ESS = 100
# Lower and upper limit of the importance draws that multiple imputations are resampled from.
SAMPLE_DRAWS = (100, 1_000)
# Approximate number of points of a curve.
CURVE_POINTS = 40
N_IMAGES = 8
# The beginning of the warning of a ``fit`` that was interrupted by Ctrl-C.
_INTERRUPTED = "fit was interrupted"


def unfitted(cell: Cell, problem: Problem, device: str) -> Any:
    """Make the unfitted imputer of a cell.

    Parameters
    ----------
    cell : Cell
        The method, its settings and the seed.
    problem : Problem
        Its columns.
    device : str
        The torch device.

    Returns
    -------
    imputer
        Unfitted.

    Raises
    ------
    ValueError
        If the method is unknown, or `epochs` is set for a method without epochs.
    """
    method = find_method(cell.method)
    parameters: dict[str, Any] = {name: value for name, value in cell.settings if name != "n_draws"}
    if cell.epochs is not None:
        if not method.deep:
            raise ValueError(f"epochs must be None for {method.name}, got {cell.epochs}")
        parameters["max_epochs"] = cell.epochs
    if method.real:
        parameters["kinds"] = dict.fromkeys(problem.columns, "real")
    elif isinstance(method.make, Maker):
        parameters["kinds"] = numeric_kinds(problem)
    if isinstance(method.make, Maker):
        # the paper's methods impute any number
        parameters["bounds"] = dict.fromkeys(problem.columns, (None, None))
    return method.make(cell.seed, device, **parameters)


def numeric_kinds(problem: Problem) -> dict[str, str]:
    """Return the kinds of the columns that the library's default declares, by name.

    All columns are numbers here. 0 and 1 are binary, other whole numbers integer, the rest real.
    The library's own inference also knows ordinal codes, for which there are no records.

    Parameters
    ----------
    problem : Problem
        Its incomplete table.

    Returns
    -------
    dict of str to str
        One kind for each column.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> from psmvae_paper.protocol import make_problem
    >>> set(numeric_kinds(make_problem(Cell("breast", "mcar", 0.2, 0, "psmvae"))).values())
    {'real'}
    """
    kinds = {}
    for name, x in zip(problem.columns, problem.incomplete.to_numpy().T, strict=True):
        values = set(np.unique(x[~np.isnan(x)]).tolist())
        whole = bool(values) and all(value.is_integer() for value in values)
        kinds[name] = "binary" if values == {0.0, 1.0} else "integer" if whole else "real"
    return kinds


def n_draws(cell: Cell) -> int | None:
    """Return K of a cell; None is the imputer's own.

    Parameters
    ----------
    cell : Cell
        The cell.

    Returns
    -------
    int or None
        The number of importance draws at imputation.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> n_draws(Cell("breast", "mcar", 0.2, 0, "miwae-10000"))
    10000
    """
    draws: Any = dict(cell.settings).get("n_draws", find_method(cell.method).n_draws)
    return None if draws is None else int(draws)


def set_draws(imputer: Any, n: int | None) -> None:
    """Set K of an imputer, with fewer draws for rows that reach the target ESS.

    Parameters
    ----------
    imputer : imputer
        Fitted or not.
    n : int or None
        K; None keeps the imputer's own.
    """
    if n is not None:
        target = float(TARGET_ESS) if n > TARGET_ESS else None
        options = dataclasses.replace(imputer.advanced or Advanced(), target_ess=target)
        imputer.set_params(n_draws=n, advanced=options)


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore warnings, but raise KeyboardInterrupt for a fit that Ctrl-C interrupted.

    SystemExit becomes a RuntimeError, so that a method that exits fails like one that raises.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=_INTERRUPTED)
        try:
            yield
        except UserWarning as warning:
            if str(warning).startswith(_INTERRUPTED):
                raise KeyboardInterrupt from warning
            raise
        except SystemExit as end:
            raise RuntimeError(f"the method ended the program with {end.code!r}") from end


class Curve:
    """The error of a cell during training, measured by the `callback` of ``fit``.

    Parameters
    ----------
    cell : Cell
        The cell.
    imputer : Imputer
        The imputer that is being fitted.
    problem : Problem
        The table that it is fitted to.

    Attributes
    ----------
    steps : list of int
        Epochs at which the error was measured.
    rmse : list of float
        The errors.
    seconds : float
        The time that the measurements took.
    """

    def __init__(self, cell: Cell, imputer: Any, problem: Problem) -> None:
        self.imputer, self.problem = imputer, problem
        self.n_draws = n_draws(cell)
        self.steps: list[int] = []
        self.rmse: list[float] = []
        self.seconds = 0.0

    def __call__(self, progress: Any) -> None:
        """Measure the error, if this epoch is one of the points.

        Parameters
        ----------
        progress : Progress
            The state of the training.
        """
        if progress.epoch not in curve_epochs(progress.max_epochs):
            return
        start = time.perf_counter()
        set_draws(self.imputer, self.n_draws)
        error = point_metrics(self.problem, filled(self.imputer, self.problem))["rmse"]
        self.steps.append(int(progress.epoch))
        self.rmse.append(error)
        self.seconds += time.perf_counter() - start


def curve_epochs(max_epochs: int) -> list[int]:
    """Return the epochs at which a curve is measured: half evenly, half log-spaced.

    Parameters
    ----------
    max_epochs : int
        The last epoch.

    Returns
    -------
    list of int
        In ascending order, with the last epoch.

    Examples
    --------
    >>> curve_epochs(5)
    [1, 2, 3, 4, 5]
    >>> len(curve_epochs(1000)), curve_epochs(1000)[-1]
    (38, 1000)
    """
    half = CURVE_POINTS // 2
    even = np.linspace(max_epochs / half, max_epochs, half)
    dense = np.geomspace(1, max_epochs, half)
    return sorted({max(1, round(float(epoch))) for epoch in (*even, *dense)})


def fit(imputer: Any, problem: Problem, curves: Sequence[Curve] = ()) -> None:
    """Fit an imputer to the incomplete table of a problem.

    Parameters
    ----------
    imputer : imputer
        Unfitted.
    problem : Problem
        The table.
    curves : sequence of Curve
        Called after every epoch.
    """
    if not curves:
        imputer.fit(_incomplete(problem))
        return

    def callback(progress: Any) -> None:
        for curve in curves:
            curve(progress)

    imputer.fit(_incomplete(problem), callback=callback)


def measured(cell: Cell, imputer: Any, problem: Problem) -> tuple[dict[str, Any], float]:
    """Measure a fitted imputer as the cell's `measure` demands.

    Parameters
    ----------
    cell : Cell
        What is measured, with which K.
    imputer : imputer
        Fitted.
    problem : Problem
        The table it was fitted to.

    Returns
    -------
    metrics : dict
        Values by name; None for a value that is not finite.
    seconds : float
        The time that the imputation took.
    """
    set_draws(imputer, n_draws(cell))
    start = time.perf_counter()
    values = filled(imputer, problem)
    seconds = time.perf_counter() - start
    found = point_metrics(problem, values)
    if cell.masks == "paper":
        found["rmse_printed"] = printed_rmse(problem.truth, values, problem.m)
    if find_method(cell.method).draws:
        set_draws(imputer, _sample_draws(cell))
        found |= draw_metrics(problem, imputer)
    more: dict[str, Callable[..., dict[str, Any]]] = {
        "sets": set_metrics,
        "multiple": classifier_metrics,
    }
    if cell.measure in more:
        found |= more[cell.measure](problem, imputer)
    if cell.measure == "inpaint":
        found |= images(problem, values)
    # the record shows the K of the point imputations
    set_draws(imputer, n_draws(cell))
    return plain(found), seconds


def filled(imputer: Any, problem: Problem) -> Floats:
    """Return the imputed table.

    Parameters
    ----------
    imputer : imputer
        Fitted.
    problem : Problem
        The incomplete table.

    Returns
    -------
    ndarray of float, (row, column)
        The table.
    """
    return _as_array("transform", imputer.transform(_incomplete(problem)), problem.truth.shape)


def _incomplete(problem: Problem) -> pd.DataFrame:
    """A copy of the incomplete table, since a method may write into it."""
    return problem.incomplete.copy()


def _as_array(name: str, table: Any, shape: tuple[int, ...]) -> Floats:
    """A table that a method returned as an array; an error if its shape is wrong."""
    array = np.asarray(table, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must return a table of shape {shape}, got {array.shape}")
    return array


def point_metrics(problem: Problem, values: Floats) -> dict[str, float]:
    """Return RMSE, accuracy of discrete columns and mean absolute bias of the columns.

    Parameters
    ----------
    problem : Problem
        The truth.
    values : ndarray of float, (row, column)
        The imputed table.

    Returns
    -------
    dict
        ``rmse``, ``accuracy`` and ``bias``.
    """
    against = (problem.truth, values, problem.m, problem.scale, problem.discrete)
    bias = np.abs(metrics.column_bias(*against))
    known = bias[~np.isnan(bias)]
    return {
        "rmse": metrics.rmse(*against),
        "accuracy": metrics.accuracy(*against),
        "bias": float(known.mean()) if known.size else math.nan,
    }


def draw_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """Return CRPS, coverage and width of multiple imputations of the first incomplete rows.

    Parameters
    ----------
    problem : Problem
        The truth.
    imputer : imputer
        Fitted, with ``sample``.

    Returns
    -------
    dict
        ``crps``, ``coverage`` and ``width``.
    """
    rows = np.flatnonzero(~problem.m.all(1))[:MOST_ROWS]
    if rows.size == 0:
        return {"crps": math.nan, "coverage": math.nan, "width": math.nan}
    truth = problem.truth[rows]
    tables = imputer.sample(_incomplete(problem).iloc[rows], N_IMPUTATIONS)
    drawn = np.stack([_as_array("sample", table, truth.shape) for table in tables])
    against = (truth, drawn, problem.m[rows], problem.scale)
    coverage, width = metrics.coverage_and_width(*against)
    return {"crps": metrics.crps(*against), "coverage": coverage, "width": width}


def set_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """Return the agreement of the learned pattern sets with the true ones.

    Parameters
    ----------
    problem : Problem
        The true sets.
    imputer : imputer
        Fitted, with ``predict_set``.

    Returns
    -------
    dict
        ``set_accuracy``, ``set_majority`` and ``adjusted_rand``.
    """
    learned = imputer.predict_set(_incomplete(problem))
    return {
        "set_accuracy": metrics.set_accuracy(problem.sets, learned),
        "set_majority": metrics.set_majority(problem.sets, learned),
        "adjusted_rand": metrics.adjusted_rand(problem.sets, learned),
    }


def classifier_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """Return the test accuracy of logistic regression trained on multiple imputations.

    Each row is imputed 20 times, in training and test alike, and counts 20 times.

    Parameters
    ----------
    problem : Problem
        Training and test rows with a target.
    imputer : imputer
        Fitted, with ``sample``.

    Returns
    -------
    dict
        ``accuracy``.

    Raises
    ------
    ValueError
        If the data set has no target.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if problem.y is None or problem.test_y is None:
        raise ValueError('measure "multiple" needs a data set with a target')

    def completed(table: Any, y: Any) -> tuple[Floats, NDArray[Any]]:
        drawn = imputer.sample(table.copy(), N_IMPUTATIONS)
        tables = [_as_array("sample", each, table.shape) for each in drawn]
        return np.concatenate(tables), np.tile(y, N_IMPUTATIONS)

    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(*completed(problem.incomplete, problem.y))
    return {
        "accuracy": float(classifier.score(*completed(problem.test_incomplete, problem.test_y)))
    }


def images(problem: Problem, values: Floats) -> dict[str, Any]:
    """Return the first images as nested lists of integers: the truth, the mask and the imputed.

    Parameters
    ----------
    problem : Problem
        Images as rows.
    values : ndarray of float, (row, column)
        The imputed table.

    Returns
    -------
    dict
        ``truth``, ``m`` and ``filled``.

    Raises
    ------
    ValueError
        If the rows are not square images.
    """
    side = math.isqrt(problem.truth.shape[1])
    if side**2 != problem.truth.shape[1]:
        raise ValueError(
            f'measure "inpaint" needs square images, got {problem.truth.shape[1]} pixels'
        )

    def shaped(rows: NDArray[Any]) -> list[Any]:
        pixels = np.rint(rows[:N_IMAGES]).astype(np.int64)
        nested: list[Any] = pixels.reshape(-1, side, side).tolist()
        return nested

    return {
        "truth": shaped(problem.truth),
        "m": shaped(problem.m.astype(np.float64)),
        "filled": shaped(values),
    }


def plain(found: dict[str, Any]) -> dict[str, Any]:
    """Return metrics with None for values that are not finite, which JSON cannot represent.

    Parameters
    ----------
    found : dict
        Metrics by name.

    Returns
    -------
    dict
        The same, also inside lists.

    Examples
    --------
    >>> plain({"rmse": [0.5, float("nan")], "accuracy": float("nan")})
    {'rmse': [0.5, None], 'accuracy': None}
    """

    def finite(value: Any) -> Any:
        if isinstance(value, list):
            return [finite(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: finite(value) for name, value in found.items()}


def _sample_draws(cell: Cell) -> int | None:
    """The number of importance draws that multiple imputations are resampled from."""
    n = n_draws(cell)
    low, high = SAMPLE_DRAWS
    return None if n is None else min(max(n, low), high)
