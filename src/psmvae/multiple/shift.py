"""Shifts of imputed cells: δ-adjustment of completed tables, without a new fit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.odds import redraw
from psmvae.table.casts import New
from psmvae.table.cells import Cells, is_integer
from psmvae.table.condition import parse_condition
from psmvae.table.declared import converted_level, distinct_levels
from psmvae.table.derived import Derivation, check_derived
from psmvae.table.errors import UnorderedLevelsError
from psmvae.table.formula import Formula
from psmvae.table.frames import Frame, open_table
from psmvae.table.wording import quoted

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_TIMES = re.compile(rf"\s*[×x*]\s*{_NUMBER}\s*")
_ODDS = re.compile(rf"\s*odds(?:\s+of\s+(.+?))?\s*[×x*]\s*{_NUMBER}\s*")
_FORMS = "a number, which is added, '× 0.9', 'odds × 2' or 'odds of LEVEL × 2'"


@dataclass(frozen=True)
class Add:
    """Add `amount`, or multiply by `factor`."""

    amount: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True)
class Odds:
    """Multiply the odds of `level` by `factor`; without a level, those of being higher."""

    factor: float
    level: str | None = None


Value = Add | Odds


@dataclass(frozen=True)
class _Part:
    """A value and the rows ``(imputation, row)`` that it is for."""

    value: Value
    rows: Bools


def shift_tables(
    original: Any,
    tables: Sequence[Any],
    mask: Bools,
    delta: Any,
    *,
    groups: Any = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    derived: Mapping[str, str] | None = None,
    random_state: int = 0,
) -> tuple[Any, ...]:
    """Return completed tables with their imputed cells shifted; see `MultipleImputation.shift`."""
    _check_mapping(delta)
    frames = [open_table(table) for table in tables]
    names = frames[0].names
    labels = None if groups is None else _read_groups(groups, frames[0].n_rows)
    orders = check_levels(levels or {}, names)
    formulas = check_derived(derived or {}, names)
    _check_not_derived([str(label) for label in delta], formulas)
    new: list[dict[int, New]] = [{} for _ in frames]
    for label, given in delta.items():
        column = str(label)
        at = _position(column, names)
        cells = [frame.cells(at) for frame in frames]
        imputed = mask[:, at] & ~np.any([one.missing for one in cells], axis=0)
        if not imputed.any():
            raise ValueError(f"column {column!r} has no imputed cells, so nothing can be shifted.")
        parts = _read_parts(column, given, imputed, frames, labels)
        seed = np.random.SeedSequence([random_state, at])
        changed = _Column(column, cells, imputed, orders.get(column), seed).changes(parts)
        for each, change in zip(new, changed, strict=True):
            each[at] = change
    shifted = [frame.replace(changes) for frame, changes in zip(frames, new, strict=True)]
    return tuple(_with_derived(original, shifted, names, [str(one) for one in delta], formulas))


def check_shift(table: Any, delta: Any) -> None:
    """Raise for a shift that no imputation of an incomplete table can have."""
    _check_mapping(delta)
    frame = open_table(table)
    for label, given in delta.items():
        column = str(label)
        if not frame.cells(_position(column, frame.names)).missing.any():
            raise ValueError(f"column {column!r} has no missing cells, so nothing can be shifted.")
        if not isinstance(given, Mapping):
            read_value(column, given)
            continue
        for condition, value in given.items():
            parse_condition(condition, frame.names)
            read_value(column, value)


def _check_mapping(delta: Any) -> None:
    if not isinstance(delta, Mapping) or not delta:
        raise TypeError(
            "a shift must map names of columns to their shifts, such as {'score': 5}, got "
            f"{delta!r}."
        )


def check_levels(levels: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the orders of levels by column."""
    if not isinstance(levels, Mapping):
        raise TypeError(
            "levels must map names of columns to their levels in order, such as "
            f"{{'edu': ['Low', 'High']}}, got {levels!r}."
        )
    given = {str(name): order for name, order in levels.items()}
    if unknown := [name for name in given if name not in names]:
        raise ValueError(
            f"levels: there is no column {quoted(unknown)}; the columns are {quoted(names)}."
        )
    return {name: distinct_levels(name, order) for name, order in given.items()}


