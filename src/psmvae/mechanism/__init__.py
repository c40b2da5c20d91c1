"""Cells that are missing because of their value: detection, and correction of imputations.

The method is a tilt of the odds by shadow variables (d'Haultfoeuille 2010; Miao and Tchetgen
Tchetgen 2016; Kim and Yu 2011). `odds` has its two equations, `observed` the distribution of a
column among the rows where it is observed, `families` the candidates for the log odds γ of going
missing, `rivals` the explanation of the masks by the other columns, `evidence` the Bayes factors
between the two, `column` puts them together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psmvae.mechanism.column import Finding
    from psmvae.mechanism.evidence import BayesFactors
    from psmvae.mechanism.rivals import Likelihoods
    from psmvae.mechanism.table import Mechanism

__all__ = ["BayesFactors", "Finding", "Likelihoods", "Mechanism"]

# loaded on first use, so that `SelfMask` can be made without them
_HOME = {
    "BayesFactors": "psmvae.mechanism.evidence",
    "Finding": "psmvae.mechanism.column",
    "Likelihoods": "psmvae.mechanism.rivals",
    "Mechanism": "psmvae.mechanism.table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
