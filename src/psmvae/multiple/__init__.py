"""Multiple imputation: completed tables, analyses of them, and Rubin's rules."""

from psmvae.multiple.estimates import Estimates, read_estimates
from psmvae.multiple.imputation import MultipleImputation
from psmvae.multiple.pooling import Analyses, PooledResults
from psmvae.multiple.rubin import WaldTest

__all__ = [
    "Analyses",
    "Estimates",
    "MultipleImputation",
    "PooledResults",
    "WaldTest",
    "read_estimates",
]
