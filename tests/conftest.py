"""What every test shares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def pytest_configure(config):
    """One thread a test worker: workers that each take every core slow one another down."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a subprocess: the package from src, one thread, no colours forced."""
    forced = ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in forced}
    return {**inherited, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def python(environment):
    """Run a piece of Python in a fresh process and give what it printed."""

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
