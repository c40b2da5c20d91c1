"""Bins of observed values."""

import numpy as np
import pytest

from psmvae.mechanism.bins import N_BINS, Bins


def check(bins, values):
    """Bins hold all values, in order, with their shares and means."""
    at = bins.index(values)
    assert at.min() >= 0
    assert at.max() < len(bins)
    assert len(bins.edges) == len(bins) - 1
    assert (np.diff(bins.edges) > 0).all()
    np.testing.assert_allclose(np.bincount(at, minlength=len(bins)) / len(values), bins.share)
    for k in np.unique(at):
        assert bins.value[k] == pytest.approx(values[at == k].mean(), rel=1e-9)


def test_many_values_are_grouped_by_quantiles():
    values = np.random.default_rng(0).normal(size=3200)
    bins = Bins.of(values)
    check(bins, values)
    assert len(bins) == N_BINS
    np.testing.assert_allclose(bins.share, 1 / N_BINS, atol=0.001)
    assert (np.diff(bins.value) > 0).all()


def test_few_values_have_a_bin_each():
    values = np.array([0.0, 1, 1, 2, 5, 5, 5])
    bins = Bins.of(values)
    check(bins, values)
    np.testing.assert_array_equal(bins.value, [0, 1, 2, 5])
    np.testing.assert_array_equal(bins.edges, [0.5, 1.5, 3.5])


@pytest.mark.parametrize("frequent", [0.0, 3.0, 100.0])
def test_a_frequent_value_has_a_bin_of_its_own(frequent):
    rng = np.random.default_rng(1)
    values = np.concatenate([np.full(300, frequent), rng.gamma(2, 2, 600)])
    bins = Bins.of(values)
    check(bins, values)
    at = bins.index(np.array([frequent]))[0]
    assert bins.value[at] == frequent
    assert bins.share[at] == pytest.approx(1 / 3)
    assert len(bins) <= N_BINS


def test_two_frequent_neighbours_are_not_joined():
    rng = np.random.default_rng(2)
    values = np.concatenate([np.zeros(200), np.ones(200), rng.uniform(2, 9, 200)])
    bins = Bins.of(values)
    check(bins, values)
    np.testing.assert_array_equal(bins.value[:2], [0, 1])


def test_integers_with_many_values_stay_whole_in_the_tail():
    values = np.random.default_rng(3).poisson(20, 2000).astype(float)
    bins = Bins.of(values)
    check(bins, values)
    assert len(bins) <= N_BINS


def test_heavy_tails_have_no_empty_bins():
    values = np.random.default_rng(4).standard_t(1, 1000) * 1e6
    bins = Bins.of(values)
    check(bins, values)
    assert (bins.share > 0).all()


def test_values_that_differ_in_the_last_bit_are_told_apart():
    values = np.array([1.0, np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2), 2)])
    bins = Bins.of(values)
    check(bins, values)
    np.testing.assert_array_equal(bins.value, values)


def test_levels_have_a_bin_even_if_they_do_not_occur():
    bins = Bins.of_levels(np.array([0.0, 0, 3]), 5)
    np.testing.assert_array_equal(bins.value, np.arange(5))
    np.testing.assert_allclose(bins.share, [2 / 3, 0, 0, 1 / 3, 0])
    np.testing.assert_array_equal(bins.index(np.arange(5.0)), np.arange(5))


def test_a_constant_is_one_bin():
    bins = Bins.of(np.full(7, 2.0))
    assert len(bins) == 1
    assert bins.share[0] == 1
