"""One cell: the imputer it needs, its training, and what is measured of it."""

from __future__ import annotations

import math
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae_paper import metrics
from psmvae_paper.methods import find_method
from psmvae_paper.paper_masks import printed_rmse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from psmvae_paper.cell import Cell
    from psmvae_paper.protocol import Problem

    Floats = NDArray[np.float64]

# Multiple imputations, and the rows whose distributions are judged by them.
N_IMPUTATIONS = 20
MOST_ROWS = 500
# With more importance draws than this, a row needs no more once its effective sample size is so
# large: K = 10,000 is then the most a row gets.
ENOUGH_DRAWS = 100
# Multiple imputations are resampled from at least and at most so many importance draws.
SAMPLE_DRAWS = (100, 1_000)
# A curve has about so many points, each with at most so many importance draws.
CURVE_POINTS = 40
N_IMAGES = 8
# How a warning of ``fit`` begins that Ctrl-C cut short.
_INTERRUPTED = "fit was interrupted"


def unfitted(cell: Cell, problem: Problem, device: str) -> Any:
    """Make the imputer of a cell.

    Raises
    ------
    ValueError
        If the method is unknown, or has no epochs and is given some.
    """
    method = find_method(cell.method)
    told: dict[str, Any] = {name: value for name, value in cell.settings if name != "n_draws"}
    if cell.epochs is not None:
        if not method.deep:
            raise ValueError(f"epochs must be None for {method.name}, got {cell.epochs}")
        told["max_epochs"] = cell.epochs
    if method.real:
        told["kinds"] = dict.fromkeys(problem.columns, "real")
    return method.make(cell.seed, device, **told)


def n_draws(cell: Cell) -> int | None:
    """K of a cell at imputation; None is the imputer's own.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> n_draws(Cell("breast", "mcar", 0.2, 0, "miwae-10000"))
    10000
    """
    told: Any = dict(cell.settings).get("n_draws", find_method(cell.method).n_draws)
    return None if told is None else int(told)


def set_draws(imputer: Any, n: int | None) -> None:
    """Let the imputer take `n` importance draws, less where a row needs less."""
    if n is not None:
        imputer.set_params(n_draws=n, target_ess=float(ENOUGH_DRAWS) if n > ENOUGH_DRAWS else None)


@contextmanager
def quietly() -> Iterator[None]:
    """Show no warning, and take none for an answer: a fit that Ctrl-C cut short is no result.

    A method that ends the program fails like one that raises.
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
    """The error of a cell while it is trained, measured by the `callback` of ``fit``.

    Parameters
    ----------
    cell : Cell
        The cell.
    imputer : Imputer
        What is being fitted; its networks are in place from the first epoch on.
    problem : Problem
        What it is fitted to.

    Attributes
    ----------
    steps : list of int
        Epochs at which the error was measured.
    rmse : list of float
        The errors.
    seconds : float
        What measuring took.
    """

    def __init__(self, cell: Cell, imputer: Any, problem: Problem) -> None:
        self.imputer, self.problem = imputer, problem
        self.n_draws = n_draws(cell)
        self.steps: list[int] = []
        self.rmse: list[float] = []
        self.seconds = 0.0

    def __call__(self, progress: Any) -> None:
        """Measure, if this epoch is one of the points."""
        if progress.epoch not in curve_epochs(progress.max_epochs):
            return
        start = time.perf_counter()
        set_draws(self.imputer, self.n_draws)
        error = point_metrics(self.problem, filled(self.imputer, self.problem))["rmse"]
        self.steps.append(int(progress.epoch))
        self.rmse.append(error)
        self.seconds += time.perf_counter() - start


def curve_epochs(max_epochs: int) -> list[int]:
    """Epochs at which a curve is measured: half of them evenly spread, half more dense at first.

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
    """Fit an imputer to what is seen of a problem, followed by curves."""
    if not curves:
        imputer.fit(_seen(problem))
        return

    def callback(progress: Any) -> None:
        for curve in curves:
            curve(progress)

    imputer.fit(_seen(problem), callback=callback)


def measured(cell: Cell, imputer: Any, problem: Problem) -> tuple[dict[str, Any], float]:
    """Measure what a cell asks for of its fitted imputer.

    Returns
    -------
    metrics : dict
        By name; None where there is nothing to measure.
    seconds : float
        What filling in the missing cells took.
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
    # what the record tells of the imputer is what it filled in with
    set_draws(imputer, n_draws(cell))
    return plain(found), seconds


def filled(imputer: Any, problem: Problem) -> Floats:
    """The table with its missing cells filled in."""
    return _as_array("transform", imputer.transform(_seen(problem)), problem.truth.shape)


def _seen(problem: Problem) -> pd.DataFrame:
    """What a method is given: a copy, since it may write into it and others get the same."""
    return problem.incomplete.copy()


def _as_array(name: str, table: Any, shape: tuple[int, ...]) -> Floats:
    """A table that a method gave back as an array; refuse one that lacks rows or columns."""
    array = np.asarray(table, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must give a table of shape {shape}, got {array.shape}")
    return array


def point_metrics(problem: Problem, values: Floats) -> dict[str, float]:
    """Error, accuracy of discrete columns and bias (mean size over columns) of imputations."""
    against = (problem.truth, values, problem.m, problem.scale, problem.discrete)
    bias = np.abs(metrics.column_bias(*against))
    there = bias[~np.isnan(bias)]
    return {
        "rmse": metrics.rmse(*against),
        "accuracy": metrics.accuracy(*against),
        "bias": float(there.mean()) if there.size else math.nan,
    }


def draw_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """CRPS, coverage and width of multiple imputations, of the first rows that have holes."""
    rows = np.flatnonzero(~problem.m.all(1))[:MOST_ROWS]
    if rows.size == 0:
        return {"crps": math.nan, "coverage": math.nan, "width": math.nan}
    truth = problem.truth[rows]
    tables = imputer.sample(_seen(problem).iloc[rows], N_IMPUTATIONS)
    drawn = np.stack([_as_array("sample", table, truth.shape) for table in tables])
    against = (truth, drawn, problem.m[rows], problem.scale)
    coverage, width = metrics.coverage_and_width(*against)
    return {"crps": metrics.crps(*against), "coverage": coverage, "width": width}


def set_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """How well the learned pattern sets are the true ones."""
    learned = imputer.predict_set(_seen(problem))
    return {
        "set_accuracy": metrics.set_accuracy(problem.sets, learned),
        "set_majority": metrics.set_majority(problem.sets, learned),
        "adjusted_rand": metrics.adjusted_rand(problem.sets, learned),
    }


def classifier_metrics(problem: Problem, imputer: Any) -> dict[str, float]:
    """Accuracy on imputed test rows of a one-layer network trained on imputed rows.

    Each row is imputed 20 times, in training and test alike, and counts 20 times.

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
    """The first images, as lists of rows of whole numbers: the truth, m, and as filled in.

    Raises
    ------
    ValueError
        If rows are no square images.
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
    """Metrics as JSON has words for: None where a number is none, also in a curve.

    Examples
    --------
    >>> plain({"rmse": [0.5, float("nan")], "accuracy": float("nan")})
    {'rmse': [0.5, None], 'accuracy': None}
    """

    def told(value: Any) -> Any:
        if isinstance(value, list):
            return [told(one) for one in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: told(value) for name, value in found.items()}


def _sample_draws(cell: Cell) -> int | None:
    n = n_draws(cell)
    low, high = SAMPLE_DRAWS
    return None if n is None else min(max(n, low), high)
