"""Predictions of cells by a Gaussian model."""

import numpy as np
import pytest

from mechanism.tables import masked, numbers
from psmvae import MICEImputer
from psmvae.chained.predictors import Predictors
from psmvae.mechanism.gaussian import Gaussian


@pytest.fixture(scope="module")
def by_own_value():
    complete, rng = numbers(1500, 0)
    lost = rng.random(1500) < 0.8 * (complete["a"] > 0.3)
    return complete, lost, masked(complete, a=lost)


def test_predictions_are_the_regression_of_the_observed_rows(by_own_value):
    complete, lost, table = by_own_value
    imputer = MICEImputer(random_state=0)
    encoded = imputer._read(table)
    columns = tuple(imputer.schema_.modelled)
    predictors = Predictors.fit(columns, encoded.x, encoded.m)
    model = Gaussian.fit(predictors, encoded.x, encoded.m, seed=0)
    predicted = model.predict(predictors, encoded.x, encoded.m, hidden=[0])[0]
    design = np.column_stack([np.ones(len(complete)), complete[["b", "c"]]])
    coef = np.linalg.lstsq(design[~lost], complete["a"][~lost], rcond=None)[0]
    np.testing.assert_allclose(predicted, design @ coef, atol=0.02)