def read_value(column: str, value: Any) -> Value:
    """Read the shift of one column or group."""
    # a bool is an int too
    number = float("nan") if isinstance(value, bool) or not isinstance(value, Real) else value
    if np.isfinite(float(number)):
        return Add(amount=float(number))
    if isinstance(value, str) and (match := _TIMES.fullmatch(value)):
        return Add(factor=float(match[1]))
    if isinstance(value, str) and (match := _ODDS.fullmatch(value)):
        factor = float(match[2])
        if not factor > 0:
            raise ValueError(
                f"column {column!r}: odds are multiplied by a factor above 0: {value!r}"
            )
        return Odds(factor, match[1])
    raise ValueError(f"column {column!r}: a shift must be {_FORMS}, got {value!r}.")


def _position(column: str, names: Sequence[str]) -> int:
    if column not in names:
        raise ValueError(f"there is no column {column!r}; the columns are {quoted(names)}.")
    return names.index(column)


def _check_not_derived(shifted: Sequence[str], formulas: Mapping[str, Formula]) -> None:
    """Refuse the shift of a derived column: it would no longer be the result of its formula."""
    for name in shifted:
        if name in formulas:
            formula = formulas[name]
            raise ValueError(
                f"column {name!r} is derived, {formula.text!r}, and follows from other columns: "
                f"shift {quoted(formula.names)} instead, or leave its formula out."
            )


def _read_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"groups must have a label for each of the {n_rows} rows, got shape {labels.shape}."
        )
    return labels


def _read_parts(
    column: str, given: Any, imputed: Bools, frames: Sequence[Frame], labels: NDArray[Any] | None
) -> list[_Part]:
    """Return the values of a column and their rows, which must not overlap."""
    every = np.broadcast_to(imputed, (len(frames), imputed.size))
    if not isinstance(given, Mapping):
        return [_Part(read_value(column, given), every)]
    if not given:
        raise ValueError(f"column {column!r}: there is no group to shift.")
    parts, taken = [], np.zeros(every.shape, dtype=bool)
    for key, value in given.items():
        chosen = _by_condition(key, imputed, frames) if labels is None else _by_label(key, labels)
        rows = chosen & every
        what = f"condition {key!r}" if labels is None else f"group {key!r}"
        if not rows.any():
            raise ValueError(f"column {column!r}: no imputed cell is in the {what}.")
        if (rows & taken).any():
            raise ValueError(
                f"column {column!r}: {int((rows & taken).any(0).sum())} imputed cells of the "
                f"{what} are in another group too; a cell can have one shift only."
            )
        taken |= rows
        parts.append(_Part(read_value(column, value), rows))
    return parts


def _by_condition(text: Any, imputed: Bools, frames: Sequence[Frame]) -> Bools:
    condition = parse_condition(text, frames[0].names)
    rows = []
    for frame in frames:
        cells = {name: frame.cells(frame.names.index(name)) for name in condition.names}
        for name, one in cells.items():
            if n := int((one.missing & imputed).sum()):
                raise ValueError(
                    f"the condition {text!r} needs the column {name!r}, which is missing in {n} of "
                    "the rows to shift."
                )
        rows.append(condition(cells))
    return np.stack(rows)


def _by_label(key: Any, labels: NDArray[Any]) -> Bools:
    found = sorted(set(labels.tolist()), key=str)
    if key not in found:
        raise ValueError(f"there is no group {key!r} in groups; its labels are {quoted(found)}.")
    return np.asarray(labels == key)


