"""What is trained first: parameters alone, on a loss of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.training.adam import Adam
from psmvae.training.recipe import First, Trainable
from psmvae.training.step import Stepper
from psmvae.training.validation import Table, validation_error
from psmvae.training.weights import Weights

# The learning rate rises for the first tenth of the way, stays, and falls to nothing from three
# tenths on. Chosen, like the batch and the share of cells that are hidden, by the error of held-out
# cells of letter and wine in the time that MissForest takes.
RATE, HIDE, RISE, FALL = 4e-3, 0.25, 0.1, 0.3
# Weights are drawn to 0 by a share of the learning rate a step, this over the cells that a column
# has to learn from: without it the 4,000 of wine at 20 % missing are learned by heart.
DECAY = 1250.0
# How often on the way the error is told.
LOOKS = 10


def rate_at(part: float) -> float:
    """The learning rate when a part of the way is done."""
    fall = min(1.0, max(0.0, (part - FALL) / (1 - FALL)))
    return RATE * min(1.0, part / RISE) * 0.5 * (1 + math.cos(math.pi * fall))


def pretrain(
    first: First,
    model: Trainable,
    table: Table,
    noise: Noise,
    batch_size: int,
    max_norm: float,
    part: Callable[[int], float],
    stream: torch.cuda.Stream | None = None,
    tell: Callable[[Tensor], None] | None = None,
) -> Tensor:
    """Train parameters alone until ``part(steps)`` of the way is 1, and no further after that.

    The last weights are kept: while the learning rate is high, what a thousand rows say of others
    is chance. ``tell`` is called with the held-out error when it is measured. Returns the members
    for which what was trained decides that error from then on.
    """
    n_members, n_rows = table.m.shape[:2]
    device = table.x.device
    size, looks, done = min(batch_size, n_rows), 0, 0
    weights = Weights(first.parameters, decay=0.0)
    rate = torch.zeros((), device=device)
    # at most all of them
    share = min(DECAY / max(1.0, float(table.m.sum(1).mean())), 1 / RATE)
    adam = Adam(weights.now, rate if device.type == "cuda" else 0.0)

    columns = table.like_missing(HIDE)
    into = [] if first.gradient is None else weights.gradients()

    def one_step(rows: Tensor) -> None:
        batch = table.batch(rows, HIDE, noise, columns=columns)
        if first.gradient is not None:
            first.gradient(batch, into)
            weights.cut_gradients(max_norm)
        else:
            with allow_tf32(device):
                first.loss(batch, noise).mean(1).sum().backward()
            weights.take_gradients(max_norm)
        adam.step()
        weights.shrink(share * adam.learning_rate)

    step = Stepper(one_step, noise, stream)
    now = part(0)
    while now < 1:
        shuffled = noise.shuffles(n_members, n_rows)
        for start in range(0, n_rows - size + 1, size):
            if device.type == "cuda":
                rate.fill_(rate_at(now))
            else:
                adam.learning_rate = rate_at(now)
            step(shuffled[:, start : start + size])
            done += 1
            now = part(done)
            if tell is not None and now * LOOKS >= looks + 1:
                looks = int(now * LOOKS)
                tell(validation_error(model, table))
            if now >= 1:
                break
    weights.release()
    for parameter in first.parameters:
        parameter.requires_grad_(False)
    if not table.measures:
        return torch.ones(n_members, dtype=torch.bool, device=device)
    return first.judge(table)
