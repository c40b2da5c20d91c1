"""The command line as a user meets it: a process with files, streams and an exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

# As little training as there can be: these tests are about files and messages.
QUICK = ["--epochs", "2", "--draws", "4", "--device", "cpu"]

CSV = """id,age,income,city,member
1,34,51200.50,Basel,yes
2,,48000,Ghent,no
3,51,,Lyon,yes
4,29,39500,,no
5,62,71000.25,Basel,
6,45,,Ghent,yes
7,38,52000,Lyon,no
8,,43100,Basel,yes
9,57,64000,Ghent,no
10,41,50050,,yes
11,33,47000,Lyon,no
12,48,58000,Basel,yes
"""


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and what it wrote to the two streams."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def fresh(environment):
    """Run ``psmvae ...`` in a new process that has loaded nothing, as a user does."""

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "psmvae", *map(str, arguments)],
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def psmvae(environment, fresh, tmp_path_factory):
    """Run ``psmvae ...`` in a process of its own, forked from one that has loaded the libraries."""
    if not hasattr(os, "fork"):
        yield fresh
        return
    out, err = (tmp_path_factory.mktemp("streams") / name for name in ("out", "err"))
    with subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("warm.py")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def run(*arguments: object, cwd: Path | None = None) -> Result:
            for stream in (out, err):
                stream.write_text("")
            order = {
                "arguments": [*map(str, arguments)],
                "cwd": str(cwd or Path.cwd()),
                "out": str(out),
                "err": str(err),
            }
            server.stdin.write(json.dumps(order) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            result = Result(code, out.read_text(), err.read_text())
            assert "Traceback" not in result.err, result.err
            return result

        yield run
        server.stdin.close()


@pytest.fixture(scope="session")
def refused(psmvae):
    """Run a command that must fail with this exit code, one line on stderr and nothing else."""

    def run(code: int, *arguments: object, cwd: Path | None = None) -> str:
        result = psmvae(*arguments, cwd=cwd)
        assert result.code == code, result.err
        assert result.out == ""
        errors = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
        assert len(errors) == 1, result.err
        assert errors[0].startswith("error: ")
        return errors[0]

    return run


@pytest.fixture
def table(tmp_path) -> Path:
    """A small CSV file with holes, in a folder with nothing else."""
    path = tmp_path / "patients.csv"
    path.write_text(CSV)
    return path


@pytest.fixture(scope="session")
def model(psmvae, tmp_path_factory) -> Path:
    """A model fitted to that table."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "patients.csv").write_text(CSV)
    path = folder / "model.safetensors"
    result = psmvae("fit", folder / "patients.csv", "-o", path, *QUICK)
    assert result.code == 0, result.err
    return path


@pytest.fixture(scope="session")
def big(tmp_path_factory) -> Path:
    """A table that trains long enough to be interrupted."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 8))
    path = tmp_path_factory.mktemp("big") / "big.csv"
    rows = [",".join("" if rng.random() < 0.2 else f"{v:.4f}" for v in row) for row in x]
    path.write_text("\n".join([",".join("abcdefgh"), *rows]) + "\n")
    return path
