"""Imputers with scikit-learn's contract."""

from psmvae.imputers.persist import load
from psmvae.imputers.psmvae import PSMVAEImputer

__all__ = ["PSMVAEImputer", "load"]
