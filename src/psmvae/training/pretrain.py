"""The pre-training phase: only some parameters are trained, on a separate loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.training.adam import Adam
from psmvae.training.data import TrainingData
from psmvae.training.recipe import Pretraining, Trainable
from psmvae.training.schedule import Schedule
from psmvae.training.shard import Shard
from psmvae.training.step import training_step
from psmvae.training.stopping import validation_error
from psmvae.training.weights import Weights

# The masking rate and the weight decay were chosen by the validation error on letter and wine,
# within the time that MissForest takes.
INPUT_MASK_RATE = 0.25
# Decoupled weight decay, divided by the number of training cells in a column. Without it the
# regression overfits tables such as wine, with 4,000 rows at 20 % missing.
WEIGHT_DECAY = 1250.0
# Decay of the running average of the weights whose validation error ends the constant learning
# rate: the error of the weights themselves fluctuates too much. It is measured so often.
WEIGHT_AVERAGE, STEPS_PER_CHECK = 0.995, 100


def pretrain(
    pretraining: Pretraining,
    model: Trainable,
    data: TrainingData,
    noise: Noise,
    schedule: Schedule,
    time_used: Callable[[], float],
    stream: torch.cuda.Stream | None = None,
    report: Callable[[int, Tensor], None] | None = None,
    shard: Shard | None = None,
) -> Tensor:
    """Train only the parameters of the pre-training phase, then freeze them.

    ``time_used`` returns the fraction of the time that is used; 1 ends the phase. ``report`` is
    called with the number of steps and the validation error of the running average of the weights.

    The last weights are kept, not those with the lowest validation error: while the learning rate
    is high, differences between the errors of a thousand rows are mostly noise.
    """
    shard = shard or Shard()
    weights = Weights(pretraining.parameters, decay=WEIGHT_AVERAGE)
    # a captured step reads its learning rate from a tensor
    adam = Adam(weights.flat, data.x.new_zeros(()) if data.x.is_cuda else 0.0)
    # no step may shrink the weights by more than all they are
    weight_decay = min(WEIGHT_DECAY / max(1.0, float(data.m.sum(1).mean())), 1 / schedule.peak)
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
        weights.update_average()

    def check(n_steps: int, used: float) -> None:
        with weights.averaged():
            error = shard.agree_on(validation_error(model, data))
        schedule.observe(n_steps, float(error.mean()), used)
        if report is not None:
            report(n_steps, error)

    step = training_step(gradient, update, weights, noise, stream, shard)
    size, n_steps, used = min(schedule.batch_size, data.n_rows), 0, time_used()
    ended = schedule.advance(0, used)
    while not ended:
        shuffled = noise.shuffles(data.n_members, data.n_rows)
        for start in range(0, data.n_rows - size + 1, size):
            adam.set_learning_rate(schedule.learning_rate(n_steps, used))
            step(shuffled[:, start : start + size])
            n_steps, used = n_steps + 1, time_used()
            ended = schedule.advance(n_steps, used)
            if data.has_validation_cells and (ended or n_steps % STEPS_PER_CHECK == 0):
                check(n_steps, used)
            if ended:
                break
    weights.release()
    for parameter in pretraining.parameters:
        parameter.requires_grad_(False)
    if not data.has_validation_cells:
        return torch.ones(data.n_members, dtype=torch.bool, device=data.x.device)
    return pretraining.accept(data)
