"""Impute missing values in tables with a deep pattern-set mixture model.

Examples
--------
>>> import psmvae
>>> "PSMVAEImputer" in dir(psmvae)
True

Importing the package is cheap: scikit-learn is loaded when an imputer is first made, torch when one
is first fitted or read from a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from psmvae._quiet import unchanged_settings
from psmvae._version import __version__

if TYPE_CHECKING:
    from psmvae import plot as plot
    from psmvae import ray as ray
    from psmvae.describe import MissingnessReport, missingness
    from psmvae.imputers import (
        DLGMImputer,
        GAINImputer,
        GMVAEImputer,
        MeanImputer,
        MICEImputer,
        MissForestImputer,
        MIWAEImputer,
        NotMIWAEImputer,
        PSMVAEImputer,
        VAEImputer,
        load,
    )
    from psmvae.imputers.options import Advanced
    from psmvae.mechanism.settings import SelfMask
    from psmvae.multiple import MultipleImputation
    from psmvae.nn.architecture import Network
    from psmvae.nn.settings import JointMask, LatentMask, LogisticMask, NoMask
    from psmvae.reporting import Report, report
    from psmvae.sensitivity import compare_assumptions, tipping_point

__all__ = [
    "Advanced",
    "DLGMImputer",
    "GAINImputer",
    "GMVAEImputer",
    "JointMask",
    "LatentMask",
    "LogisticMask",
    "MICEImputer",
    "MIWAEImputer",
    "MeanImputer",
    "MissForestImputer",
    "MissingnessReport",
    "MultipleImputation",
    "Network",
    "NoMask",
    "NotMIWAEImputer",
    "PSMVAEImputer",
    "Report",
    "SelfMask",
    "VAEImputer",
    "__version__",
    "compare_assumptions",
    "load",
    "missingness",
    "report",
    "tipping_point",
]

_SETTINGS = ("JointMask", "LatentMask", "LogisticMask", "NoMask")
_HOME = {name: "psmvae.imputers" for name in __all__ if name.endswith("Imputer")} | {
    **dict.fromkeys(_SETTINGS, "psmvae.nn.settings"),
    "Advanced": "psmvae.imputers.options",
    "MissingnessReport": "psmvae.describe",
    "MultipleImputation": "psmvae.multiple",
    "Network": "psmvae.nn.architecture",
    "SelfMask": "psmvae.mechanism.settings",
    "compare_assumptions": "psmvae.sensitivity",
    "load": "psmvae.imputers",
    "missingness": "psmvae.describe",
    "Report": "psmvae.reporting",
    "report": "psmvae.reporting",
    "tipping_point": "psmvae.sensitivity",
}


# Modules of functions, imported when they are first used: ``psmvae.plot.pattern(df)``.
_MODULES = ("plot", "ray")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    # libraries that are imported here add filters of warnings
    with unchanged_settings():
        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
