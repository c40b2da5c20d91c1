"""How to train, and what is told of it meanwhile: made without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from psmvae.nn.settings import MAX_ITER

# Rows and steps of the factor analysis that gives first weights.
LINEAR_ROWS, LINEAR_STEPS = 3000, MAX_ITER
# Rows of a step of what is trained first.
PRETRAIN_BATCH_SIZE = 200


@dataclass(frozen=True)
class Training:
    """How to train.

    ``validation_fraction`` is the share of observed cells kept to measure the error (0: train to the end and
    keep the last weights); ``input_mask_rate`` the largest share of a row hidden from the encoder; ``average``
    the decay of the running mean of the weights that is kept (0: the weights themselves).
    ``objective`` is the bound that is raised, with ``n_draws`` draws of z a row. ``max_time`` is
    how many seconds the steps may take. ``linear_rows`` and ``linear_steps`` are the rows and steps
    of the factor analysis that gives first weights. ``bootstrap`` gives each member rows drawn with
    replacement. ``pretrain_steps`` is how many steps go to what a recipe trains first and alone, in no
    more than ``pretrain_time_fraction`` of ``max_time``; where that decides the error, all else has
    ``post_pretrain_steps``. Cells are held out in the first ``validation_rows`` rows only, where given.
    """

    max_epochs: int
    batch_size: int
    learning_rate: float
    validation_fraction: float
    patience: int
    input_mask_rate: float
    beta: float
    average: float
    weight_observed: bool
    objective: Literal["elbo", "iwae"] = "elbo"
    n_draws: int = 1
    max_time: float | None = None
    linear_rows: int = LINEAR_ROWS
    linear_steps: int = LINEAR_STEPS
    bootstrap: bool = False
    pretrain_steps: int = 0
    pretrain_time_fraction: float = 1.0
    post_pretrain_steps: int = 0
    validation_rows: int | None = None


@dataclass(frozen=True)
class Progress:
    """Where training stands after an epoch.

    ``seconds_left`` is what is left if no early stop comes.
    """

    epoch: int
    max_epochs: int
    validation_error: float | None
    best_validation_error: float | None
    seconds: float
    seconds_left: float | None


def pretrain_batches(n_rows: int) -> int:
    """Steps of a pass of what is trained first through so many rows."""
    return max(1, n_rows // min(PRETRAIN_BATCH_SIZE, n_rows))
