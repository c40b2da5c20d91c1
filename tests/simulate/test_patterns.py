"""Missing tails, and blocks of columns that are missing together."""

import numpy as np
import pytest

from psmvae.simulate import blocks, quantile_cut

N = 8000


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(N, 5))


@pytest.mark.parametrize("tail", ["low", "high", "both"])
@pytest.mark.parametrize(("rate", "probability"), [(0.2, 1.0), (0.2, 0.5), (0.05, 0.1)])
def test_tail_starts_at_the_quantile_and_has_the_rate(values, tail, rate, probability):
    simulated = quantile_cut(
        values, rate, np.random.default_rng(0), columns=[1], tail=tail, probability=probability
    )
    share = rate / probability
    ends = {"low": (share, 1.0), "high": (0.0, 1 - share), "both": (share / 2, 1 - share / 2)}
    low, high = np.quantile(values[:, 1], ends[tail])
    inside = (values[:, 1] < low) & (tail != "high") | (values[:, 1] > high) & (tail != "low")
    assert np.mean((simulated.sets > 0) != inside) < 2 / N
    gone = ~simulated.m[:, 1]
    assert not gone[simulated.sets == 0].any()
    error = 4 * np.sqrt(rate * (1 - probability) / N)
    assert abs(gone.mean() - rate) <= error + 1e-12
    assert np.delete(simulated.m, 1, axis=1).all()
    assert simulated.columns == (1,)
    if tail == "both":
        assert (values[simulated.sets == 1, 1] < 0).all()
        assert (values[simulated.sets == 2, 1] > 0).all()


@pytest.mark.parametrize("tail", ["low", "high", "both"])
def test_equal_values_are_not_split_and_the_rate_is_met(tail):
    codes = np.repeat([0.0, 1.0, 2.0, 3.0], [N, 2 * N, 3 * N, 2 * N]).reshape(-1, 1)
    simulated = quantile_cut(codes, 0.15, np.random.default_rng(0), tail=tail)
    # an eighth of the rows are 0 and a quarter are 3: a low tail of 0.15 includes the ones
    cut = {"low": [0, 1], "high": [3], "both": [0, 3]}[tail]
    assert np.array_equal(simulated.sets > 0, np.isin(codes[:, 0], cut))
    assert abs((~simulated.m).mean() - 0.15) < 4 * np.sqrt(0.15 / (8 * N))
    if tail == "both":
        for r in (1, 2):
            lost = (~simulated.m[simulated.sets == r]).sum() / (8 * N)
            assert lost == pytest.approx(0.075, abs=0.005)


def test_sets_of_several_columns_are_combinations_of_tails(values):
    simulated = quantile_cut(values, 0.25, np.random.default_rng(0), columns=[0, 3])
    above = values[:, [0, 3]] >= np.quantile(values[:, [0, 3]], 0.75, axis=0)
    assert np.array_equal(~simulated.m[:, [0, 3]], above)
    assert np.array_equal(simulated.sets, 2 * above[:, 0] + above[:, 1])


def test_rate_is_a_share_of_the_observed_cells(values):
    values[np.random.default_rng(2).random(values.shape) < 0.5] = np.nan
    simulated = quantile_cut(values, 0.3, np.random.default_rng(1), tail="both")
    observed = ~np.isnan(values)
    assert not simulated.m[~observed].any()
    lost = (observed & ~simulated.m).sum(axis=0) / observed.sum(axis=0)
    assert np.allclose(lost, 0.3, atol=2e-3)


def test_columns_whose_tails_cannot_meet_the_rate_are_skipped_or_refused(values):
    values[:, 0] = values[:, 0] > 1
    values[:, 1] = 1.0
    simulated = quantile_cut(values, 0.3, np.random.default_rng(0))
    assert simulated.columns == (2, 3, 4)
    for columns in ([0], [1, 2]):
        with pytest.raises(ValueError, match=f"the high tail of column 'x{columns[0]}'"):
            quantile_cut(values, 0.3, np.random.default_rng(0), columns=columns)
    with pytest.raises(ValueError, match="cannot be met by both tails of column"):
        quantile_cut(np.array([[0.0], [1.0]] * 5), 0.3, np.random.default_rng(0), tail="both")
    with pytest.raises(ValueError, match=r"at most 0\.2 of a column"):
        quantile_cut(values, 0.3, np.random.default_rng(0), probability=0.2)
    with pytest.raises(ValueError, match="the high tail would be the whole column"):
        quantile_cut(values, 0.3, np.random.default_rng(0), probability=0.3)
    with pytest.raises(ValueError, match="tail must be one of low, high, both"):
        quantile_cut(values, 0.3, np.random.default_rng(0), tail="left")
    with pytest.raises(ValueError, match="probability must be a probability"):
        quantile_cut(values, 0.3, np.random.default_rng(0), probability=1.5)


def test_rate_0_has_no_tail(values):
    simulated = quantile_cut(values, 0.0, np.random.default_rng(0), probability=0.0)
    assert simulated.m.all()
    assert not simulated.sets.any()


@pytest.mark.parametrize(("rate", "n_blocks"), [(0.2, 1), (0.2, 2), (0.3, 3), (0.2, 5), (0.0, 2)])
def test_each_column_has_the_rate_and_blocks_are_missing_together(values, rate, n_blocks):
    simulated = blocks(values, rate, np.random.default_rng(1), n_blocks=n_blocks)
    lost = (~simulated.m).mean(axis=0)
    assert np.all(np.abs(lost - rate) <= 4 * np.sqrt(rate * (1 - rate) / N))
    assert simulated.m[simulated.sets == 0].all()
    assert simulated.columns == ()
    if rate == 0:
        return
    # at the largest rate, every row has a missing block
    assert set(simulated.sets) == set(range(int(rate * n_blocks == 1), n_blocks + 1))
    patterns = [np.unique(simulated.m[simulated.sets == k], axis=0) for k in range(1, n_blocks + 1)]
    assert all(len(pattern) == 1 for pattern in patterns)
    # each column is in one block, and the blocks have similar sizes
    members = ~np.concatenate(patterns)
    assert np.array_equal(members.sum(axis=0), np.ones(5))
    assert np.ptp(members.sum(axis=1)) <= 1
    share = np.bincount(simulated.sets)[1:] / N
    assert np.all(np.abs(share - rate) <= 4 * np.sqrt(rate * (1 - rate) / N))


def test_blocks_use_the_named_columns_and_refuse_impossible_rates(values):
    simulated = blocks(values, 0.3, np.random.default_rng(1), columns=[4, 1], n_blocks=2)
    assert simulated.m[:, [0, 2, 3]].all()
    assert not simulated.m[:, [1, 4]].all(axis=0).any()
    with pytest.raises(
        ValueError, match="n_blocks must be between 1 and the number of columns, 2, got 3"
    ):
        blocks(values, 0.3, np.random.default_rng(1), columns=[4, 1])
    with pytest.raises(ValueError, match=r"the largest rate is 0\.333"):
        blocks(values, 0.34, np.random.default_rng(1))
