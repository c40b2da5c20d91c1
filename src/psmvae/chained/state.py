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
    levels = tuple(tuple(one) for one in plain["levels"])
    standard = [arrays[f"predictors.{name}"] for name in STANDARDISATION]
    predictors = Predictors(tuple(columns), levels, *standard)
    if len(levels) != len(columns) or any(part.shape != standard[0].shape for part in standard):
        raise ValueError("The predictors of the file are not those of its columns.")
    targets, parameters = [], []
    for j, column in enumerate(columns):
        basis = Basis(*(arrays[f"{j}.basis.{name}"] for name in BASIS))
        low, high = plain["bounds"][j]
        limits = (-np.inf if low is None else low, np.inf if high is None else high)
        targets.append(Target(j, arrays[f"{j}.linear"], basis, plain["pmm"][j], *limits))
        parameters.append(_parameters(j, targets[-1], bool(column.levels), arrays, settings))
    dropped = [np.array(one, dtype=np.intp) for one in plain["dropped"]]
    traces = (arrays["trace_mean"], arrays["trace_deviation"])
    size = (settings.n_rounds, settings.n_chains, len(columns))
    if any(trace.shape != size for trace in traces) or len(dropped) != len(columns):
        raise ValueError("The traces of the file are not those of its columns.")
    return Chains(predictors, settings, targets, parameters, dropped, *traces)


def _parameters(
    j: int,
    target: Target,
    has_levels: bool,
    arrays: Mapping[str, NDArray[Any]],
    settings: Settings,
) -> list[Parameters]:
    kind: type[Parameters] = LevelParameters if has_levels else NumericParameters
    fields = {name: arrays[f"{j}.{name}"] for name in kind._fields}
    n_terms = len(target.linear) + (0 if has_levels else target.basis.n_terms)
    shapes = {name: value.shape for name, value in fields.items()}
    start = (settings.n_kept, settings.n_chains)
    if shapes != _shapes(start, n_terms, shapes, has_levels=has_levels):
        raise ValueError(f"The parameters of column {j} do not fit its predictors.")
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
