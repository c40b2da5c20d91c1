"""Sensitivity analysis: how far an estimate depends on why values are missing."""

from psmvae.sensitivity.compare import AssumptionComparison, compare_assumptions
from psmvae.sensitivity.inference import Inference
from psmvae.sensitivity.tipping import TippingPoint, tipping_point

__all__ = [
    "AssumptionComparison",
    "Inference",
    "TippingPoint",
    "compare_assumptions",
    "tipping_point",
]
