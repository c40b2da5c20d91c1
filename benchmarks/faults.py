"""Run the command line while things go wrong: signals, full disks, jumping clocks, two writers.

Every round starts real processes in a folder of its own. Afterwards the inputs are unchanged, every
output is complete or absent (or what it was before), and the same command succeeds when it is run
again and leaves no temporary file. Each fault is printed with the number that reproduces it::

    python benchmarks/faults.py --n 200 --seed 0
    python benchmarks/faults.py --seed 0 --only 17
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from psmvae.imputers import load
from psmvae.table import read_table, write_table

ROOT = Path(__file__).parent.parent
# A command that takes longer hangs.
SECONDS = 300
DEEP = "--method vae --epochs 2 --draws 4 --device cpu --seed 0"
# Arguments after the table, by name; {o} is the folder of the outputs.
COMMANDS = {
    "table": "impute {t} -o {o}/o.csv --method mean",
    "table and model": "impute {t} -o {o}/o.csv --save-model {o}/m.safetensors --method mean",
    "long table": "impute {t} -o {o}/o.parquet --multiple 3 --method mice --seed 0",
    "several tables": "impute {t} -o {o}/o-{{i}}.csv.gz --multiple 3 --method mean --seed 0",
    "model": "fit {t} -o {o}/m.safetensors --method missforest --seed 0",
    "deep": f"impute {{t}} -o {{o}}/o.feather --save-model {{o}}/m.safetensors {DEEP}",
}
# Wall clock times that jump by up to 30 years at every call; the monotonic clock of a system never
# jumps.
CLOCK = """
import random, time
_time, _time_ns, _rng = time.time, time.time_ns, random.Random(0)
time.time = lambda: _time() + _rng.uniform(-1e9, 1e9)
time.time_ns = lambda: _time_ns() + int(_rng.uniform(-1e18, 1e18))
"""


class FaultError(Exception):
    """Something was lost, half-written or could not be repeated."""


def require(condition: object, message: str) -> None:
    """Raise FaultError unless the condition holds."""
    if not condition:
        raise FaultError(message)


@dataclass
class Round:
    """A folder with an input table, and the command that is run on it."""

    folder: Path
    command: str
    rng: random.Random
    force: bool = False
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Write the table, and for --force a file that is to be replaced."""
        self.table, self.outputs = self.folder / "t.csv", self.folder / "out"
        self.outputs.mkdir()
        make_table(self.rng.randrange(2**30), self.table)
        self.before = self.table.read_bytes()
        self.old = b"an earlier result\n"
        if self.force:
            for name in self.names:
                (self.outputs / name).write_bytes(self.old)

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        words = COMMANDS[self.command].format(t="", o="out").split()
        found = [Path(word).name for word in words if word.startswith("out/")]
        return [name.format(i=k) for name in found for k in ([1, 2, 3] if "{i}" in name else [1])]

    def arguments(self, *, force: bool) -> list[str]:
        """Return the command line."""
        words = COMMANDS[self.command].format(t=self.table, o=self.outputs).split()
        return [sys.executable, "-m", "psmvae", *words, *(["--force"] if force else [])]

    def start(
        self, *, force: bool, limit: int | None = None, site: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start the command; no file may exceed `limit` bytes."""

        def prepare() -> None:
            # a parent that ignores Ctrl-C, as in the background, would pass that on
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        path = os.pathsep.join([*([str(site)] if site else []), str(ROOT / "src")])
        return subprocess.Popen(
            self.arguments(force=force),
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=prepare,
        )

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Return the exit code and the standard error of a process."""
        try:
            error = process.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise FaultError(f"the command did not end within {SECONDS} s") from None
        # Ctrl-C while Python itself starts shows a traceback without a module of psmvae
        shown = "Traceback" in error and f"{os.sep}psmvae{os.sep}" in error
        require(not shown, f"a traceback: {error[-1500:]}")
        return process.returncode, error

    def run(
        self, *, force: bool, limit: int | None = None, site: Path | None = None
    ) -> tuple[int, str]:
        """Run the command to its end."""
        return self.finish(self.start(force=force, limit=limit, site=site))

    def check_outputs(self, *, all_there: bool = False) -> None:
        """Check that each output is complete, or as it was before; and the input unchanged."""
        require(self.table.read_bytes() == self.before, "the input changed")
        for name in self.names:
            path = self.outputs / name
            if not path.exists():
                require(not all_there, f"{name} is absent")
                require(not self.force, f"{name}, which was to be replaced, is gone")
            elif path.read_bytes() == self.old:
                require(self.force and not all_there, f"{name} was not replaced")
            else:
                check_complete(path, self.table)

    def check_rerun(self) -> None:
        """Check that the command succeeds now, and that nothing else is left."""
        code, error = self.run(force=True)
        require(code == 0, f"the second run ended with {code}: {error[-500:]}")
        self.check_outputs(all_there=True)
        found = sorted(path.name for path in self.outputs.iterdir())
        require(found == sorted(self.names), f"left behind: {set(found) - set(self.names)}")


def make_table(seed: int, path: Path) -> None:
    """Write a table with missing cells."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([30, 300, 3000]))
    z = rng.normal(size=n)
    columns = {
        "age": np.round(50 + 10 * z).tolist(),
        "income": np.round(np.exp(z + rng.normal(size=n)), 3).tolist(),
        "city": rng.choice(["Basel", "Ghent", "Lyon"], n).tolist(),
    }
    table = {
        name: [None if u < 0.2 else cell for u, cell in zip(rng.random(n), cells, strict=True)]
        for name, cells in columns.items()
    }
    write_table(pa.table(table), path)


def check_complete(path: Path, source: Path) -> None:
    """Check that a file can be read, that nothing is missing, and that observed cells are kept."""
    try:
        if path.suffix == ".safetensors":
            load(path, device="cpu")
            return
        table = read_table(path)
    except (ValueError, OSError) as error:
        raise FaultError(f"{path.name} is half-written: {error}") from error
    original = read_table(source)
    n = original.num_rows
    if ".imp" in table.column_names:
        require(table.num_rows == 4 * n, f"{path.name} has {table.num_rows} rows of {4 * n}")
        # imputation 0 is the incomplete table
        table = table.slice(n).drop_columns([".imp", ".id"])
    require(table.num_rows % n == 0 and table.num_rows > 0, f"{path.name} has other rows")
    for k in range(0, table.num_rows, n):
        one = table.slice(k, n)
        for name in original.column_names:
            pairs = zip(original[name].to_pylist(), one[name].to_pylist(), strict=True)
            for old, new in pairs:
                require(new is not None, f"{path.name}: {name} is missing")
                require(old is None or old == new, f"{path.name}: {name} changed: {old} to {new}")


def signalled(one: Round, number: int) -> None:
    """Send a signal at a random moment, or while an output is being written."""
    process = one.start(force=one.force)
    if one.rng.random() < 0.5:
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if any(path.suffix == ".tmp" for path in one.outputs.iterdir()):
                time.sleep(one.rng.choice([0.0, 0.0, 0.001, 0.01, 0.1, 0.3]))
                break
            time.sleep(0.0002)
    else:
        time.sleep(one.rng.uniform(0.0, 6.0))
    if process.poll() is None:
        process.send_signal(number)
        one.notes.append("in time")
    code, error = one.finish(process)
    # 1: Ctrl-C before Python has installed its handler
    known = (0, -number, 130, 143, *([1] if "Traceback" in error else []))
    require(code in known, f"exit code {code} after signal {number}: {error[-500:]}")
    one.check_outputs()
    one.check_rerun()


def full_disk(one: Round) -> None:
    """Let no file grow beyond a few bytes to kilobytes."""
    limit = int(10 ** one.rng.uniform(0, 4.5))
    code, error = one.run(force=one.force, limit=limit)
    require(code in (0, 1), f"exit code {code} with {limit} bytes: {error[-500:]}")
    lines = [line for line in error.splitlines() if line.startswith("error: ")]
    require((code == 0) == (not lines), f"exit code {code}, but {lines}")
    require(all(str(one.outputs) in line for line in lines), f"no file is named: {lines}")
    one.notes.append("refused" if code else "fitted in")
    one.check_outputs(all_there=code == 0)
    one.check_rerun()


def small_disk(one: Round) -> None:
    """Write to a file system of a few kilobytes, in a mount namespace of its own."""
    size = one.rng.choice([4, 8, 16, 64])
    code, error = in_namespace(one, f"mount -t tmpfs -o size={size}k tmpfs {one.outputs}")
    require(code in (0, 1, 2), f"exit code {code}: {error[-500:]}")
    one.notes.append("refused" if code else "fitted in")
    one.check_rerun()


def read_only(one: Round) -> None:
    """Write to a folder on a read-only file system, in a mount namespace of its own."""
    mount = f"mount -t tmpfs tmpfs {one.outputs} && mount -o remount,ro {one.outputs}"
    code, error = in_namespace(one, mount)
    require(code == 2, f"exit code {code} in a read-only folder: {error[-500:]}")
    require("not writable" in error, f"no clear error: {error[-500:]}")
    one.check_rerun()


def in_namespace(one: Round, mount: str) -> tuple[int, str]:
    """Run the command after a mount that only its process sees, and check what it left there.

    The listing of the folder comes after a line of its own: what is in the mount goes with it.
    """
    command = " ".join(one.arguments(force=False))
    script = f"{mount} || exit 99; {command} >/dev/null; code=$?; echo LISTING >&2; "
    script += f"ls -A {one.outputs} >&2; exit $code"
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    require(done.returncode != 99, f"the mount failed: {done.stderr}")
    error, _, listing = done.stderr.partition("LISTING\n")
    require("Traceback" not in error, f"a traceback: {error[-1500:]}")
    left = set(listing.split()) - set(one.names)
    require(not left, f"left behind: {left}")
    return done.returncode, error


def jumping_clock(one: Round) -> None:
    """Run with a wall clock that jumps by years."""
    site = one.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(CLOCK)
    code, error = one.run(force=one.force, site=site)
    require(code == 0, f"exit code {code}: {error[-500:]}")
    one.check_outputs(all_there=True)
    one.check_rerun()


def two_writers(one: Round) -> None:
    """Start the same command twice at the same time."""
    processes = [one.start(force=one.force) for _ in range(2)]
    results = [one.finish(process) for process in processes]
    codes = sorted(code for code, _ in results)
    errors = [error[-300:] for _, error in results]
    allowed = ([0, 0],) if one.force else ([0, 0], [0, 1], [0, 2], [1, 1])
    require(codes in allowed, f"exit codes {codes}: {errors}")
    one.check_outputs(all_there=True)
    for path in one.outputs.iterdir():
        require(path.suffix != ".tmp", f"left behind: {path.name}")
        # the second result is beside the first: o-2.csv
        check_complete(path, one.table)
        if path.name not in one.names:
            path.unlink()
    one.check_rerun()


KINDS: dict[str, Callable[[Round], None]] = {
    "SIGKILL": lambda one: signalled(one, signal.SIGKILL),
    "SIGTERM": lambda one: signalled(one, signal.SIGTERM),
    "SIGINT": lambda one: signalled(one, signal.SIGINT),
    "file-size limit": full_disk,
    "small disk": small_disk,
    "read-only folder": read_only,
    "jumping clock": jumping_clock,
    "two writers": two_writers,
}
WEIGHTS = {"SIGKILL": 4, "SIGTERM": 2, "SIGINT": 2, "file-size limit": 2}
# These need a mount, which is made in a namespace where only the command sees it.
MOUNTED = ("small disk", "read-only folder")
NAMESPACE = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]


def can_mount() -> bool:
    """Whether this process may make mounts of its own."""
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [*NAMESPACE, "sh", "-c", f"mount -t tmpfs tmpfs {folder}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def prepared(seed: int, number: int, kinds: list[str]) -> Iterator[tuple[str, Round]]:
    """Draw a round and make its folder."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311
    kind = rng.choices(kinds, [WEIGHTS.get(kind, 1) for kind in kinds])[0]
    command = rng.choice(list(COMMANDS))
    force = kind not in MOUNTED and rng.random() < 0.5
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        yield kind, Round(Path(folder), command, rng, force)


def run_round(seed: int, number: int, kinds: list[str]) -> tuple[str, str | None]:
    """Run one round; return what it was, and its fault."""
    with prepared(seed, number, kinds) as (kind, one):
        try:
            KINDS[kind](one)
        except FaultError as error:
            where = f"{kind}, {one.command}{', --force' if one.force else ''}"
            return kind, f"--seed {seed} --only {number}: {where}: {error}"
        except Exception:  # noqa: BLE001
            return kind, f"--seed {seed} --only {number}: {kind}: {traceback.format_exc()}"
    return f"{kind} ({one.notes[-1]})" if one.notes else kind, None


def main() -> int:
    """Run the rounds and print what happened; the exit code is 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if kind not in MOUNTED or can_mount()]
    if len(kinds) < len(KINDS):
        print("no mounts are permitted here: a file-size limit stands for the full disk")
    numbers = range(arguments.n) if arguments.only is None else [arguments.only]
    counts, n_faults = Counter[str](), 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(lambda number: run_round(arguments.seed, number, kinds), numbers)
        for kind, fault in found:
            counts[kind] += 1
            if fault is not None:
                n_faults += 1
                print(fault, flush=True)
    for kind, count in sorted(counts.items()):
        print(f"{count:5,} {kind}")
    print(f"{len(numbers):,} rounds, {n_faults:,} faults")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
