"""Tipping point analysis: the shift of the imputed values at which a conclusion turns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from psmvae.multiple import MultipleImputation
from psmvae.multiple.estimates import noting
from psmvae.multiple.pooling import Backend
from psmvae.sensitivity import wording
from psmvae.sensitivity.inference import (
    Inference,
    check_alpha,
    check_result,
    only_term,
    pooled_inference,
)
from psmvae.table.frames import open_table
from psmvae.table.numbers import p_value
from psmvae.table.sections import Section, as_html, as_text, shortened
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# How well a δ at which the conclusion turns is known: a part of itself, or of the gap in the grid.
_OF_THE_POINT, _OF_THE_GAP = 5e-4, 1e-4
# Changes of an estimate that are rounding errors, in standard errors.
_ROUNDING = 1e-9
# Combinations of δ that are analysed.
_MAX_COMBINATIONS = 10_000
_LIMITS = ("conf_low", "conf_high")


@dataclass(frozen=True, eq=False, repr=False)
class TippingPoint:
    """Pooled estimates over a grid of shifts; made by `psmvae.tipping_point`.

    Parameters
    ----------
    column : str
        The column whose imputed cells were shifted.
    term : str
        The estimated quantity.
    operation : str
        What was done with δ: "add", "multiply", "odds" or "odds of LEVEL".
    by : str or None
        The column that defines the groups with a δ of their own.
    groups : tuple
        The values of `by`; empty if there is one δ for all rows.
    axes : tuple of ndarray
        The values of δ, in ascending order, for each group.
    results : mapping of str to ndarray
        Estimate, std_error, conf_low, conf_high and p_value, with an axis for each group.
    reference : Inference
        The results without a shift.
    null : float
        Value of the term under the null hypothesis.
    alpha : float
        Significance level; intervals have the level 1 - alpha.
    m : int
        Number of imputations.
    backend : str
        Library of the frame that `summary` returns.
    turns : tuple of float
        The values of δ at which the conclusion turns, in ascending order; empty if groups have a δ
        of their own.
    """

    column: str
    term: str
    operation: str
    by: str | None
    groups: tuple[Any, ...]
    axes: tuple[Floats, ...]
    results: Mapping[str, Floats]
    reference: Inference
    null: float
    alpha: float
    m: int
    backend: Backend = "pandas"
    turns: tuple[float, ...] = ()

    @property
    def neutral(self) -> float:
        """The δ that changes nothing: 0 if it is added, 1 otherwise."""
        return _neutral(self.operation)

    @property
    def holds(self) -> Bools:
        """Where the conclusion without a shift holds, with an axis for each group.

        If the estimate without a shift differs from `null` at the level `alpha`, the conclusion
        holds where it does so in the same direction. Otherwise it holds where there is no
        difference at this level.
        """
        return np.asarray(self.margin > 0)

    @property
    def margin(self) -> Floats:
        """Distance of the confidence limits from `null`, positive where the conclusion holds."""
        return _margin(
            self.results["conf_low"],
            self.results["conf_high"],
            self.reference,
            self.null,
            self.alpha,
        )

    @property
    def points(self) -> tuple[float, ...]:
        """The values of δ at which the conclusion turns, if there is one δ for all rows.

        They are known to three significant digits, or to 1/10,000 of the gap in the grid. A value
        between the grid and the δ that changes nothing lies outside the range analysed.
        """
        if len(self.axes) > 1:
            raise ValueError(
                f"there is a δ for each of {quoted(self.groups)}; see summary and plot."
            )
        return self.turns

    def summary(self) -> Any:
        """Return a frame with one row for each value of δ, or combination of values.

        Returns
        -------
        DataFrame
            Columns delta (with groups, delta_GROUP for each), estimate, std_error, conf_low,
            conf_high, p_value, change (of the estimate, by the shift) and holds: whether the
            conclusion without a shift holds.
        """
        grid = np.meshgrid(*self.axes, indexing="ij")
        names = [f"delta_{group}" for group in self.groups] or ["delta"]
        columns: dict[str, Any] = {**dict(zip(names, grid, strict=True)), **self.results}
        columns |= {"change": columns["estimate"] - self.reference.estimate, "holds": self.holds}
        plain = {name: np.ravel(values).tolist() for name, values in columns.items()}
        return nw.from_dict(plain, backend=self.backend).to_native()

    def sentence(self, estimand: str | None = None) -> str:
        """Return the result in one sentence, as ICH E9(R1) asks to report it.

        Parameters
        ----------
        estimand : str, optional
            What is estimated, in words. By default the name of the term.

        Returns
        -------
        str
            Estimand, assumption, how far the estimate moves, and where the conclusion turns.
        """
        what = estimand or wording.quantity(self.term)
        start = self._estimate(self.reference)
        unshifted = f"δ = {wording.exact(self.neutral)}"
        if not self._depends_on_delta():
            return (
                f"With the same estimand and analysis, {self._assumption()} does not change {what} "
                f"from {start}: the estimate does not depend on the imputed values of "
                f"{self.column}."
            )
        return (
            f"With the same estimand and analysis, {self._assumption()} moves {what} from {start} "
            f"under the assumption of the imputation model ({unshifted}) {self._moved()}; the "
            f"conclusion, {wording.conclusion(self.reference, self.null, self.alpha)}, "
            f"{self._turned()}."
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the estimate with its interval over δ, or a map over the δ of two groups.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. By default a new figure of pyplot.

        Returns
        -------
        matplotlib Axes
            The axes, to be changed or saved.
        """
        from psmvae.graphics.axes import new_axes
        from psmvae.sensitivity.plots import draw_tipping_curve, draw_tipping_map

        if len(self.axes) > 2:
            raise ValueError(f"a plot is for one or two groups, not for {quoted(self.groups)}.")
        ax = new_axes() if ax is None else ax
        (draw_tipping_curve if len(self.axes) == 1 else draw_tipping_map)(self, ax)
        return ax

    def _sections(self) -> list[Section]:
        deltas = [f"δ, {self.by} = {group}" for group in self.groups] or ["δ"]
        level = f"{wording.percent(1 - self.alpha)} CI"
        error = self.reference.std_error
        rows = [[*deltas, "estimate", level, "p-value", "conclusion"]]
        for index in np.ndindex(self.holds.shape):
            one = self.at(*index)
            delta = [wording.exact(axis[k]) for axis, k in zip(self.axes, index, strict=True)]
            low, high = (wording.rounded(end, error) for end in one[2:4])
            value, probability = wording.rounded(one.estimate, error), p_value(one.p_value)
            held = "holds" if self.holds[index] else "turns"
            rows.append([*delta, value, f"{low} to {high}", probability, held])
        title = f"Tipping point analysis of {self.term} over shifts of {self.column}"
        return [shortened(Section(title, rows, [self.sentence()]))]

    def __repr__(self) -> str:
        return as_text(self._sections())

    def _repr_html_(self) -> str:
        return as_html(self._sections())

    def at(self, *index: Any) -> Inference:
        """Return the results at a position of the grid.

        Parameters
        ----------
        *index : int
            Position on each axis.

        Returns
        -------
        Inference
            Estimate, std_error, conf_low, conf_high and p_value.
        """
        return Inference(*(float(self.results[name][index]) for name in Inference._fields))

    def _assumption(self) -> str:
        if self.operation == "add":
            text = f"adding δ to the imputed values of {self.column}"
        elif self.operation == "multiply":
            text = f"multiplying the imputed values of {self.column} by δ"
        else:
            text = f"multiplying the {self.operation} in the imputed cells of {self.column} by δ"
        ends = [f"from {wording.exact(d[0])} to {wording.exact(d[-1])}" for d in self.axes]
        groups = [f" where {self.by} = {group}" for group in self.groups] or [""]
        ranges = " and ".join(end + group for end, group in zip(ends, groups, strict=True))
        return f"{text}, with δ {ranges},"

    def _moved(self) -> str:
        if len(self.axes) == 1:
            delta = self.axes[0]
            # the end that is the neutral value has moved nothing
            ends = [k for k in (0, len(delta) - 1) if delta[k] != self.neutral]
            each = [
                f"to {self._estimate(self.at(k))} at δ = {wording.exact(delta[k])}, a change of "
                f"{self._change(self.at(k))}"
                for k in ends
            ]
            return ", and ".join(each)
        estimates = self.results["estimate"]
        each, changes = [], []
        for corner in (estimates.argmin(), estimates.argmax()):
            place: tuple[Any, ...] = tuple(np.unravel_index(int(corner), estimates.shape))
            one = self.at(*place)
            value = wording.rounded(one.estimate, self.reference.std_error)
            each.append(f"{value} ({self._place(place)})")
            changes.append(self._change(one))
        return f"to between {' and '.join(each)}, changes of {' and '.join(changes)}"

    def _estimate(self, one: Inference) -> str:
        return wording.estimate(one, self.alpha, self.reference.std_error)

    def _change(self, one: Inference) -> str:
        return wording.size(one.estimate - self.reference.estimate, self.reference.std_error)

    def _depends_on_delta(self) -> bool:
        """Return whether an estimate differs from that without a shift, beyond rounding errors."""
        change = self.results["estimate"] - self.reference.estimate
        return bool(np.abs(change).max() > _ROUNDING * self.reference.std_error)

    def _turned(self) -> str:
        holds = self.holds
        if len(self.axes) == 1:
            points = " and ".join(self._turn(point) for point in self.points)
            if points:
                return f"turns at {points}"
        elif not holds.all():
            distance = np.meshgrid(*(delta - self.neutral for delta in self.axes), indexing="ij")
            far = np.where(holds, np.inf, np.sqrt(np.sum(np.square(distance), axis=0)))
            nearest = np.unravel_index(np.argmin(far), far.shape)
            return (
                f"turns in {int((~holds).sum())} of {holds.size} combinations, of which the one "
                f"nearest to no shift is {self._place(nearest)}"
            )
        return "does not turn in this range" if holds.all() else "holds nowhere in this range"

    def _turn(self, point: float) -> str:
        low, high = self.axes[0][0], self.axes[0][-1]
        outside = "" if low <= point <= high else ", below" if point < low else ", above"
        return f"δ = {wording.number(point)}{outside and f'{outside} the range analysed'}"

    def _place(self, index: Sequence[Any]) -> str:
        point = [float(delta[k]) for delta, k in zip(self.axes, index, strict=True)]
        return _place(point, self.by, self.groups)


