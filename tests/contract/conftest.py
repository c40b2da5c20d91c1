"""Small tables and quickly fitted imputers for the contract of every imputer."""

from functools import cache

import numpy as np
import pytest

from contract.registry import ALGORITHMS, FAMILIES, IMPUTERS, VARIANTS

# Constants of training that do not scale with max_epochs.
SHORT = {
    "psmvae.training.loop.WARM_UP_STEPS": 3,
    "psmvae.training.calibration.PROPOSAL_SCALES": (1.0, 2.0),
    "psmvae.training.calibration.PROPOSAL_DRAWS": 8,
    "psmvae.training.calibration.POWER_DRAWS": 6,
    "psmvae.training.calibration.DRAW_SCALE_DRAWS": 8,
    "psmvae.nn.latent_classes.MAX_ITER": 10,
}


@pytest.fixture(scope="module", autouse=True)
def _short_training():
    """Shorten the steps of training before and after the epochs."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT.items():
            patch.setattr(name, value)
        yield


@pytest.fixture(scope="session", params=IMPUTERS)
def make(request):
    """Make an imputer of each class in turn."""
    return IMPUTERS[request.param]


@pytest.fixture(scope="session", params=FAMILIES)
def family(request):
    """Make an imputer of each base class in turn."""
    return IMPUTERS[request.param]


@pytest.fixture(scope="session", params=ALGORITHMS)
def algorithm(request):
    """Make an imputer of each algorithm in turn."""
    return VARIANTS[request.param]


@pytest.fixture(scope="session")
def quick():
    """Make a PSMVAE, for behaviour that does not depend on the class."""

    def make(mask_model="latent", **parameters):
        return IMPUTERS["PSMVAE"](mask_model=mask_model, **parameters)

    return make


@pytest.fixture(scope="session")
def numbers():
    """An array of correlated columns with missing cells."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(30, 1)) + 0.5 * rng.normal(size=(30, 4))
    table[rng.random(table.shape) < 0.25] = np.nan
    table.setflags(write=False)
    return table


@pytest.fixture(scope="session")
def mixed():
    """Columns of several kinds as lists, with None for missing cells."""
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
    """Return an imputer fitted to `numbers`. It is shared between tests and must not be changed."""

    @cache
    def fit(name="PSMVAE", **parameters):
        return VARIANTS[name](**parameters).fit(numbers)

    return fit
