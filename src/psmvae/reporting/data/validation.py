"""Section 5: observed cells are hidden, imputed by an imputer that never saw them, and compared."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from psmvae._quiet import quiet_warnings
from psmvae.imputers.classical import MeanImputer
from psmvae.imputers.deep import DeepImputer
from psmvae.imputers.latent import LatentImputer
from psmvae.imputers.mice import MICEImputer
from psmvae.reporting.data.columns import LEVEL_KINDS, number, rounded, sampled
from psmvae.reporting.data.diagnostics import (
    DIGITS,
    convergence_data,
    sample_size_data,
    training_data,
)
from psmvae.reporting.data.holdout import (
    MIN_OBSERVED,
    HiddenColumn,
    Holdout,
    hide,
    hold_out,
)
from psmvae.reporting.data.texts import count
from psmvae.reporting.schema import ValidationColumn, ValidationData
from psmvae.table.frames import open_table

if TYPE_CHECKING:
    from psmvae.kinds import Column
    from psmvae.table.codec import Encoded
    from psmvae.table.schema import Schema

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

# Seconds that a deep imputer is fitted without the hidden cells. In tables of many columns the
# draws take as long again.
MAX_TIME, WIDE_TIME, MANY_COLUMNS = 20.0, 8.0, 30
# Cells of the sample at most, whatever the number of columns: the baselines then take seconds.
MAX_CELLS, MIN_ROWS = 40_000, 200
# Rows whose effective sample sizes are computed.
MAX_SIZES = 1000
# The regressions of MICE take too long as a baseline for more columns.
MAX_BASELINE_COLUMNS = 100
# Characters of an error message.
MAX_ERROR = 300
# Cells of a column that are listed one by one.
MAX_LISTED = 100
N_BINS = 10
LOW, HIGH = 0.05, 0.95
# Errors of a fit that is impossible for the hidden table.
IMPOSSIBLE = (ValueError, TypeError, ArithmeticError, RuntimeError, LookupError, MemoryError)


def validation_data(
    X: Any,
    imputer: Any,
    *,
    shown: Sequence[str] | None = None,
    max_rows: int = 5000,
    fraction: float = 0.1,
    n_draws: int = 20,
    random_state: int = 0,
    progress: Progress | None = None,
) -> ValidationData:
    """Hide observed cells, fit the imputer again without them, and compare with their values.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        The incomplete table.
    imputer : imputer
        Fitted. Clones of it are fitted here; it is not changed.
    shown : sequence of str, optional
        Columns whose cells are listed one by one. By default all.
    max_rows : int, default=5000
        Rows of the sample in which cells are hidden, at most.
    fraction : float, default=0.1
        Fraction of the observed cells of each column that is hidden.
    n_draws : int, default=20
        Draws for each hidden cell.
    random_state : int, default=0
        Seed of the sample, the hidden cells, the fits and the draws.
    progress : callable, optional
        Called with the name of each step before it begins.

    Returns
    -------
    ValidationData
        As the schema of the report describes it.
    """
    say = progress or _quiet
    frame = open_table(X)
    # the names of the table, where the imputer was fitted to an array
    schema = imputer._codec(frame).schema  # noqa: SLF001 (as `transform` matches columns)
    rng = np.random.default_rng(random_state)
    n_rows = min(max_rows, max(MIN_ROWS, MAX_CELLS // len(frame.names)))
    held = hold_out(X, schema, max_rows=n_rows, fraction=fraction, rng=rng)
    try:
        with quiet_warnings():
            # of the sample; those of the imputer itself were given when it was fitted
            warnings.simplefilter("ignore")
            found = _compare(imputer, schema, held, n_draws, random_state, say)
        sentence = _sentence(imputer, held, found, frame.n_rows, fraction, n_draws)
    except IMPOSSIBLE as error:
        found = _Comparison((), {}, {}, None)
        sentence = (
            f"No cells were held out, because {type(imputer).__name__} could not be fitted again "
            f"without them ({textwrap.shorten(str(error), MAX_ERROR, placeholder=' …')})."
        )
    say("diagnostics")
    pit = _generator(random_state, 1)
    columns = [_column(one, found, pit, shown) for one in held.columns if found.methods]
    return {
        "sentence": sentence,
        "n_cells": held.n_cells if found.methods else 0,
        "methods": list(found.methods),
        "error_numbers": _mean_errors(columns, found.methods, levels=False),
        "error_levels": _mean_errors(columns, found.methods, levels=True),
        "coverage": _mean_coverage(columns),
        "pit": np.sum([column["pit"] for column in columns], axis=0).tolist()
        if columns
        else [0] * N_BINS,
        "columns": columns,
        "training": training_data(imputer),
        "effective_sample_size": _sample_size(X, imputer, random_state),
        "convergence": convergence_data(imputer),
    }


@dataclass(frozen=True)
class _Comparison:
    """Imputations of the hidden cells: points by method and column, draws ``(draw, cell)``."""

    methods: tuple[str, ...]
    points: dict[str, dict[str, Floats]]
    draws: dict[str, Floats]
    max_time: float | None
    """Seconds that limited the fit, None where the imputer itself had no more."""


def _compare(
    imputer: Any, schema: Schema, held: Holdout, n_draws: int, seed: int, say: Progress
) -> _Comparison:
    if not held.columns:
        raise ValueError(f"no column has {MIN_OBSERVED} observed cells")
    say(f"{type(imputer).__name__} without the held-out cells")
    parameters = _changed(imputer, schema, seed)
    fitted = clone(imputer).set_params(**parameters).fit(held.table)
    draws: dict[str, list[Floats]] = {one.column.name: [] for one in held.columns}
    for table in fitted.sample(held.table, n=n_draws, random_state=seed):
        for one in held.columns:
            draws[one.column.name].append(one.read(table))
    points = {type(imputer).__name__: _points(fitted, held)}
    shared = {"kinds": parameters["kinds"], "bounds": imputer.bounds, "derived": imputer.derived}
    baselines = {"MeanImputer": MeanImputer}
    if len(schema.modelled) <= MAX_BASELINE_COLUMNS:
        baselines["MICEImputer"] = _SingleMICE
    for name, baseline in baselines.items():
        if name in points:
            continue
        say(f"{name} without the held-out cells")
        other = baseline(**shared, random_state=seed).fit(held.table)
        points[name] = _points(other, held)
    stacked = {name: np.stack(values) for name, values in draws.items()}
    return _Comparison(tuple(points), points, stacked, _limit(imputer, fitted))


class _SingleMICE(MICEImputer):
    """MICE without the chains of its draws: only single imputations are compared."""

    def _fit_chains(self, encoded: Encoded, allowed: Any) -> None:
        del encoded, allowed


def _changed(imputer: Any, schema: Schema, seed: int) -> dict[str, Any]:
    """Return the parameters in which the clone differs from the imputer."""
    given = imputer.get_params(deep=False)
    changed: dict[str, Any] = {
        # the sample may not show the kind of a column, nor the order of its levels
        "kinds": {
            column.name: (column.kind, list(column.levels)) if _has_order(column) else column.kind
            for column in schema.modelled
        },
        "random_state": seed,
    }
    if "max_time" in given:
        limit = MAX_TIME if len(schema.modelled) <= MANY_COLUMNS else WIDE_TIME
        changed |= {"max_time": min(limit, given["max_time"] or limit), "verbose": False}
    if getattr(imputer, "mechanism_", None) is not None:
        # a cell hidden at random is not missing because of its value
        config = getattr(imputer, "config_", None)
        changed["mask_model"] = "none" if config is None else config.mask_model
    return changed


def _has_order(column: Column) -> bool:
    """Return whether the levels of a column have an order that can be declared."""
    return column.kind == "ordinal" and "" not in column.levels


def _limit(imputer: Any, fitted: Any) -> float | None:
    if not isinstance(imputer, DeepImputer):
        return None
    longer = bool(imputer.history_) and imputer.history_[-1].seconds > fitted.max_time
    # a limit may select settings that learn faster
    faster = isinstance(imputer, LatentImputer) and fitted.fast_preset_ > imputer.fast_preset_
    return float(fitted.max_time) if longer or faster else None


def _points(fitted: Any, held: Holdout) -> dict[str, Floats]:
    table = open_table(fitted.transform(held.table))
    return {one.column.name: one.read(table) for one in held.columns}


def _column(
    one: HiddenColumn, found: _Comparison, rng: np.random.Generator, shown: Sequence[str] | None
) -> ValidationColumn:
    name, truth = one.column.name, one.truth
    draws, points = found.draws[name], found.points[found.methods[0]][name]
    is_numeric = not one.column.levels
    low, high = interval(draws)
    inside = (low <= truth) & (truth <= high)
    listed = is_numeric and (shown is None or name in shown)
    at = sampled(np.arange(truth.size), MAX_LISTED if listed else 0, rng)
    return {
        "name": name,
        "kind": one.column.kind,
        "n": truth.size,
        "error": {method: _error(one, found.points[method][name]) for method in found.methods},
        "coverage": number(inside.mean()) if is_numeric else None,
        "truth": rounded(truth[at], DIGITS),
        "point": rounded(points[at], DIGITS),
        "low": rounded(low[at], DIGITS),
        "high": rounded(high[at], DIGITS),
        "pit": np.histogram(transform(truth, draws, rng), N_BINS, (0.0, 1.0))[0].tolist(),
    }


def interval(draws: Floats) -> tuple[Floats, Floats]:
    """Return the 5 and 95 % quantiles of draws ``(draw, cell)``.

    Of n draws and one more value from the same distribution, the value is below the k-th smallest
    draw with probability k / (n + 1). Quantiles with these plotting positions (Weibull's) contain
    it with probability 90 % for any n of at least 19; NumPy's default would with 81 % for n = 20.
    """
    low, high = np.quantile(draws, [LOW, HIGH], axis=0, method="weibull")
    return low, high


def transform(truth: Floats, draws: Floats, rng: np.random.Generator) -> Floats:
    """Return the probability integral transform: the rank among the draws, ties at random.

    It is uniform if truth and draws ``(draw, cell)`` come from the same distribution.
    """
    below, equal = (draws < truth).sum(0), (draws == truth).sum(0)
    ranks: Floats = (below + rng.random(truth.size) * (equal + 1)) / (len(draws) + 1)
    return ranks


def _error(one: HiddenColumn, points: Floats) -> float | None:
    if one.column.levels:
        return number((points != one.truth).mean())
    # squares of very large values overflow
    return number(np.sqrt(np.mean(((points - one.truth) / one.sd) ** 2)))


def _mean_errors(
    columns: Sequence[ValidationColumn], methods: Sequence[str], *, levels: bool
) -> dict[str, float | None]:
    """Return the mean error of each method over the columns with levels, or over the others."""
    chosen = [one["error"] for one in columns if (one["kind"] in LEVEL_KINDS) == levels]
    known = {
        method: [error for each in chosen if (error := each.get(method)) is not None]
        for method in methods
    }
    return {method: number(np.mean(each)) if each else None for method, each in known.items()}


def _mean_coverage(columns: Sequence[ValidationColumn]) -> float | None:
    known = [one for one in columns if one["coverage"] is not None]
    n_inside = sum((one["coverage"] or 0.0) * one["n"] for one in known)
    return n_inside / sum(one["n"] for one in known) if known else None


def _sentence(
    imputer: Any, held: Holdout, found: _Comparison, n_rows: int, fraction: float, n_draws: int
) -> str:
    name = type(imputer).__name__
    rows = f"all {n_rows:,} rows"
    if held.n_rows < n_rows:
        rows = f"{held.n_rows:,} of {n_rows:,} rows drawn at random"
    texts = [
        f"In {rows}, {fraction:.0%} of the observed cells of each column were hidden at random "
        f"({count(held.n_cells, 'cell')}); a {name} with the same parameters was fitted to this "
        f"table, imputed the hidden cells and drew each {n_draws} times."
    ]
    if baselines := found.methods[1:]:
        were = "was" if len(baselines) == 1 else "were"
        texts.append(f"{' and '.join(baselines)} {were} fitted to the same table.")
    if found.max_time is not None:
        texts.append(f"The fit of {name} was limited to {found.max_time:g} s.")
    more = ["rows"] if held.n_rows < n_rows else []
    more += ["time"] if found.max_time is not None else []
    if more:
        texts.append(
            f"The fitted imputer itself had more {' and '.join(more)}, and may be better than "
            "shown here."
        )
    mechanism = getattr(imputer, "mechanism_", None)
    if mechanism is not None and mechanism.drawn_tilts:
        texts.append(
            "Corrections for values that explain their own absence were left out, because the "
            "hidden cells are missing at random."
        )
    texts.append("Cells that are missing because of their values cannot be checked in this way.")
    return " ".join(texts)


def _sample_size(X: Any, imputer: Any, seed: int) -> list[float] | None:
    frame = open_table(X)
    rows = sampled(np.arange(frame.n_rows), MAX_SIZES, _generator(seed, 2))
    nothing = np.zeros((rows.size, len(frame.names)), dtype=bool)
    return sample_size_data(imputer, hide(X, rows, nothing))


def _generator(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])


def _quiet(step: str) -> None:
    del step
