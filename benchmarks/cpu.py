"""Speed of training and imputation on a CPU, against a direct implementation of the same model.

The model is PSMVAE(b) of the paper: batches of 200, 10 sets, z of dimension 20, hidden layers of
128, on a random table of 16,000 x 16 numbers with 20 % of the cells missing. Measured are:

1. seconds of a training step of `PSMVAEImputer.paper("b").fit` (those of an epoch, divided by its
   steps); against steps of a Python loop over the sets (plain_loop.py: the same factors and sizes,
   PyTorch's Adam), once with PyTorch's default library for matrix products and once with the one
   that psmvae selects on this processor. The loop runs after every epoch, so that changes of the
   machine's load affect both. The first round is left out.
2. seconds of an imputed row with K = 100 draws, `Posterior.impute` on all rows at once; against the
   same call one row at a time, and against the plain loop one row at a time, both on few rows.
3. share of the time in matrix products, in random numbers and in other operations, from a profile;
   beside the speed of a large matrix product.

Figures are medians over the rounds; a ratio is the other median divided by that of psmvae. Run with

    python benchmarks/cpu.py [--threads 2] [--rounds 7]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from breast import machine
from plain_loop import PlainLoop
from psmvae import PSMVAEImputer
from psmvae.inference.posterior import Posterior
from psmvae.nn.matmul_backend import use_blas
from psmvae.simulate import mcar

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

RESULTS = Path(__file__).parent / "results" / "cpu.json"
BATCH, RATE = 200, 0.2
KINDS_OF_OPERATIONS = {
    "products": {f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm")},
    "random": {f"aten::{name}" for name in ("uniform_", "normal_", "randn", "rand")},
}
PLAIN, PLAIN_BY_BLAS = "plain loop", "plain loop, matrix products as in psmvae"
# Target ratios: how many times faster psmvae should be.
ASKED = {"step": 4.0, "imputation": 10.0}


def random_table(n_rows: int, n_columns: int) -> np.ndarray:
    """Standardised numbers with three common factors, NaN where missing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_columns))
    x += 0.5 * rng.normal(size=x.shape)
    x = (x - x.mean(0)) / x.std(0)
    return np.where(mcar(x, RATE, rng).m, x, np.nan)


def tensors(table: np.ndarray) -> tuple[Tensor, Tensor]:
    """x, zero where missing, and m, 1 where observed."""
    m = ~np.isnan(table)
    x = torch.as_tensor(np.where(m, table, 0.0), dtype=torch.float32)
    return x, torch.as_tensor(m, dtype=torch.float32)


