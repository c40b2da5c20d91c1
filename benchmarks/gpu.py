"""Speed and accuracy of training and imputation on one GPU, with the paper's hyperparameters.

The model is PSMVAE(b) with all its factors: batches of 200, 10 sets, z of dimension 20, hidden
layers of 128. The table is the 16,000 x 16 training table of letter (from ``PSMVAE_DATA_HOME``;
without it, random numbers of the same shape). Measured are:

1. milliseconds of a training step for one member and several stacked ones, as the CUDA graph that
   `fit` replays, and with the loss compiled by `torch.compile`; against the same step without a
   graph, and against a direct implementation with a Python loop over the sets (plain_loop.py);
2. milliseconds and RMSE of an imputed row with K = 10,000 draws for every row; against draws that
   stop at a target effective sample size;
3. number and time of the kernels of a step and of an imputation, from profiles; against the largest
   bandwidth and speed that this GPU reaches;
4. RMSE (K = 1) of five seeds, stacked, with the loss compiled and products in TF32; against the
   same without both.

Compiled steps (part of 1, and 4) need the package of the replication, psmvae_paper; leave them out
with ``--no-compiled``. Run with

    python benchmarks/gpu.py [--epochs 200] [--rows 16000] [--no-compiled]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from plain_loop import PlainLoop
from psmvae import PSMVAEImputer
from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.simulate import mcar
from psmvae.table.codec import Codec
from psmvae.training import loop
from psmvae.training.adam import Adam
from psmvae.training.data import TrainingData
from psmvae.training.step import Stepper
from psmvae.training.weights import Weights

RESULTS = Path(__file__).parent / "results" / "gpu.json"
BATCH, RATE = 200, 0.2
# Parts of the names of matrix product kernels.
PRODUCTS = ("gemm", "cutlass", "nvjet")
# Rows and draws of the profiled imputation.
PROFILED_ROWS, PROFILED_DRAWS = 1000, 1000


def replication() -> tuple[Any, Any]:
    """Import what compiles a loss and what stacks fits, both parts of the replication."""
    try:
        from psmvae_paper import compiled, stacked_fit
    except ModuleNotFoundError:
        message = (
            "psmvae_paper is not installed: run 'pip install -e replication', or leave the "
            "compiled steps out with --no-compiled."
        )
        raise SystemExit(message) from None
    return compiled, stacked_fit


def letter(seed: int = 0) -> tuple[np.ndarray, np.ndarray, str]:
    """Training rows (80 %) of letter: complete, with missing cells, and the name of the table."""
    rng = np.random.default_rng(seed)
    home = os.environ.get("PSMVAE_DATA_HOME")
    if home:
        import pandas as pd

        path = Path(home) / "letter.csv.gz"
        complete = pd.read_csv(path).select_dtypes("number").to_numpy(float)
        what = "letter"
    else:
        complete = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, 16))
        complete += 0.5 * rng.normal(size=complete.shape)
        what = "random"
    rows = rng.permutation(len(complete))[: int(0.8 * len(complete))]
    m = mcar(complete, RATE, rng).m
    incomplete = np.where(m, complete, np.nan)
    return complete[rows], incomplete[rows], what


def rmse(filled: np.ndarray, complete: np.ndarray, missing: np.ndarray) -> float:
    """RMSE by the paper: in ranges of the columns; columns with few distinct values are rounded."""
    few = np.array([len(np.unique(c)) < 20 for c in complete.T])
    filled = np.where(few, np.rint(filled), filled)
    error = (filled - complete) / np.ptp(complete, axis=0)
    return float(np.sqrt((error[missing] ** 2).mean()))


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """Median seconds of a call, including queued GPU work."""
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def prepared(incomplete: np.ndarray, n_members: int) -> tuple[PSMVAEImputer, Any, Any]:
    """An untrained imputer on the GPU and the tensors of the table."""
    imputer = PSMVAEImputer.paper("b", n_members=n_members, device="cuda", random_state=0)
    encoded = imputer._read(incomplete)  # noqa: SLF001 (fit in parts, to time one of them)
    imputer._build()  # noqa: SLF001
    imputer.model_.to("cuda")
    return imputer, *imputer._tensors(encoded.x, encoded.m)  # noqa: SLF001


def step_of(
    incomplete: np.ndarray, n_members: int, *, captured: bool, compiled: bool = False
) -> Callable[[], None]:
    """One training step as in `fit`."""
    imputer, x, m = prepared(incomplete, n_members)
    recipe = imputer._recipe()  # noqa: SLF001
    noise = Noise(0, "cuda")
    data = TrainingData(x, m, n_members, 0.0, noise)
    weights = Weights(imputer.model_.parameters(), 0.0)
    adam = Adam(weights.flat, 1e-3)
    loss = recipe.loss
    if compiled:
        loss = replication()[0].Compiled(loss, weights.parameters)

    def step(rows: torch.Tensor) -> None:
        with allow_tf32(x.device):
            loss(data.batch(rows, 0.0, noise), noise).mean(1).sum().backward()
        weights.collect_gradients()
        weights.clip_gradients()
        adam.step()

    stepper = Stepper(step, noise)
    stepper.captures = captured
    rows = noise.shuffles(n_members, len(incomplete))[:, :BATCH]
    return lambda: stepper(rows)


def plain_step(incomplete: np.ndarray) -> Callable[[], None]:
    """One training step of the plain loop."""
    _, x, m = prepared(incomplete, 1)
    model = PlainLoop(x.shape[1]).to("cuda")
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        adam.zero_grad()
        model.loss(x[:BATCH], m[:BATCH]).backward()
        adam.step()

    return step


def steps(
    incomplete: np.ndarray, *, compiled: bool
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Milliseconds of a step, and profiles of the captured ones."""
    taken, profiles = {}, []
    others = (
        ("plain loop over the sets", plain_step(incomplete), 20),
        ("one member, not captured", step_of(incomplete, 1, captured=False), 50),
    )
    for name, run, n in others:
        taken[name] = milliseconds(name, run, n)
    for is_compiled in (False, True) if compiled else (False,):
        for members in (1, 10, 30, 100):
            run = step_of(incomplete, members, captured=True, compiled=is_compiled)
            first = seconds(run, 1)
            name = f"{members} member{'s' if members > 1 else ''}"
            name += ", compiled" if is_compiled else ""
            taken[name] = milliseconds(name, run, 200)
            about = {"members": members, "compiled": is_compiled, "first_call_seconds": first}
            profiles.append(about | profiled(run, 10))
    return taken, profiles


