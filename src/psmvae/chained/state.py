"""Fitted chains as arrays and plain values, for model files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.basis import Basis
from psmvae.chained.chains import Chains, Parameters, Settings, Target
from psmvae.chained.levels import LevelParameters
from psmvae.chained.numeric import NumericParameters
from psmvae.chained.predictors import Predictors
from psmvae.table.fields import check_fields

STANDARDISATION = ("group", "center", "scale", "low", "high")
BASIS = tuple(field.name for field in dataclasses.fields(Basis))


def arrays_of(chains: Chains) -> dict[str, NDArray[Any]]:
    """Return the arrays of fitted chains; `plain_of` has the rest."""
    arrays: dict[str, NDArray[Any]] = {
        f"predictors.{name}": getattr(chains.predictors, name) for name in STANDARDISATION
    }
    for target, kept in zip(chains.targets, chains.parameters, strict=True):
        arrays[f"{target.j}.linear"] = target.linear
        arrays |= {f"{target.j}.basis.{name}": getattr(target.basis, name) for name in BASIS}
        for name in kept[0]._fields:
            arrays[f"{target.j}.{name}"] = np.stack([getattr(one, name) for one in kept])
    traces = {"trace_mean": chains.trace_mean, "trace_deviation": chains.trace_deviation}
    return arrays | traces


def plain_of(chains: Chains) -> dict[str, Any]:
    """Return what is not an array, as values that JSON can hold."""
    return {
        "settings": dataclasses.asdict(chains.settings),
        "levels": [list(levels) for levels in chains.predictors.levels],
        "pmm": [target.pmm for target in chains.targets],
        "dropped": [dropped.tolist() for dropped in chains.dropped],
        "bounds": [[_finite(target.low), _finite(target.high)] for target in chains.targets],
    }


def restore(
    columns: Sequence[Any], arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any]
) -> Chains:
    """Return the chains of `arrays_of` and `plain_of`.

    Raises
    ------
    ValueError
        If the arrays do not fit together.
    """
    try:
        return _restore(columns, arrays, plain)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"The chains of the file are damaged ({error!r}).") from error


def _restore(
    columns: Sequence[Any], arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any]
) -> Chains:
    settings = Settings(**plain["settings"])
    check_fields(settings)
    if min(settings.n_chains, settings.n_kept) < 1 or settings.n_rounds < settings.n_kept:
        raise ValueError("The numbers of chains and rounds must be positive.")
    predictors = restore_predictors(columns, plain["levels"], arrays, "predictors.")
    targets, parameters = [], []
    for j, column in enumerate(columns):
        basis = Basis(*(arrays[f"{j}.basis.{name}"] for name in BASIS))
        low, high = plain["bounds"][j]
        limits = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
        targets.append(Target(j, arrays[f"{j}.linear"], basis, plain["pmm"][j], *limits))
        _check_target(targets[-1], len(predictors.group))
        parameters.append(_parameters(targets[-1], column.n_levels, arrays, settings))
    dropped = [np.array(one, dtype=np.intp) for one in plain["dropped"]]
    if not all(are_positions(one, len(predictors.group)) for one in dropped):
        raise ValueError("The dropped predictors of the file are not among its predictors.")
    traces = (arrays["trace_mean"], arrays["trace_deviation"])
    size = (settings.n_rounds, settings.n_chains, len(columns))
    if any(trace.shape != size for trace in traces) or len(dropped) != len(columns):
        raise ValueError("The traces of the file are not those of its columns.")
    return Chains(predictors, settings, targets, parameters, dropped, *traces)


def restore_predictors(
    columns: Sequence[Any],
    levels: Sequence[Sequence[int]],
    arrays: Mapping[str, NDArray[Any]],
    prefix: str = "",
) -> Predictors:
    """Return predictors from a file; raise ValueError if they are not those of their columns."""
    standard = [arrays[f"{prefix}{name}"] for name in STANDARDISATION]
    predictors = Predictors(tuple(columns), tuple(tuple(each) for each in levels), *standard)
    _check_predictors(predictors)
    return predictors


def _check_predictors(predictors: Predictors) -> None:
    """Raise ValueError if predictors from a file are not those of their columns."""
    columns, levels = predictors.columns, predictors.levels
    widths = [
        len(own) if column.n_levels > 2 and column.kind != "ordinal" else 1
        for own, column in zip(levels, columns, strict=True)
    ]
    for own, column in zip(levels, columns, strict=True):
        if not all(type(level) is int and 0 <= level < column.n_levels for level in own):
            raise ValueError(f"The levels of the predictors of {column.name!r} do not exist.")
    group = predictors.group
    if not np.array_equal(group, np.repeat(np.arange(len(columns)), widths)):
        raise ValueError("The predictors (group) are not those of the columns.")
    if group.dtype.kind != "i":
        raise ValueError("The group of the predictors has the wrong type.")
    for name in STANDARDISATION[1:]:
        part = getattr(predictors, name)
        if part.shape != group.shape or part.dtype.kind != "f":
            raise ValueError(f"The predictors ({name}) are not those of the columns.")
    if not (predictors.scale > 0).all():
        raise ValueError("The scale of a predictor must be positive.")


def _check_target(target: Target, n_predictors: int) -> None:
    """Raise ValueError if the terms of a regression are not among its predictors."""
    basis, linear = target.basis, target.linear
    n_used, n_cosines = len(basis.at), len(basis.phase)
    fits = (
        are_positions(linear, n_predictors)
        and are_positions(basis.at, len(linear))
        and are_positions(basis.first, n_used)
        and are_positions(basis.second, n_used)
        and basis.first.shape == basis.second.shape
        and basis.phase.shape == (n_cosines,)
        # without terms all sizes are 0
        and basis.frequency.shape == (n_used, n_cosines)
        and basis.low.shape == basis.high.shape == (n_used,)
        and type(target.pmm) is bool
    )
    if not fits:
        raise ValueError(f"The terms of column {target.j} do not fit its predictors.")


def are_positions(array: NDArray[Any], n: int) -> bool:
    """Return whether an array holds numbers from 0 to n - 1, on one axis."""
    return array.ndim == 1 and array.dtype.kind == "i" and bool(((array >= 0) & (array < n)).all())


def _parameters(
    target: Target, n_levels: int, arrays: Mapping[str, NDArray[Any]], settings: Settings
) -> list[Parameters]:
    j, has_levels = target.j, n_levels > 0
    kind: type[Parameters] = LevelParameters if has_levels else NumericParameters
    fields = {name: arrays[f"{j}.{name}"] for name in kind._fields}
    n_terms = len(target.linear) + (0 if has_levels else target.basis.n_terms)
    shapes = {name: value.shape for name, value in fields.items()}
    start = (settings.n_kept, settings.n_chains)
    if shapes != _shapes(start, n_terms, shapes, has_levels=has_levels):
        raise ValueError(f"The parameters of column {j} do not fit its predictors.")
    draws_donors = not has_levels and (target.pmm or settings.numeric_draws != "normal")
    if draws_donors and fields["donor"].shape[2] == 0:
        raise ValueError(f"The parameters of column {j} have no donors.")
    if has_levels and not all(are_positions(order, n_levels) for order in fields["order"]):
        raise ValueError(f"The parameters of column {j} have levels that do not exist.")
    if has_levels and fields["shares"].shape[1] != n_levels:
        raise ValueError(f"The parameters of column {j} do not fit its levels.")
    return [
        kind(**{name: value[number] for name, value in fields.items()})
        for number in range(settings.n_kept)
    ]


def _shapes(
    start: tuple[int, int], n_terms: int, found: Mapping[str, tuple[int, ...]], *, has_levels: bool
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all parameters, given the numbers of questions, levels and donors."""
    if has_levels:
        each = (*start, found["coef"][2])
        return {
            "order": (start[0], found["order"][1]),
            "coef": (*each, n_terms),
            "intercept": each,
            "learned_coef": each,
            "mode": (*each, n_terms + 1),
            "shares": (start[0], found["shares"][1]),
        }
    terms = dict.fromkeys(("center", "coef", "log_scale"), (*start, n_terms))
    numbers = dict.fromkeys(("intercept", "learned_coef", "sigma"), start)
    donors = dict.fromkeys(("donor_mean", "donor"), (*start, found["donor"][2]))
    return {**terms, **numbers, **donors}


def _finite(limit: float) -> float | None:
    return None if np.isinf(limit) else float(limit)
