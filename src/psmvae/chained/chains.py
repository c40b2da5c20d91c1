"""Chains of regressions: fit to a training table, and draw the missing cells of any table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmvae._blas import one_blas_thread
from psmvae.chained.basis import MAX_TERMS, Basis
from psmvae.chained.levels import LevelParameters, fit_levels
from psmvae.chained.nearest import nearest
from psmvae.chained.numeric import NumericParameters, fit_numeric
from psmvae.chained.predictors import Predictors
from psmvae.chained.regression import Draws, constant, dependent
from psmvae.chained.tilt import LogOdds

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Parameters = NumericParameters | LevelParameters
Tilts = Mapping[int, LogOdds]
Result = TypeVar("Result")

# Linear predictors of a column at most: those most correlated with it.
MAX_LINEAR = 60
# Rows for each linear predictor, at least, that flat priors of their coefficients need. With fewer,
# the errors of regressions on one another add up from round to round.
MIN_ROWS_FLAT = 3
# Numbers that chains may hold at once: those of one block, and of the blocks of all threads.
MAX_BLOCK, MAX_NUMBERS = 2_500_000, 5 * 10**7
# More threads wait for Python's lock and for memory: without this limit, the draws of
# benchmarks/cores.py took 14.9 s on 4 cores, 15.2 s on 8 and 17.6 s on 16.
MAX_THREADS = 4
# Work of a fit in chains times rounds: as much as fits into this many operations, within limits.
OPERATIONS, MIN_CHAIN_ROUNDS, MAX_CHAIN_ROUNDS = 2e11, 30, 120
N_ROUNDS, N_PARAMETER_DRAWS = 6, 60
# Donors that are kept: in all, and of each column, chain and round.
MAX_DONORS, FEWEST_DONORS, MOST_DONORS = 2_500_000, 500, 5000
# Whole numbers with at most this many distinct values are drawn from donors.
MAX_DISTINCT = 20


@dataclass(frozen=True)
class Learned:
    """What a trained model says about one column, for all rows of a table.

    ``prediction`` is the mean of each cell from the other cells of its row, ``(row,)`` in model
    values, or the probabilities ``(row, level)``. ``held_out`` ``(row,)`` are the cells that the
    model was not trained on. ``shift`` is added to the draws of missing cells of a numeric column,
    and ``(row, level)`` to the log probabilities of levels: where values are missing not at random,
    it is what the model says about the difference between missing and observed values.
    """

    prediction: Floats
    held_out: Bools | None = None
    shift: Floats | None = None


@dataclass(frozen=True)
class Settings:
    """How the chains are run.

    ``nonlinear`` adds squares, products and cosines of predictors. ``numeric_draws`` is "auto",
    "normal", or "pmm" for predictive mean matching; "auto" draws residuals of similar rows, and
    donors for whole numbers with few distinct values. ``n_rounds`` are run, of which the last
    ``n_kept`` give the parameters of later draws, with at most ``n_donors`` donors.
    """

    n_chains: int = 20
    n_rounds: int = 6
    n_kept: int = 3
    nonlinear: bool = True
    numeric_draws: Literal["auto", "residuals", "normal", "pmm"] = "auto"
    n_donors: int = 5000


def settings_for(
    n_rows: int,
    n_columns: int,
    numeric_draws: Literal["auto", "residuals", "normal", "pmm"] = "auto",
    *,
    nonlinear: bool = True,
    fraction: float = 1.0,
    n_regressions: int | None = None,
) -> Settings:
    """Choose the numbers of chains and rounds.

    ``fraction`` is that of the usual work. ``n_regressions`` is the number of linear regressions
    that take the time of one round; that of the columns by default.
    """
    n_terms = min(n_columns, MAX_LINEAR) + (MAX_TERMS if nonlinear else 0)
    operations = 2.0 * n_rows * (n_regressions or n_columns) * n_terms**2
    affordable = fraction * OPERATIONS / max(operations, 1.0)
    chain_rounds = int(np.clip(affordable, MIN_CHAIN_ROUNDS, MAX_CHAIN_ROUNDS))
    n_chains = max(1, chain_rounds // N_ROUNDS)
    n_kept = min(-(-N_PARAMETER_DRAWS // n_chains), N_ROUNDS - 2)
    n_donors = MAX_DONORS // (n_chains * n_kept * n_columns)
    n_donors = int(np.clip(n_donors, FEWEST_DONORS, MOST_DONORS))
    return Settings(n_chains, N_ROUNDS, n_kept, nonlinear, numeric_draws, n_donors)


@dataclass(frozen=True, eq=False)
class Target:
    """The regression of one column: its predictors, nonlinear terms and bounds.

    ``low`` and ``high`` are in units of the column's predictor.
    """

    j: int
    linear: NDArray[np.intp]
    basis: Basis
    pmm: bool
    low: float
    high: float

    def terms(self, z: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return the terms ``(chain, row, term)`` of some rows of encoded predictors."""
        linear = _part(z, rows, self.linear)
        if not self.basis.n_terms:
            return linear
        n_linear = len(self.linear)
        terms = np.empty((*linear.shape[:-1], n_linear + self.basis.n_terms))
        terms[..., :n_linear] = linear
        self.basis.write(linear, terms[..., n_linear:])
        return terms

    def n_flat(self, n_rows: int) -> int:
        """Return the number of terms with flat priors: the linear ones, or none in few rows."""
        return len(self.linear) if n_rows >= MIN_ROWS_FLAT * len(self.linear) else 0

    def groups(self, n_flat: int) -> Bools:
        """Return sets of penalised terms that may be used together.

        They are products, cosines, and all nonlinear terms, each with the linear terms if these are
        penalised, and then the linear terms alone.
        """
        is_product = np.arange(self.basis.n_terms) < self.basis.n_products
        sets = np.stack([is_product, ~is_product, np.ones_like(is_product)])
        if n_flat == len(self.linear):
            return sets
        sets = np.vstack([np.zeros_like(is_product), sets])
        linear = np.ones((len(sets), len(self.linear)), dtype=bool)
        return np.unique(np.column_stack([linear, sets]), axis=0)


