"""Sizes that suit a table: what "auto" stands for."""

from __future__ import annotations

from psmvae.nn.network import Network

# Steps of training asked for at most, whatever the number of rows.
MAX_STEPS = 20_000
MIN_EPOCHS, MAX_EPOCHS = 100, 1000
MANY_COLUMNS = 40


def network_for(n_rows: int, n_columns: int) -> Network:
    """A network as large as the rows can teach, and as the columns need.

    Chosen by the error of held-out cells: of letter, wine and breast for the rows, of digits (61
    columns: .59 against .64 for the small network) for the columns.
    """
    if n_columns >= MANY_COLUMNS and n_rows >= 500:
        return Network(width=256, depth=3, dropout=0.05)
    if n_rows < 2000:
        return Network(width=64, depth=1, dropout=0.1)
    if n_rows < 10_000:
        return Network(width=128, depth=2, dropout=0.05)
    return Network(width=256, depth=3)


def n_latent_for(n_columns: int) -> int:
    """Latents enough to tie every pair of columns, within reason."""
    return max(2, min(20, n_columns))


def batch_size_for(n_rows: int) -> int:
    """About twenty steps an epoch, in batches that keep the processor busy."""
    return max(32, min(512, n_rows // 8))


def max_epochs_for(n_rows: int, batch_size: int) -> int:
    """Epochs that come to at most MAX_STEPS, within bounds."""
    steps = max(1, n_rows // batch_size)
    return max(MIN_EPOCHS, min(MAX_EPOCHS, MAX_STEPS // steps))
