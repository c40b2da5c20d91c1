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

from psmvae.models.batch import Batch
from psmvae.models.config import Config
from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.training.adam import Adam
from psmvae.training.pretrain import pretrain
from psmvae.training.progress import Progress
from psmvae.training.recipe import Recipe
from psmvae.training.step import Stepper
from psmvae.training.validation import Table, picked, validation_error
from psmvae.training.weights import Weights

# An error counts as better when it falls by this share.
MIN_GAIN = 1e-4
# Steps of what is trained alone at first, such as a mask that depends on x: the objective is level
# by then.
WARM_STEPS, WARM_RATE = 300, 3e-2
# Tables with more rows are shuffled first.
SHUFFLED_ABOVE = 1000
# What is learned after the steps may take this share of the time a user gave.
LAST_SHARE = 0.25
# Norm that a member's gradient is cut to.
MAX_NORM = 100.0


Loss = Callable[[Batch, Noise], Tensor]
# (loss, parameters, number of steps) -> loss: a hook for callers that compile the loss
LossWrapper = Callable[[Loss, list[nn.Parameter], int], Loss]


@dataclass
class TrainingResult:
    """What happened: the progress of every epoch, and whether it was cut short.

    ``best`` is the held-out error of each member's weights that were kept, where it was measured.
    """

    history: list[Progress] = field(default_factory=list)
    interrupted: bool = False
    best: list[float] = field(default_factory=list)