def milliseconds(name: str, run: Callable[[], None], n: int) -> float:
    """Milliseconds of one of n steps, after eight that include set-up costs."""
    for _ in range(8):
        run()
    found = 1e3 * seconds(lambda: [run() for _ in range(n)], 5) / n
    print(f"{name:28} {found:8.3f} ms a step", flush=True)
    return found


def profiled(run: Callable[[], Any], n: int) -> dict[str, Any]:
    """Number and time of the kernels of a call, and the slowest of them."""
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(n):
            run()
        torch.cuda.synchronize()
    events = sorted(found.key_averages(), key=lambda e: -e.device_time_total)
    products = [e for e in events if any(k in e.key.lower() for k in PRODUCTS)]
    ms = 1e3 * n
    return {
        "kernels": sum(e.count for e in events) / n,
        "kernel_ms": sum(e.device_time_total for e in events) / ms,
        "products_ms": sum(e.device_time_total for e in products) / ms,
        "longest": [
            {"kernel": e.key[:90], "calls": e.count / n, "ms": e.device_time_total / ms}
            for e in events[:8]
        ],
    }


def limits() -> dict[str, float]:
    """GB/s of a large copy and TFLOP/s of a large float32 matrix product."""
    numbers = torch.empty(2**28, device="cuda")
    copy = seconds(lambda: numbers.clone(), 5)
    square = torch.randn(8192, 8192, device="cuda")
    product = seconds(lambda: square @ square, 5)
    return {
        "copy_gb_s": 2 * 4 * 2**28 / copy / 1e9,
        "product_tflop_s": 2 * 8192**3 / product / 1e12,
    }


