"""Smoothed residuals of donors."""

import numpy as np
import pytest
from scipy import stats

from psmvae.chained.numeric import NumericParameters
from psmvae.chained.regression import Draws
from psmvae.chained.smoothing import smoothing_width


def standardised(residual):
    residual = residual - residual.mean(-1, keepdims=True)
    return residual / residual.std(-1, keepdims=True)


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
