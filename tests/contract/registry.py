"""Every imputer, with settings that fit a small table in a fraction of a second."""

from functools import partial

from psmvae import (
    DLGMImputer,
    GAINImputer,
    GMVAEImputer,
    MeanImputer,
    MICEImputer,
    MissForestImputer,
    MIWAEImputer,
    NotMIWAEImputer,
    PSMVAEImputer,
    VAEImputer,
)

DEEP_SETTINGS = {"max_epochs": 2, "random_state": 0}
LATENT_SETTINGS = DEEP_SETTINGS | {"n_draws": 5}
SET_SETTINGS = LATENT_SETTINGS | {"n_sets": 2}
IWAE_SETTINGS = LATENT_SETTINGS | {"n_train_draws": 2}
CHAIN_SETTINGS = {"max_iter": 2, "random_state": 0}

QUICK = {
    PSMVAEImputer: SET_SETTINGS,
    VAEImputer: LATENT_SETTINGS,
    GMVAEImputer: SET_SETTINGS,
    DLGMImputer: SET_SETTINGS,
    MIWAEImputer: IWAE_SETTINGS,
    NotMIWAEImputer: IWAE_SETTINGS,
    GAINImputer: DEEP_SETTINGS,
    MICEImputer: CHAIN_SETTINGS,
    MissForestImputer: CHAIN_SETTINGS | {"n_estimators": 3, "n_jobs": 1},
    MeanImputer: {"random_state": 0},
}


def quick(cls, **overrides):
    """Make an imputer of this class that is fitted quickly."""
    return cls(**(QUICK[cls] | overrides))


CLASSES = {cls.__name__.removesuffix("Imputer"): cls for cls in QUICK}
IMPUTERS = {name: partial(quick, cls) for name, cls in CLASSES.items()}

DEEP = [name for name, cls in CLASSES.items() if QUICK[cls].items() >= DEEP_SETTINGS.items()]
CLASSICAL = [name for name in CLASSES if name not in DEEP]
# imputers with a latent z, and those with pattern sets r
LATENT = [name for name in DEEP if name != "GAIN"]
WITH_SETS = ["PSMVAE", "GMVAE", "DLGM"]

# One imputer of each base class, for behaviour that subclasses inherit.
FAMILIES = ["PSMVAE", "GAIN", "MICE", "Mean"]

# Settings that change what is computed, beside the defaults of each class.
VARIANTS = IMPUTERS | {
    "PSMVAE self": partial(quick, PSMVAEImputer, mask_model="logistic-ceiling"),
    "PSMVAE none": partial(quick, PSMVAEImputer, mask_model="none"),
    "PSMVAE members": partial(quick, PSMVAEImputer, n_members=2),
    "PSMVAE model draws": partial(quick, PSMVAEImputer, draws="model"),
    "PSMVAE pmm": partial(quick, PSMVAEImputer, numeric_draws="pmm"),
    "GMVAE mask": partial(quick, GMVAEImputer, mask_model="latent"),
    "MIWAE student": partial(quick, MIWAEImputer, scale="student"),
    "NotMIWAE network": partial(quick, NotMIWAEImputer, mask_model="network"),
    "MICE pmm": partial(quick, MICEImputer, method="pmm"),
}
# One of each likelihood, mask model and algorithm, for numerical edge cases.
ALGORITHMS = [
    "PSMVAE",
    "PSMVAE self",
    "MIWAE student",
    "NotMIWAE network",
    "GAIN",
    "MICE",
    "MICE pmm",
    "MissForest",
    "Mean",
]
SCORE_METHODS = ["score_samples", "score", "effective_sample_size"]
SET_METHODS = ["predict_set", "predict_set_proba"]


def methods_of(imputer):
    """Names of the methods that take a table."""
    names = ["transform", "sample", *SCORE_METHODS, *SET_METHODS]
    return [name for name in names if hasattr(imputer, name)]
