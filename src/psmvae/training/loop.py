"""The training loop: members side by side, stopped by the error on held-out observed cells."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from psmvae.inference.objective import elbo
from psmvae.models.psmvae import PSMVAE
from psmvae.nn.noise import Noise
from psmvae.training.heldout import MAX_HELD_OUT_ROWS, Table, calibrate, held_out_error
from psmvae.training.start import MAX_LINEAR_ROWS, start_simple, warm_parameters

# An error counts as better when it falls by this share.
MIN_GAIN = 1e-4
# Steps of a mask that depends on x before the networks move: the objective is level by then.
WARM_STEPS, WARM_RATE = 300, 3e-2


@dataclass(frozen=True)
class Training:
    """How to train.

    ``held_out`` is the share of observed cells kept to measure the error (0: train to the end and
    keep the last weights); ``hide`` the largest share of a row hidden from the encoder; ``average``
    the decay of the running mean of the weights that is kept (0: the weights themselves).
    """

    max_epochs: int
    batch_size: int
    learning_rate: float
    held_out: float
    patience: int
    hide: float
    beta: float
    average: float
    weight_observed: bool


@dataclass(frozen=True)
class Progress:
    """Where training stands after an epoch.

    ``seconds_left`` is what is left if no early stop comes.
    """

    epoch: int
    max_epochs: int
    held_out_error: float | None
    best_error: float | None
    seconds: float
    seconds_left: float | None


@dataclass
class TrainingResult:
    """What happened: the progress of every epoch, and whether it was cut short."""

    history: list[Progress] = field(default_factory=list)
    interrupted: bool = False


class Averager:
    """A running mean of the weights, and the best ones of each member so far."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.decay = decay
        self.mean = [p.detach().clone() for p in self.parameters]
        self.best = [p.detach().clone() for p in self.parameters]
        self.steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """Move the mean towards the weights; faster in the first steps."""
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        torch._foreach_lerp_(self.mean, [p.detach() for p in self.parameters], 1 - decay)

    @torch.no_grad()
    def keep(self, better: Tensor) -> None:
        """Remember the mean of the members that got better."""
        for best, mean in zip(self.best, self.mean, strict=True):
            best[better] = mean[better]

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their mean."""
        for p, mean in zip(self.parameters, self.mean, strict=True):
            kept = p.detach().clone()
            p.copy_(mean)
            mean.copy_(kept)

    @torch.no_grad()
    def restore(self, *, best: bool) -> None:
        """Put the best, or the mean, into the model."""
        for p, value in zip(self.parameters, self.best if best else self.mean, strict=True):
            p.copy_(value)


def clip_members(parameters: list[nn.Parameter], limit: float) -> None:
    """Scale each member's gradient to a norm of at most ``limit``: members stay independent."""
    grads = [p.grad for p in parameters if p.grad is not None]
    square = torch.stack([g.flatten(1).square().sum(1) for g in grads]).sum(0)
    factor = (limit / (square.sqrt() + 1e-6)).clamp(max=1.0)
    if not bool(square.isfinite().all()):
        # a step that went wrong is skipped rather than spread over all weights
        factor = torch.where(square.isfinite(), factor, 0.0)
        for g in grads:
            torch.nan_to_num_(g, nan=0.0, posinf=0.0, neginf=0.0)
    if bool((factor < 1).any()):
        torch._foreach_mul_(grads, [factor.view(-1, *[1] * (g.dim() - 1)) for g in grads])


@contextmanager
def ctrl_c_noted() -> Iterator[threading.Event]:
    """Note Ctrl-C instead of raising it anywhere in a step, so that no weight is half written.

    Only where Python's own handler is in place: a program's handler, or a thread that gets no
    signals, is left alone.
    """
    pressed = threading.Event()
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def train(
    model: PSMVAE,
    x: Tensor,
    m: Tensor,
    settings: Training,
    noise: Noise,
    callback: Callable[[Progress], None] | None = None,
) -> TrainingResult:
    """Train all members of ``model`` on the table ``x, m`` ``(row, column)``.

    Ctrl-C stops after the step at hand and keeps the best weights so far.
    """
    n_members, n_latent = model.settings.n_members, model.settings.n_latent
    if x.shape[0] > MAX_LINEAR_ROWS:
        # what looks at the first rows only must not depend on how the table is sorted
        order = noise.shuffles(1, x.shape[0])[0]
        x, m = x[order], m[order]
    table = Table(x, m, n_members, settings.held_out, noise)
    measures = bool(table.held[:, :MAX_HELD_OUT_ROWS].flatten(1).any(1).all())
    start_simple(model, table, m, noise)
    averager = Averager(model, settings.average)
    parameters = averager.parameters
    optimiser = torch.optim.Adam(parameters, lr=settings.learning_rate, fused=True)
    weight = model.weight_observed if settings.weight_observed else 1.0
    size = min(settings.batch_size, x.shape[0])
    n_batches = max(1, x.shape[0] // size)
    best = torch.full((n_members,), torch.inf, device=x.device)
    result, began, stale = TrainingResult(), time.perf_counter(), 0

    def measure() -> Tensor:
        averager.swap()
        error = held_out_error(model, table)
        averager.swap()
        return error

    def step(optimiser: torch.optim.Optimizer, rows: Tensor) -> None:
        batch = table.batch(rows, settings.hide, noise)
        epsilon = noise.normal(n_members, rows.shape[1], 1, model.settings.n_sets, n_latent)
        answer = model.answer(batch, epsilon, noise, x_mis=True)
        objective = elbo(answer, weight_observed=weight, beta=settings.beta)
        optimiser.zero_grad(set_to_none=True)
        (-objective.mean(1).sum()).backward()
        clip_members(parameters, limit=100.0)
        optimiser.step()
        averager.update()

    with ctrl_c_noted() as pressed:
        if model.q_z.linear is not None and model.p_m.depends_on_x:
            warm = torch.optim.Adam(warm_parameters(model), lr=WARM_RATE, fused=True)
            for _ in range(WARM_STEPS):
                step(warm, noise.shuffles(n_members, x.shape[0])[:, :size])
                if pressed.is_set():
                    break
        averager.keep(torch.ones_like(best, dtype=torch.bool))
        if measures:
            best = measure()
        for epoch in range(1, settings.max_epochs + 1):
            shuffled = noise.shuffles(n_members, x.shape[0])
            for k in range(n_batches):
                step(optimiser, shuffled[:, k * size : (k + 1) * size])
                if pressed.is_set():
                    break
            error = None
            if measures:
                found = measure()
                better = found < best * (1 - MIN_GAIN)
                averager.keep(better)
                best = torch.where(better, found, best)
                stale = 0 if bool(better.any()) else stale + 1
                error = float(found.mean())
            seconds = time.perf_counter() - began
            left = seconds / epoch * (settings.max_epochs - epoch)
            reached = float(best.mean()) if measures else None
            progress = Progress(epoch, settings.max_epochs, error, reached, seconds, left)
            result.history.append(progress)
            if callback is not None:
                callback(progress)
            if pressed.is_set():
                result.interrupted = True
                break
            if measures and stale >= settings.patience:
                break
        averager.restore(best=measures)
        if measures:
            calibrate(model, table, noise)
    return result
