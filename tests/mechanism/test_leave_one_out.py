"""Predictions of training cells as if the model had not been trained on them."""

import numpy as np
import pytest

from psmvae.mechanism import leave_one_out as module
from psmvae.mechanism.leave_one_out import leave_one_out


def test_a_regression_with_many_columns():
    rng = np.random.default_rng(0)
    row = np.arange(5500)
    features = rng.normal(size=(5500, 200))
    values = features @ rng.normal(size=200) + rng.normal(size=5500)
    observed, held_out = row < 5000, (row >= 1000) & (row < 5000)
    train = features[:1000]
    coef = np.linalg.lstsq(train, values[:1000], rcond=None)[0]
    prediction = features @ coef
    found = leave_one_out(prediction, values[observed], observed, held_out)
    leverage = np.diag(train @ np.linalg.solve(train.T @ train, train.T))
    residual = values[:1000] - prediction[:1000]
    without = values[:1000] - residual / (1 - leverage)
    np.testing.assert_array_equal(found[1000:], prediction[1000:])
    assert np.abs(found[:1000] - without).mean() < 0.35 * np.abs(prediction[:1000] - without).mean()


@pytest.mark.parametrize(("ratio", "factor"), [(0.8, 1.0), (1.0, 1.0), (1.3, 1.3), (9.0, None)])
def test_the_factor_is_the_ratio_of_errors(ratio, factor):
    values = np.tile([0.0, 1.0, 5.0], 40)
    held_out = np.arange(120) < 60
    prediction = values - np.where(held_out, ratio, 1.0)
    # residuals of one size have no standard error
    found = leave_one_out(prediction, values, np.ones(120, bool), held_out)
    np.testing.assert_allclose(
        values[60:] - found[60:], module.MAX_FACTOR if factor is None else factor
    )


@pytest.mark.parametrize("n_held_out", [0, 19, 101])
def test_few_cells_leave_predictions_as_they_are(n_held_out):
    values = np.zeros(120)
    held_out = np.arange(120) < n_held_out
    prediction = np.where(held_out, 2.0, 1.0)
    found = leave_one_out(prediction, values, np.ones(120, bool), held_out)
    np.testing.assert_array_equal(found, prediction)


@pytest.mark.parametrize("n_held_out", [25, 100])
def test_chance_and_outliers_are_no_overfitting(n_held_out):
    rng = np.random.default_rng(0)
    moved = []
    for _ in range(200):
        values, held_out = rng.standard_t(5, size=600), np.arange(600) < n_held_out
        values[0] = 60.0
        found = leave_one_out(np.zeros(600), values, np.ones(600, bool), held_out)
        moved.append(np.max(-found[1:] / values[1:]))
    assert np.mean(moved) < 0.05


def test_an_exact_fit_stays_exact():
    values, held_out = np.arange(100.0), np.arange(100) < 50
    found = leave_one_out(values - held_out, values, np.ones(100, bool), held_out)
    np.testing.assert_array_equal(found[50:], values[50:])