def accuracy(epochs: int) -> list[dict[str, Any]]:
    """RMSE of five seeds: float32 without compiling, and TF32 with the loss compiled."""
    complete, incomplete, _ = letter()
    missing, found = np.isnan(incomplete), []
    compiled, stacked_fit = replication()
    min_steps = compiled.MIN_STEPS
    for fast in (False, True):
        compiled.MIN_STEPS = 0 if fast else 10**9
        loop.allow_tf32 = allow_tf32 if fast else lambda _: nullcontext()
        imputers = [
            PSMVAEImputer.paper("b", max_epochs=epochs, n_draws=1, device="cuda", random_state=k)
            for k in range(5)
        ]
        began = time.perf_counter()
        stacked_fit.fit_stacked(imputers, [incomplete] * 5)
        taken = time.perf_counter() - began
        errors = [rmse(one.transform(incomplete), complete, missing) for one in imputers]
        found.append({"fast": fast, "epochs": epochs, "fit_seconds": taken, "rmse": errors})
        print(found[-1], flush=True)
    compiled.MIN_STEPS = min_steps
    return found


def imputation(epochs: int, n_rows: int) -> dict[str, Any]:
    """Milliseconds a row and RMSE, with all draws and with a target effective sample size."""
    complete, incomplete, what = letter()
    imputer = PSMVAEImputer.paper("b", max_epochs=epochs, device="cuda", random_state=0)
    began = time.perf_counter()
    imputer.fit(incomplete)
    fit = time.perf_counter() - began
    print(f"fit of {epochs} epochs: {fit:.1f} s", flush=True)
    complete, incomplete = complete[:n_rows], incomplete[:n_rows]
    missing = np.isnan(incomplete)
    x, m = imputer._tensors(*(lambda e: (e.x, e.m))(Codec(imputer.schema_).encode(incomplete)))  # noqa: SLF001
    cells = []
    for n_draws, target in (
        (1, None),
        (100, None),
        (10_000, None),
        *((10_000, target) for target in (10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 1000.0)),
    ):
        imputer.set_params(n_draws=n_draws, advanced=replace(imputer.advanced, target_ess=target))
        posterior = imputer._posterior(1)  # noqa: SLF001
        with torch.no_grad():
            posterior.impute(x[:64], m[:64])
            taken = seconds(lambda p=posterior: p.impute(x, m), 1 if n_draws > 100 else 3)
        error = rmse(imputer.transform(incomplete), complete, missing)
        cell = {
            "n_draws": n_draws,
            "target_ess": target,
            "ms_a_row": 1e3 * taken / n_rows,
            "rmse": error,
        }
        cells.append(cell)
        print(cell, flush=True)
    imputer.set_params(n_draws=PROFILED_DRAWS, advanced=replace(imputer.advanced, target_ess=None))
    posterior, some = imputer._posterior(1), slice(0, PROFILED_ROWS)  # noqa: SLF001
    with torch.no_grad():
        about = profiled(lambda: posterior.impute(x[some], m[some]), 3)
    shape = {"n_rows": PROFILED_ROWS, "n_draws": PROFILED_DRAWS}
    return {
        "table": what,
        "epochs": epochs,
        "fit_seconds": fit,
        "n_rows": n_rows,
        "cells": cells,
        "profile": shape | about,
    }


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description="Training and imputation on one GPU.")
    parser.add_argument("--epochs", type=int, default=200, help="epochs of the fits")
    parser.add_argument("--rows", type=int, default=16_000, help="rows to impute")
    parser.add_argument("--no-compiled", action="store_true", help="do not need psmvae_paper")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if not options.no_compiled:
        replication()
    _, incomplete, what = letter()
    steps_ms, profiles = steps(incomplete, compiled=not options.no_compiled)
    record = {
        "gpu": torch.cuda.get_device_name(),
        "versions": {name: version(name) for name in ("torch", "numpy")},
        "table": what,
        "limits": limits(),
        "steps_ms": steps_ms,
        "profiles": profiles,
        "accuracy": None if options.no_compiled else accuracy(options.epochs),
        "imputation": imputation(options.epochs, options.rows),
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
