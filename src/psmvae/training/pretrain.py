"""The pre-training phase: only some parameters are trained, on a separate loss."""

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
from psmvae.training.shard import Shard
from psmvae.training.step import training_step
from psmvae.training.stopping import validation_error
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
    """Return the learning rate after a given fraction of pre-training."""
    decayed = min(1.0, max(0.0, (fraction - DECAY_START) / (1 - DECAY_START)))
    warm_up = min(1.0, fraction / WARM_UP_END)
    return LEARNING_RATE * warm_up * 0.5 * (1 + math.cos(math.pi * decayed))


def pretrain(
    pretraining: Pretraining,
    model: Trainable,
    data: TrainingData,
    noise: Noise,
    batch_size: int,
    fraction_done: Callable[[int], float],
    stream: torch.cuda.Stream | None = None,
    report: Callable[[Tensor], None] | None = None,
    shard: Shard | None = None,
) -> Tensor:
    """Train only the parameters of the pre-training phase, then freeze them.

    The last weights are kept, not those with the lowest validation error: while the learning rate
    is high, differences between the errors of a thousand rows are mostly noise.
    """
    shard = shard or Shard()
    weights = Weights(pretraining.parameters, decay=0.0)
    # a captured step reads its learning rate from a tensor
    adam = Adam(weights.flat, data.x.new_zeros(()) if data.x.is_cuda else 0.0)
    # no step may shrink the weights by more than all they are
    weight_decay = min(WEIGHT_DECAY / max(1.0, float(data.m.sum(1).mean())), 1 / LEARNING_RATE)
    column_rates = data.column_mask_rates(INPUT_MASK_RATE)

    def gradient(rows: Tensor, noise: Noise) -> None:
        batch = data.batch(rows, INPUT_MASK_RATE, noise, column_rates)
        with allow_tf32(data.x.device):
            pretraining.loss(batch, noise).mean(1).sum().backward()
        weights.collect_gradients()

    def update() -> None:
        weights.clip_gradients()
        adam.step()
        weights.shrink(weight_decay * adam.learning_rate)

    step = training_step(gradient, update, weights, noise, stream, shard)
    size = min(batch_size, data.n_rows)
    fraction, n_steps, n_reports = fraction_done(0), 0, 0
    while fraction < 1:
        shuffled = noise.shuffles(data.n_members, data.n_rows)
        for start in range(0, data.n_rows - size + 1, size):
            adam.set_learning_rate(learning_rate_at(fraction))
            step(shuffled[:, start : start + size])
            n_steps += 1
            fraction = fraction_done(n_steps)
            if report is not None and fraction * N_REPORTS >= n_reports + 1:
                n_reports = int(fraction * N_REPORTS)
                report(shard.agree_on(validation_error(model, data)))
            if fraction >= 1:
                break
    weights.release()
    for parameter in pretraining.parameters:
        parameter.requires_grad_(False)
    if not data.has_validation_cells:
        return torch.ones(data.n_members, dtype=torch.bool, device=data.x.device)
    return pretraining.accept(data)