class _Column:
    """The cells of one column in all completed tables, and how their values are shifted."""

    def __init__(
        self,
        name: str,
        cells: Sequence[Cells],
        imputed: Bools,
        order: Sequence[Any] | None,
        seed: np.random.SeedSequence,
    ) -> None:
        self.name, self.cells, self.order, self.seed = name, cells, order, seed
        self.rows = np.flatnonzero(imputed)

    def changes(self, parts: Sequence[_Part]) -> list[New]:
        """Return the new values of the imputed cells of each table."""
        if all(isinstance(part.value, Add) for part in parts):
            return self._numbers(parts)
        if not all(isinstance(part.value, Odds) for part in parts):
            raise ValueError(f"column {self.name!r}: odds and amounts cannot be shifted together.")
        return self._levels(parts)

    def _numbers(self, parts: Sequence[_Part]) -> list[New]:
        first = self.cells[0]
        if first.family != "number" or first.storage == "category":
            raise ValueError(
                f"column {self.name!r} is of {first.dtype} and not of numbers: nothing can be "
                "added to its levels; shift their odds, 'odds × 2'."
            )
        values = np.stack([one.values()[self.rows] for one in self.cells])
        for part in parts:
            value, chosen = part.value, part.rows[:, self.rows]
            if isinstance(value, Add):
                values[chosen] = values[chosen] * value.factor + value.amount
        # integers become floats, in all tables, if one of them needs it
        widen = is_integer(first.dtype) and not _fit(values, first.raw.dtype)
        pairs = zip(self.cells, values, strict=True)
        return [New(cells, new, widen=widen, rows=self.rows) for cells, new in pairs]

    def _levels(self, parts: Sequence[_Part]) -> list[New]:
        levels = self._all_levels()
        codes = np.stack([one.codes(levels)[self.rows] for one in self.cells]).astype(np.int64)
        moved = codes.copy()
        for part, seed in zip(parts, self.seed.spawn(len(parts)), strict=True):
            if not isinstance(part.value, Odds):
                continue
            at = self._level(part.value, levels)
            rows = part.rows[:, self.rows]
            # a condition on an incomplete column can hold in some tables only
            some = rows.any(0)
            rng = np.random.default_rng(seed)
            drawn = redraw(codes[:, some], len(levels), part.value.factor, at, rng)
            moved[:, some] = np.where(rows[:, some], drawn, moved[:, some])
        text = self.cells[0].family == "string"
        values = np.array(levels, dtype=object) if text else np.array(levels)
        pairs = zip(self.cells, values[moved], strict=True)
        return [New(cells, new, rows=self.rows, levels=tuple(levels)) for cells, new in pairs]

    def _all_levels(self) -> list[Any]:
        """Return the levels of all tables, in the declared order or else sorted."""
        first = self.cells[0]
        found = {level for one in self.cells for level in one.levels()}
        if first.family == "number" and not all(float(one).is_integer() for one in found):
            raise ValueError(
                f"column {self.name!r} has numbers with fractions and no levels: odds do not "
                "apply; add a number, or multiply, '× 0.9'."
            )
        order: Sequence[Any] | None = first.order
        if self.order is not None:
            order = [converted_level(first, level) for level in self.order]
        if order is None:
            return sorted(found)
        if unlisted := sorted(found - set(order)):
            raise ValueError(
                f"levels: {quoted(unlisted)} of column {self.name!r} are not in its order "
                f"{quoted(order)}."
            )
        return [level for level in order if level in found]

    def _level(self, value: Odds, levels: Sequence[Any]) -> int | None:
        """Return the position of the level whose odds change, None for all cumulative odds."""
        if value.level is not None:
            name = value.level.strip("'\"")
            at = [k for k, level in enumerate(levels) if name in (_text(level), str(level))]
            if not at:
                texts = quoted([_text(level) for level in levels])
                raise ValueError(
                    f"column {self.name!r} has no level {value.level!r}; it has {texts}."
                )
            return at[0]
        first = self.cells[0]
        ordered = first.ordered or self.order is not None
        if len(levels) == 2 or ordered or (first.family == "number" and first.order is None):
            return None
        names = tuple(_text(level) for level in levels)
        raise UnorderedLevelsError(self.name, names, value.factor)


def _text(level: Any) -> str:
    """Return a level as it is written in a shift: a whole number without a fraction."""
    # pandas makes floats of whole numbers with missing values
    whole = isinstance(level, float) and level.is_integer()
    return str(int(level)) if whole else str(level)


def _fit(values: Floats, dtype: np.dtype[Any]) -> bool:
    """Return whether an integer type holds the values exactly."""
    if dtype.kind not in "iu":
        return bool(np.all(values == np.rint(values)))
    limits = np.iinfo(dtype)
    inside = (values >= limits.min) & (values <= limits.max)
    return bool(np.all(inside & (values == np.rint(values))))


def _with_derived(
    original: Any,
    tables: Sequence[Any],
    names: Sequence[str],
    shifted: Sequence[str],
    formulas: Mapping[str, Formula],
) -> list[Any]:
    """Compute the derived columns again that depend on a shifted column."""
    affected: dict[str, Formula] = {}
    for name, formula in formulas.items():
        if {*formula.names} & {*shifted, *affected}:
            affected[name] = formula
    if not affected:
        return list(tables)
    where = {name: position for position, name in enumerate(names)}
    derivation = Derivation(open_table(original), affected, where, None)
    computed = [derivation(table) for table in tables]
    derivation.warn()
    return computed
