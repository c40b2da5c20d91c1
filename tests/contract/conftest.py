"""Small tables and quick imputers for the contract every imputer keeps."""

from functools import cache

import numpy as np
import pytest

from psmvae import PSMVAEImputer

QUICK = {"max_epochs": 2, "n_draws": 5, "n_sets": 2, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def _short_warm_up():
    """A mask that depends on x is trained alone at first, for longer than these tests last."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psmvae.training.loop.WARM_STEPS", 3, raising=False)
        yield


@pytest.fixture(scope="session")
def quick():
    """Make an imputer that trains for a moment."""

    def make(mask_model="latent", **parameters):
        return PSMVAEImputer(mask_model, **(QUICK | parameters))

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
def fitted(quick, numbers):
    """An imputer fitted to the array, made once for each setting: not to be changed."""

    @cache
    def fit(mask_model="latent", **parameters):
        return quick(mask_model, **parameters).fit(numbers)

    return fit
