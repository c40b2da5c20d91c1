"""Time and peak memory of fit and transform against the size of the table and the number of draws.

Sizes grow along three axes, the others being fixed: rows (10^3 to 10^6, at 10 columns), columns (10
to 1,000, at 1,000 rows) and importance draws of transform (10 to 10,000, at 1,000 rows of 10
columns). The imputer has its defaults otherwise, so the network grows with the rows in steps (at
2,000 and at 10,000 rows), but no regression, whose pre-training has the same number of steps for
20,000 rows as for more. Each figure is measured in a fresh process:

- *fit* of one epoch (``--epochs``): all of `fit`, including the initial weights and the calibration
  of draws, whose time does not grow with the epochs;
- *transform* of the whole table, by a model with the network for that number of rows, trained for
  one epoch on few of them. Along rows and columns it uses the mean of q(z | .), as where draws do
  not reduce the validation error; along draws it uses all importance draws for every row.

Memory on a CPU is the kernel's high-water mark above that of the imports (as in memory.py; Linux
only), and includes the table and the result; on a GPU it is the peak of torch's allocations. A
small fit comes first and is not counted, because the first use of a library loads it. A process
that takes longer than ``--limit`` seconds, imports included, is stopped and recorded as skipped,
and so are all larger sizes after it. Run with

    python benchmarks/scaling.py [--quick] [--device cuda] [--limit 120] [--plot]
    python benchmarks/scaling.py --read results.json more.json --plot
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory import GIB, reset_high_water_mark, resident

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    Record = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parent.parent / "docs" / "scaling.png"
SIZES = {
    "rows": [1000, 10_000, 100_000, 1_000_000],
    "columns": [10, 30, 100, 300, 1000],
    "draws": [10, 100, 1000, 10_000],
}
QUICK = {"rows": [1000, 4000], "columns": [10, 30], "draws": [10, 100]}
# Rows to which the model of a transform is fitted.
FEW_ROWS = 1000


@dataclass(frozen=True)
class Cell:
    """One measurement: fit or transform, and the size."""

    what: str
    rows: int = 1000
    columns: int = 10
    draws: int = 100
    epochs: int = 1
    device: str = "cpu"
    weighed: bool = False


def random_table(n_rows: int, n_columns: int) -> np.ndarray:
    """Numbers with five common factors, 20 % of them missing."""
    import numpy as np

    from psmvae.simulate import mcar

    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 5)) @ rng.normal(size=(5, n_columns))
    x += 0.3 * rng.normal(size=x.shape)
    x[~mcar(x, 0.2, rng).m] = np.nan
    return x


def measure(cell: Cell) -> Record:
    """Measure one cell in this process."""
    import torch

    from psmvae import Advanced, PSMVAEImputer
    from psmvae.imputers.resolve import network_for

    imported = resident("VmRSS")
    imputer = PSMVAEImputer(
        draws="model",
        n_draws=cell.draws,
        max_epochs=cell.epochs,
        network=network_for(cell.rows, cell.columns),
        regression=None,
        device=cell.device,
        random_state=0,
        advanced=Advanced(target_ess=None if cell.weighed else 10.0),
    )
    small = random_table(FEW_ROWS, cell.columns if cell.what == "transform" else 2)
    imputer.fit(small)
    # set what calibration would choose, as one epoch is too short for its choice to matter
    imputer.model_.weight_power.fill_(float(cell.weighed))
    imputer.model_.use_posterior_mean.fill_(float(not cell.weighed))
    imputer.transform(small[:10])
    del small

    on_gpu = cell.device != "cpu"
    mark_was_reset = reset_high_water_mark()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(cell.device)
    table = random_table(cell.rows, cell.columns)
    start = time.perf_counter()
    if cell.what == "fit":
        imputer.fit(table)
    else:
        imputer.transform(table)
    seconds = time.perf_counter() - start
    peak = (resident("VmHWM") - imported) / GIB
    return {
        "seconds": seconds,
        "memory_gib": torch.cuda.max_memory_allocated(cell.device) / 2**30 if on_gpu else peak,
        "host_gib": peak,
        "host_includes_small_fit": not mark_was_reset,
        "width": network_for(cell.rows, cell.columns).width,
    }


def measure_apart(cell: Cell, limit: float) -> Record:
    """Measure one cell in a fresh process, or give the reason for skipping it."""
    command = [sys.executable, __file__, "--here", json.dumps(asdict(cell))]
    try:
        done = subprocess.run(
            command, check=False, stdout=subprocess.PIPE, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"over {limit:g} s"}
    if done.returncode != 0:
        return {"skipped": f"failed with code {done.returncode}"}
    found: Record = json.loads(done.stdout)
    return found


def axes(sizes: dict[str, list[int]], start: Cell) -> Iterator[tuple[str, list[Cell]]]:
    """The name of each axis and its cells of fit or transform, smallest first."""
    for axis, values in sizes.items():
        # fit does not depend on n_draws
        for what in ("transform",) if axis == "draws" else ("fit", "transform"):
            fixed = {"what": what, "weighed": axis == "draws"}
            changes: list[dict[str, Any]] = [{**fixed, axis: n} for n in sorted(values)]
            yield axis, [replace(start, **change) for change in changes]


def measure_all(sizes: dict[str, list[int]], start: Cell, limit: float) -> Iterator[Record]:
    """Measure all cells; after a skipped one, larger ones are skipped too."""
    for axis, cells in axes(sizes, start):
        skipped = None
        for cell in cells:
            found = measure_apart(cell, limit) if skipped is None else {"skipped": skipped}
            if "skipped" in found:
                skipped = "a smaller size was skipped"
            yield {"axis": axis, **asdict(cell), **found}


def figures(record: Record) -> str:
    """Seconds and memory of a record as text."""
    if "skipped" in record:
        return f"skipped ({record['skipped']})"
    return f"{record['seconds']:.2f} s, {record['memory_gib']:.2f} GiB"


def markdown(records: list[Record]) -> str:
    """A table with one row for each size."""
    lines = ["| | size | device | fit | transform |", "| --- | ---: | --- | ---: | ---: |"]
    keys = dict.fromkeys((r["axis"], r[r["axis"]], r["device"]) for r in records)
    for axis, size, device in keys:
        cells = {"fit": "", "transform": ""}
        for record in records:
            if (record["axis"], record[axis], record["device"]) == (axis, size, device):
                cells[record["what"]] = figures(record)
        lines.append(f"| {axis} | {size:,} | {device} | {cells['fit']} | {cells['transform']} |")
    return "\n".join(lines)


def plot(records: list[Record], path: Path) -> None:
    """Plot seconds (above) and memory (below) against each axis, on logarithmic scales."""
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.ticker import NullFormatter

    names = list(dict.fromkeys(r["axis"] for r in records))
    devices = list(dict.fromkeys(r["device"] for r in records))
    epochs = f" ({records[0]['epochs']} epoch{'s' if records[0]['epochs'] > 1 else ''})"
    labels = {"seconds": "seconds", "memory_gib": "peak memory, GiB"}
    size = (3.6 * len(names), 6.0)
    figure, panels = plt.subplots(
        2, len(names), figsize=size, sharex="col", sharey="row", squeeze=False
    )
    for row, (name, label) in zip(panels, labels.items(), strict=True):
        for panel, axis in zip(row, names, strict=True):
            for k, device in enumerate(devices):
                for what, style in {"fit": "o-", "transform": "s--"}.items():
                    mine = [
                        (r[axis], r[name])
                        for r in records
                        if (r["axis"], r["device"], r["what"]) == (axis, device, what)
                        and r.get(name)
                    ]
                    if mine:
                        title = f"{what}{epochs if what == 'fit' else ''}, {device}"
                        panel.plot(*zip(*mine, strict=True), style, color=f"C{k}", label=title)
            panel.set(xscale="log", yscale="log")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.grid(alpha=0.3)
        # whole decades, so that the axis has labelled ticks even for a narrow range
        low, high = np.log10(row[0].get_ylim())
        row[0].set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
        row[0].set_ylabel(label)
    for panel, axis in zip(panels[1], names, strict=True):
        panel.set_xlabel(axis)
    panels[0][0].legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parsed() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Time and memory as tables and draws grow.")
    parser.add_argument("--quick", action="store_true", help="few and small sizes")
    parser.add_argument("--axes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--epochs", type=int, default=1, help="epochs of a fit")
    parser.add_argument("--limit", type=float, default=120.0, help="maximum seconds of a process")
    parser.add_argument("--read", type=Path, nargs="+", help="show existing records")
    parser.add_argument("--plot", type=Path, nargs="?", const=PICTURE, help="draw a picture")
    parser.add_argument(
        "--out", type=Path, help="default: results/scaling.json, with the device's name for a GPU"
    )
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out is None:
        suffix = "" if options.device == "cpu" else f"_{options.device.replace(':', '')}"
        options.out = RESULTS / f"scaling{suffix}.json"
    return options


def main() -> None:
    """Measure the given axes, or show existing records."""
    options = parsed()
    if options.here:
        print(json.dumps(measure(Cell(**json.loads(options.here)))))
        return
    if options.read:
        records = [r for path in options.read for r in json.loads(path.read_text())["records"]]
    else:
        from breast import machine

        sizes = {axis: (QUICK if options.quick else SIZES)[axis] for axis in options.axes}
        settings = {name: getattr(options, name) for name in ("device", "epochs", "limit")}
        records = []
        start = Cell("fit", epochs=options.epochs, device=options.device)
        for record in measure_all(sizes, start, options.limit):
            axis = record["axis"]
            print(f"{record['what']}, {record[axis]:,} {axis}: {figures(record)}", flush=True)
            records.append(record)
            result = {"settings": settings | {"sizes": sizes}, "machine": machine()}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(result | {"records": records}, indent=1) + "\n")
    print(f"\n{markdown(records)}")
    if options.plot:
        plot(records, options.plot)


if __name__ == "__main__":
    main()