def turning_points(
    delta: Floats, margin: Floats, margin_at: Callable[[float], float]
) -> tuple[float, ...]:
    """Return the values of δ at which a margin changes its sign, by Brent's method.

    ``delta`` are ascending values with the known ``margin``, between which ``margin_at`` is called.
    """
    known: dict[float, float] = dict(zip(delta.tolist(), margin.tolist(), strict=True))

    def at(value: float) -> float:
        if value not in known:
            known[value] = margin_at(value)
        return known[value]

    gaps = [
        (low, high)
        for low, high in itertools.pairwise(delta.tolist())
        if (known[low] > 0) != (known[high] > 0)
    ]
    return tuple(
        float(
            brentq(at, low, high, xtol=_OF_THE_GAP * (high - low), rtol=_OF_THE_POINT, disp=False)
        )
        for low, high in gaps
    )


def tipping_point(
    mi: MultipleImputation,
    analyse: Callable[[Any], Any],
    column: str,
    deltas: Any,
    *,
    by: str | None = None,
    term: str | None = None,
    operation: str = "add",
    null: float = 0.0,
    alpha: float = 0.05,
    dfcom: float | None = None,
    bootstrap: int | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TippingPoint:
    """Shift the imputed values of a column step by step until the conclusion turns.

    For each δ the imputed cells are shifted (`MultipleImputation.shift`), the analysis is repeated
    on every completed table, and the estimates are pooled by Rubin's rules, as in R's rbmi. The
    imputations are used again and nothing is refitted. The analysis without a shift is made once.

    With one δ for all rows, each gap of the grid in which the conclusion turns is searched by
    Brent's method, with about five further analyses, until δ is known to three significant digits
    or to 1/10,000 of the gap. `summary` has the values that were given, `points` those that were
    found.

    Parameters
    ----------
    mi : MultipleImputation
        The completed tables; δ is relative to the assumption under which they were imputed.
    analyse : callable
        The analysis of a completed table, as in `MultipleImputation.analyse`: any estimand.
    column : str
        The column whose imputed cells are shifted.
    deltas : array-like, or mapping of group to array-like
        At least two values of δ. With `by`, a mapping gives each group its own; groups that are
        not in it are not shifted.
    by : str, optional
        A column, such as the treatment arm. Each of its values has a δ of its own, and all
        combinations are analysed, at most 10,000. Groups without imputed cells are left out.
    term : str, optional
        The quantity of interest, if the analysis estimates several. By default the only one
        beside an intercept.
    operation : {"add", "multiply", "odds"} or "odds of LEVEL", default="add"
        Whether δ is added to the imputed values, multiplies them, or multiplies the odds of their
        levels.
    null : float, default=0
        Value of the term under the null hypothesis.
    alpha : float, default=0.05
        Significance level of the conclusion; intervals have the level 1 - alpha.
    dfcom : float, optional
        Degrees of freedom of complete data. By default those of the analyses, or infinity.
    bootstrap : int, optional
        Number of bootstrap samples, for analyses without standard errors.
    levels : mapping of str to sequence, optional
        The order of the levels of an ordinal column, for odds. By default that of the imputer's
        `kinds`, or of the data type.
    random_state : int, default=0
        Seed of bootstrap samples and of levels that are re-drawn; the same for every δ.
    n_jobs : int, optional
        Number of processes, as in joblib. None runs in this process.
    progress : callable, optional
        Called with the number of finished values of δ and their total. A value at which the
        analysis is repeated to find where the conclusion turns adds one to both.

    Returns
    -------
    TippingPoint
        With ``.summary()``, ``.sentence()`` and ``.plot()``.

    Raises
    ------
    ValueError
        If the column has no imputed cells, or if the analysis does not give an estimate of the term
        and its standard error for every δ.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from psmvae import MICEImputer, tipping_point
    >>> rng = np.random.default_rng(0)
    >>> df = pd.DataFrame({"arm": rng.integers(0, 2, 200), "y": rng.normal(size=200)})
    >>> df["y"] += df["arm"]
    >>> df.loc[rng.random(200) < 0.3, "y"] = np.nan
    >>> mi = MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
    >>> def difference(table):
    ...     one, other = (table["y"][table["arm"] == k] for k in (1, 0))
    ...     return {"difference": (one.mean() - other.mean(), one.var() / len(one) * 2)}
    >>> result = tipping_point(mi, difference, "y", {1: np.linspace(-4, 0, 5), 0: [0, 1]}, by="arm")
    >>> result.summary().columns.tolist()[:3]
    ['delta_0', 'delta_1', 'estimate']
    >>> bool(result.holds.all())
    False
    """
    check_alpha(alpha)
    _check_operation(operation)
    if not isinstance(mi, MultipleImputation):
        raise TypeError(
            "mi must be a MultipleImputation, made by imputer.impute_multiple(X) or by "
            f"MultipleImputation.from_long(table), got {type(mi).__name__}."
        )
    groups: tuple[Any, ...] = ()
    axes: tuple[Floats, ...]
    labels = None
    if by is None:
        axes = (_axis_of_all(deltas),)
    else:
        imputed, labels = _groups(mi, by, column)
        groups, axes = _axes(deltas, by, imputed)
        _check_size(groups, axes, by)
    points = list(itertools.product(*(delta.tolist() for delta in axes)))

    def shifted(point: Sequence[float]) -> MultipleImputation:
        values = [_shift_value(operation, delta) for delta in point]
        delta = dict(zip(groups, values, strict=True)) if groups else values[0]
        return mi.shift({column: delta}, groups=labels, levels=levels, random_state=random_state)

    def infer(imputation: MultipleImputation, *, warn: bool) -> tuple[str, Inference, Backend]:
        fits = imputation.analyse(
            analyse, bootstrap=bootstrap, random_state=random_state, n_jobs=n_jobs
        )
        found = pooled_inference(
            only_term(fits, term), alpha=alpha, null=null, dfcom=dfcom, warn=warn
        )
        return *next(iter(found.items())), fits.backend

    # a column or an operation that cannot be shifted is reported before any analysis
    shifted(points[0])
    chosen, reference, backend = infer(mi, warn=True)
    check_result(chosen, reference, "without a shift")
    n_done = 0

    def at(*point: float) -> Inference:
        nonlocal n_done
        place = f"at {_place(point, by, groups)}"
        name, found = chosen, reference
        if any(delta != _neutral(operation) for delta in point):
            with noting(place):
                # the analysis without a shift has warned
                name, found, _ = infer(shifted(point), warn=False)
        if name != chosen:
            raise ValueError(
                f"the analysis estimates {chosen!r} without a shift and {name!r} {place}; it must "
                "estimate the same term for every δ."
            )
        check_result(chosen, found, place)
        n_done += 1
        if progress is not None:
            progress(n_done, max(n_done, len(points)))
        return found

    rows = [at(*point) for point in points]
    shape = [len(delta) for delta in axes]
    columns = zip(Inference._fields, np.array(rows).T, strict=True)
    results = {name: values.reshape(shape) for name, values in columns}
    result = TippingPoint(
        column, chosen, operation, by, groups, axes, results, reference, null, alpha, mi.m,
        backend,
    )  # fmt: skip
    if len(axes) > 1:
        return result

    def margin(*found: Inference) -> Floats:
        low, high = (np.array([getattr(one, end) for one in found]) for end in _LIMITS)
        return _margin(low, high, reference, null, alpha)

    # the δ that changes nothing need not be in the grid
    known = {result.neutral: reference} | dict(zip(axes[0].tolist(), rows, strict=True))
    delta = sorted(known)
    turns = turning_points(
        np.array(delta),
        margin(*(known[one] for one in delta)),
        lambda value: float(margin(at(value))[0]),
    )
    return replace(result, turns=turns)


def _place(point: Sequence[float], by: str | None, groups: Sequence[Any]) -> str:
    """Return values of δ, with their groups if there are any, in words."""
    where = [f" where {by} = {group}" for group in groups] or [""]
    pairs = zip(point, where, strict=True)
    return ", ".join(f"δ = {wording.exact(delta)}{each}" for delta, each in pairs)


def _margin(low: Floats, high: Floats, reference: Inference, null: float, alpha: float) -> Floats:
    """Distance of the confidence limits from null, positive where the conclusion holds."""
    if not reference.p_value < alpha:
        return -np.maximum(low - null, null - high)
    return low - null if reference.estimate > null else null - high


def _neutral(operation: str) -> float:
    return 0.0 if operation == "add" else 1.0


def _check_operation(operation: str) -> None:
    if operation not in ("add", "multiply", "odds") and not operation.startswith("odds of "):
        raise ValueError(
            f"operation must be 'add', 'multiply', 'odds' or 'odds of LEVEL', got {operation!r}."
        )


def _shift_value(operation: str, delta: float) -> Any:
    """Return the shift as `MultipleImputation.shift` reads it."""
    if operation == "add":
        return delta
    return f"{'' if operation == 'multiply' else operation} × {delta!r}"


def _axes(
    deltas: Any, by: str, imputed: Mapping[Any, bool]
) -> tuple[tuple[Any, ...], tuple[Floats, ...]]:
    """Return the groups that are shifted, and the sorted values of δ of each."""
    groups = tuple(group for group, is_imputed in imputed.items() if is_imputed)
    if not isinstance(deltas, Mapping):
        return groups, (_axis(deltas),) * len(groups)
    if unknown := [group for group in deltas if group not in imputed]:
        raise ValueError(
            f"deltas has the groups {quoted(unknown)}, which are no values of by={by!r}; its "
            f"values are {quoted(imputed)}."
        )
    shifted = tuple(group for group in groups if group in deltas)
    if not shifted:
        raise ValueError(
            f"deltas has the groups {quoted(deltas)} of {by!r}, and none of them has imputed "
            f"cells; those that have are {quoted(groups)}."
        )
    return shifted, tuple(_axis(deltas[group]) for group in shifted)


def _axis_of_all(deltas: Any) -> Floats:
    if isinstance(deltas, Mapping):
        raise ValueError(
            f"deltas has the groups {quoted(deltas)}: pass by=, the column that has these values."
        )
    return _axis(deltas)


def _axis(deltas: Any) -> Floats:
    try:
        values = np.unique(np.asarray(deltas, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"deltas must be numbers, such as np.linspace(0, 20, 21), got {deltas!r}."
        ) from error
    if values.size < 2 or not np.isfinite(values).all():
        raise ValueError(
            "deltas must have at least two different finite values, such as "
            f"np.linspace(0, 20, 21), got {deltas!r}."
        )
    return values


def _check_size(groups: Sequence[Any], axes: Sequence[Floats], by: str) -> None:
    """Refuse combinations of δ that are too many to be analysed."""
    n = math.prod(len(axis) for axis in axes)
    if n > _MAX_COMBINATIONS:
        number = f"{n:,}" if n < 10**12 else "more than 10^12"
        raise ValueError(
            f"{by!r} has {len(groups):,} groups with imputed cells and a δ for each, which makes "
            f"{number} combinations, more than {_MAX_COMBINATIONS:,}: use a column with fewer "
            "groups, fewer values of δ, or a mapping of values for the groups that matter; the "
            "others are then not shifted."
        )


def _groups(mi: MultipleImputation, by: str, column: str) -> tuple[dict[Any, bool], NDArray[Any]]:
    """Return the values of `by`, with whether they have imputed cells, and those of all rows."""
    frame = open_table(mi[0])
    for name in (by, column):
        if name not in frame.names:
            raise ValueError(f"there is no column {name!r}; the columns are {quoted(frame.names)}.")
    at = frame.names.index(by)
    cells = frame.cells(at)
    if mi.mask[:, at].any() or cells.missing.any():
        raise ValueError(
            f"by={by!r} has missing values, so that rows would change their group between "
            "imputations; use a column without missing values."
        )
    found = set(cells.raw[mi.mask[:, frame.names.index(column)]].tolist())
    if not found:
        raise ValueError(f"column {column!r} has no imputed cells, so nothing can be shifted.")
    # a whole number that is stored as a float is named without a fraction
    levels = [
        int(level) if isinstance(level, float) and level.is_integer() else level
        for level in cells.levels()
    ]
    return {level: level in found for level in levels}, cells.raw
