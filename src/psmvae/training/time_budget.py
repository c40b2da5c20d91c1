"""The time limit of a fit."""

from __future__ import annotations

import time

import torch


class TimeBudget:
    """Time since the start of a fit, against the limit a user set.

    Parameters
    ----------
    max_time : float or None
        Seconds that the fit may take; None is no limit.
    device : torch.device
        On a GPU, times include the work that is still queued.
    began : float, optional
        `time.perf_counter` at the start of the fit; now, if omitted.

    Attributes
    ----------
    reserve : float
        Seconds that are kept for what follows the training steps.
    """

    def __init__(
        self, max_time: float | None, device: torch.device, began: float | None = None
    ) -> None:
        self.max_time, self.device = max_time, device
        self.began = time.perf_counter() if began is None else began
        self.reserve = 0.0

    def now(self) -> float:
        """Return `time.perf_counter` once all queued work of the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the fit, without waiting for the device."""
        return time.perf_counter() - self.began

    @property
    def exceeded(self) -> bool:
        """Whether training steps must stop, so that the reserved time is left."""
        if self.max_time is None:
            return False
        return self.now() - self.began + self.reserve > self.max_time

    def fraction_used(self, since: float, share: float) -> float:
        """Return how much of its time a phase has used."""
        if self.max_time is None:
            return 0.0
        end = share * (self.max_time - self.reserve)
        return (self.now() - since) / max(end - (since - self.began), 1e-9)

    def limited(self, seconds: float | None) -> float | None:
        """Cap an estimate of the remaining time by the limit."""
        if seconds is None or self.max_time is None:
            return seconds
        return min(seconds, max(0.0, self.max_time - self.elapsed))
