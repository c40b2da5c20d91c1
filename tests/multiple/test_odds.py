"""Levels re-drawn so that odds are multiplied, against closed forms."""

import numpy as np
import pytest
from scipy import integrate, stats

from psmvae.multiple.odds import concentration, redraw, tilt

N, M = 20_000, 5


def drawn(p, rng):
    """M draws of levels with the probabilities p ``(cell, level)``."""
    return np.stack([(rng.random(len(p))[:, None] > p.cumsum(1)).sum(1) for _ in range(M)])


@pytest.mark.parametrize("factor", [0.25, 2.0, 6.0])
def test_odds_of_two_levels_with_one_probability(factor):
    rng = np.random.default_rng(0)
    codes = (rng.random((M, N)) < 0.3).astype(np.int64)
    moved = redraw(codes, 2, factor, None, rng)
    expected = factor * 0.3 / (0.7 + factor * 0.3)
    assert moved.mean() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / codes.size))
    # as few levels as possible have moved, and all in one direction
    assert (moved != codes).mean() == pytest.approx(abs(expected - 0.3), abs=0.01)
    assert ((moved - codes) * np.sign(factor - 1) >= 0).all()


@pytest.mark.parametrize("ab", [(0.3, 0.6), (2.0, 3.0)])
@pytest.mark.parametrize("factor", [0.25, 5.0])
def test_odds_of_two_levels_whose_probabilities_differ(ab, factor):
    """E[c p / (1 - p + c p)] over p of a Beta distribution, by an integral."""
    rng = np.random.default_rng(1)
    p = rng.beta(*ab, N)
    moved = redraw((rng.random((M, N)) < p).astype(np.int64), 2, factor, 1, rng)
    expected = integrate.quad(
        lambda u: factor * stats.beta.ppf(u, *ab) / (1 + (factor - 1) * stats.beta.ppf(u, *ab)),
        0,
        1,
    )[0]
    assert moved.mean() == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("level", [None, 1])
def test_several_levels(level):
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1.2, 0.9, 0.6, 0.3], N)
    codes = drawn(p, rng)
    moved = redraw(codes, 4, 3.0, level, rng)
    expected = tilt(p, 3.0, level).mean(0)
    found = [(moved == k).mean() for k in range(4)]
    np.testing.assert_allclose(found, expected, atol=0.012)
    if level is None:
        assert (moved >= codes).all()
    else:
        assert (moved[moved != codes] == level).all()


def test_cumulative_odds_and_odds_of_a_level():
    p = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.0, 0.0, 0.9]])
    above, moved = (1 - np.cumsum(q, 1)[:, :-1] for q in (p, tilt(p, 2.5, None)))
    np.testing.assert_allclose(moved / (1 - moved), 2.5 * above / (1 - above))
    one = tilt(p, 2.5, 0)
    np.testing.assert_allclose(one[:, 0] / (1 - one[:, 0]), 2.5 * p[:, 0] / (1 - p[:, 0]))
    np.testing.assert_allclose(one[0, 1:] / one[0, 1], p[0, 1:] / p[0, 1])


@pytest.mark.parametrize("a", [0.5, 3.0, 20.0])
def test_concentration_is_estimated(a):
    rng = np.random.default_rng(3)
    codes = drawn(rng.dirichlet(a * np.array([0.5, 0.3, 0.2]), N), rng)
    counts = np.stack([(codes == k).sum(0) for k in range(3)], 1)
    assert concentration(counts) == pytest.approx(a, rel=0.15)


def test_edge_cases():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (M, 50))
    np.testing.assert_array_equal(redraw(codes, 3, 1.0, None, rng), codes)
    constant = np.ones((M, 50), dtype=np.int64)
    np.testing.assert_array_equal(redraw(constant, 2, 9.0, None, rng), constant)
    # without repeated draws, the frequencies of all cells are the probabilities
    one = redraw((rng.random((1, N)) < 0.2).astype(np.int64), 2, 4.0, None, rng)
    assert one.mean() == pytest.approx(0.5, abs=0.02)


def test_more_odds_move_the_same_cells_and_others():
    codes = np.random.default_rng(5).integers(0, 2, (M, 500))
    two, three = (redraw(codes, 2, c, None, np.random.default_rng(6)) for c in (2.0, 3.0))
    assert (three >= two).all()
    assert (three > two).any()