def seconds_of(run: Callable[[], Any]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class PlainTraining:
    """Steps of the plain loop on random batches of a table."""

    def __init__(self, x: Tensor, m: Tensor) -> None:
        self.x, self.m = x, m
        self.model = PlainLoop(x.shape[1])
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.generator = torch.Generator().manual_seed(0)

    def steps(self, n: int) -> None:
        """Run ``n`` steps."""
        for _ in range(n):
            rows = torch.randint(len(self.x), (BATCH,), generator=self.generator)
            self.adam.zero_grad()
            self.model.loss(self.x[rows], self.m[rows]).backward()
            self.adam.step()


def training(
    table: np.ndarray, rounds: int, plain_steps: int
) -> tuple[dict[str, list[float]], PSMVAEImputer, PlainLoop]:
    """Seconds of a step of each method in every round, and the two trained models."""
    plain = PlainTraining(*tensors(table))
    imputer = PSMVAEImputer.paper("b", max_epochs=rounds + 1, device="cpu", random_state=0)
    steps = max(1, len(table) // BATCH)
    taken: dict[str, list[float]] = {"psmvae": [], PLAIN: [], PLAIN_BY_BLAS: []}
    onednn = torch.backends.mkldnn.enabled
    mark = time.perf_counter()

    def after_an_epoch(_progress: Any) -> None:
        nonlocal mark
        taken["psmvae"].append((time.perf_counter() - mark) / steps)
        # inside `fit` PyTorch uses BLAS on some processors
        taken[PLAIN_BY_BLAS].append(seconds_of(lambda: plain.steps(plain_steps)) / plain_steps)
        inside = torch.backends.mkldnn.set_flags(_enabled=onednn)[0]
        taken[PLAIN].append(seconds_of(lambda: plain.steps(plain_steps)) / plain_steps)
        torch.backends.mkldnn.set_flags(_enabled=inside)
        mark = time.perf_counter()

    imputer.fit(table, callback=after_an_epoch)
    return {name: values[1:] for name, values in taken.items()}, imputer, plain.model


@torch.no_grad()
def imputation(
    imputer: PSMVAEImputer, plain: PlainLoop, table: np.ndarray, draws: int, rounds: int, few: int
) -> dict[str, list[float]]:
    """Seconds of a row of each method in every round; ``few`` rows for one row at a time."""
    x, m = tensors(table)
    posterior = Posterior(imputer.model_, draws, seed=0)
    few = min(few, len(x))

    def one_row_at_a_time() -> None:
        for i in range(few):
            posterior.impute(x[i : i + 1], m[i : i + 1])

    def plain_loop() -> None:
        for i in range(few):
            plain.impute_row(x[i], m[i], draws)

    ways = {
        "psmvae": (lambda: posterior.impute(x, m), len(x)),
        "psmvae, one row at a time": (one_row_at_a_time, few),
        "plain loop, one row at a time": (plain_loop, few),
    }
    # first calls include set-up costs
    posterior.impute(x[:few], m[:few])
    plain.impute_row(x[0], m[0], draws)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (run, n_rows) in ways.items():
            taken[name].append(seconds_of(run) / n_rows)
    return taken


def summary(what: str, taken: dict[str, list[float]]) -> list[dict[str, Any]]:
    """Records of the methods: median, all rounds, and the ratio to the median of psmvae."""
    own = float(np.median(taken["psmvae"]))
    records = []
    for name, values in taken.items():
        median = float(np.median(values))
        record = {"what": what, "method": name, "seconds": median, "rounds": values}
        if name != "psmvae":
            record |= {"ratio": median / own, "asked": ASKED[what]}
        records.append(record)
    return records


def bounds(imputer: PSMVAEImputer, table: np.ndarray, draws: int) -> list[dict[str, Any]]:
    """Profile an epoch of training and an imputation."""
    again = PSMVAEImputer.paper("b", max_epochs=1, device="cpu", random_state=0)
    x, m = tensors(table)
    posterior = Posterior(imputer.model_, draws, seed=0)
    n_rows = min(len(table), 2000)

    def impute() -> None:
        with torch.no_grad(), use_blas():
            posterior.impute(x[:n_rows], m[:n_rows])

    parts = []
    for what, run, count in (
        ("step", lambda: again.fit(table), max(1, len(table) // BATCH)),
        ("imputation", impute, n_rows),
    ):
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            run()
        each = {event.key: event for event in seen.key_averages() if event.key.startswith("aten::")}
        total = sum(event.self_cpu_time_total for event in each.values())
        share = {
            kind: sum(e.self_cpu_time_total for key, e in each.items() if key in names) / total
            for kind, names in KINDS_OF_OPERATIONS.items()
        }
        calls = sum(event.count for event in each.values()) / count
        parts.append({"what": what, "share": share, "calls": calls})
    square = torch.ones(1024, 1024)
    with use_blas():
        taken = min(seconds_of(lambda: square @ square) for _ in range(5))
    return [*parts, {"what": "large product", "gflop_a_second": 2 * 1024**3 / taken / 1e9}]


def profile_text(profiles: list[dict[str, Any]]) -> str:
    """The profiles as sentences."""
    units = {"step": "a training step", "imputation": "an imputed row"}
    lines = [
        f"Of the time in PyTorch's operations, for {units[each['what']]} "
        f"{each['share']['products']:.0%} go to matrix products and {each['share']['random']:.0%} "
        f"to random numbers, in {each['calls']:,.0f} calls (nested calls included)."
        for each in profiles[:-1]
    ]
    peak = profiles[-1]["gflop_a_second"]
    return " ".join([*lines, f"A large product does {peak:.0f} billion operations a second here."])


def markdown(records: list[dict[str, Any]]) -> str:
    """A table with one row for each method."""
    units = {"step": "training step", "imputation": "imputed row"}
    lines = [
        "| | method | ms | fastest to slowest round | times psmvae |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for record in records:
        low, high = 1e3 * min(record["rounds"]), 1e3 * max(record["rounds"])
        ratio = f"{record['ratio']:.1f} (asked: {record['asked']:g})" if "ratio" in record else ""
        lines.append(
            f"| {units[record['what']]} | {record['method']} | {1e3 * record['seconds']:.3g} "
            f"| {low:.3g} to {high:.3g} | {ratio} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description="Training and imputation on a CPU.")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--draws", type=int, default=100, help="K, draws of an imputed row")
    parser.add_argument("--rounds", type=int, default=7, help="timed epochs")
    parser.add_argument("--impute-rounds", type=int, default=3)
    parser.add_argument(
        "--plain-steps", type=int, default=40, help="steps of the plain loop in a round"
    )
    parser.add_argument("--few", type=int, default=200, help="rows imputed one at a time")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    table = random_table(options.rows, options.columns)
    taken, imputer, plain = training(table, options.rounds, options.plain_steps)
    steps = summary("step", taken)
    print(markdown(steps) + "\n", flush=True)
    rounds = options.impute_rounds
    taken = imputation(imputer, plain, table, options.draws, rounds, options.few)
    rows = summary("imputation", taken)
    print(markdown(rows))
    profiles = bounds(imputer, table, options.draws)
    print(f"\n{profile_text(profiles)}")
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    result = {
        "settings": settings,
        "machine": machine(),
        "records": steps + rows,
        "profiles": profiles,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
