"""The paper's mechanisms: rates, true sets, purity."""

import numpy as np
import pytest

from psmvae.simulate import mcar, mnar_column, mnar_mcar

MECHANISMS = [mcar, mnar_column, mnar_mcar]


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(4000, 6))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.8, 1.0])
def test_mcar_hits_the_rate_in_every_column(values, rate):
    simulated = mcar(values, rate, np.random.default_rng(0))
    missing = 1 - simulated.m.mean(axis=0)
    # four standard errors of a share of 4000
    assert np.all(np.abs(missing - rate) <= 4 * np.sqrt(rate * (1 - rate) / 4000))
    assert simulated.columns == ()
    assert not simulated.sets.any()


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_mnar_masks_one_column_above_its_median_alone(values, rate):
    simulated = mnar_column(values, rate, np.random.default_rng(3))
    (j,) = simulated.columns
    above = values[:, j] > np.median(values[:, j])
    assert np.array_equal(simulated.sets, above)
    assert simulated.m[~above, j].all()
    assert abs((~simulated.m[above, j]).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / 2000)
    assert np.delete(simulated.m, j, axis=1).all()


def test_mnar_mcar_masks_the_one_column_by_itself_and_the_others_at_random(values):
    simulated = mnar_mcar(values, 0.3, np.random.default_rng(3))
    (j,) = simulated.columns
    above = values[:, j] > np.median(values[:, j])
    assert np.array_equal(simulated.sets, above)
    assert simulated.m[~above, j].all()
    assert abs((~simulated.m[above, j]).mean() - 0.5) < 0.05
    assert np.all(np.abs((~np.delete(simulated.m, j, axis=1)).mean(axis=0) - 0.3) < 0.03)


@pytest.mark.parametrize("mechanism", [mnar_column, mnar_mcar])
def test_a_column_that_cannot_be_split_is_never_drawn(mechanism):
    values = np.random.default_rng(0).normal(size=(100, 3))
    values[:, 0] = 1.0  # nothing above its median
    values[:, 2] = np.r_[np.zeros(95), np.ones(5)]  # 5 % above
    drawn = {mechanism(values, 0.5, np.random.default_rng(seed)).columns for seed in range(20)}
    assert drawn == {(1,)}


@pytest.mark.parametrize("mechanism", [mnar_column, mnar_mcar])
def test_a_table_without_a_suitable_column_is_refused(mechanism):
    with pytest.raises(ValueError, match="no column can be self-masked"):
        mechanism(np.ones((10, 2)), 0.5, np.random.default_rng(0))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_natively_missing_cells_are_never_observed(mechanism, values):
    native = np.random.default_rng(1).random(values.shape) < 0.1
    values[native] = np.nan
    assert not mechanism(values, 0.2, np.random.default_rng(0)).m[native].any()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_generator_gives_the_same_and_the_input_stays(mechanism, values):
    before = values.copy()
    first, second = (mechanism(values, 0.4, np.random.default_rng(5)) for _ in range(2))
    other = mechanism(values, 0.4, np.random.default_rng(6))
    assert np.array_equal(first.m, second.m)
    assert np.array_equal(first.sets, second.sets)
    assert not np.array_equal(first.m, other.m)
    assert np.array_equal(values, before)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_global_generator_is_left_alone(mechanism, values):
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is looked at, not used
    mechanism(values, 0.4, np.random.default_rng(5))
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_that_is_no_probability_is_refused(mechanism, rate, values):
    with pytest.raises(ValueError, match="rate must be a probability between 0 and 1"):
        mechanism(values, rate, np.random.default_rng(0))


def test_self_rate_is_checked(values):
    with pytest.raises(ValueError, match="self_rate must be a probability"):
        mnar_mcar(values, 0.2, np.random.default_rng(0), self_rate=2.0)


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (2, 2, 2)])
def test_what_is_no_table_is_refused(shape):
    with pytest.raises(ValueError, match="must be a table"):
        mcar(np.zeros(shape), 0.2, np.random.default_rng(0))
