"""What an imputer assumes and does, in the words of an article."""

from __future__ import annotations

from typing import Any

from psmvae.imputers.classical import MeanImputer, MissForestImputer
from psmvae.imputers.latent import LatentImputer
from psmvae.imputers.mice import MICEImputer
from psmvae.nn.settings import LatentMask, NoMask
from psmvae.reporting.data.texts import listed

METHODS = {
    "PSMVAEImputer": "a pattern-set mixture variational autoencoder (PSMVAE)",
    "VAEImputer": "a variational autoencoder",
    "GMVAEImputer": "a Gaussian mixture variational autoencoder",
    "DLGMImputer": "a deep latent Gaussian model",
    "MIWAEImputer": "a missing data importance-weighted autoencoder (MIWAE)",
    "NotMIWAEImputer": "an importance-weighted autoencoder with a selection model (not-MIWAE)",
    "GAINImputer": "generative adversarial imputation nets (GAIN)",
    "MICEImputer": "multivariate imputation by chained equations (MICE)",
    "MissForestImputer": "chained random forests (missForest)",
    "MeanImputer": "draws from the distribution of each column",
}
"""What an imputer is called, by its class."""
# Imputers that assume more than values missing at random.
_COMPLETELY_AT_RANDOM = {"MeanImputer", "GAINImputer"}


def assumption(imputer: Any) -> str:
    """Return the assumption about columns that are not missing by their own value."""
    if type(imputer).__name__ in _COMPLETELY_AT_RANDOM:
        return "missing completely at random"
    # of a deep imputer, which may have resolved "auto"; others have no model of the masks
    setting = getattr(getattr(imputer, "config_", None), "mask_model", NoMask())
    if isinstance(setting, NoMask):
        return "missing at random"
    if isinstance(setting, LatentMask):
        return "missing at random given the latent variables of the model"
    return f"missing not at random, by the selection model {setting!r}"


def procedure(imputer: Any) -> str:
    """Return how the columns were imputed."""
    if isinstance(imputer, MeanImputer):
        return (
            "Each column was imputed by itself: its mean and variance, or the probabilities of its "
            "levels, were drawn from their posterior, and then its cells."
        )
    if isinstance(imputer, MICEImputer):
        numbers = "predictive mean matching" if imputer.method == "pmm" else "linear regressions"
        return (
            "Incomplete columns were imputed one after the other, in rounds, given the other "
            f"columns: numbers by {numbers}, levels by logistic regressions."
        )
    if isinstance(imputer, MissForestImputer):
        return (
            "Incomplete columns were imputed one after the other, in rounds, by forests of trees "
            "on the other columns; a cell was drawn as the prediction of one tree."
        )
    if not isinstance(imputer, LatentImputer):
        return "A network imputed all missing cells of a row at once."
    if imputer.chains_ is None:
        return (
            "All missing cells of a row were drawn together, with the weights of the model fixed."
        )
    return (
        "Incomplete columns were then drawn one after the other, in rounds, by Bayesian "
        "regressions on the other columns and on the prediction of the model."
    )


def predictors(imputer: Any) -> str:
    """Return which columns predicted which."""
    if isinstance(imputer, MeanImputer):
        return "No column predicted another."
    texts = ["Every column was predicted by all others."]
    if chosen := getattr(imputer, "predictors", None):
        texts = [f"The analyst chose the predictors of {listed(list(map(str, chosen)))}."]
    if dropped := getattr(imputer, "dropped_", None):
        texts.append(f"Constant or collinear predictors were left out for {listed(list(dropped))}.")
    return " ".join(texts)
