"""A warning of `transform` about a low effective sample size."""

import copy
import warnings
from functools import cache

import numpy as np
import pytest
import torch

from contract.registry import IMPUTERS


@cache
def fitted_once(name):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 1)) + 0.2 * rng.normal(size=(60, 6))
    table[rng.random(table.shape) < 0.2] = np.nan
    return IMPUTERS[name](device="cpu").fit(table), table


def fitted(name, n_draws):
    imputer, table = copy.deepcopy(fitted_once(name))
    return imputer.set_params(n_draws=n_draws), table


@pytest.mark.parametrize("name", ["PSMVAE", "MIWAE"])
def test_uneven_importance_weights_give_one_warning(name):
    imputer, table = fitted(name, 50)
    with torch.no_grad():
        # with q(z) far from the posterior, one draw has all the weight
        imputer.model_.q_z.net.last.bias += 3.0
        imputer.model_.weight_power.fill_(1.0)
    with pytest.warns(UserWarning, match="effective sample size") as caught:
        imputer.transform(table)
    assert len(caught) == 1


@pytest.mark.parametrize("n_draws", [1, 50])
@pytest.mark.parametrize("name", ["PSMVAE", "MIWAE"])
def test_even_weights_and_few_draws_give_no_warning(name, n_draws):
    imputer, table = fitted(name, n_draws)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        imputer.transform(table)
