"""Multiple imputation: completed tables, analyses of them, and Rubin's rules."""

from psmvae.multiple.convergence import Convergence
from psmvae.multiple.estimates import Estimates, read_estimates
from psmvae.multiple.how_many import HowMany
from psmvae.multiple.imputation import MultipleImputation
from psmvae.multiple.pooling import Analyses, MissingInformationWarning, PooledResults
from psmvae.multiple.rubin import PooledTest

__all__ = [
    "Analyses",
    "Convergence",
    "Estimates",
    "HowMany",
    "MissingInformationWarning",
    "MultipleImputation",
    "PooledResults",
    "PooledTest",
    "read_estimates",
]
