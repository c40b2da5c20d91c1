"""Pattern sets of rows at risk of the same columns."""

from types import SimpleNamespace

import numpy as np
import pytest

from mechanism.tables import masked, mechanism_of, numbers
from psmvae.mechanism.risk import RiskSets, at_risk_words
from psmvae.mechanism.rivals import Likelihoods


def known(n_columns):
    """A mechanism with so many tilted columns, the first of which explain their masks best."""
    names = [f"x{j}" for j in range(n_columns)]

    class Known(dict):
        columns = tuple(SimpleNamespace(name=name) for name in names)
        tilts = dict.fromkeys(range(n_columns))

    found = {n: SimpleNamespace(likelihoods=Likelihoods(0, 9 - j, 0)) for j, n in enumerate(names)}
    return Known(found)


def test_sets_are_the_patterns_of_columns_at_risk():
    at_risk = np.repeat([[0.0, 0], [1, 0], [1, 1]], [50, 30, 20], axis=0)
    sets = RiskSets.of(known(2), at_risk)
    np.testing.assert_allclose(sets.size, [0.5, 0.3, 0.2])
    np.testing.assert_array_equal(sets.at_risk, [[False, False], [True, False], [True, True]])
    proba = sets.proba(at_risk)
    np.testing.assert_array_equal(proba.argmax(1), np.repeat([0, 1, 2], [50, 30, 20]))
    np.testing.assert_allclose(proba.sum(1), 1)


def test_probabilities_are_products_of_those_of_the_columns():
    sets = RiskSets(
        np.array([0, 1]), np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool), np.ones(4)
    )
    found = sets.proba(np.array([[0.3, 0.9]]))
    np.testing.assert_allclose(found, [[0.07, 0.63, 0.03, 0.27]], atol=1e-6)


@pytest.mark.parametrize("n_sets", [1, 2, 3])
def test_a_given_number_limits_the_sets(n_sets):
    at_risk = np.repeat([[0.0, 0], [1, 0], [1, 1]], [50, 30, 20], axis=0)
    sets = RiskSets.of(known(2), at_risk, n_sets)
    assert len(sets.size) == n_sets
    proba = sets.proba(at_risk)
    np.testing.assert_allclose(proba.sum(1), 1)
    assert sets.size.sum() == pytest.approx(1)
    # rows of a pattern that is no set go to the nearest
    if n_sets == 2:
        assert (proba[80:].argmax(1) == 1).all()


def test_small_patterns_are_joined_and_only_four_columns_define_sets():
    rng = np.random.default_rng(0)
    at_risk = (rng.random((2000, 6)) < 0.5).astype(float)
    sets = RiskSets.of(known(6), at_risk)
    np.testing.assert_array_equal(sets.columns, [0, 1, 2, 3])
    assert len(sets.size) == 16
    rare = np.zeros((1000, 2))
    rare[:5] = 1
    rare[500:, 1] = 1
    sets = RiskSets.of(known(2), rare)
    assert len(sets.size) == 2
    np.testing.assert_allclose(sets.proba(rare).sum(1), 1)


@pytest.fixture(scope="module")
def found():
    full, rng = numbers(700, 2, noise=0.4)
    missing = (full["a"] > 0.6) & (rng.random(700) < 0.7)
    return mechanism_of(masked(full, a=missing), "self"), full, missing


def test_words_name_limit_and_rate(found):
    mechanism, full, missing = found
    ((j, tilt),) = mechanism.tilts.items()
    words = at_risk_words(mechanism, j, tilt)
    name, limit, rate = words.replace(" above", "").replace(":", "").split()[:3]
    assert words == f"a above {limit}: {rate} % go missing"
    assert name == "a"
    assert float(limit) == pytest.approx(0.6, abs=0.4)
    assert float(rate) == pytest.approx(100 * missing[full["a"] > float(limit)].mean(), abs=15)


def test_rows_at_risk_are_known_where_the_value_is(found):
    mechanism, full, _ = found
    ((j, tilt),) = mechanism.tilts.items()
    x = full.to_numpy()
    m = np.ones(x.shape, dtype=bool)
    limit = mechanism.in_units(j, tilt.bins.edges)[~tilt.at_risk()[:-1]].max()
    columns = mechanism.columns
    z = np.column_stack([(x[:, k] - c.center) / c.scale for k, c in enumerate(columns)])
    risk = mechanism.at_risk(z, m, {k: z[:, k] for k in range(3)})
    np.testing.assert_array_equal(risk[:, 0], full["a"] > limit)


@pytest.mark.parametrize("kind", ["integer", "count"])
def test_words_for_whole_numbers_name_whole_numbers(kind):
    full, rng = numbers(500, 3, noise=0.3)
    full["a"] = np.clip(np.rint(2 * full["a"] + 4), 0, None).astype(int)
    missing = (full["a"] >= 6) & (rng.random(500) < 0.8)
    mechanism = mechanism_of(masked(full, a=missing), "self", kinds={"a": kind})
    ((j, tilt),) = mechanism.tilts.items()
    words = at_risk_words(mechanism, j, tilt)
    limit = int(words.split(":")[0].removeprefix("a above "))
    risky = mechanism.odds("a")["value"][tilt.at_risk()]
    assert (risky > limit).all()
    assert not (mechanism.odds("a")["value"][~tilt.at_risk()] > limit).any()
    assert limit in (4, 5)


def test_words_for_levels_name_them():
    full, rng = numbers(500, 4, noise=0.3)
    full["b"] = np.where(full["a"] > 0.3, "yes", "no")
    missing = (full["b"] == "yes") & (rng.random(500) < 0.6)
    mechanism = mechanism_of(masked(full, b=missing), "self")
    ((j, tilt),) = mechanism.tilts.items()
    words = at_risk_words(mechanism, j, tilt)
    assert words.startswith("b in yes: ")
    assert 40 <= int(words.split()[3]) <= 75
