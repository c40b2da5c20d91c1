"""The simulated trial: dropout shares, patterns and nonignorable missingness."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from psmvae.simulate import simulated_trial

LATE = ["week8", "week12", "lab", "adherence"]


@pytest.fixture(scope="module")
def trial():
    return simulated_trial(20_000, rng=np.random.default_rng(0))


def test_dropout_reasons_have_the_documented_shares(trial):
    none, administrative, bad = np.bincount(trial.dropout) / len(trial.dropout)
    assert none == pytest.approx(0.5, abs=0.03)
    assert administrative == pytest.approx(0.25, abs=0.02)
    assert bad == pytest.approx(0.25, abs=0.03)


def test_each_dropout_reason_has_its_own_pattern(trial):
    names = list(trial.names)
    late = np.array([name in LATE for name in names])
    outcome = np.array([name == "week12" for name in names])
    for reason, missing in enumerate([np.zeros(len(names), bool), late, outcome]):
        assert np.array_equal(np.unique(~trial.m[trial.dropout == reason], axis=0), missing[None])


def test_administrative_dropout_is_ignorable(trial):
    outcome, dropped = trial.complete["week12"], trial.dropout == 1
    assert outcome[dropped].mean() == pytest.approx(outcome.mean(), abs=0.7)


def test_outcome_is_missing_not_at_random(trial):
    """A regression on all observed values, which assumes missingness at random, is biased."""
    outcome, observed = trial.complete["week12"], trial.observed("week12")
    numeric = ["age", "baseline", "week4", "week8", "lab", "adherence"]
    x = np.column_stack([trial.complete[name] for name in numeric])
    x = np.column_stack([x, trial.complete["arm"] == "active"])
    at_random = LinearRegression().fit(x[observed], outcome[observed]).predict(x)
    bias = np.where(observed, outcome, at_random).mean() - outcome.mean()
    assert outcome[observed].mean() - outcome.mean() < -5
    assert bias < -2


def test_values_are_in_their_ranges(trial):
    for week in ("baseline", "week4", "week8", "week12"):
        assert trial.complete[week].min() >= 0
        assert trial.complete[week].max() <= 100
    assert set(trial.complete["arm"]) == {"active", "control"}
    assert trial.complete["age"].dtype.kind == "i"
    active = trial.complete["arm"] == "active"
    assert trial.complete["week12"][active].mean() < trial.complete["week12"][~active].mean() - 4


def test_same_seed_gives_the_same_trial():
    one, two = (simulated_trial(50, rng=np.random.default_rng(3)) for _ in range(2))
    other = simulated_trial(50, rng=np.random.default_rng(4))
    assert np.array_equal(one.m, two.m)
    assert all(np.array_equal(one.complete[name], two.complete[name]) for name in one.names)
    assert not np.array_equal(one.complete["week12"], other.complete["week12"])


def test_at_least_one_patient_is_required():
    assert simulated_trial(1, rng=np.random.default_rng(0)).m.shape == (1, 10)
    with pytest.raises(ValueError, match="n must be at least 1"):
        simulated_trial(0, rng=np.random.default_rng(0))
