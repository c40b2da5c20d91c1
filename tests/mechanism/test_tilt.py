"""Draws of p_obs · exp γ in the chains, against closed forms."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from psmvae.chained.regression import Draws
from psmvae.chained.tilt import MAX_LOG_ODDS, LogOdds, take_one


def straight(slope, edges):
    """Drawn odds with one straight γ; bins have their middle as value."""
    width = edges[1] - edges[0]
    value = np.append(edges - width / 2, edges[-1] + width / 2)
    return LogOdds(edges, value, slope * value[None], np.array([True]))


@pytest.mark.parametrize("slope", [0.0, 1.2, -0.8])
def test_straight_odds_move_a_normal_by_slope_times_variance(slope):
    rng, n = Draws.seeded(0, [0]), 4000
    log_odds = straight(slope, np.linspace(-3, 3, 25))
    taken = take_one(lambda: rng.normal(n), partial(log_odds, [0]), rng)
    assert taken.shape == (1, n)
    assert stats.kstest(taken[0], stats.norm(slope, 1).cdf).statistic < 0.035


def test_the_bias_of_a_mean_is_small():
    """One of 100 proposals, taken in proportion to its odds, would be .024 below the mean."""
    rng, n = Draws.seeded(2, [0]), 60_000
    log_odds = straight(1.0, np.linspace(-3, 3, 25))
    taken = take_one(lambda: rng.normal(n), partial(log_odds, [0]), rng)
    assert taken.mean() == pytest.approx(1.0, abs=0.012)


def test_a_step_takes_each_side_by_its_odds():
    rng, n = Draws.seeded(1, [0]), 4000
    log_odds = LogOdds(
        np.array([0.5]), np.array([-0.5, 1.1]), np.log([[1.0, 3.0]]), np.array([False])
    )
    taken = take_one(lambda: rng.normal(n), partial(log_odds, [0]), rng)[0]
    below = stats.norm.cdf(0.5)
    expected = 3 * (1 - below) / (below + 3 * (1 - below))
    assert (taken > 0.5).mean() == pytest.approx(expected, abs=0.03)
    # within each side the distribution is the proposal's
    low = taken[taken <= 0.5]
    assert stats.kstest(low, lambda x: stats.norm.cdf(x) / below).pvalue > 1e-3


def test_log_odds_are_looked_up_by_draw_and_bin():
    gamma = np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 8.0]])
    log_odds = LogOdds(np.array([0.0, 1.0]), np.array([-1.0, 0.5, 2.0]), gamma, np.zeros(2, bool))
    x = np.array([[-9.0, 0.5, 9.0]] * 3)
    # relative to the median of the draw; the number of the draw wraps around
    np.testing.assert_array_equal(log_odds([0, 1, 2], x), [[-1, 0, 1], [0, 0, 3], [-1, 0, 1]])
    np.testing.assert_array_equal(log_odds.of_levels([1, 2], np.ones(1, bool))[:, 0], gamma[[1, 0]])


def test_a_straight_function_goes_on_beyond_the_bins():
    log_odds = straight(2.0, np.linspace(-1, 1, 9))
    found = log_odds([0], np.array([[-4.0, 0.0, 1.3, 4.0, 1e9]]))
    np.testing.assert_allclose(found, [[-8, 0, 2.6, 8, MAX_LOG_ODDS]], atol=1e-9)


def test_a_steep_straight_function_keeps_its_slope_where_outer_bins_are_clipped():
    # heavy tails: γ of the outer bins is limited, that of the inner ones is not
    value = np.array([-30.0, -1.0, -0.5, 0.0, 0.5, 1.0, 30.0])
    gamma = np.clip(1.5 * value, -12, 12)[None]
    log_odds = LogOdds((value[1:] + value[:-1]) / 2, value, gamma, np.array([True]))
    np.testing.assert_allclose(log_odds([0], np.array([[-2.0, 1.0, 4.0]])), [[-3, 1.5, 6]])
