"""Residuals of donors: shrunk local means, and smoothing under a tilt."""

import numpy as np
import pytest
from scipy import stats

from psmvae.chained.numeric import NumericParameters
from psmvae.chained.regression import Draws
from psmvae.chained.residuals import shrink_local_means, smoothing_width


def standardised(residual):
    residual = residual - residual.mean(-1, keepdims=True)
    return residual / residual.std(-1, keepdims=True)


def local_means(residual, n_near=50):
    return residual.reshape(len(residual), -1, n_near).mean(-1)


def test_local_means_that_are_chance_are_removed():
    residual = standardised(np.random.default_rng(2).normal(size=(200, 500)))
    before, after = (local_means(r) for r in (residual, shrink_local_means(residual, 50)))
    # James–Stein with 10 parts, whose means sum to 0, leaves a fifth of the variance or less
    assert (after**2).mean() < 0.35 * (before**2).mean()
    assert 1 / (before**2).mean() == pytest.approx(50, rel=0.2)


def test_local_means_that_are_a_curve_are_kept():
    rng = np.random.default_rng(3)
    curve = np.sin(np.linspace(0, 2 * np.pi, 500))
    residual = standardised(curve + rng.normal(size=(50, 500)))
    found = shrink_local_means(residual, 50)
    np.testing.assert_allclose(local_means(found), local_means(residual), atol=0.08)


def test_shrunk_residuals_keep_mean_square_and_order_of_chains():
    residual = standardised(np.random.default_rng(4).normal(size=(3, 200)))
    found = shrink_local_means(residual, 20)
    np.testing.assert_allclose((found**2).mean(1), 1)
    np.testing.assert_allclose(found.mean(1), 0, atol=0.02)
    np.testing.assert_allclose(shrink_local_means(residual[1:2], 20), found[1:2])


@pytest.mark.parametrize("n", [1, 20, 59])
def test_few_residuals_stay_as_they_are(n):
    residual = np.random.default_rng(5).normal(size=(2, n))
    assert shrink_local_means(residual, 20) is residual


@pytest.mark.parametrize("n", [100, 600])
def test_normal_residuals_are_replaced_by_normal_numbers(n):
    residual = standardised(np.random.default_rng(0).normal(size=(20, n)))
    assert np.median(smoothing_width(residual)) == 1


def test_residuals_of_another_shape_keep_it():
    rng = np.random.default_rng(1)
    skewed, two = rng.exponential(size=(20, 600)), rng.choice([-1.0, 1.0], size=(20, 600))
    for residual in (skewed, two + 0.1 * rng.normal(size=two.shape)):
        assert (smoothing_width(standardised(residual)) == 0).mean() > 0.9
    # heavy tails are smoothed a little
    heavy = smoothing_width(standardised(rng.standard_t(3, size=(20, 600))))
    assert 0 < np.median(heavy) < 0.7


@pytest.mark.parametrize("residual", [np.zeros((2, 1)), np.zeros((2, 3)), np.full((1, 4), 1e6)])
def test_degenerate_residuals_have_a_width(residual):
    width = smoothing_width(residual)
    assert width.shape == (len(residual),)
    assert np.isfinite(width).all()


def test_few_donors_reach_values_beyond_the_largest():
    """N(0, 1) with log odds 1.5 x is N(1.5, 1), for which 40 residuals up to 2.2 are too few."""
    n = 40_000
    donor = standardised(stats.norm.ppf((np.arange(40) + 0.5) / 40)[None])
    one, none = np.ones(1), np.zeros((1, 0))
    parameters = NumericParameters(
        none, none, 0 * one, 0 * one, one, none, np.zeros_like(donor), donor
    )
    limits = {"pmm": False, "low": -np.inf, "high": np.inf}
    drawn = parameters.draw(
        np.zeros((1, n, 0)), np.zeros(n), Draws.seeded(0, [0]),
        log_odds=lambda x: 1.5 * np.minimum(x, 8), **limits,
    )  # fmt: skip
    assert drawn.mean() == pytest.approx(1.5, abs=0.06)
    assert drawn.std() == pytest.approx(1, abs=0.06)
    assert drawn.max() > 4
