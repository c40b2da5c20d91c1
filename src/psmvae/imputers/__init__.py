"""Imputers with scikit-learn's contract."""

from psmvae.imputers.autoencoders import DLGMImputer, GMVAEImputer, VAEImputer
from psmvae.imputers.classical import MeanImputer, MissForestImputer
from psmvae.imputers.gain import GAINImputer
from psmvae.imputers.loading import load
from psmvae.imputers.mice import MICEImputer
from psmvae.imputers.miwae import MIWAEImputer, NotMIWAEImputer
from psmvae.imputers.psmvae import PSMVAEImputer

__all__ = [
    "DLGMImputer",
    "GAINImputer",
    "GMVAEImputer",
    "MICEImputer",
    "MIWAEImputer",
    "MeanImputer",
    "MissForestImputer",
    "NotMIWAEImputer",
    "PSMVAEImputer",
    "VAEImputer",
    "load",
]