@dataclass(eq=False)
class Chains:
    """Fitted chains of regressions."""

    predictors: Predictors
    settings: Settings
    targets: list[Target]
    # drawn parameters of each column: those of the last round first
    parameters: list[list[Parameters]]
    # predictors of each column that are constant or collinear among the rows with it observed
    dropped: list[NDArray[np.intp]]
    # means and standard deviations of the imputed cells, (round, chain, column); 0 without any
    trace_mean: Floats = field(repr=False)
    trace_deviation: Floats = field(repr=False)

    @classmethod
    def fit(
        cls,
        columns: Sequence[Any],
        x: Floats,
        m: Bools,
        *,
        bounds: Sequence[tuple[float, float]],
        seed: int,
        learned: Mapping[int, Learned] | None = None,
        allowed: Bools | None = None,
        n_nearest_features: int | None = None,
        settings: Settings | None = None,
        tilts: Tilts | None = None,
    ) -> Chains:
        """Fit chains to the model values ``x`` with mask ``m``, both ``(row, column)``.

        ``bounds`` are the limits of each numeric column in model values. ``allowed``
        ``(column, column)`` says which columns (second axis) may predict a column.
        ``n_nearest_features`` limits the linear predictors of a column below MAX_LINEAR. ``tilts``
        are the log odds of going missing of columns whose values decide on their absence.
        """
        settings, learned, tilts = settings or Settings(), learned or {}, tilts or {}
        predictors = Predictors.fit(columns, x, m)
        n_linear = min(MAX_LINEAR, n_nearest_features or MAX_LINEAR)
        targets = _targets(predictors, x, m, bounds, seed, allowed, n_linear, settings)
        per_chain = m.size + m.shape[0] * (len(predictors.group) + 2 * _most_terms(targets))

        def run(chains: Sequence[int]) -> tuple[Any, ...]:
            block = _Block(predictors, targets, settings, learned, tilts, x, m, chains, seed)
            kept = block.run()
            dropped = [block.dropped(t) for t in targets] if 0 in chains else None
            return kept, block.trace, dropped

        blocks = _in_threads(run, range(settings.n_chains), per_chain)
        parameters = [
            [_stack([kept[j][r] for kept, _, _ in blocks]) for r in range(settings.n_kept)]
            for j in range(len(targets))
        ]
        trace = np.concatenate([trace for _, trace, _ in blocks], axis=2)
        return cls(predictors, settings, targets, parameters, blocks[0][2], trace[0], trace[1])

    @property
    def n_parameter_draws(self) -> int:
        """Number of different draws of the parameters."""
        return self.settings.n_chains * self.settings.n_kept

    def draw(
        self,
        x: Floats,
        m: Bools,
        n: int,
        seed: int,
        learned: Mapping[int, Learned] | None = None,
        tilts: Tilts | None = None,
    ) -> Floats:
        """Draw the missing cells of ``x, m`` ``(row, column)``: ``(row, draw, column)``.

        Draw k has the parameters of a chain of its own, up to `n_parameter_draws`, and random
        numbers that depend on the seed and on k only.
        """
        learned, tilts = learned or {}, tilts or {}
        drawn = np.empty((len(x), n, x.shape[1]))
        per_draw = x.size + len(x) * (len(self.predictors.group) + _most_terms(self.targets))

        def run(keys: Sequence[int]) -> None:
            drawn[:, list(keys)] = self._draw_block(x, m, list(keys), seed, learned, tilts)

        _in_threads(run, range(n), per_draw)
        return drawn

    def _draw_block(
        self,
        x: Floats,
        m: Bools,
        keys: list[int],
        seed: int,
        learned: Mapping[int, Learned],
        tilts: Tilts,
    ) -> Floats:
        rng, n_chains = Draws.seeded(seed, keys), self.settings.n_chains
        n_rounds, n_kept = self.settings.n_rounds, self.settings.n_kept
        values = np.repeat(x[None], len(keys), 0)
        z = np.zeros((len(keys), len(x), len(self.predictors.group)))
        for j in range(x.shape[1]):
            # a missing cell starts at the mean of each predictor
            encoded = self.predictors.encode(j, x[:, j])
            z[:, :, self.predictors.of(j)] = np.where(m[:, [j]], encoded, 0.0)
        order = _order(m)
        # The parameters change from round to round as they did in the fit, and end with those of
        # the draw. With one set of parameters in all rounds, the errors of regressions on one
        # another would add up.
        ends = [((key // n_chains), key % n_chains) for key in keys]
        cycle = [
            {
                j: _select(self.parameters[j], [((e + k) % n_kept, c) for e, c in ends])
                for j in order
            }
            for k in range(n_kept)
        ]
        for remaining in reversed(range(n_rounds)):
            for j in order:
                rows = np.flatnonzero(~m[:, j])
                parameters = cycle[remaining % n_kept][j]
                _draw_cells(
                    self.predictors, self.targets[j], parameters, z, values, m, rows,
                    learned.get(j), tilts.get(j), keys, rng, self.settings,
                )  # fmt: skip
        return values.transpose(1, 0, 2)


class _Block:
    """Chains that are run side by side on the training table."""

    def __init__(
        self,
        predictors: Predictors,
        targets: list[Target],
        settings: Settings,
        learned: Mapping[int, Learned],
        tilts: Tilts,
        x: Floats,
        m: Bools,
        chains: Sequence[int],
        seed: int,
    ) -> None:
        self.predictors, self.targets, self.settings = predictors, targets, settings
        self.learned, self.tilts, self.x, self.m = learned, tilts, x, m
        self.chains = list(chains)
        self.rng = Draws.seeded(seed, list(chains))
        self.values = np.repeat(x[None], len(chains), 0)
        self.z = np.zeros((len(chains), len(x), len(predictors.group)))
        shape = (2, settings.n_rounds, len(chains), x.shape[1])
        self.trace = np.zeros(shape)
        for j in range(x.shape[1]):
            self._start(j)

    def _start(self, j: int) -> None:
        """Start missing cells at random observed values of their column, as R's mice does."""
        missing, observed = np.flatnonzero(~self.m[:, j]), np.flatnonzero(self.m[:, j])
        if missing.size:
            picked = (self.rng.uniform(missing.size) * observed.size).astype(np.intp)
            self.values[:, missing, j] = self.x[observed[picked], j]
        at = self.predictors.of(j)
        self.z[:, :, at] = self.predictors.encode(j, self.values[:, :, j])

    def run(self) -> list[list[Parameters]]:
        """Run all rounds and return the parameters kept of each column, the last round first."""
        n_rounds, n_kept = self.settings.n_rounds, self.settings.n_kept
        order = _order(self.m)
        complete = np.flatnonzero(self.m.all(0)).tolist()
        kept: list[list[Parameters]] = [[] for _ in self.targets]
        start: dict[int, Parameters] = {}
        for number in range(n_rounds):
            keeps = number >= n_rounds - n_kept
            for j in [*order, *(complete if keeps else [])]:
                found = self._fit(j, start.get(j))
                start[j] = found
                rows = np.flatnonzero(~self.m[:, j])
                if rows.size:
                    self._draw(j, found, rows, number)
                if keeps:
                    n_donors, exact = self.settings.n_donors, self.targets[j].pmm
                    kept[j].insert(0, _kept(found, n_donors, exact=exact))
        return kept

    def dropped(self, target: Target) -> NDArray[np.intp]:
        """Return the linear predictors that the regression of a column leaves out."""
        z = self.z[0][np.ix_(self.m[:, target.j], target.linear)]
        away = z - z.mean(0)
        gram = away.T @ away
        # penalised coefficients of dependent predictors are shrunk, those of levels are 0
        is_penalised = not (target.n_flat(len(z)) or self.predictors.columns[target.j].levels)
        return target.linear[constant(gram) if is_penalised else dependent(gram, len(z))]

    def _fit(self, j: int, start: Parameters | None) -> Parameters:
        target, column = self.targets[j], self.predictors.columns[j]
        rows = np.flatnonzero(self.m[:, j])
        learned = self.learned.get(j)
        held_out = np.zeros(len(rows), dtype=bool)
        prediction = None
        if learned is not None and learned.held_out is not None:
            held_out = learned.held_out[rows]
            prediction = _prediction(self.predictors, j, learned)[rows]
        if column.levels:
            return fit_levels(
                _part(self.z, rows, target.linear),
                self.x[rows, j].astype(np.intp),
                prediction,
                held_out,
                self.rng,
                n_levels=column.n_levels,
                ordered=column.kind == "ordinal",
                start=start if isinstance(start, LevelParameters) else None,
            )
        n_flat = target.n_flat(len(rows))
        return fit_numeric(
            target.terms(self.z, rows),
            self.predictors.encode(j, self.x[rows, j])[:, 0],
            prediction,
            held_out,
            self.rng,
            n_flat=n_flat,
            groups=target.groups(n_flat),
            pmm=target.pmm,
            homoscedastic=self.settings.numeric_draws == "normal",
        )

    def _draw(self, j: int, found: Parameters, rows: NDArray[np.intp], number: int) -> None:
        target = self.targets[j]
        _draw_cells(
            self.predictors, target, found, self.z, self.values, self.m, rows,
            self.learned.get(j), self.tilts.get(j), self.chains, self.rng, self.settings,
        )  # fmt: skip
        imputed = self.values[:, rows, j]
        self.trace[0, number, :, j] = imputed.mean(1)
        self.trace[1, number, :, j] = imputed.std(1)


def _part(z: Floats, rows: NDArray[np.intp], at: NDArray[np.intp]) -> Floats:
    """Return rows and columns of every chain as an array in C order.

    The result of ``z[:, rows[:, None], at]`` is not in C order, and products of matrices take two
    to four times as long.
    """
    n_chains, _, width = z.shape
    flat = (rows[:, None] * width + at).ravel()
    part: Floats = z.reshape(n_chains, -1).take(flat, axis=1)
    return part.reshape(n_chains, len(rows), len(at))


def _draw_cells(
    predictors: Predictors,
    target: Target,
    parameters: Parameters,
    z: Floats,
    values: Floats,
    m: Bools,
    rows: NDArray[np.intp],
    learned: Learned | None,
    tilt: LogOdds | None,
    keys: list[int],
    rng: Draws,
    settings: Settings,
) -> None:
    """Draw the cells of one column and write them to ``z`` and ``values`` in place."""
    j = target.j
    at = predictors.of(j)
    prediction = shift = None
    if learned is not None:
        prediction = _prediction(predictors, j, learned)[rows]
        shift = None if learned.shift is None else learned.shift[rows]
    if isinstance(parameters, LevelParameters):
        if tilt is not None:
            shift = tilt.of_levels(keys, tilt.applies(m[rows]))
        codes = parameters.draw(_part(z, rows, target.linear), prediction, shift, rng)
        values[:, rows, j] = codes
        z[:, rows[:, None], at] = predictors.encode(j, codes)
        return
    prediction = np.zeros(len(rows)) if prediction is None else prediction
    is_normal = settings.numeric_draws == "normal"
    options: dict[str, Any] = {
        "pmm": target.pmm,
        "low": target.low,
        "high": target.high,
        "normal": is_normal,
    }
    terms = target.terms(z, rows)
    drawn = np.empty(terms.shape[:2])
    for chains, log_odds in _by_tilt(tilt, keys, m[rows]):
        drawn[chains] = parameters.of(chains).draw(
            terms[chains], prediction, rng.of(chains), log_odds=log_odds, **options
        )
    if shift is not None:
        drawn = np.clip(drawn + shift / predictors.scale[at[0]], target.low, target.high)
    z[:, rows, at[0]] = drawn
    raw = drawn * predictors.scale[at[0]] + predictors.center[at[0]]
    if predictors.columns[j].kind == "count":
        raw = np.rint(np.maximum(np.expm1(np.minimum(raw, 30.0)), 0.0))
    values[:, rows, j] = raw


def _by_tilt(
    tilt: LogOdds | None, keys: list[int], m: Bools
) -> list[tuple[Any, Callable[[Floats], Floats] | None]]:
    """Return the chains without and with a tilt, and their log odds: tilted cells take longer."""
    if tilt is None:
        return [(slice(None), None)]
    parts: list[tuple[Any, Callable[[Floats], Floats] | None]] = []
    tilted = tilt.are_tilted(keys)
    if not tilted.all():
        parts.append((~tilted, None))
    if tilted.any():
        its_keys = [keys[chain] for chain in np.flatnonzero(tilted)]
        parts.append((tilted, partial(tilt, its_keys, applies=tilt.applies(m))))
    return parts


def _prediction(predictors: Predictors, j: int, learned: Learned) -> Floats:
    """Return the prediction in units of the column's predictor, or the probabilities."""
    if learned.prediction.ndim > 1:
        return learned.prediction
    return predictors.encode(j, learned.prediction)[:, 0]


def _targets(
    predictors: Predictors,
    x: Floats,
    m: Bools,
    bounds: Sequence[tuple[float, float]],
    seed: int,
    allowed: Bools | None,
    n_linear: int,
    settings: Settings,
) -> list[Target]:
    """Choose the predictors and nonlinear terms of each column."""
    z, y = np.zeros((len(x), len(predictors.group))), np.zeros(x.shape)
    for j in range(x.shape[1]):
        encoded, own = predictors.encode(j, x[:, j]), predictors.of(j)
        z[:, own] = np.where(m[:, [j]], encoded, 0.0)
        # a column with a single observed level has no predictor
        if len(own):
            y[:, j] = z[:, own[0]]
    chosen = nearest(z, predictors.group, y, m, np.arange(x.shape[1]), n_linear, allowed)
    targets = []
    for j, (column, linear) in enumerate(zip(predictors.columns, chosen, strict=True)):
        rows = m[:, j]
        basis = Basis.empty()
        if settings.nonlinear and not column.levels and len(linear):
            rng = np.random.default_rng([seed, j])
            low, high = predictors.low[linear], predictors.high[linear]
            basis = Basis.make(z[np.ix_(rows, linear)], y[rows, j], low, high, rng)
        pmm = settings.numeric_draws == "pmm"
        if settings.numeric_draws == "auto" and column.kind in ("integer", "count"):
            pmm = len(np.unique(x[rows, j])) <= MAX_DISTINCT
        limits = predictors.limits(j, bounds[j])
        targets.append(Target(j, linear, basis, pmm, *limits))
    return targets


def _order(m: Bools) -> list[int]:
    """Return the columns with missing cells, those with few first."""
    n_missing = (~m).sum(0)
    return [int(j) for j in np.argsort(n_missing, kind="stable") if n_missing[j]]


def _most_terms(targets: list[Target]) -> int:
    return max((len(t.linear) + t.basis.n_terms for t in targets), default=0)


def _in_threads(
    run: Callable[[Sequence[int]], Result], keys: Sequence[int], numbers: int
) -> list[Result]:
    """Run blocks of chains in threads; a chain holds ``numbers`` numbers.

    The blocks do not depend on the number of threads, so that results do not either. A block is
    small enough for a processor's cache. Its matrices are small for several threads of BLAS, which
    take two to three times as long as one.
    """
    size = max(1, MAX_BLOCK // max(numbers, 1))
    blocks = [keys[start : start + size] for start in range(0, len(keys), size)]
    with one_blas_thread() as n_threads:
        n_threads = min(n_threads, MAX_THREADS, len(blocks), MAX_NUMBERS // max(size * numbers, 1))
        if n_threads <= 1:
            return [run(block) for block in blocks]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(run, blocks))


def _kept(parameters: Parameters, n_donors: int, *, exact: bool) -> Parameters:
    """Return the parameters as they are kept: few donors, and float32 for a small model file.

    ``exact`` keeps the donors in float64, since they are values to impute.
    """
    if isinstance(parameters, NumericParameters):
        parameters = parameters.thinned(n_donors, pmm=exact)
    small = {
        name: value
        if value.dtype != np.float64 or (exact and name == "donor")
        else value.astype(np.float32)
        for name, value in parameters._asdict().items()
    }
    return type(parameters)(**small)


def _stack(parts: list[Parameters]) -> Parameters:
    """Join the parameters of several blocks of chains."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    shared = ("order", "shares")
    joined = {
        name: getattr(first, name)
        if name in shared
        else np.concatenate([getattr(part, name) for part in parts])
        for name in first._fields
    }
    return type(first)(**joined)


def _select(kept: list[Parameters], which: list[tuple[int, int]]) -> Parameters:
    """Return the parameters of pairs (round, chain) as those of as many chains."""
    first = kept[0]
    shared = ("order", "shares")
    selected = {
        name: getattr(first, name)
        if name in shared
        else np.stack([getattr(kept[number], name)[chain] for number, chain in which])
        for name in first._fields
    }
    return type(first)(**selected)
