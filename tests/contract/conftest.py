"""Small tables and quick imputers for the contract every imputer keeps."""

from functools import cache

import numpy as np
import pytest

from contract.registry import EXPECTING, FAMILIES, IMPUTERS, VARIANTS

SHORT = {
    # a mask that depends on x is trained alone at first, for longer than these tests last
    "psmvae.training.loop.WARM_STEPS": 3,
    # what training ends with is chosen by so many draws
    "psmvae.training.latent_recipe.PROPOSALS": (1.0, 2.0),
    "psmvae.training.latent_recipe.PROPOSAL_DRAWS": 8,
    "psmvae.training.latent_recipe.TRUST_DRAWS": 6,
    "psmvae.training.latent_recipe.CALIBRATION_DRAWS": 8,
    # what it begins with needs so many rounds
    "psmvae.nn.latent_classes.MAX_ITER": 10,
}


@pytest.fixture(scope="module", autouse=True)
def _short_training():
    """What training does before and after the epochs, which are few here, is short too."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT.items():
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="session", params=IMPUTERS)
def make(request):
    """Each imputer in turn: makes one that is fitted in a moment."""
    return IMPUTERS[request.param]


@pytest.fixture(scope="session", params=FAMILIES)
def family(request):
    """One imputer of each family in turn: for what does not depend on the class."""
    return IMPUTERS[request.param]


@pytest.fixture(scope="session", params=VARIANTS)
def variant(request):
    """Each imputer in turn, some also by another setting."""
    return VARIANTS[request.param]


@pytest.fixture(scope="session", params=EXPECTING)
def expecting(request):
    """Those that fill in what they expect, not a draw."""
    return VARIANTS[request.param]


@pytest.fixture(scope="session")
def quick():
    """Make a PSMVAE that trains for a moment: for what does not depend on the imputer."""

    def make(mask_model="latent", **parameters):
        return IMPUTERS["PSMVAE"](mask_model=mask_model, **parameters)

    return make


@pytest.fixture(scope="session")
def numbers():
    """An array with holes; its columns hang together."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(30, 1)) + 0.5 * rng.normal(size=(30, 4))
    table[rng.random(table.shape) < 0.25] = np.nan
    table.setflags(write=False)
    return table


@pytest.fixture(scope="session")
def mixed():
    """Columns of several kinds as lists, None where missing."""
    rng = np.random.default_rng(8)
    n = 24
    z = rng.normal(size=n)
    columns = {
        "weight": [-0.0, 5e-324, 0.1, *(70 + 9 * z[3:]).tolist()],
        "visits": [*(10**6 + np.rint(3 * z)).astype(int).tolist()],
        "arm": [("low", "mid", "high")[int(v > -0.5) + int(v > 0.5)] for v in z],
        "smoker": [bool(v > 0) for v in z],
    }
    for j, name in enumerate(columns):
        for i in range(3 + j, n, 4):
            columns[name][i] = None
    return columns


@pytest.fixture(scope="session")
def fitted(numbers):
    """An imputer fitted to the array, made once for each setting: not to be changed."""

    @cache
    def fit(name="PSMVAE", **parameters):
        return VARIANTS[name](**parameters).fit(numbers)

    return fit
