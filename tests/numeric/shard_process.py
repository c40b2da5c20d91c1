"""One of several processes that fit together: ``python shard_process.py RANK SIZE FOLDER``.

Writes the weights of each fit, and the imputed table of the first process.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from psmvae import GAINImputer, PSMVAEImputer
from psmvae.training.shard import ProcessShard

SETTINGS = {"max_epochs": 3, "batch_size": 51, "validation_fraction": 0.0, "random_state": 0}


def incomplete_table():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(173, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(173, 5))
    table[:, 4] = table[:, 4] > 0
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


def imputers():
    """Fits of few steps; two processes do not get equal parts of 51 rows."""
    return {
        "PSMVAE": PSMVAEImputer(n_sets=2, n_members=2, draws="model", **SETTINGS),
        "GAIN": GAINImputer(**SETTINGS),
    }


def weights(imputer):
    return torch.cat([p.detach().flatten(1) for p in imputer.model_.parameters()], 1).numpy()


def main(rank, size, folder):
    torch.set_num_threads(1)
    store = f"file://{folder / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    shard, table = ProcessShard(), incomplete_table()
    for name, imputer in imputers().items():
        imputer._fit_shard(table, shard)
        found = {"weights": weights(imputer)}
        if rank == 0:
            found["imputed"] = imputer.transform(table)
        np.savez(folder / f"{name}-{rank}.npz", **found)
    # the clocks of two machines have nothing in common
    clock, ahead = time.perf_counter, 1e6 * rank
    time.perf_counter = lambda: clock() + ahead
    timed = PSMVAEImputer(max_time=1.0, draws="model", random_state=0)
    timed._fit_shard(table, shard)
    np.savez(folder / f"timed-{rank}.npz", weights=weights(timed))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
