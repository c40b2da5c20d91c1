"""Every imputer under one contract, with settings that train for a moment."""

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

DEEP = {"max_epochs": 2, "random_state": 0}
LATENT = DEEP | {"n_draws": 5}
SETS = LATENT | {"n_sets": 2}
WEIGHTED = LATENT | {"n_train_draws": 2}
CHAIN = {"max_iter": 2, "random_state": 0}

QUICK = {
    PSMVAEImputer: SETS,
    VAEImputer: LATENT,
    GMVAEImputer: SETS,
    DLGMImputer: SETS,
    MIWAEImputer: WEIGHTED,
    NotMIWAEImputer: WEIGHTED,
    GAINImputer: DEEP,
    MICEImputer: CHAIN,
    MissForestImputer: CHAIN | {"n_estimators": 3, "n_jobs": 1},
    MeanImputer: {"random_state": 0},
}


def name_of(cls):
    """What a test of this class is called."""
    return cls.__name__.removesuffix("Imputer")


def quick(cls, **overrides):
    """An imputer of this class that is fitted in a moment."""
    return cls(**(QUICK[cls] | overrides))


CLASSES = {name_of(cls): cls for cls in QUICK}
IMPUTERS = {name: partial(quick, cls) for name, cls in CLASSES.items()}

DEEP_ONES = [name for name, cls in CLASSES.items() if QUICK[cls].items() >= DEEP.items()]
CLASSICAL = [name for name in CLASSES if name not in DEEP_ONES]
# those with importance draws of a latent, and those with pattern sets
LATENT_ONES = [name for name in DEEP_ONES if name != "GAIN"]
WITH_SETS = ["PSMVAE", "GMVAE", "DLGM"]

# One of each family: latents, adversaries, chains and the mean. For what a class has from its base.
FAMILIES = ["PSMVAE", "GAIN", "MICE", "Mean"]

# The contract of some depends on a setting: these keep it too.
VARIANTS = IMPUTERS | {
    "PSMVAE self": partial(quick, PSMVAEImputer, mask_model="self"),
    "PSMVAE none": partial(quick, PSMVAEImputer, mask_model="none"),
    "PSMVAE bootstrap": partial(quick, PSMVAEImputer, bootstrap=True, n_members=2),
    "GMVAE mask": partial(quick, GMVAEImputer, mask=True),
    "MIWAE student": partial(quick, MIWAEImputer, scale="student"),
    "NotMIWAE network": partial(quick, NotMIWAEImputer, mask_model="network"),
    "MICE draws": partial(quick, MICEImputer, sample_posterior=True, n_chains=2),
}
# These give one draw at transform, from numbers dealt out to the rows in turn: the same table gives
# the same bits, but a row's draw depends on the rows before it.
DRAWN_IN_TURN = ["MICE draws"]
EXPECTING = [name for name in VARIANTS if name not in DRAWN_IN_TURN]

ALL_METHODS = ["transform", "sample"]
LATENT_METHODS = ["score_samples", "score", "effective_sample_size"]
SET_METHODS = ["predict_set", "predict_set_proba"]


def methods_of(imputer):
    """What can be asked of an imputer about a table."""
    names = [*ALL_METHODS, *LATENT_METHODS, *SET_METHODS]
    return [name for name in names if hasattr(imputer, name)]
