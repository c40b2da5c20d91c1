"""The training loop of the deep models."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from psmvae.models.batch import Batch
from psmvae.models.config import Config
from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.nn.streams import stream_of_thread
from psmvae.training.adam import Adam
from psmvae.training.data import TrainingData
from psmvae.training.pretrain import pretrain
from psmvae.training.progress import Progress
from psmvae.training.recipe import Recipe
from psmvae.training.schedule import Schedule
from psmvae.training.shard import Shard
from psmvae.training.step import training_step
from psmvae.training.stopping import EarlyStopping, TimeBudget, defer_interrupt, validation_error
from psmvae.training.weights import Weights

# Steps and learning rate of the warm-up of a mask model. The objective has converged by then.
WARM_UP_STEPS, WARM_UP_LEARNING_RATE = 300, 3e-2
# Tables with more rows are shuffled before training.
SHUFFLED_ABOVE = 1000
# Seconds of a whole fit for each second of its pre-training, on the tables of the paper.
LATER_PHASES = 1.3
# Largest fraction of `max_time` that is reserved for calibration.
MAX_CALIBRATION_FRACTION = 0.25

Loss = Callable[[Batch, Noise], Tensor]
# (loss, parameters, number of steps) -> loss: a hook for callers that compile the loss
LossWrapper = Callable[[Loss, list[nn.Parameter], int], Loss]


@dataclass
class TrainingResult:
    """Progress of each epoch, and the lowest validation error of each member, if any.

    ``validation_mask`` ``(member, row, column)`` are the validation cells, in the order of the
    given rows.
    ``timed_out`` says whether ``max_time`` ended the epochs.
    """

    history: list[Progress] = field(default_factory=list)
    interrupted: bool = False
    timed_out: bool = False
    best: list[float] = field(default_factory=list)
    validation_mask: Tensor | None = None


def train(
    recipe: Recipe,
    x: Tensor,
    m: Tensor,
    config: Config,
    noise: Noise,
    callback: Callable[[Progress], None] | None = None,
    began: float | None = None,
    wrap_loss: LossWrapper | None = None,
    shard: Shard | None = None,
    reserve: float = 0.0,
) -> TrainingResult:
    """Train all members of a model side by side.

    The phases are: initial weights from the table, pre-training, warm-up of a mask model, epochs
    with early stopping, calibration on the validation cells. Ctrl-C and the end of ``max_time``
    stop after the current step and keep the best weights so far.

    ``shard`` is this process's part of each batch in data-parallel training. Its first process
    decides by its clock and its validation errors, so that all take the same steps; Ctrl-C is then
    not deferred. ``reserve`` are the seconds of ``max_time`` that the caller needs afterwards.
    """
    shard = shard or Shard()
    began = shard.agree(time.perf_counter() if began is None else began)
    budget = TimeBudget(config.max_time, x.device, began, reserve, shard)
    data, order = _prepare(x, m, config, noise)
    recipe.initialise(data, noise)
    calibration_fraction = _reserve_calibration(recipe, data, budget)
    with defer_interrupt() if shard.size == 1 else nullcontext(threading.Event()) as interrupt:
        trainer = Trainer(recipe, data, config, noise, budget, interrupt, callback, shard)
        trainer.run(wrap_loss)
        if data.has_validation_cells:
            recipe.calibrate(data, noise, calibration_fraction)
    mask = data.validation_mask
    trainer.result.validation_mask = mask if order is None else mask[:, order.argsort()]
    return trainer.result


def _prepare(
    x: Tensor, m: Tensor, config: Config, noise: Noise
) -> tuple[TrainingData, Tensor | None]:
    """Shuffle the rows of a large table and choose validation cells.

    Also returns the order of the rows, if they were shuffled.
    """
    n_rows, order = x.shape[-2], None
    if n_rows > SHUFFLED_ABOVE:
        # some estimates use the first rows only, and must not depend on how the table is sorted
        order = noise.shuffles(1, n_rows)[0]
        x, m = x.index_select(-2, order), m.index_select(-2, order)
    data = TrainingData(
        x,
        m,
        config.n_members,
        config.validation_fraction,
        noise,
        validation_rows=config.validation_rows,
    )
    return data, order


def _reserve_calibration(recipe: Recipe, data: TrainingData, budget: TimeBudget) -> float:
    """Reserve time for calibration and return the fraction of its work that fits into it."""
    max_time = budget.max_time
    if max_time is None or not data.has_validation_cells:
        return 1.0
    # the first calls include set-up costs, so the second ones are timed
    validation_error(recipe.model, data)
    recipe.calibration_sample(data)
    start = budget.now()
    validation_error(recipe.model, data)
    validated = budget.now()
    multiple = recipe.calibration_sample(data)
    end = budget.now()
    needed = multiple * (end - validated)
    left = max_time - budget.reserve - (end - budget.began)
    available = min(MAX_CALIBRATION_FRACTION * max_time, left)
    fraction = min(1.0, max(available, 0.0) / max(needed, 1e-9))
    budget.reserve += fraction * needed + validated - start
    return fraction


@dataclass
class Trainer:
    """The phases of a training that move weights; ``interrupt`` stops after the current step."""

    recipe: Recipe
    data: TrainingData
    config: Config
    noise: Noise
    budget: TimeBudget
    interrupt: threading.Event
    callback: Callable[[Progress], None] | None
    shard: Shard = field(default_factory=Shard)
    result: TrainingResult = field(default_factory=TrainingResult, init=False)
    pretrain_epochs: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Derive the numbers of batches and epochs."""
        data, config = self.data, self.config
        device = data.x.device
        self.stream = stream_of_thread(device, "training") if device.type == "cuda" else None
        self.has_validation_cells = data.has_validation_cells
        self.stopping = EarlyStopping(
            data.n_members, config.patience, device, separate=data.separate
        )
        self.batch_size = min(config.batch_size, data.n_rows)
        self.n_batches = max(1, data.n_rows // self.batch_size)
        # epochs of members whose validation error is determined by pre-training
        self.post_pretrain_epochs = min(
            config.max_epochs, max(1, config.post_pretrain_steps // self.n_batches)
        )

    def run(self, wrap_loss: LossWrapper | None = None) -> None:
        """Run all phases and give the model its final weights."""
        model = self.recipe.model
        self.shard.synchronise((*model.parameters(), *model.buffers()))
        self._pretrain()
        self.shard.synchronise((*model.parameters(), *model.buffers()))
        weights = Weights(model.parameters(), self.config.weight_average)
        self._warm_up(weights)
        self._run_epochs(weights, wrap_loss)
        weights.restore(best=self.has_validation_cells)
        weights.release()
        if self.has_validation_cells:
            self.result.best = self.stopping.best_error.tolist()

    def _pretrain(self) -> None:
        """Run the recipe's pre-training, until its steps or its share of the time are used."""
        config, data = self.config, self.data
        phase = self.recipe.pretraining() if config.pretrain_steps > 0 else None
        if phase is None:
            return
        started, batches = self.budget.now(), config.pretrain_batches(data.n_rows)
        schedule = Schedule(
            config.pretrain_steps,
            min(config.pretrain_batch_size, data.n_rows),
            data.x.device.type,
        )

        def time_used() -> float:
            if self.interrupt.is_set():
                return 1.0
            return self.budget.fraction_used(started, config.pretrain_time_fraction)

        def report(n_steps: int, error: Tensor) -> None:
            self.stopping.best_error = error
            self.pretrain_epochs = -(-n_steps // batches)
            expected = schedule.expected_steps(n_steps)
            left = (self.budget.now() - started) / n_steps * (expected - n_steps)
            later = self.post_pretrain_epochs
            self._report(
                "pre-training",
                self.pretrain_epochs,
                -(-expected // batches) + later,
                -(-config.pretrain_steps // batches) + later,
                error,
                left * LATER_PHASES,
            )

        model = self.recipe.model
        accepted = pretrain(
            phase, model, data, self.noise, schedule, time_used, self.stream, report, self.shard
        )
        self.pretrain_epochs = -(-schedule.n_steps // batches)
        self.stopping.pretrained = self.shard.agree_on(accepted)

    def _warm_up(self, weights: Weights) -> None:
        """Train only the warm-up parameters."""
        parameters = self.recipe.warm_up_parameters()
        if not parameters:
            return
        with weights.only(parameters) as positions:
            step = self._stepper(weights, self.recipe.loss, WARM_UP_LEARNING_RATE, positions)
            for _ in range(WARM_UP_STEPS):
                self._run_steps(step, 1)
                if self._must_stop():
                    break

    def _run_epochs(self, weights: Weights, wrap_loss: LossWrapper | None) -> None:
        """Train all weights, keeping those with the lowest validation error."""
        weights.keep_best(torch.ones_like(self.stopping.pretrained))
        if self.has_validation_cells:
            self.stopping.start(self._validation_error(weights))
        n_epochs = self.config.max_epochs
        pretrained = self.has_validation_cells and bool(self.stopping.pretrained.all())
        if pretrained:
            n_epochs = self.post_pretrain_epochs
        loss: Loss = self.recipe.loss
        if wrap_loss is not None:
            loss = wrap_loss(loss, weights.parameters, n_epochs * self.n_batches)
        step = self._stepper(weights, loss, self.config.learning_rate)
        started = time.perf_counter()
        for epoch in range(1, n_epochs + 1):
            self._run_steps(step, self.n_batches)
            error = None
            if self.has_validation_cells:
                error = self._validation_error(weights)
                keep_pretrained = epoch <= self.post_pretrain_epochs
                weights.keep_best(self.stopping.update(error, keep_pretrained=keep_pretrained))
            stopped = self.has_validation_cells and self.stopping.stopped
            expected = n_epochs
            if stopped:
                expected = epoch
            elif self.has_validation_cells and not pretrained:
                expected = min(n_epochs, self.stopping.expected_epochs(epoch))
            left = (time.perf_counter() - started) / epoch * (expected - epoch)
            done = self.pretrain_epochs
            self._report("training", done + epoch, done + expected, done + n_epochs, error, left)
            if self.interrupt.is_set():
                self.result.interrupted = True
                break
            if stopped:
                break
            if self.budget.exceeded:
                self.result.timed_out = epoch < n_epochs
                break

    def _run_steps(self, step: Callable[[Tensor], None], n_steps: int) -> None:
        """Run steps on batches of the shuffled rows."""
        shuffled = self.noise.shuffles(self.data.n_members, self.data.n_rows)
        for k in range(n_steps):
            step(shuffled[:, k * self.batch_size : (k + 1) * self.batch_size])
            if self._must_stop():
                break

    def _stepper(
        self, weights: Weights, loss: Loss, learning_rate: float, positions: Tensor | None = None
    ) -> Callable[[Tensor], None]:
        """Make a training step; with ``positions`` it moves these weights only."""
        adam = Adam(weights.flat, learning_rate)
        data, noise, rate = self.data, self.noise, self.config.input_mask_rate

        def gradient(rows: Tensor, noise: Noise) -> None:
            with allow_tf32(data.x.device):
                # members are independent, so their losses add up
                loss(data.batch(rows, rate, noise), noise).mean(1).sum().backward()
            weights.collect_gradients(positions)

        def update() -> None:
            weights.clip_gradients()
            adam.step()
            weights.update_average()

        return training_step(gradient, update, weights, noise, self.stream, self.shard)

    def _must_stop(self) -> bool:
        """Whether the current step is the last one."""
        return self.interrupt.is_set() or self.budget.exceeded

    def _validation_error(self, weights: Weights) -> Tensor:
        """Measure the validation error of the average weights."""
        with weights.averaged():
            return self.shard.agree_on(validation_error(self.recipe.model, self.data))

    def _report(
        self,
        phase: str,
        epoch: int,
        expected: int,
        n_epochs: int,
        error: Tensor | None,
        left: float | None,
    ) -> None:
        """Add to the history and call the callback."""
        mean = None if error is None else float(error.mean())
        best = float(self.stopping.best_error.mean()) if self.has_validation_cells else None
        seconds, left = self.budget.elapsed, self.budget.limited(left)
        progress = Progress(phase, epoch, expected, n_epochs, mean, best, seconds, left)
        self.result.history.append(progress)
        if self.callback is not None:
            self.callback(progress)
