"""Training and imputation on one GPU, in the settings of the paper: PSMVAE(b), all its factors.

Batch 200, 10 sets, z of 20, hidden layers of 128, letter's 16,000 x 16 training table (from
``PSMVAE_DATA_HOME``; a random table of that shape without it).

1. A training step, one member and several stacked: the same captured step that `fit` replays, and
   as it is compiled for long trainings; beside it the same step without capture, and a plain loop
   over the sets (plain_loop.py).
2. Imputation with K = 10,000 draws for every row, in milliseconds a row, and with draws spent where
   the effective sample size asks for them; with the RMSE of each, by the paper's protocol.
3. What bounds a step and an imputation: kernels and their time, from profiles, beside the largest
   bandwidth and speed that this GPU shows.
4. Whether compiling and tensor cores cost accuracy: the RMSE (K = 1) of five members by five seeds,
   with both and with neither.

Run with

    python benchmarks/gpu.py [--epochs 200] [--rows 16000]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from psmvae_paper.compiled import Compiled
from psmvae_paper.stacked_fit import fit_stacked
from torch.profiler import ProfilerActivity, profile

from plain_loop import PlainLoop
from psmvae import PSMVAEImputer
from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.simulate import mcar
from psmvae.table.codec import Codec
from psmvae.training import loop
from psmvae.training.step import Stepper
from psmvae.training.validation import Table
from psmvae.training.weights import Weights

RESULTS = Path(__file__).parent / "results" / "gpu.json"
BATCH, RATE = 200, 0.2
# What kernels of matrix products have in their names.
PRODUCTS = ("gemm", "cutlass", "nvjet")
# Rows and draws of the profile of an imputation.
PROFILED_ROWS, PROFILED_DRAWS = 1000, 1000


def letter(seed: int = 0) -> tuple[np.ndarray, np.ndarray, str]:
    """The complete 80 % of letter and the same with holes."""
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
    holes = np.where(m, complete, np.nan)
    return complete[rows], holes[rows], what


def rmse(filled: np.ndarray, complete: np.ndarray, missing: np.ndarray) -> float:
    """By the paper: columns over their range, those with few values rounded."""
    few = np.array([len(np.unique(c)) < 20 for c in complete.T])
    filled = np.where(few, np.rint(filled), filled)
    error = (filled - complete) / np.ptp(complete, axis=0)
    return float(np.sqrt((error[missing] ** 2).mean()))


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """Median seconds of a run on the GPU."""
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        run()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def prepared(holes: np.ndarray, n_members: int) -> tuple[PSMVAEImputer, Any, Any]:
    """An untrained imputer on the GPU and the table's tensors."""
    imputer = PSMVAEImputer.paper("b", n_members=n_members, device="cuda", random_state=0)
    encoded = imputer._read(holes)  # noqa: SLF001 (the parts of fit, to time one of them)
    imputer._build()  # noqa: SLF001
    imputer.model_.to("cuda")
    return imputer, *imputer._tensors(encoded.x, encoded.m)  # noqa: SLF001


def step_of(
    holes: np.ndarray, n_members: int, *, captured: bool, compiled: bool = False
) -> Callable[[], None]:
    """One training step as `fit` does it."""
    imputer, x, m = prepared(holes, n_members)
    recipe = imputer._recipe(imputer._training(len(holes)))  # noqa: SLF001
    noise = Noise(0, "cuda")
    table, weights = Table(x, m, n_members, 0.0, noise), Weights(imputer.model_.parameters(), 0.0)
    adam = torch.optim.Adam([weights.now], lr=1e-3, fused=True, capturable=True)

    loss_of = Compiled(recipe.loss, weights.parameters) if compiled else recipe.loss

    def step(rows: torch.Tensor) -> None:
        with allow_tf32(x.device):
            loss_of(table.batch(rows, 0.0, noise), noise).mean(1).sum().backward()
        weights.take_gradients(100.0)
        adam.step()

    stepper = Stepper(step, noise)
    stepper.captures = captured
    rows = noise.shuffles(n_members, len(holes))[:, :BATCH]
    return lambda: stepper(rows)


def plain_step(holes: np.ndarray) -> Callable[[], None]:
    """One step of the plain loop."""
    _, x, m = prepared(holes, 1)
    model = PlainLoop(x.shape[1]).to("cuda")
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        adam.zero_grad()
        model.loss(x[:BATCH], m[:BATCH]).backward()
        adam.step()

    return step


