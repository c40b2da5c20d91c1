"""GPU memory that a fit leaves behind."""

import gc

import numpy as np
import pytest
import torch

from psmvae import PSMVAEImputer

pytestmark = pytest.mark.gpu


def allocated_after_fit(x):
    imputer = PSMVAEImputer(max_epochs=2, n_draws=5, random_state=0, device="cuda").fit(x)
    imputer.transform(x)
    del imputer
    gc.collect()
    return torch.cuda.memory_allocated()


def test_fits_do_not_accumulate_memory():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    allocated_after_fit(x)
    first = allocated_after_fit(x)
    for _ in range(3):
        again = allocated_after_fit(x)
    assert again - first < 2**20
