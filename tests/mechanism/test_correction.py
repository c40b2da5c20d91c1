"""Means of missing cells under the tilt."""

import numpy as np
import pytest
from scipy.optimize import minimize

from psmvae.mechanism import correction as module
from psmvae.mechanism.correction import Correction


def fit(values, features, weight, estimates, seed=0):
    folds = np.arange(len(values)) % 4
    return Correction.fit(features, estimates, values, weight, folds, seed=seed, n_jobs=1)


@pytest.fixture(scope="module")
def rows():
    """Values whose odds of going missing rise with them: exp(0.8 x)."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(600, 3))
    mean = np.sin(2 * features[:, 0]) + features[:, 1]
    values = mean + 0.5 * rng.normal(size=600)
    return features, mean, values, np.exp(0.8 * values)


def test_the_mean_is_moved_by_slope_times_variance(rows):
    features, mean, values, weight = rows
    tilted = mean + 0.8 * 0.5**2
    made = fit(values, features, weight, np.column_stack([mean, tilted]))
    np.testing.assert_allclose(made.coef.sum(), 1)
    assert (made.coef >= 0).all()
    found = made.predict(features, np.column_stack([mean, tilted]))
    assert np.sqrt(np.mean((found - tilted) ** 2)) < 0.15
    # the estimate with the right mean has more weight than that without
    assert made.coef[1] > made.coef[0]


def test_a_poor_model_leaves_the_mean_to_the_weighted_regressions(rows):
    features, mean, values, weight = rows
    useless = np.zeros((600, 2))
    made = fit(values, features, weight, useless)
    assert made.coef[2:].sum() > 0.8
    found = made.predict(features, useless)
    assert np.sqrt(np.mean((found - mean - 0.2) ** 2)) < 0.35


def test_out_of_bag_predictions_exist_for_rows_with_large_weights(rows, recwarn):
    features, _, values, _ = rows
    weight = np.ones(600)
    weight[:30] = 60.0
    _, found = module._forest(features, values + 7, weight, np.arange(600), 0, 1)
    assert not recwarn.list
    # a row without a prediction would have 0
    assert found.min() > 3
    assert np.corrcoef(found[:30], values[:30])[0, 1] > 0.5


def test_the_forest_does_not_depend_on_the_number_of_jobs(rows):
    features, _, values, weight = rows
    one, two = (module._forest(features, values, weight, np.arange(600), 3, n) for n in (1, 2))
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[0].predict(features), two[0].predict(features))


def test_few_rows_with_weight_use_the_model_only(rows):
    features, mean, values, _ = rows
    weight = np.where(np.arange(600) < 10, 1.0, 1e-9)
    estimates = np.column_stack([mean, mean + 1])
    made = fit(values, features, weight, estimates)
    np.testing.assert_array_equal(made.predict(features, estimates), mean)


def test_the_combination_is_the_constrained_least_squares_fit():
    rng = np.random.default_rng(1)
    values, weight = rng.normal(size=200), rng.uniform(0.2, 3, 200)
    estimates = values[:, None] + rng.normal(size=(200, 3)) * [0.5, 0.7, 1.5] + [0.3, 0, 0]

    def loss(coef):
        return weight @ (values - estimates @ coef) ** 2

    best = minimize(
        loss, np.full(3, 1 / 3), bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda coef: coef.sum() - 1},
    )  # fmt: skip
    found = module._combination(estimates, values, weight)
    np.testing.assert_allclose(found, best.x, atol=0.01)
