"""R-hat and traces of chained equations."""

import numpy as np
import polars as pl
import pytest

from psmvae.multiple import Convergence
from psmvae.multiple.convergence import split_r_hat


def test_r_hat_of_a_small_example():
    """By hand: halves (0, 2), (2, 4), (1, 3), (3, 5) have means 1, 3, 2, 4 and variances 2."""
    trace = np.array([[0.0, 1.0], [2.0, 3.0], [2.0, 3.0], [4.0, 5.0]])[:, :, None]
    within, between = 2.0, 2 * (5 / 3)  # n times the variance of the means
    variance = (2 - 1) / 2 * within + between / 2
    assert split_r_hat(trace)[0] == pytest.approx(np.sqrt(variance / within))


def test_r_hat_tells_chains_that_differ_and_chains_with_a_trend():
    noise = np.random.default_rng(0).normal(size=(10, 20, 1))
    apart, trend = noise + 3 * np.arange(20)[:, None], noise + np.arange(10)[:, None, None]
    good, *bad = (split_r_hat(trace)[0] for trace in (noise, apart, trend))
    assert 0.9 < good < 1.1
    assert min(bad) > 1.3


@pytest.mark.parametrize("trace", [np.ones((10, 4, 2)), np.zeros((3, 4, 2))])
def test_no_r_hat_of_constant_or_short_traces(trace):
    assert np.isnan(split_r_hat(trace)).all()


def test_traces_are_long():
    mean = np.arange(24.0).reshape(3, 4, 2)
    frame = Convergence(("a", "b"), mean, 2 * mean, "polars").traces()
    assert frame.columns == ["column", "chain", "iteration", "mean", "sd"]
    row = frame.filter(pl.col("column") == "b", pl.col("chain") == 2, pl.col("iteration") == 3)
    assert row.select("mean", "sd").row(0) == (mean[2, 1, 1], 2 * mean[2, 1, 1])
