"""Fitted chains, linear predictions, mixtures, trees and mechanisms in the state of an imputer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmvae.chained.chains import Chains
    from psmvae.imputers.linear_mean import LinearMean
    from psmvae.imputers.mixture_mean import MixtureMean
    from psmvae.imputers.residual_trees import ResidualTrees
    from psmvae.kinds import Column
    from psmvae.mechanism.table import Mechanism

State = tuple[dict[str, Any], dict[str, Any]]
CHAINS, LINEAR_MEAN, MECHANISM = "chains", "linear_mean", "mechanism"
MIXTURE_MEAN, RESIDUAL_TREES = "mixture_mean", "residual_trees"


def add_chains(arrays: dict[str, Any], plain: dict[str, Any], chains: Chains | None) -> State:
    """Return the state of an imputer with its chains, if it has any."""
    if chains is None:
        return arrays, plain | {CHAINS: None}
    from psmvae.chained.state import arrays_of, plain_of

    return _add(arrays, plain, CHAINS, arrays_of(chains), plain_of(chains))


def take_chains(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> Chains | None:
    """Remove the chains from the arrays of `add_chains` and return them."""
    own = _take(arrays, CHAINS)
    if plain[CHAINS] is None:
        return None
    from psmvae.chained.state import restore

    return restore(columns, own, plain[CHAINS])


def add_linear_mean(
    arrays: dict[str, Any], plain: dict[str, Any], linear: LinearMean | None
) -> State:
    """Return the state of an imputer with its linear predictions, if it has any."""
    if linear is None:
        return arrays, plain | {LINEAR_MEAN: None}
    levels = [list(each) for each in linear.predictors.levels]
    return _add(arrays, plain, LINEAR_MEAN, linear.arrays(), levels)


def take_linear_mean(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> LinearMean | None:
    """Remove the linear predictions from the arrays of `add_linear_mean` and return them."""
    own = _take(arrays, LINEAR_MEAN)
    if plain[LINEAR_MEAN] is None:
        return None
    from psmvae.imputers.linear_mean import LinearMean

    return LinearMean.restore(tuple(columns), own, plain[LINEAR_MEAN])


def add_mixture_mean(
    arrays: dict[str, Any], plain: dict[str, Any], mixture: MixtureMean | None
) -> State:
    """Return the state of an imputer with its Gaussian mixture, if it has any."""
    if mixture is None:
        return arrays, plain | {MIXTURE_MEAN: None}
    levels = [list(each) for each in mixture.predictors.levels]
    return _add(arrays, plain, MIXTURE_MEAN, mixture.arrays(), levels)


def take_mixture_mean(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> MixtureMean | None:
    """Remove the Gaussian mixture from the arrays of `add_mixture_mean` and return it."""
    own = _take(arrays, MIXTURE_MEAN)
    if plain[MIXTURE_MEAN] is None:
        return None
    from psmvae.imputers.mixture_mean import MixtureMean

    return MixtureMean.restore(tuple(columns), own, plain[MIXTURE_MEAN])


def add_residual_trees(
    arrays: dict[str, Any], plain: dict[str, Any], trees: ResidualTrees | None
) -> State:
    """Return the state of an imputer with its residual trees, if it has any."""
    if trees is None:
        return arrays, plain | {RESIDUAL_TREES: None}
    return _add(arrays, plain, RESIDUAL_TREES, trees.arrays(), list(trees.trees))


def take_residual_trees(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> ResidualTrees | None:
    """Remove the residual trees from the arrays of `add_residual_trees` and return them."""
    own = _take(arrays, RESIDUAL_TREES)
    if plain[RESIDUAL_TREES] is None:
        return None
    from psmvae.imputers.residual_trees import ResidualTrees

    return ResidualTrees.restore(len(columns), own, plain[RESIDUAL_TREES])


def add_mechanism(
    arrays: dict[str, Any], plain: dict[str, Any], mechanism: Mechanism | None
) -> State:
    """Return the state of an imputer with its mechanism, if it has any."""
    if mechanism is None:
        return arrays, plain | {MECHANISM: None}
    from psmvae.mechanism.state import state_of

    return _add(arrays, plain, MECHANISM, *state_of(mechanism))


def take_mechanism(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> Mechanism | None:
    """Remove the mechanism from the arrays of `add_mechanism` and return it."""
    own = _take(arrays, MECHANISM)
    if plain[MECHANISM] is None:
        return None
    from psmvae.mechanism.state import restore

    return restore(tuple(columns), own, plain[MECHANISM])


def _add(
    arrays: dict[str, Any], plain: dict[str, Any], name: str, own: Any, own_plain: Any
) -> State:
    named = {f"{name}.{key}": value for key, value in own.items()}
    return {**arrays, **named}, plain | {name: own_plain}


def _take(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    prefix = f"{name}."
    names = [key for key in arrays if key.startswith(prefix)]
    return {key.removeprefix(prefix): arrays.pop(key).numpy() for key in names}
