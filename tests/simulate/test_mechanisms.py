"""MCAR and self-masking above the median: rates, sets and random numbers."""

import numpy as np
import pytest

from psmvae.simulate import mcar, mnar_above, mnar_column, mnar_mcar


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(4000, 6))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.8, 1.0])
def test_mcar_has_the_rate_in_every_column(values, rate):
    simulated = mcar(values, rate, np.random.default_rng(0))
    missing = 1 - simulated.m.mean(axis=0)
    # four standard errors of a share of 4000
    assert np.all(np.abs(missing - rate) <= 4 * np.sqrt(rate * (1 - rate) / 4000))
    assert simulated.columns == ()
    assert not simulated.sets.any()


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_mnar_masks_one_column_above_its_median(values, rate):
    simulated = mnar_column(values, rate, np.random.default_rng(3))
    (j,) = simulated.columns
    above = values[:, j] > np.median(values[:, j])
    assert np.array_equal(simulated.sets, above)
    assert simulated.m[~above, j].all()
    assert abs((~simulated.m[above, j]).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / 2000)
    assert np.delete(simulated.m, j, axis=1).all()


def test_mnar_mcar_is_mnar_in_one_column_and_mcar_in_the_others(values):
    simulated = mnar_mcar(values, 0.3, np.random.default_rng(3))
    (j,) = simulated.columns
    above = values[:, j] > np.median(values[:, j])
    assert np.array_equal(simulated.sets, above)
    assert simulated.m[~above, j].all()
    assert abs((~simulated.m[above, j]).mean() - 0.5) < 0.05
    assert np.all(np.abs((~np.delete(simulated.m, j, axis=1)).mean(axis=0) - 0.3) < 0.03)


def test_mnar_column_is_mnar_above_with_one_column(values):
    one = mnar_column(values, 0.4, np.random.default_rng(3))
    drawn = mnar_above(values, 0.4, np.random.default_rng(3), n_columns=1)
    assert one.columns == drawn.columns
    assert np.array_equal(one.m, drawn.m)
    assert np.array_equal(one.sets, drawn.sets)


def test_random_numbers_are_drawn_in_a_fixed_order(values):
    """Published results depend on the order of the draws."""
    n, p = values.shape
    rng = np.random.default_rng(8)
    assert np.array_equal(mcar(values, 0.4, np.random.default_rng(8)).m, rng.random((n, p)) >= 0.4)

    rng = np.random.default_rng(8)
    j = int(rng.permutation(p)[0])
    above = values[:, j] > np.median(values[:, j])
    m = np.ones((n, p), dtype=bool)
    m[:, j] = ~(above & (rng.random(n) < 0.4))
    assert np.array_equal(mnar_column(values, 0.4, np.random.default_rng(8)).m, m)

    rng = np.random.default_rng(8)
    rng.permutation(p)
    m = rng.random((n, p)) >= 0.4
    m[:, j] = ~(above & (rng.random(n) < 0.7))
    both = mnar_mcar(values, 0.4, np.random.default_rng(8), self_rate=0.7)
    assert both.columns == (j,)
    assert np.array_equal(both.m, m)


@pytest.mark.parametrize(("n_columns", "n_masked"), [(2, 2), (None, 6)])
def test_mnar_above_masks_several_columns_above_their_medians(values, n_columns, n_masked):
    simulated = mnar_above(values, 0.4, np.random.default_rng(3), n_columns=n_columns)
    chosen = list(simulated.columns)
    assert len(chosen) == n_masked
    above = values > np.median(values, axis=0)
    assert simulated.m[~above].all()
    assert np.delete(simulated.m, chosen, axis=1).all()
    lost = [(~simulated.m[above[:, j], j]).mean() for j in chosen]
    assert np.all(np.abs(np.array(lost) - 0.4) < 4 * np.sqrt(0.4 * 0.6 / 2000))
    # one set for each combination of columns above their medians
    combinations = {tuple(row) for row in above[:, chosen]}
    pairs = set(zip(map(tuple, above[:, chosen]), simulated.sets.tolist(), strict=True))
    assert len(pairs) == len(combinations)
    assert sorted(r for _, r in pairs) == list(range(len(combinations)))


def test_two_columns_have_four_sets_in_order(values):
    simulated = mnar_above(values, 0.4, np.random.default_rng(3), columns=[4, 1])
    above = values[:, [1, 4]] > np.median(values[:, [1, 4]], axis=0)
    assert simulated.columns == (1, 4)
    assert np.array_equal(simulated.sets, 2 * above[:, 0] + above[:, 1])


def test_columns_that_cannot_be_split_are_skipped_or_refused_if_named(values):
    values[:, 2] = 1.0
    assert mnar_above(values, 0.4, np.random.default_rng(0)).columns == (0, 1, 3, 4, 5)
    with pytest.raises(ValueError, match="only 1 of the 2 columns can be self-masked"):
        mnar_above(values, 0.4, np.random.default_rng(0), columns=[1, 2])
    with pytest.raises(ValueError, match="only 5 of the 6 columns can be self-masked"):
        mnar_above(values, 0.4, np.random.default_rng(0), n_columns=6)
    with pytest.raises(ValueError, match="n_columns must be at least 1"):
        mnar_above(values, 0.4, np.random.default_rng(0), n_columns=0)


@pytest.mark.parametrize("mechanism", [mnar_column, mnar_mcar])
def test_column_that_cannot_be_split_is_never_drawn(mechanism):
    values = np.random.default_rng(0).normal(size=(100, 3))
    values[:, 0] = 1.0  # nothing above its median
    values[:, 2] = np.r_[np.zeros(95), np.ones(5)]  # 5 % above
    drawn = {mechanism(values, 0.5, np.random.default_rng(seed)).columns for seed in range(20)}
    assert drawn == {(1,)}


@pytest.mark.parametrize("mechanism", [mnar_column, mnar_mcar])
def test_table_without_a_suitable_column_is_refused(mechanism):
    with pytest.raises(ValueError, match="no column can be self-masked"):
        mechanism(np.ones((10, 2)), 0.5, np.random.default_rng(0))


def test_self_rate_outside_0_and_1_is_refused(values):
    with pytest.raises(ValueError, match="self_rate must be a probability"):
        mnar_mcar(values, 0.2, np.random.default_rng(0), self_rate=2.0)


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (2, 2, 2)])
def test_input_that_is_not_a_table_is_refused(shape):
    with pytest.raises(ValueError, match=r"2D array|minimum of 1"):
        mcar(np.zeros(shape), 0.2, np.random.default_rng(0))
