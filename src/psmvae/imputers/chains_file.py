"""Fitted chains in the state of an imputer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmvae.chained.chains import Chains
    from psmvae.kinds import Column

PREFIX = "chains."


def add_chains(
    arrays: dict[str, Any], plain: dict[str, Any], chains: Chains | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of an imputer with its chains, if it has any."""
    if chains is None:
        return arrays, plain | {"chains": None}
    from psmvae.chained.state import arrays_of, plain_of

    own = {PREFIX + name: value for name, value in arrays_of(chains).items()}
    return {**arrays, **own}, plain | {"chains": plain_of(chains)}


def take_chains(
    columns: Sequence[Column], arrays: dict[str, Any], plain: dict[str, Any]
) -> Chains | None:
    """Remove the chains from the arrays of `add_chains` and return them."""
    names = [name for name in arrays if name.startswith(PREFIX)]
    own = {name.removeprefix(PREFIX): arrays.pop(name).numpy() for name in names}
    if plain["chains"] is None:
        return None
    from psmvae.chained.state import restore

    return restore(columns, own, plain["chains"])
