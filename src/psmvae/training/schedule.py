"""Learning rate and length of pre-training: constant until the error levels off, then to 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

# The constants were chosen by validation errors on letter, wine, adult, spam and credit, with seeds
# that no result uses.
#
# Learning rate for batches of 200 rows; it grows with the fourth root of the batch size.
LEARNING_RATE, BATCH_SIZE = 4e-3, 200
WARM_UP_STEPS = 200
# Relative reduction of the validation error in the second half of the steps so far that is worth
# going on for: less on a GPU, which takes several times as many steps in the same time.
WORTHWHILE_GAIN = {"cpu": 0.005, "cuda": 0.0025}
# Number of steps before the first comparison.
MIN_STEPS = 600
# The constant rate takes at most this fraction of the steps or of the time. The decay takes
# DECAY_RATIO times as many steps as were taken until then, which is the rest at most.
MAX_CONSTANT_FRACTION = 0.6
DECAY_RATIO = (1 - MAX_CONSTANT_FRACTION) / MAX_CONSTANT_FRACTION
# The learning rate, as a fraction of the constant one, when a fraction of the decay is done. The
# shape for a CPU, which takes few steps, has a lower error on letter and adult after as many steps
# (Hägele et al., Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations, NeurIPS
# 2024). With the many steps of a GPU it is better on some tables and worse on others.
DECAY: dict[str, Callable[[float], float]] = {
    "cpu": lambda done: 1 - math.sqrt(done),
    "cuda": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
}


@dataclass
class Schedule:
    """Warm-up, a constant learning rate while the validation error falls, and a decay to 0.

    The number of steps need not be known in advance: the decay starts once doubling the steps has
    lowered the error by less than `WORTHWHILE_GAIN`, or when `MAX_CONSTANT_FRACTION` of the largest
    number of steps or of the time is used. ``device`` is "cpu" or "cuda".
    """

    max_steps: int
    batch_size: int = BATCH_SIZE
    device: str = "cpu"
    # step and fraction of the time at which the decay started
    decay_start: tuple[int, float] | None = field(default=None, init=False)
    errors: list[tuple[int, float]] = field(default_factory=list, init=False)
    n_steps: int = field(default=0, init=False)

    @property
    def peak(self) -> float:
        """The constant learning rate."""
        return LEARNING_RATE * math.sqrt(math.sqrt(self.batch_size / BATCH_SIZE))

    def learning_rate(self, n_steps: int, fraction_of_time: float = 0.0) -> float:
        """Return the learning rate of the next step."""
        warm_up = min(1.0, (n_steps + 1) / min(WARM_UP_STEPS, 0.1 * self.max_steps + 1))
        done = self.decay_done(n_steps, fraction_of_time)
        return self.peak * warm_up * DECAY[self.device](done)

    def advance(self, n_steps: int, fraction_of_time: float = 0.0) -> bool:
        """Note that steps were taken; return whether pre-training has ended."""
        self.n_steps = n_steps
        used = max(n_steps / self.max_steps, fraction_of_time)
        if self.decay_start is None and used >= MAX_CONSTANT_FRACTION:
            self.decay_start = (n_steps, fraction_of_time)
        return used >= 1 or self.decay_done(n_steps, fraction_of_time) >= 1

    def decay_done(self, n_steps: int, fraction_of_time: float = 0.0) -> float:
        """Return the fraction of the decay that is done, from 0 to 1."""
        if self.decay_start is None:
            return 0.0
        step, time = self.decay_start
        of_steps = (n_steps - step) / max(1.0, DECAY_RATIO * step)
        of_time = (fraction_of_time - time) / max(1e-9, 1 - time)
        return min(1.0, max(of_steps, of_time))

    def observe(self, n_steps: int, error: float, fraction_of_time: float = 0.0) -> None:
        """Note a validation error; start the decay once it has levelled off."""
        self.errors.append((n_steps, error))
        gain = self.gain
        levelled_off = gain is not None and gain < WORTHWHILE_GAIN[self.device]
        if self.decay_start is None and n_steps >= MIN_STEPS and levelled_off:
            self.decay_start = (n_steps, fraction_of_time)

    @property
    def gain(self) -> float | None:
        """Relative reduction of the error in the second half of the steps; None if unknown."""
        if not self.errors:
            return None
        n_steps, error = self.errors[-1]
        earlier = [one for step, one in self.errors if step <= n_steps / 2]
        return 1 - error / earlier[-1] if earlier else None

    def expected_steps(self, n_steps: int) -> int:
        """Extrapolate the number of steps in all, with a gain that falls as 1 / steps."""
        if self.decay_start is not None:
            constant = float(self.decay_start[0])
        else:
            gain = self.gain
            ratio = 2.0 if gain is None else max(1.0, gain / WORTHWHILE_GAIN[self.device])
            constant = max(ratio * n_steps, float(MIN_STEPS))
        return max(n_steps, min(self.max_steps, round((1 + DECAY_RATIO) * constant)))
