"""Learning rate and length of pre-training."""

import numpy as np
import pytest

from psmvae.training.schedule import (
    DECAY_RATIO,
    MAX_CONSTANT_FRACTION,
    MIN_STEPS,
    WORTHWHILE_GAIN,
    Schedule,
)


def run(schedule, error_at, check=100):
    """Take steps until the end; return the learning rates."""
    rates, n_steps = [], 0
    while not schedule.advance(n_steps):
        rates.append(schedule.learning_rate(n_steps))
        n_steps += 1
        if n_steps % check == 0:
            schedule.observe(n_steps, error_at(n_steps))
    return np.array(rates)


def test_an_error_that_keeps_falling_uses_all_steps():
    schedule = Schedule(5000)
    rates = run(schedule, lambda n: n**-0.2)
    assert len(rates) == 5000
    assert schedule.decay_start[0] == MAX_CONSTANT_FRACTION * 5000


def test_an_error_that_is_constant_ends_after_the_first_comparison():
    rates = run(Schedule(5000), lambda n: 1.0)
    assert len(rates) == pytest.approx((1 + DECAY_RATIO) * MIN_STEPS, abs=1)


def test_the_decay_starts_when_doubling_the_steps_gains_too_little():
    # the gain of doubling n is 1 - (1 + c / n) / (1 + 2 c / n), about c / n
    c = 20.0
    schedule = Schedule(100_000)
    run(schedule, lambda n: 1 + c / n)
    expected = next(
        n for n in range(MIN_STEPS, 10_000, 100)
        if 1 - (1 + c / n) / (1 + c / (n // 200 * 100)) < WORTHWHILE_GAIN["cpu"]
    )  # fmt: skip
    assert schedule.decay_start[0] == expected


@pytest.mark.parametrize(
    ("device", "shape"),
    [("cpu", lambda t: 1 - np.sqrt(t)), ("cuda", lambda t: np.cos(np.pi * t / 2) ** 2)],
)
def test_learning_rate_warms_up_stays_and_decays_to_zero(device, shape):
    schedule = Schedule(5000, device=device)
    rates = run(schedule, lambda n: n**-0.2)
    assert rates[0] < 0.01 * schedule.peak
    constant = rates[500 : int(MAX_CONSTANT_FRACTION * 5000)]
    assert (constant == schedule.peak).all()
    decay = rates[int(MAX_CONSTANT_FRACTION * 5000) :]
    expected = schedule.peak * shape(np.arange(len(decay)) / len(decay))
    np.testing.assert_allclose(decay, expected, rtol=1e-9)


def test_the_time_ends_the_phase_whatever_the_steps():
    schedule = Schedule(5000)
    assert not schedule.advance(100, 0.5)
    assert not schedule.advance(110, MAX_CONSTANT_FRACTION)
    assert schedule.decay_start == (110, MAX_CONSTANT_FRACTION)
    before, later = schedule.learning_rate(110, 0.6), schedule.learning_rate(110, 0.7)
    assert later == pytest.approx(0.5 * before)
    assert schedule.advance(130, 1.0)


def test_expected_steps_follow_the_course_of_the_error():
    schedule = Schedule(5000)
    run(schedule, lambda n: 1.0)
    assert schedule.expected_steps(schedule.n_steps) == schedule.n_steps
    falling, level = Schedule(5000), Schedule(5000)
    for n in range(100, 1100, 100):
        falling.observe(n, n**-0.5)
        level.observe(n, 1 + 0.01 * n**-0.5)
    assert falling.expected_steps(1000) == 5000
    assert level.expected_steps(1000) == pytest.approx((1 + DECAY_RATIO) * MIN_STEPS, abs=1000)


def test_larger_batches_take_larger_steps():
    assert Schedule(10, 3200).peak == pytest.approx(2 * Schedule(10, 200).peak)