def steps(holes: np.ndarray) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Milliseconds of a step, and the profiles of those that `fit` does."""
    taken, profiles = {}, []
    others = (
        ("plain loop over the sets", plain_step(holes), 20),
        ("one member, not captured", step_of(holes, 1, captured=False), 50),
    )
    for name, run, n in others:
        taken[name] = milliseconds(name, run, n)
    for compiled in (False, True):
        for members in (1, 10, 30, 100):
            run = step_of(holes, members, captured=True, compiled=compiled)
            first = seconds(run, 1)
            name = f"{members} member{'s' if members > 1 else ''}{', compiled' if compiled else ''}"
            taken[name] = milliseconds(name, run, 200)
            about = {"members": members, "compiled": compiled, "first_call_seconds": first}
            profiles.append(about | profiled(run, 10))
    return taken, profiles


def milliseconds(name: str, run: Callable[[], None], n: int) -> float:
    """Of one of n steps, after some that set things up."""
    for _ in range(8):
        run()
    found = 1e3 * seconds(lambda: [run() for _ in range(n)], 5) / n
    print(f"{name:28} {found:8.3f} ms a step", flush=True)
    return found


def profiled(run: Callable[[], Any], n: int) -> dict[str, Any]:
    """How many kernels a run has, how long they take, and which take longest."""
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
    """What this GPU does at best: GB/s of a large copy, TFLOP/s of a large float32 product."""
    numbers = torch.empty(2**28, device="cuda")
    copy = seconds(lambda: numbers.clone(), 5)
    square = torch.randn(8192, 8192, device="cuda")
    product = seconds(lambda: square @ square, 5)
    return {
        "copy_gb_s": 2 * 4 * 2**28 / copy / 1e9,
        "product_tflop_s": 2 * 8192**3 / product / 1e12,
    }


def accuracy(epochs: int) -> list[dict[str, Any]]:
    """RMSE of five seeds with plain products of float32, and compiled with tensor cores."""
    complete, holes, _ = letter()
    missing, found = np.isnan(holes), []
    usual = loop.COMPILED_FROM
    for fast in (False, True):
        loop.COMPILED_FROM = 0 if fast else 10**9
        loop.allow_tf32 = allow_tf32 if fast else lambda _: nullcontext()
        imputers = [
            PSMVAEImputer.paper("b", max_epochs=epochs, n_draws=1, device="cuda", random_state=k)
            for k in range(5)
        ]
        began = time.perf_counter()
        fit_stacked(imputers, [holes] * 5)
        taken = time.perf_counter() - began
        errors = [rmse(one.transform(holes), complete, missing) for one in imputers]
        found.append({"fast": fast, "epochs": epochs, "fit_seconds": taken, "rmse": errors})
        print(found[-1], flush=True)
    loop.COMPILED_FROM = usual
    return found


def imputation(epochs: int, n_rows: int) -> dict[str, Any]:
    """Milliseconds a row and RMSE, all draws and adaptive."""
    complete, holes, what = letter()
    imputer = PSMVAEImputer.paper("b", max_epochs=epochs, device="cuda", random_state=0)
    began = time.perf_counter()
    imputer.fit(holes)
    fit = time.perf_counter() - began
    print(f"fit of {epochs} epochs: {fit:.1f} s", flush=True)
    complete, holes = complete[:n_rows], holes[:n_rows]
    missing = np.isnan(holes)
    x, m = imputer._tensors(*(lambda e: (e.x, e.m))(Codec(imputer.schema_).encode(holes)))  # noqa: SLF001
    cells = []
    for n_draws, enough in (
        (1, None),
        (100, None),
        (10_000, None),
        *((10_000, enough) for enough in (10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 1000.0)),
    ):
        imputer.set_params(n_draws=n_draws, target_ess=enough)
        posterior = imputer._posterior(1)  # noqa: SLF001
        with torch.no_grad():
            posterior.impute(x[:64], m[:64])
            taken = seconds(lambda p=posterior: p.impute(x, m), 1 if n_draws > 100 else 3)
        error = rmse(imputer.transform(holes), complete, missing)
        cell = {
            "n_draws": n_draws,
            "enough": enough,
            "ms_a_row": 1e3 * taken / n_rows,
            "rmse": error,
        }
        cells.append(cell)
        print(cell, flush=True)
    imputer.set_params(n_draws=PROFILED_DRAWS, target_ess=None)
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
    """Measure all and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    _, holes, what = letter()
    steps_ms, profiles = steps(holes)
    record = {
        "gpu": torch.cuda.get_device_name(),
        "versions": {name: version(name) for name in ("torch", "numpy")},
        "table": what,
        "limits": limits(),
        "steps_ms": steps_ms,
        "profiles": profiles,
        "accuracy": accuracy(options.epochs),
        "imputation": imputation(options.epochs, options.rows),
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
