"""One of several processes that fit together: ``python shard_process.py RANK SIZE FOLDER DEVICE``.

The processes may share a GPU, which NCCL does not allow, so that gradients are averaged by gloo.
Writes the weights of each fit, and the imputed table of the first process.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from psmvae import GAINImputer, Network, PSMVAEImputer
from psmvae.training.shard import ProcessShard

SETTINGS = {"max_epochs": 3, "batch_size": 51, "validation_fraction": 0.0, "random_state": 0}

REGRESSION = Network(width=32, depth=2, residual=False, linear=False, smooth=True)


def incomplete_table():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(173, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(173, 5))
    table[:, 4] = table[:, 4] > 0
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


def imputers(device="cpu"):
    """Fits of few steps; two processes do not get equal parts of 51 rows."""
    settings = SETTINGS | {"device": device}
    return {
        "PSMVAE": PSMVAEImputer(n_sets=2, n_members=2, draws="model", **settings),
        "pretrained": PSMVAEImputer(regression=REGRESSION, draws="model", **settings),
        "GAIN": GAINImputer(**settings),
    }


def weights(imputer):
    parts = [p.detach().flatten(1) for p in imputer.model_.parameters()]
    return torch.cat(parts, 1).cpu().numpy()


def fit_together(folder, environment, device):
    """Run two of these processes, and return the folder with what they found."""
    command = [sys.executable, "-W", "ignore", __file__]
    started = [
        subprocess.Popen(
            [*command, str(rank), "2", str(folder), device],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in started:
        errors = process.communicate(timeout=200)[1]
        assert process.returncode == 0, errors
    return folder


def main(rank, size, folder, device):
    torch.set_num_threads(1)
    store = f"file://{folder / 'store'}"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    shard, table = ProcessShard(device), incomplete_table()
    for name, imputer in imputers(device).items():
        imputer._fit_shard(table, shard)
        found = {"weights": weights(imputer)}
        if rank == 0:
            found["imputed"] = imputer.transform(table)
        np.savez(folder / f"{name}-{rank}.npz", **found)
    # the clocks of two machines have nothing in common
    clock, ahead = time.perf_counter, 1e6 * rank
    time.perf_counter = lambda: clock() + ahead
    timed = PSMVAEImputer(max_time=1.0, draws="model", random_state=0, device=device)
    timed._fit_shard(table, shard)
    np.savez(folder / f"timed-{rank}.npz", weights=weights(timed))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
