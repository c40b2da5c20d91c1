"""What every test shares."""

import importlib
import json
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


@pytest.fixture(scope="module")
def benchmark():
    """A benchmark as a module; they import one another as scripts of one folder do."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(folder):
            sys.modules.pop(name)


@pytest.fixture
def script(environment, tmp_path):
    """Run a benchmark in small, and give what it printed and its record."""

    def run(name, *arguments, **variables):
        out = tmp_path / f"{name}.json"
        done = subprocess.run(
            [sys.executable, ROOT / "benchmarks" / f"{name}.py", *arguments, "--out", out],
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(out.read_text())
        # records that were added to a file one by one have a machine each
        one = result if "machine" in result else result["records"][-1]
        assert one["machine"]["cpus"] == os.cpu_count()
        return done.stdout, result

    return run
