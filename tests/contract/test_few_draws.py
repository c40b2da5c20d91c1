"""A low effective sample size is said, once."""

import warnings

import numpy as np
import pytest
import torch

from psmvae import PSMVAEImputer


def fitted(n_draws):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 1)) + 0.2 * rng.normal(size=(60, 6))
    table[rng.random(table.shape) < 0.2] = np.nan
    settings = {"max_epochs": 2, "n_sets": 2, "random_state": 0, "device": "cpu"}
    return PSMVAEImputer(n_draws=n_draws, **settings).fit(table), table


def test_uneven_weights_are_warned_about():
    imputer, table = fitted(50)
    with torch.no_grad():
        # q(z) far from the posterior: one draw takes all the weight
        imputer.model_.q_z.net.last.bias += 3.0
    with pytest.warns(UserWarning, match="effective sample size") as caught:
        imputer.transform(table)
    assert len(caught) == 1


@pytest.mark.parametrize("n_draws", [1, 50])
def test_good_weights_and_few_draws_are_not(n_draws):
    imputer, table = fitted(n_draws)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputer.transform(table)
