"""The imputers by the names a user types, and which options each of them takes."""

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


# By name, since to import them is to load scikit-learn.
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
    "--bootstrap": "bootstrap",
    "--epochs": "max_epochs",
    "--max-time": "max_time",
    "--kind": "kinds",
    "--draws": "n_draws",
    "--handle-unknown": "handle_unknown",
}


def imputer_class(method: Method) -> type[Imputer]:
    """The class of a method."""
    from psmvae import imputers

    chosen: type[Imputer] = getattr(imputers, _CLASSES[method])
    return chosen


def method_of(imputer: Imputer) -> Method:
    """The method of an imputer, such as one from a file."""
    return next(m for m, name in _CLASSES.items() if name == type(imputer).__name__)


def has_parameter(method: Method, name: str) -> bool:
    """Whether the class of a method has this parameter."""
    return name in inspect.signature(imputer_class(method)).parameters


def set_for_draws(imputer: Imputer) -> None:
    """Have an imputer that is not yet fitted learn what draws of the posterior need.

    A MICE that chains its best guesses knows no uncertainty but the noise of the last round.
    """
    if has_parameter(method_of(imputer), "sample_posterior"):
        imputer.set_params(sample_posterior=True)


def check_options(method: Method, options: Iterable[str], *, where: str) -> None:
    """Refuse options that a method has no parameter for; ``where`` says whose method it is."""
    # what cannot be refused is not looked up: psmvae, the default, takes every option
    if method is Method.PSMVAE:
        return
    refused = [option for option in options if not _takes(method, option)]
    if refused:
        told = "; ".join(f"{option} is for {_listed(_takers(option))}" for option in refused)
        message = f"{', '.join(refused)}: not with {where}; {told}"
        raise UsageError(message)


def check_has_sets(method: Method, *, where: str) -> None:
    """Refuse a method whose model has no pattern sets."""
    if method is not Method.PSMVAE and not _takes(method, "--sets"):
        message = f"{where} has no pattern sets; {_listed(_takers('--sets'))} have"
        raise UsageError(message)


def _takes(method: Method, option: str) -> bool:
    # not-MIWAE has a mask model too, but other ones than --mask-model names, and without a sign
    if option in ("--mask-model", "--sign"):
        return method is Method.PSMVAE
    return has_parameter(method, _PARAMETERS[option])


def _takers(option: str) -> list[str]:
    return [method.value for method in Method if _takes(method, option)]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
