"""What a fitted imputer tells about its fit: training, effective sample sizes, chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from psmvae.imputers.deep import DeepImputer
from psmvae.imputers.latent import LatentImputer
from psmvae.imputers.mice import MICEImputer
from psmvae.reporting.data.columns import number, rounded
from psmvae.reporting.schema import ConvergenceData, TrainingData

# Points of the training curve, and columns with traces, at most.
MAX_EPOCHS, MAX_TRACES = 300, 6
# Significant digits of what is drawn.
DIGITS = 6
# Levels of the quantiles of effective sample sizes.
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def training_data(imputer: Any) -> TrainingData | None:
    """Return the course of training; None for imputers read from a file, which do not keep it."""
    history = imputer.history_ if isinstance(imputer, DeepImputer) else []
    known = [one for one in history if one.validation_error is not None]
    if len(known) < 2:
        return None
    at = np.unique(np.linspace(0, len(known) - 1, MAX_EPOCHS).round().astype(int))
    kept = [known[k] for k in at]
    return {
        "epoch": [one.epoch for one in kept],
        "validation_error": [number(one.validation_error) for one in kept],
        "seconds": number(history[-1].seconds),
    }


def sample_size_data(imputer: Any, X: Any) -> list[float] | None:
    """Return quantiles of the effective sample sizes of the rows of a table."""
    if not isinstance(imputer, LatentImputer):
        return None
    return rounded(np.quantile(imputer.effective_sample_size(X), LEVELS), DIGITS)


def convergence_data(imputer: Any) -> ConvergenceData | None:
    """Return R-hat of the chains of MICE, with the traces of the columns where it is largest."""
    if not isinstance(imputer, MICEImputer):
        return None
    found = imputer.convergence()
    if not found.columns:
        return None
    mean, sd = found.r_hat()
    worst = np.argsort(-np.nan_to_num(np.fmax(mean, sd)), kind="stable")[:MAX_TRACES]
    return {
        "columns": list(found.columns),
        "r_hat_mean": [number(value) for value in mean],
        "r_hat_sd": [number(value) for value in sd],
        "traces": {
            found.columns[j]: [rounded(chain, DIGITS) for chain in found.mean[:, :, j].T]
            for j in worst
        },
    }
