"""The imputers by name, and the options each of them takes."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import TYPE_CHECKING

from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psmvae.imputers.base import Imputer


class Method(StrEnum):
    """The imputers by name."""

    PSMVAE = "psmvae"
    VAE = "vae"
    GMVAE = "gmvae"
    DLGM = "dlgm"
    MIWAE = "miwae"
    NOT_MIWAE = "not-miwae"
    GAIN = "gain"
    MICE = "mice"
    MISSFOREST = "missforest"
    MEAN = "mean"


# By name: importing the classes loads scikit-learn.
_CLASSES = {
    Method.PSMVAE: "PSMVAEImputer",
    Method.VAE: "VAEImputer",
    Method.GMVAE: "GMVAEImputer",
    Method.DLGM: "DLGMImputer",
    Method.MIWAE: "MIWAEImputer",
    Method.NOT_MIWAE: "NotMIWAEImputer",
    Method.GAIN: "GAINImputer",
    Method.MICE: "MICEImputer",
    Method.MISSFOREST: "MissForestImputer",
    Method.MEAN: "MeanImputer",
}

# The parameter that each option sets.
_PARAMETERS = {
    "--mask-model": "mask_model",
    "--self-masked": "mask_model",
    "--sign": "mask_model",
    "--sets": "n_sets",
    "--members": "n_members",
    "--epochs": "max_epochs",
    "--max-time": "max_time",
    "--kind": "kinds",
    "--bounds": "bounds",
    "--derive": "derived",
    "--draws": "n_draws",
    "--handle-unknown": "handle_unknown",
}


def imputer_class(method: Method) -> type[Imputer]:
    """The class of a method."""
    from psmvae import imputers

    chosen: type[Imputer] = getattr(imputers, _CLASSES[method])
    return chosen


def method_of(imputer: Imputer) -> Method:
    """The method of an imputer."""
    return next(m for m, name in _CLASSES.items() if name == type(imputer).__name__)


def has_parameter(method: Method, name: str) -> bool:
    """Whether the class of a method has this parameter."""
    return name in inspect.signature(imputer_class(method)).parameters


def check_options(method: Method, options: Iterable[str], *, where: str) -> None:
    """Refuse options that a method has no parameter for; ``where`` names the method's source."""
    # psmvae, the default, takes every option: no need to load the classes
    if method is Method.PSMVAE:
        return
    refused = [option for option in options if not has_parameter(method, _PARAMETERS[option])]
    if refused:
        takers = "; ".join(f"{option} is for {_takers(option)}" for option in refused)
        raise UsageError(f"{', '.join(refused)}: not with {where}; {takers}")


def check_has_sets(method: Method, *, where: str) -> None:
    """Refuse a method whose model has no pattern sets."""
    if method is not Method.PSMVAE and not has_parameter(method, "n_sets"):
        takers = _takers("--sets")
        raise UsageError(f"{where} has no pattern sets; the methods with sets are {takers}")


def _takers(option: str) -> str:
    """The methods that have the parameter of an option, as text."""
    names = [method.value for method in Method if has_parameter(method, _PARAMETERS[option])]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
