"""What a limit of time goes to first: parameters trained alone, on a loss of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from psmvae.nn.noise import Noise
from psmvae.training.adam import Adam
from psmvae.training.heldout import Table, held_out_error
from psmvae.training.recipe import First, Trainable
from psmvae.training.weights import Weights

# The learning rate rises for the first tenth of the time, stays, and falls to nothing from three
# tenths on. Chosen, like the batch and the share of cells that are hidden, by the error of held-out
# cells of letter and wine in the time that MissForest takes.
RATE, BATCH, HIDE, RISE, FALL = 4e-3, 200, 0.25, 0.1, 0.3
# How often in all the time the error is measured.
LOOKS = 10


def rate_at(part: float) -> float:
    """The learning rate when a part of the time has gone."""
    fall = min(1.0, max(0.0, (part - FALL) / (1 - FALL)))
    return RATE * min(1.0, part / RISE) * 0.5 * (1 + math.cos(math.pi * fall))


def train_first(
    first: First,
    model: Trainable,
    table: Table,
    noise: Noise,
    max_norm: float,
    part: Callable[[], float],
) -> Tensor:
    """Train parameters alone until ``part()`` of their time is 1, and no further after that.

    The weights with the lowest held-out error are kept. Returns the members for which they decide
    that error from then on.
    """
    n_members, n_rows = table.m.shape[:2]
    size, looks = min(BATCH, n_rows), 0
    weights = Weights(first.parameters, decay=0.0)
    adam = Adam(weights.now, RATE)
    best = torch.full((n_members,), torch.inf, device=table.x.device)
    now = part()
    while now < 1:
        shuffled = noise.shuffles(n_members, n_rows)
        for start in range(0, n_rows - size + 1, size):
            adam.learning_rate = rate_at(now)
            rows = shuffled[:, start : start + size]
            loss = first.loss(table.batch(rows, HIDE, noise, even=True), noise)
            loss.mean(1).sum().backward()
            weights.take_gradients(max_norm)
            adam.step()
            now = part()
            if now * LOOKS >= looks + 1:
                looks = int(now * LOOKS)
                error = held_out_error(model, table)
                weights.keep(error < best)
                best = torch.minimum(best, error)
            if now >= 1:
                break
    weights.restore(best=bool(torch.isfinite(best).all()))
    weights.release()
    for parameter in first.parameters:
        parameter.requires_grad_(False)
    return first.judge(table)
