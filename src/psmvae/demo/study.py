"""Impute the simulated trial with PSMVAE, the mean and MICE, and measure the errors."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate import Trial, simulated_trial
from psmvae.simulate.trial import DROPOUT_REASONS, OUTCOME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from psmvae.multiple import Analyses, Estimates, MultipleImputation
    from psmvae.training import Progress

# Scores and adherence are between 0 and 100.
BOUNDS = dict.fromkeys(("baseline", "week4", "week8", OUTCOME, "adherence"), (0.0, 100.0))

N_IMPUTATIONS = 20
EFFECT = "active - control"

Filled = dict[str, "NDArray[np.float64]"]  # the filled values of each column


@dataclass(frozen=True)
class Scores:
    """The errors of one method; None for a method that does not impute.

    ``rmse`` is over the missing cells of the numeric columns, in standard deviations of each
    column, and ``rmse_outcome`` over the outcomes that are missing by bad-outcome dropout. ``bias``
    is the mean of the outcome after imputation minus its true mean, in points of the score.
    """

    method: str
    rmse: float | None
    rmse_outcome: float | None
    bias: float


@dataclass(frozen=True)
class Estimate:
    """A pooled estimate with its 95 % interval, and the value in the complete data."""

    term: str
    estimate: float
    conf_low: float
    conf_high: float
    truth: float


@dataclass(frozen=True)
class Study:
    """The result of the demo.

    ``table`` is the incomplete table, ``completed`` PSMVAE's single imputation and ``mi`` its
    multiple ones, of which ``draws`` ``(imputation, row)`` are the outcomes. ``analyses`` are those
    of `mean_and_effect`, ``estimates`` their pooled estimates with 95 % intervals and true values.
    ``sets`` ``(row,)`` and ``proba`` ``(row, set)`` are the pattern sets. ``seconds`` is the time
    that PSMVAE took to fit and impute.
    """

    trial: Trial
    table: Any
    imputer: Any
    completed: Any
    mi: MultipleImputation
    analyses: Analyses
    estimates: tuple[Estimate, ...]
    filled: Mapping[str, Filled]
    draws: NDArray[np.float64]
    sets: NDArray[np.int64]
    proba: NDArray[np.float64]
    scores: tuple[Scores, ...]
    seconds: float


def run_study(
    *,
    n: int = 800,
    seed: int = 0,
    max_epochs: int | None = None,
    device: str = "auto",
    callback: Callable[[Progress], None] | None = None,
) -> Study:
    """Simulate the trial, impute it by each method and measure the errors."""
    # loaded before the timer starts
    import torch  # noqa: F401

    from psmvae.imputers import PSMVAEImputer

    trial = simulated_trial(n, rng=np.random.default_rng(seed))
    table = trial_table(trial)
    start = time.perf_counter()
    imputer = PSMVAEImputer(
        bounds=BOUNDS,
        device=device,
        random_state=seed,
        max_epochs="auto" if max_epochs is None else max_epochs,
    ).fit(table, callback=callback)
    completed = imputer.transform(table)
    seconds = time.perf_counter() - start

    filled = {
        "mean": _impute_mean(trial),
        "MICE": _impute_mice(trial),
        "PSMVAE": {name: _column(completed, name) for name in _numeric(trial)},
    }
    mi = imputer.impute_multiple(table, N_IMPUTATIONS, random_state=seed)
    analyses = mi.analyse(mean_and_effect)
    scores = [_score(name, trial, values) for name, values in filled.items()]
    return Study(
        trial=trial,
        table=table,
        imputer=imputer,
        completed=completed,
        mi=mi,
        analyses=analyses,
        estimates=_estimates(analyses, trial),
        filled=filled,
        draws=np.stack([_column(one, OUTCOME) for one in mi]),
        sets=imputer.predict_set(table),
        proba=imputer.predict_set_proba(table),
        scores=(_complete_cases(trial), *scores),
        seconds=seconds,
    )


def mean_and_effect(table: Any) -> Estimates:
    """Return the mean outcome and the difference of the arms, with n - 2 degrees of freedom."""
    from psmvae.multiple import Estimates

    outcome, arm = _column(table, OUTCOME), np.asarray(table.column("arm").to_pylist())
    arms = [outcome[arm == name] for name in ("active", "control")]
    of_mean = [values.var(ddof=1) / len(values) for values in (outcome, *arms)]
    return Estimates(
        ("mean outcome", EFFECT),
        np.array([outcome.mean(), arms[0].mean() - arms[1].mean()]),
        np.array([of_mean[0], sum(of_mean[1:])]),
        dfcom=len(outcome) - 2.0,
    )


def _estimates(analyses: Analyses, trial: Trial) -> tuple[Estimate, ...]:
    import pyarrow as pa

    truth = mean_and_effect(pa.table({name: trial.complete[name] for name in ("arm", OUTCOME)}))
    pooled = analyses.pool().summary().to_pylist()
    return tuple(
        Estimate(row["term"], row["estimate"], row["conf_low"], row["conf_high"], float(value))
        for row, value in zip(pooled, truth.estimate, strict=True)
    )


def trial_table(trial: Trial) -> Any:
    """Return the observed data of a trial."""
    import pyarrow as pa

    arrays = [pa.array(trial.complete[name], mask=~trial.observed(name)) for name in trial.names]
    return pa.table(arrays, names=list(trial.names))


def _column(table: Any, name: str) -> NDArray[np.float64]:
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


def _numeric(trial: Trial) -> list[str]:
    return [name for name, values in trial.complete.items() if values.dtype.kind in "if"]


def _incomplete(trial: Trial, name: str) -> NDArray[np.float64]:
    return np.where(trial.observed(name), trial.complete[name], np.nan)


def _impute_mean(trial: Trial) -> Filled:
    columns = {name: _incomplete(trial, name) for name in _numeric(trial)}
    return {name: np.where(np.isnan(x), np.nanmean(x), x) for name, x in columns.items()}


def _impute_mice(trial: Trial) -> Filled:
    """scikit-learn's IterativeImputer with BayesianRidge; categories as 0/1 columns."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    numeric = _numeric(trial)
    encoded = [_incomplete(trial, name) for name in numeric]
    for name in (name for name in trial.names if name not in numeric):
        values = trial.complete[name]
        encoded += [(values == level).astype(float) for level in np.unique(values)[1:]]
    x = np.column_stack(encoded)
    center, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    imputer = IterativeImputer(max_iter=50, random_state=0)
    x = imputer.fit_transform((x - center) / scale) * scale + center
    return {name: x[:, j] for j, name in enumerate(numeric)}


def _score(method: str, trial: Trial, filled: Filled) -> Scores:
    squared, squared_bad = [], np.empty(0)
    for name in _numeric(trial):
        truth = np.asarray(trial.complete[name], dtype=np.float64)
        error = ((filled[name] - truth) / truth.std()) ** 2
        squared.append(error[~trial.observed(name)])
        if name == OUTCOME:
            squared_bad = error[trial.dropout == DROPOUT_REASONS.index("bad outcome")]
    rmse, rmse_outcome = (float(np.sqrt(e.mean())) for e in (np.concatenate(squared), squared_bad))
    bias = float(filled[OUTCOME].mean() - trial.complete[OUTCOME].mean())
    return Scores(method, rmse, rmse_outcome, bias)


def _complete_cases(trial: Trial) -> Scores:
    outcome = trial.complete[OUTCOME]
    bias = float(outcome[trial.m.all(axis=1)].mean() - outcome.mean())
    return Scores(method="complete cases", rmse=None, rmse_outcome=None, bias=bias)
