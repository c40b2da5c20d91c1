"""Missingness with known truth: pure functions of a table and a random generator."""

from psmvae.simulate.mechanisms import Simulated, mcar, mnar_column, mnar_mcar
from psmvae.simulate.trial import Trial, simulated_trial

__all__ = ["Simulated", "Trial", "mcar", "mnar_column", "mnar_mcar", "simulated_trial"]
