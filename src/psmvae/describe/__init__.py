"""The missing values of a table: rates, patterns, flux, Little's test, predictors of the mask."""

from psmvae.describe.little import LittleTest
from psmvae.describe.result import MissingnessReport, missingness

__all__ = ["LittleTest", "MissingnessReport", "missingness"]
