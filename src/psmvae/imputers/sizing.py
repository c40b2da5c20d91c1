"""Sizes that suit a table: what "auto" stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from psmvae.nn.settings import Network
from psmvae.training.settings import LINEAR_ROWS, LINEAR_STEPS, pretrain_batches

# Steps of training asked for at most, whatever the number of rows.
MAX_STEPS = 20_000
MIN_EPOCHS, MAX_EPOCHS = 100, 1000
# A regression has been through the table so often when it learns no more, and is good enough after
# so many steps.
FIRST_EPOCHS, FIRST_STEPS = 200, 20_000
# How cells vary about it is then learned in a few steps. More of them make draws a little sharper,
# and single imputations no better: a CPU, where each takes several times as long as one of a
# regression, does fewer.
SETTLE_STEPS, SETTLE_STEPS_ON_CPU = 1500, 600
MANY_COLUMNS = 40
# Seconds a row that a CPU needs for what "auto" usually stands for: with less it gets through the
# table so few times that another pace learns more (on letter and wine still at ten milliseconds).
# Smaller tables than FEWEST_ROWS have been through often enough by then.
SECONDS_A_ROW, FEWEST_ROWS = 0.01, 2000


@dataclass(frozen=True)
class Preset:
    """What "auto" stands for beside the sizes, and what the first weights may cost.

    ``network`` None is one sized to the table; ``linear_rows`` and ``linear_steps`` are the rows
    and steps of the factor analysis that training starts from. ``regression`` is the network of a
    regression on x_obs, trained first and alone, for ``pretrain_time_fraction`` of a user's time at most;
    cells are held out in the first ``validation_rows`` rows only, where given.
    """

    network: Network | None
    learning_rate: float
    input_mask_rate: float
    linear_rows: int
    linear_steps: int
    regression: Network | None = None
    pretrain_time_fraction: float = 1.0
    validation_rows: int | None = None


STANDARD = Preset(None, 1e-3, 0.25, LINEAR_ROWS, LINEAR_STEPS)
# Chosen by the error of held-out cells in the time that MissForest takes (`benchmarks/pace.py`).
# All rows have something to teach then, and a thousand are enough to measure the error of.
FAST = Preset(Network(width=128, depth=2), 3e-3, 0.5, 1000, 30)
REGRESSION = Network(width=192, depth=3, residual=False, linear=False, smooth=True)
LARGE_REGRESSION = replace(REGRESSION, width=256, depth=4)
FAST_PRETRAINED = Preset(
    Network(width=64, depth=1),
    3e-3,
    0.5,
    1000,
    30,
    regression=REGRESSION,
    pretrain_time_fraction=0.92,
    validation_rows=1024,
)
STANDARD_PRETRAINED = Preset(
    None,
    1e-3,
    0.25,
    LINEAR_ROWS,
    LINEAR_STEPS,
    regression=REGRESSION,
    pretrain_time_fraction=0.8,
    validation_rows=2048,
)
# From so many rows on a table can teach larger networks.
MANY_ROWS = 10_000


def pace(n_rows: int, n_members: int, max_time: float | None, device: str) -> Preset:
    """How members learn from so many rows in the time a user gave on a device ("cpu", "cuda")."""
    if max_time is None or device != "cpu" or n_rows < FEWEST_ROWS:
        return STANDARD
    return FAST if max_time < SECONDS_A_ROW * n_rows * n_members else STANDARD


def standard_pretrained(n_rows: int) -> Preset:
    """The usual pace with a regression as large as the rows can teach."""
    return (
        STANDARD_PRETRAINED
        if n_rows < MANY_ROWS
        else replace(STANDARD_PRETRAINED, regression=LARGE_REGRESSION)
    )


def network_for(n_rows: int, n_columns: int) -> Network:
    """A network as large as the rows can teach, and as the columns need.

    Chosen by the error of held-out cells: of letter, wine and breast for the rows, of digits (61
    columns: .59 against .64 for the small network) for the columns.
    """
    if n_columns >= MANY_COLUMNS and n_rows >= 500:
        return Network(width=256, depth=3, dropout=0.05)
    if n_rows < 2000:
        return Network(width=64, depth=1, dropout=0.1)
    if n_rows < MANY_ROWS:
        return Network(width=128, depth=2, dropout=0.05)
    return Network(width=256, depth=3)


def n_latent_for(n_columns: int) -> int:
    """Latents enough to tie every pair of columns, within reason."""
    return max(2, min(20, n_columns))


def batch_size_for(n_rows: int) -> int:
    """Eight steps an epoch, or batches that keep the processor busy."""
    return max(32, min(512, n_rows // 8))


def max_epochs_for(n_rows: int, batch_size: int) -> int:
    """Epochs that come to at most MAX_STEPS, within bounds."""
    steps = max(1, n_rows // batch_size)
    return max(MIN_EPOCHS, min(MAX_EPOCHS, MAX_STEPS // steps))


def pretrain_steps_for(n_rows: int, max_epochs: int) -> int:
    """Steps of a regression, which is trained before all else."""
    return min(FIRST_STEPS, min(FIRST_EPOCHS, max_epochs) * pretrain_batches(n_rows))


def post_pretrain_steps_for(device: str) -> int:
    """Steps of all else, where a regression decides the error."""
    return SETTLE_STEPS_ON_CPU if device == "cpu" else SETTLE_STEPS
