"""Each metric against a closed form, an integral or another's implementation."""

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import accuracy_score, root_mean_squared_error

from psmvae_paper import metrics

REAL = np.array([False, False, False])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 3)) * [1.0, 10.0, 100.0]
    m = rng.random(truth.shape) < 0.6
    filled = np.where(m, truth, truth + rng.normal(size=truth.shape))
    return truth, filled, m


def test_rmse_matches_scikit_learn(table):
    truth, filled, m = table
    scale = metrics.column_range(truth)
    np.testing.assert_array_equal(scale, np.ptp(truth, axis=0))
    expected = root_mean_squared_error((truth / scale)[~m], (filled / scale)[~m])
    assert metrics.rmse(truth, filled, m, scale, REAL) == pytest.approx(expected)


def test_only_scored_cells_count(table):
    truth, filled, m = table
    scale = metrics.column_range(truth)
    only = metrics.rmse(truth[:, :1], filled[:, :1], m[:, :1], scale[:1], REAL[:1])
    nowhere = np.where(np.arange(3) == 0, truth, np.nan)
    assert metrics.rmse(nowhere, filled, m, scale, REAL) == only
    unscored = np.array([scale[0], np.nan, np.nan])
    assert metrics.rmse(truth, filled, m, unscored, REAL) == only
    wild = np.where(m, 1e9, filled)
    assert metrics.rmse(truth, wild, m, unscored, REAL) == only


def test_discrete_columns_are_rounded():
    truth, m = np.array([[1.0], [2.0], [5.0]]), np.zeros((3, 1), bool)
    filled = np.array([[1.4], [2.6], [5.0]])
    scale, discrete = np.array([4.0]), np.array([True])
    assert metrics.rmse(truth, filled, m, scale, discrete) == pytest.approx(np.sqrt(1 / 16 / 3))
    assert metrics.accuracy(truth, filled, m, scale, discrete) == pytest.approx(2 / 3)
    assert np.isnan(metrics.accuracy(truth, filled, m, scale, ~discrete))


def test_accuracy_matches_scikit_learn():
    rng = np.random.default_rng(1)
    truth, filled = rng.integers(0, 5, (2, 300, 3)).astype(float)
    m, scale = rng.random(truth.shape) < 0.5, np.array([4.0, 3.0, 7.0])
    expected = accuracy_score(truth[~m].astype(int), filled[~m].astype(int))
    assert metrics.accuracy(truth, filled, m, scale, ~REAL) == pytest.approx(expected)


def test_bias_of_shifted_imputations():
    rng = np.random.default_rng(2)
    truth, m = rng.normal(size=(50, 3)), rng.random((50, 3)) < 0.5
    m[:, 2] = True
    scale = np.array([1.0, 4.0, 1.0])
    bias = metrics.column_bias(truth, truth + np.array([0.5, -1.0, 3.0]), m, scale, REAL)
    np.testing.assert_allclose(bias, [0.5, -0.25, np.nan])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_unimputed_cell_is_an_error(table, value):
    truth, filled, m = table
    row, column = np.argwhere(~m)[0]
    filled[row, column] = value
    with pytest.raises(ValueError, match=r"1 of \d+ missing cells were not imputed"):
        metrics.rmse(truth, filled, m, metrics.column_range(truth), REAL)


def test_no_missing_cells_give_nan(table):
    truth, filled, m = table
    m, scale = np.ones_like(m), metrics.column_range(truth)
    draws = filled[None]
    assert np.isnan(metrics.rmse(truth, filled, m, scale, REAL))
    assert np.isnan(metrics.crps(truth, draws, m, scale))
    assert np.isnan(metrics.coverage_and_width(truth, draws, m, scale)).all()


def test_crps_of_normal_matches_closed_form():
    rng = np.random.default_rng(3)
    y, n_cells = 0.7, 200_000
    expected = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    draws = rng.normal(size=(4, n_cells, 1)) * 10
    truth, m = np.full((n_cells, 1), y * 10), np.zeros((n_cells, 1), bool)
    assert metrics.crps(truth, draws, m, np.array([10.0])) == pytest.approx(expected, abs=0.005)


def test_crps_matches_integral_without_bias():
    rng = np.random.default_rng(4)
    x, y, n = np.sort(rng.normal(size=6)), 0.3, 6
    grid = np.linspace(-8, 8, 400_001)
    share = np.searchsorted(x, grid, side="right") / n
    integral = integrate.trapezoid((share - (grid >= y)) ** 2, grid)
    pairs = np.abs(x[:, None] - x[None]).sum()
    expected = integral - pairs / (2 * n**2 * (n - 1))
    found = metrics.crps(np.array([[y]]), x[:, None, None], np.array([[False]]), np.ones(1))
    assert found == pytest.approx(expected, abs=1e-4)


def test_crps_of_one_draw_is_absolute_error():
    truth, draw = np.array([[1.0, 2.0]]), np.array([[[3.0, 2.0]]])
    scale = np.array([4.0, 1.0])
    assert metrics.crps(truth, draw, np.zeros((1, 2), bool), scale) == 0.25


@pytest.mark.parametrize("n_draws", [20, 99])
def test_draws_from_true_distribution_cover_90_percent(n_draws):
    rng = np.random.default_rng(5)
    truth, m = rng.normal(size=(20_000, 1)), np.zeros((20_000, 1), bool)
    draws = rng.normal(size=(n_draws, 20_000, 1))
    covered, width = metrics.coverage_and_width(truth, draws, m, np.array([2.0]))
    assert covered == pytest.approx(0.9, abs=0.01)
    assert width == pytest.approx(stats.norm.ppf(0.95), rel=0.15)


def test_set_accuracy_matches_set_with_most_mnar_rows():
    true = np.array([1] * 40 + [0] * 60)
    learned = np.array([2] * 30 + [0] * 10 + [2] * 10 + [0] * 30 + [1] * 20)
    assert metrics.set_accuracy(true, learned) == pytest.approx((30 + 50) / 100)


def test_set_accuracy_ignores_labels_of_learned_sets():
    rng = np.random.default_rng(6)
    true = rng.integers(0, 2, 100)
    assert metrics.set_accuracy(true, true) == 1.0
    assert metrics.set_accuracy(true, 1 - true) == 1.0
    assert metrics.set_accuracy(true, np.zeros(100, int)) == np.mean(true)


def test_set_majority_matches_each_set_with_its_majority():
    true = np.array([1] * 40 + [0] * 60)
    learned = np.array([2] * 30 + [0] * 10 + [2] * 10 + [0] * 30 + [1] * 20)
    assert metrics.set_majority(true, learned) == pytest.approx((30 + 30 + 20) / 100)
    assert metrics.set_majority(true, np.zeros(100, int)) == 0.6
    assert metrics.set_majority(true, 1 - true) == 1.0


def test_adjusted_rand_of_random_sets_is_about_zero():
    rng = np.random.default_rng(7)
    true, learned = rng.integers(0, 2, (2, 2000))
    assert abs(metrics.adjusted_rand(true, learned)) < 0.01
    assert metrics.adjusted_rand(true, true + 5) == 1.0
