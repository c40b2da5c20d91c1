"""Fixtures that all tests share."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config):
    """One thread for each test worker of pytest-xdist."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        torch.set_num_threads(1)


@dataclass(frozen=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of this distribution."""
    return ROOT


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a subprocess: this source tree, one thread, no forced colours."""
    forced = ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in forced}
    paths = [str(ROOT / "src"), *filter(None, [inherited.get("PYTHONPATH")])]
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def python(environment):
    """Run Python code in a new process and return what it printed."""

    def run(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def fresh(environment):
    """Run ``psmvae-paper ...`` in a new process, as a user does."""

    def run(*arguments: object, cwd: Path | None = None) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "psmvae_paper", *map(str, arguments)],
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
def paper_command(environment, fresh, tmp_path_factory):
    """Run ``psmvae-paper ...`` in a process that is forked after the libraries are loaded.

    Importing torch and scikit-learn takes seconds, most commands a fraction of a second.
    """
    if not hasattr(os, "fork"):
        yield fresh
        return
    out, err = (tmp_path_factory.mktemp("streams") / name for name in ("out", "err"))
    with subprocess.Popen(
        [sys.executable, "-P", Path(__file__).with_name("fork_server.py")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def run(*arguments: object, cwd: Path | None = None) -> Result:
            for stream in (out, err):
                stream.write_text("")
            request = {
                "arguments": [*map(str, arguments)],
                "cwd": str(cwd or Path.cwd()),
                "out": str(out),
                "err": str(err),
            }
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            result = Result(code, out.read_text(), err.read_text())
            assert "Traceback" not in result.err, result.err
            return result

        yield run
        server.stdin.close()


@pytest.fixture(scope="session")
def error_of(paper_command):
    """Run a command that must fail with one error line and this exit code; return the line."""

    def run(code: int, *arguments: object, cwd: Path | None = None) -> str:
        result = paper_command(*arguments, cwd=cwd)
        assert result.code == code, result.err
        assert result.out == ""
        errors = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
        assert len(errors) == 1, result.err
        assert errors[0].startswith("error: ")
        return errors[0]

    return run


@pytest.fixture
def script(environment, tmp_path):
    """Run a script of `scripts` on small settings; return what it printed and its records."""

    def run(name, *arguments):
        out = tmp_path / f"{name}.json"
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / f"{name}.py", *arguments, "--out", out],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, json.loads(out.read_text())

    return run