@contextmanager
def deferred_keyboard_interrupt() -> Iterator[threading.Event]:
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
    recipe: Recipe,
    x: Tensor,
    m: Tensor,
    config: Config,
    noise: Noise,
    callback: Callable[[Progress], None] | None = None,
    began: float | None = None,
    wrap_loss: LossWrapper | None = None,
) -> TrainingResult:
    """Train all members of a recipe's model on the table ``x, m`` ``(row, column)``.

    Members may have a table each, ``(member, row, column)``: then each also stops by itself, as if
    trained alone. Ctrl-C, and the end of the time a user gave (counted from ``began``), stop after
    the step at hand and keep the best weights so far.
    """
    began = time.perf_counter() if began is None else began
    n_members = config.n_members
    # seconds that are kept for what comes after the steps, and how much of that fits in
    reserve, share = 0.0, 1.0

    def late() -> bool:
        if config.max_time is None:
            return False
        return now() - began + reserve > config.max_time

    def now() -> float:
        if x.device.type == "cuda":
            torch.cuda.synchronize(x.device)
        return time.perf_counter()

    stream = torch.cuda.Stream(x.device) if x.device.type == "cuda" else None
    n_rows, separate = x.shape[-2], x.ndim == 3
    if n_rows > SHUFFLED_ABOVE:
        # what looks at the first rows only must not depend on how the table is sorted
        order = noise.shuffles(1, n_rows)[0]
        x, m = x.index_select(-2, order), m.index_select(-2, order)
    table = Table(
        x,
        m,
        n_members,
        config.validation_fraction,
        noise,
        bootstrap=config.bootstrap,
        validation_rows=config.validation_rows,
    )
    if table.picks is not None:
        m = picked(m, table.picks)
    measures = table.measures
    recipe.start(table, m, noise)
    size = min(config.batch_size, n_rows)
    n_batches = max(1, n_rows // size)
    best = torch.full((n_members,), torch.inf, device=x.device)
    result, stale = TrainingResult(), torch.zeros_like(best)

    def measure() -> Tensor:
        weights.swap()
        error = validation_error(recipe.model, table)
        weights.swap()
        return error

    def stepper(learning_rate: float, columns: Tensor | None, n_steps: int = 0) -> Stepper:
        adam = Adam(weights.now, learning_rate)
        loss_of: Loss = recipe.loss
        if wrap_loss is not None and columns is None:
            loss_of = wrap_loss(recipe.loss, weights.parameters, n_steps)

        def step(rows: Tensor) -> None:
            with allow_tf32(x.device):
                loss = loss_of(table.batch(rows, config.input_mask_rate, noise), noise)
                loss.mean(1).sum().backward()
            weights.take_gradients(MAX_NORM, columns)
            adam.step()
            weights.update_mean()

        return Stepper(step, noise, stream)

    if measures and config.max_time is not None:
        # first calls set things up: the second ones tell
        validation_error(recipe.model, table)
        recipe.rehearse(table)
        times = [now()]
        validation_error(recipe.model, table)
        times.append(now())
        parts = recipe.rehearse(table)
        times.append(now())
        last = parts * (times[2] - times[1])
        most = min(LAST_SHARE * config.max_time, config.max_time - (times[2] - began))
        share = min(1.0, max(most, 0.0) / max(last, 1e-9))
        reserve = share * last + times[1] - times[0]

    decided = torch.zeros_like(best, dtype=torch.bool)
    first = recipe.first() if config.pretrain_steps > 0 else None
    # passes through the table before the first epoch, and the epochs of members whose error is
    # decided by then
    passes, settled = 0, min(config.max_epochs, max(1, config.post_pretrain_steps // n_batches))

    def tell(epoch: int, n_epochs: int, error: Tensor | None, left: float | None) -> None:
        seconds = time.perf_counter() - began
        found = None if error is None else float(error.mean())
        reached = float(best.mean()) if measures else None
        if left is not None and config.max_time is not None:
            left = min(left, max(0.0, config.max_time - seconds))
        progress = Progress(epoch, n_epochs, found, reached, seconds, left)
        result.history.append(progress)
        if callback is not None:
            callback(progress)

    with deferred_keyboard_interrupt() as pressed:
        if first is not None:
            started, steps_a_pass = now(), config.pretrain_batches(n_rows)

            def way(n_steps: int) -> float:
                """The part that is done of what is trained first."""
                nonlocal passes
                passes = -(-n_steps // steps_a_pass)
                part = n_steps / config.pretrain_steps
                if config.max_time is not None:
                    most = config.pretrain_time_fraction * (config.max_time - reserve)
                    part = max(part, (now() - started) / max(most - (started - began), 1e-9))
                return 1.0 if pressed.is_set() else part

            def told(error: Tensor) -> None:
                nonlocal best
                best = error
                # how long the rest takes is not known yet
                tell(passes, -(-config.pretrain_steps // steps_a_pass) + settled, error, None)

            shown = told if measures else None
            decided = pretrain(
                first,
                recipe.model,
                table,
                noise,
                config.pretrain_batch_size,
                MAX_NORM,
                way,
                stream,
                shown,
            )
        weights = Weights(recipe.model.parameters(), config.weight_average)
        warm_parameters = recipe.warm_parameters()
        if warm_parameters:
            with weights.only(warm_parameters) as columns:
                step = stepper(WARM_RATE, columns)
                for _ in range(WARM_STEPS):
                    step(noise.shuffles(n_members, n_rows)[:, :size])
                    if pressed.is_set() or late():
                        break
        weights.keep(torch.ones_like(best, dtype=torch.bool))
        if measures:
            best = measure()
        # without held-out cells all epochs were asked for
        n_epochs = settled if measures and bool(decided.all()) else config.max_epochs
        step = stepper(config.learning_rate, None, n_epochs * n_batches)
        begun = time.perf_counter()
        for epoch in range(1, n_epochs + 1):
            shuffled = noise.shuffles(n_members, n_rows)
            for k in range(n_batches):
                step(shuffled[:, k * size : (k + 1) * size])
                if pressed.is_set() or late():
                    break
            found = None
            if measures:
                found = measure()
                # where what was trained first decides the error, it cannot judge the rest
                better = torch.where(decided, epoch <= settled, found < best * (1 - MIN_GAIN))
                if separate:
                    better = better & (stale < config.patience)
                weights.keep(better)
                best = torch.where(better, found, best)
                stale = torch.where(better, 0.0, stale + 1)
            left = (time.perf_counter() - begun) / epoch * (n_epochs - epoch)
            tell(passes + epoch, passes + n_epochs, found, left)
            if pressed.is_set():
                result.interrupted = True
                break
            if late() or (measures and bool((stale >= config.patience).all())):
                break
        weights.restore(best=measures)
        weights.release()
        if measures:
            result.best = best.tolist()
            recipe.finish(table, noise, share)
    return result
