"""The pre-training phase: some parameters alone, on a loss of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.training.adam import Adam
from psmvae.training.data import TrainingData
from psmvae.training.recipe import Pretraining, Trainable
from psmvae.training.step import Stepper
from psmvae.training.validation import validation_error
from psmvae.training.weights import Weights

# Learning rate: linear warm-up over the first tenth of pre-training, then constant, with a cosine
# decay to 0 from three tenths on. These constants, the batch size and the masking rate were chosen
# by the validation error on letter and wine within the time that MissForest takes.
LEARNING_RATE, WARM_UP_END, DECAY_START = 4e-3, 0.1, 0.3
INPUT_MASK_RATE = 0.25
# Decoupled weight decay, divided by the number of training cells in a column. Without it the
# regression overfits tables such as wine, with 4,000 rows at 20 % missing.
WEIGHT_DECAY = 1250.0
# How many times the validation error is reported.
N_REPORTS = 10


def learning_rate_at(fraction: float) -> float:
    """Return the learning rate when a fraction of pre-training is done."""
    decayed = min(1.0, max(0.0, (fraction - DECAY_START) / (1 - DECAY_START)))
    warm_up = min(1.0, fraction / WARM_UP_END)
    return LEARNING_RATE * warm_up * 0.5 * (1 + math.cos(math.pi * decayed))


class PretrainingStep:
    """One step of pre-training: batch, gradient, Adam, weight decay.

    Parameters
    ----------
    pretraining : Pretraining
        Parameters and loss.
    data : TrainingData
        The training table.
    noise : Noise
        Masks cells of the batches.

    Attributes
    ----------
    weights : Weights
        The parameters as one matrix.
    """

    def __init__(self, pretraining: Pretraining, data: TrainingData, noise: Noise) -> None:
        self.pretraining, self.data, self.noise = pretraining, data, noise
        self.weights = Weights(pretraining.parameters, decay=0.0)
        self.device = data.x.device
        self.on_gpu = self.device.type == "cuda"
        # a captured step reads its learning rate from a tensor
        rate: Tensor | float = torch.zeros((), device=self.device) if self.on_gpu else 0.0
        self.adam = Adam(self.weights.flat, rate)
        n_cells = max(1.0, float(data.m.sum(1).mean()))
        # no step may shrink the weights by more than all they are
        self.weight_decay = min(WEIGHT_DECAY / n_cells, 1 / LEARNING_RATE)
        self.column_rates = data.column_mask_rates(INPUT_MASK_RATE)

    def set_learning_rate(self, value: float) -> None:
        """Set the learning rate of the next steps."""
        if isinstance(self.adam.learning_rate, Tensor):
            self.adam.learning_rate.fill_(value)
        else:
            self.adam.learning_rate = value

    def __call__(self, rows: Tensor) -> None:
        """Perform a step."""
        batch = self.data.batch(rows, INPUT_MASK_RATE, self.noise, column_rates=self.column_rates)
        with allow_tf32(self.device):
            self.pretraining.loss(batch, self.noise).mean(1).sum().backward()
        self.weights.collect_gradients()
        self.adam.step()
        self.weights.shrink(self.weight_decay * self.adam.learning_rate)


def pretrain(
    pretraining: Pretraining,
    model: Trainable,
    data: TrainingData,
    noise: Noise,
    batch_size: int,
    fraction_done: Callable[[int], float],
    stream: torch.cuda.Stream | None = None,
    report: Callable[[Tensor], None] | None = None,
) -> Tensor:
    """Train some parameters alone, then freeze them.

    The last weights are kept, not those with the lowest validation error: while the learning rate
    is high, differences between the errors of a thousand rows are mostly noise.
    """
    size = min(batch_size, data.n_rows)
    one_step = PretrainingStep(pretraining, data, noise)
    step = Stepper(one_step, noise, stream)
    fraction, n_steps, n_reports = fraction_done(0), 0, 0
    while fraction < 1:
        shuffled = noise.shuffles(data.n_members, data.n_rows)
        for start in range(0, data.n_rows - size + 1, size):
            one_step.set_learning_rate(learning_rate_at(fraction))
            step(shuffled[:, start : start + size])
            n_steps += 1
            fraction = fraction_done(n_steps)
            if report is not None and fraction * N_REPORTS >= n_reports + 1:
                n_reports = int(fraction * N_REPORTS)
                report(validation_error(model, data))
            if fraction >= 1:
                break
    one_step.weights.release()
    for parameter in pretraining.parameters:
        parameter.requires_grad_(False)
    if not data.has_validation_cells:
        return torch.ones(data.n_members, dtype=torch.bool, device=data.x.device)
    return pretraining.accept(data)
