"""What stops training: the validation error, the time limit and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from psmvae.training.data import TrainingData
from psmvae.training.recipe import Trainable
from psmvae.training.shard import Shard

# Relative reduction of the validation error that is worth another `patience` epochs. Weights are
# kept at any lower error.
WORTHWHILE_GAIN = 2e-3


@torch.no_grad()
def validation_error(model: Trainable, data: TrainingData) -> Tensor:
    """Return the error of ``model.predict`` on the validation cells, ``(member,)``."""
    total = data.x.new_zeros(data.n_members)
    n_cells = torch.zeros_like(total)
    for batch, validation in data.validation_batches():
        total += (model.inputs.error(model.predict(batch), batch.x) * validation).sum((1, 2))
        n_cells += validation.sum((1, 2))
    return (total / n_cells).sqrt()


class EarlyStopping:
    """The lowest validation error of each member, and the epochs since it fell by enough.

    With ``separate``, each member has a separate table, and one that has stopped keeps its
    weights, as if it were trained separately. Members of one table stop together. ``pretrained``
    marks the members whose validation error is determined by pre-training.
    """

    def __init__(
        self, n_members: int, patience: int, device: torch.device, *, separate: bool
    ) -> None:
        self.patience, self.separate = patience, separate
        self.best_error = torch.full((n_members,), torch.inf, dtype=torch.float32, device=device)
        # the error after the last epoch that lowered it by enough
        self.reference = self.best_error.clone()
        self.pretrained = torch.zeros_like(self.best_error, dtype=torch.bool)
        self.epochs_since_gain = torch.zeros_like(self.best_error)

    def update(self, error: Tensor, *, keep_pretrained: bool) -> Tensor:
        """Compare the error after an epoch with the lowest one; return who improved."""
        improved = torch.where(self.pretrained, keep_pretrained, error < self.best_error)
        if self.separate:
            improved = improved & (self.epochs_since_gain < self.patience)
        self.best_error = torch.where(improved, error, self.best_error)
        gained = improved & (self.pretrained | (error < self.reference * (1 - WORTHWHILE_GAIN)))
        self.reference = torch.where(gained, error, self.reference)
        self.epochs_since_gain = torch.where(gained, 0.0, self.epochs_since_gain + 1)
        return improved

    def start(self, error: Tensor) -> None:
        """Set the error before the first epoch."""
        self.best_error, self.reference = error, error

    def expected_epochs(self, epoch: int) -> int:
        """Extrapolate the number of epochs, with gains that fall as 1 / epoch.

        A gain after so many epochs is followed by half as many epochs with further gains, and by
        `patience` epochs without one.
        """
        since = int(self.epochs_since_gain.min())
        rest = 0 if since > epoch // 4 else epoch // 2
        return epoch + max(0, rest + self.patience - since)

    @property
    def stopped(self) -> bool:
        """Whether the error of no member has fallen by enough for ``patience`` epochs."""
        return bool((self.epochs_since_gain >= self.patience).all())


@dataclass
class TimeBudget:
    """Seconds since the start of a fit, against its limit ``max_time``; None is no limit.

    ``began`` is `time.perf_counter` at the start of the fit. ``reserve`` is kept for what follows
    the training steps. In data-parallel training the time is that of the first process.
    """

    max_time: float | None
    device: torch.device
    began: float = field(default_factory=time.perf_counter)
    reserve: float = 0.0
    shard: Shard = field(default_factory=Shard)

    def now(self) -> float:
        """Return `time.perf_counter` once all queued work of the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self.shard.agree(time.perf_counter())

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


@contextmanager
def defer_interrupt() -> Iterator[threading.Event]:
    """Record Ctrl-C instead of raising KeyboardInterrupt, so that no step is left half done.

    Only in the main thread, and only in place of Python's default handler.
    """
    pressed = threading.Event()
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed
        return
    signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
