"""Run the command line, in this process or in a new one, and small tables for it."""

import contextlib
import io
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from psmvae.cli import main

# As little training as possible: these tests are about files and messages.
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
    """The exit code of a command and what it wrote to the two streams."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def psmvae_process(environment):
    """Run ``psmvae ...`` in a new process, as a user does."""

    def run(*arguments: object) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "psmvae", *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def psmvae():
    """Run ``psmvae ...`` in this process, which has loaded the libraries already."""

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(cwd or Path.cwd()),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            # warnings are shown as in a new process; pytest would raise them
            warnings.resetwarnings()
            for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", category)
            code = main([*map(str, arguments)])
        return Result(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def refused(psmvae):
    """Run a command that must fail with this exit code and one error line; return the line."""

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
    """A small CSV file with missing cells, in a folder of its own."""
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
def big_table(tmp_path_factory) -> Path:
    """A table with 400 rows, whose training can be interrupted."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)) + 0.5 * rng.normal(size=(400, 8))
    path = tmp_path_factory.mktemp("big") / "big.csv"
    rows = [",".join("" if rng.random() < 0.2 else f"{v:.4f}" for v in row) for row in x]
    path.write_text("\n".join([",".join("abcdefgh"), *rows]) + "\n")
    return path
