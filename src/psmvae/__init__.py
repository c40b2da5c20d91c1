"""Impute missing values in tables with a deep pattern-set mixture model.

Examples
--------
>>> import psmvae
>>> "PSMVAEImputer" in dir(psmvae)
True

Importing the package is cheap: torch is loaded when a name that needs it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from psmvae._version import __version__

if TYPE_CHECKING:
    from psmvae.imputers import PSMVAEImputer, load
    from psmvae.nn.mask import LatentMask, NoMask, SelfMask
    from psmvae.nn.network import Network

__all__ = [
    "LatentMask",
    "Network",
    "NoMask",
    "PSMVAEImputer",
    "SelfMask",
    "__version__",
    "load",
]

_HOME = {
    "LatentMask": "psmvae.nn.mask",
    "Network": "psmvae.nn.network",
    "NoMask": "psmvae.nn.mask",
    "PSMVAEImputer": "psmvae.imputers",
    "SelfMask": "psmvae.nn.mask",
    "load": "psmvae.imputers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
