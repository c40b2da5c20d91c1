"""Predictions of cells by a Gaussian model."""

import numpy as np
import pandas as pd
import pytest

from mechanism.tables import masked, numbers
from psmvae import MICEImputer
from psmvae.chained.predictors import Predictors
from psmvae.mechanism import gaussian
from psmvae.mechanism.gaussian import Gaussian, encode
from psmvae.table.errors import ConstantColumnsWarning


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
    predicted = model.predict(predictors, encoded.x, encoded.m, {0: ()}, observed=True)[0]
    design = np.column_stack([np.ones(len(complete)), complete[["b", "c"]]])
    coef = np.linalg.lstsq(design[~lost], complete["a"][~lost], rcond=None)[0]
    np.testing.assert_allclose(predicted, design @ coef, atol=0.02)


@pytest.fixture(scope="module")
def several():
    """A model of columns of four kinds, and a table with many patterns."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(400, 4))
    table = pd.DataFrame(
        {
            "a": base[:, 0],
            "n": np.round(np.exp(base[:, 1] + 0.5 * base[:, 0])),
            "g": np.array(["x", "y", "z"])[np.digitize(base[:, 0] + base[:, 2], [-0.5, 0.5])],
            "b": base[:, 3] + base[:, 0],
        }
    ).mask(rng.random((400, 4)) < 0.3)
    imputer = MICEImputer(kinds={"n": "count"}, random_state=0)
    encoded = imputer._read(table)
    x, m = imputer._model_values(encoded.x, encoded.m), encoded.m
    predictors = Predictors.fit(tuple(imputer.schema_.modelled), x, m)
    return Gaussian.fit(predictors, x, m, seed=0), predictors, x, m


@pytest.mark.parametrize("observed", [False, True])
def test_predictions_are_conditional_means(several, observed):
    """Row by row, from the blocks of the covariance."""
    model, predictors, x, m = several
    together = {0: (3,), 2: ()}
    found = model.predict(predictors, x, m, together, observed=observed)
    assert found.keys() == together.keys()
    z, seen = encode(predictors, x, m)
    for j, others in together.items():
        own = predictors.of(j)
        for i in np.flatnonzero(observed | ~m[:, j])[:60]:
            values, given = z[i].copy(), seen[i].copy()
            values[[len(predictors.group) + k for k in (j, *others)]] = 1.0
            given[own] = False
            coef = np.linalg.solve(
                model.covariance[np.ix_(given, given)], model.covariance[np.ix_(given, own)]
            )
            mean = model.mean[own] + (values - model.mean)[given] @ coef
            mean = mean * predictors.scale[own] + predictors.center[own]
            if j == 0:
                np.testing.assert_allclose(found[j][i], mean[0], atol=1e-9)
            else:
                expected = np.empty(3)
                expected[list(predictors.levels[j])] = mean
                rest = [k for k in range(3) if k not in predictors.levels[j]]
                expected[rest] = 1 - mean.sum()
                expected = np.maximum(expected, 0.01)
                np.testing.assert_allclose(found[j][i], expected / expected.sum(), atol=1e-9)


def test_each_pattern_is_inverted_once(several, monkeypatch):
    model, predictors, x, m = several
    inverted, invert = [], np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda a: inverted.extend(a) or invert(a))
    # in chunks of 20 rows, a pattern may be in two
    monkeypatch.setattr(gaussian, "MAX_NUMBERS", 20 * len(model.mean) ** 2)
    chunked = model.predict(predictors, x, m, {0: (), 1: (), 3: ()}, observed=True)
    n_patterns = len(np.unique(m, axis=0))
    assert n_patterns <= len(inverted) <= n_patterns + len(x) // 20
    monkeypatch.undo()
    whole = model.predict(predictors, x, m, {0: (), 1: (), 3: ()}, observed=True)
    for j in whole:
        np.testing.assert_array_equal(chunked[j], whole[j])


def test_a_column_with_one_observed_level():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=50), "g": ["x"] * 40 + [None] * 10})
    imputer = MICEImputer(kinds={"g": ("categorical", ["x", "y", "z"])}, random_state=0)
    with pytest.warns(ConstantColumnsWarning):
        encoded = imputer._read(table)
    predictors = Predictors.fit(tuple(imputer.schema_.modelled), encoded.x, encoded.m)
    model = Gaussian.fit(predictors, encoded.x, encoded.m, seed=0)
    found = model.predict(predictors, encoded.x, encoded.m, {1: ()}, observed=True)[1]
    np.testing.assert_allclose(found, np.full((50, 3), 1 / 3))
