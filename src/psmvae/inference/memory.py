"""The number of rows that fit into a memory budget."""

from __future__ import annotations

from psmvae.models.gmvae import GMVAE

# Bytes of a chunk of rows. On a CPU it should fit into the caches, on a GPU it should keep all
# processors busy.
MEMORY_BUDGET = {"cpu": 256 * 2**20, "cuda": 8 * 2**30}
BYTES_PER_FLOAT = 4


def rows_per_chunk(model: GMVAE, n_draws: int, memory: int | None = None) -> int:
    """Number of rows that fit into the memory budget."""
    if memory is None:
        memory = MEMORY_BUDGET[model.observed_rate.device.type]
    return max(1, memory // (BYTES_PER_FLOAT * _floats_per_row(model, n_draws)))


def _floats_per_row(model: GMVAE, n_draws: int) -> int:
    """Estimate the numbers that are in memory for one row, from the sizes of the layers."""
    config, columns = model.config, model.inputs
    hidden = 4 * config.network.width
    cells = 6 * sum(model.p_x.n_outputs) + 4 * columns.n_columns
    if model.p_m.depends_on_x:
        # quadrature nodes of every cell, their features and the mask model's scores
        cells += sum(
            8 * block.n_columns * block.n_nodes * max(block.n_features, block.n_statistics)
            for block in columns.blocks
        )
    per_draw = n_draws * config.n_sets * (hidden + cells + 4 * config.n_latent)
    per_row = 4 * config.n_latent**2
    if model.regression is not None and config.regression is not None:
        per_row += 4 * model.regression.quantiles.n_features
        per_row += 4 * config.n_sets * config.regression.width
    return config.n_members * (per_draw + per_row)
