"""The parameter `mask_model` for cells that may be missing because of their value."""

# ruff: noqa: SLF001 (works on the fitted model of an imputer)

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.imputers.fit_warnings import (
    CompleteColumnWarning,
    MechanismTimeWarning,
    UnusedSelfMaskWarning,
)
from psmvae.mechanism.question import Question, Slope
from psmvae.mechanism.settings import SelfMask
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.chained.chains import Learned
    from psmvae.imputers.base import Imputer
    from psmvae.kinds import Column
    from psmvae.mechanism.table import Mechanism
    from psmvae.table.codec import Encoded

Bools = NDArray[np.bool_]
AUTO, SELF, NONE = "auto", "self", "none"
# Largest change of the log odds over one standard deviation of a column: a factor of 22,000.
MAX_SLOPE = 10.0


def asks(setting: Any) -> bool:
    """Return whether a setting asks for the odds of going missing by value."""
    return isinstance(setting, SelfMask) or setting in (AUTO, SELF)


def check_setting(setting: Any) -> None:
    """Raise ValueError unless a setting is "auto", "self", "none" or a `SelfMask`."""
    if not asks(setting) and setting != NONE:
        raise ValueError(
            f"mask_model must be {AUTO!r}, {SELF!r}, {NONE!r} or a SelfMask, got {setting!r}."
        )


def questions_of(setting: Any, columns: tuple[Column, ...], m: Bools) -> dict[int, Question]:
    """Return what is asked about the columns with missing cells, by number of the column."""
    if not asks(setting):
        return {}
    incomplete = [j for j in range(m.shape[1]) if not m[:, j].all()]
    if setting == AUTO:
        return dict.fromkeys(incomplete, Question())
    given = SelfMask() if setting == SELF else setting
    names = [column.name for column in columns]
    for parameter in ("columns", "shadow"):
        unknown = [name for name in getattr(given, parameter) or () if name not in names]
        if unknown:
            raise ValueError(
                f"SelfMask names {quoted(unknown)} in {parameter}, which are not columns of the "
                f"model; it has {quoted(names)}."
            )
    return {
        j: _question(given, columns, j)
        for j in incomplete
        if given.columns is None or names[j] in given.columns
    }


def _question(given: SelfMask, columns: tuple[Column, ...], j: int) -> Question:
    shadow = None
    if given.shadow is not None:
        shadow = frozenset(
            k for k, column in enumerate(columns) if column.name in given.shadow and k != j
        )
        if not shadow:
            raise ValueError(f"SelfMask needs a shadow variable beside {columns[j].name!r}.")
    column = columns[j]
    has_order, is_number = column.kind not in ("binary", "categorical"), not column.levels
    for name, value, applies in (
        ("sign", given.sign, has_order),
        ("slope", given.slope, is_number),
    ):
        if given.columns is not None and value is not None and not applies:
            raise ValueError(
                f"SelfMask has a {name} for {column.name!r}, a column of kind {column.kind!r}: "
                f"{name} applies to numbers{' and ordered levels' if name == 'sign' else ''}."
            )
    if given.slope_prior is not None and is_number:
        _check_slope(given.slope_prior[0], column)
    slope = Slope(*given.slope_prior) if given.slope_prior is not None and is_number else None
    sign = given.sign if has_order else None
    return Question(True, given.shape, sign, slope, shadow)


def _check_slope(slope: float, column: Column) -> None:
    """Refuse a slope in other units: every cell would go missing, or none."""
    if abs(slope) * column.scale > MAX_SLOPE:
        unit = {"positive": " of its logarithm", "count": " of log(1 + x)"}.get(column.kind, "")
        raise ValueError(
            f"SelfMask has slope={slope:g} for {column.name!r}, whose standard deviation{unit} is "
            f"{column.scale:.3g}: the log odds would change by {abs(slope) * column.scale:.3g} "
            f"over one standard deviation, and at most {MAX_SLOPE:g} is accepted. The slope is the "
            f"change for one unit{unit or ' of the column'}."
        )


def mechanism_facts(mechanism: Mechanism | None) -> dict[str, Any]:
    """Return what `describe` says about a mechanism: one record for each column."""
    if mechanism is None or not mechanism.findings:
        return {}
    return {"mechanism": mechanism.records()}


def fit_mechanism(
    imputer: Imputer,
    encoded: Encoded,
    learned: Mapping[int, Learned],
    questions: Mapping[int, Question],
    began: float,
) -> Mechanism:
    """Fit the mechanism of a training table with the predictions of a trained model."""
    from psmvae.mechanism.table import Mechanism

    held_out = np.zeros(encoded.m.shape, dtype=bool)
    for j, one in learned.items():
        if one.held_out is not None:
            held_out[:, j] = one.held_out
    max_time = getattr(imputer, "max_time", None)
    mechanism = Mechanism.fit(
        tuple(imputer.schema_.modelled),
        encoded.x,
        encoded.m,
        {j: one.prediction for j, one in learned.items()},
        held_out,
        questions,
        seed=imputer._seed(6),
        n_jobs=-1,
        deadline=None if max_time is None else began + float(max_time),
    )
    warn_of_unused(imputer.get_params(deep=False)["mask_model"], mechanism, encoded.m)
    names = [column.name for column in imputer.schema_.modelled]
    left_out = [names[j] for j in questions if names[j] not in mechanism.findings]
    if left_out:
        warn_at_caller(MechanismTimeWarning(quoted(left_out)))
    return mechanism


def warn_of_complete(setting: Any, columns: tuple[Column, ...], m: Bools) -> None:
    """Warn of columns without missing cells that a `SelfMask` names."""
    if not isinstance(setting, SelfMask) or setting.columns is None:
        return
    complete = {column.name for j, column in enumerate(columns) if m[:, j].all()}
    if named := [name for name in setting.columns if name in complete]:
        warn_at_caller(CompleteColumnWarning(quoted(named)))


def warn_of_unused(setting: Any, mechanism: Mechanism, m: Bools) -> None:
    """Warn of incomplete columns that a setting is about and whose masks do not support it."""
    if setting != SELF and not isinstance(setting, SelfMask):
        return
    named = None if setting == SELF else setting.columns
    unused = [
        column.name
        for j, column in enumerate(mechanism.columns)
        if (named is None or column.name in named)
        and column.name in mechanism.findings
        and not m[:, j].all()
        and (j not in mechanism.tilts or not mechanism.tilts[j].at_risk().any())
    ]
    if unused:
        warn_at_caller(UnusedSelfMaskWarning(quoted(unused)))
