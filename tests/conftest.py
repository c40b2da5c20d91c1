"""Fixtures of all tests."""

import importlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def pytest_configure(config):
    """Give each parallel test worker one thread, so that workers do not compete for cores."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        import torch

        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a subprocess: the package from src, one thread, default colours."""
    forced = ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
    inherited = {name: value for name, value in os.environ.items() if name not in forced}
    return {**inherited, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def filters_in_pool(monkeypatch):
    """The filters of warnings in each call of Rubin's rules.

    They belong to the process: another thread would see them changed.
    """
    from psmvae.multiple import rubin

    found, pool = [], rubin.pool_scalars

    def recorded(*args, **options):
        found.append(list(warnings.filters))
        return pool(*args, **options)

    monkeypatch.setattr(rubin, "pool_scalars", recorded)
    return found


@pytest.fixture(scope="session")
def python(environment):
    """Run Python code in a new process and return its output."""

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
    """Import a script of benchmarks/ as a module. Scripts import each other by name."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(folder):
            sys.modules.pop(name)


@pytest.fixture
def script(environment, tmp_path):
    """Run a script of benchmarks/ and return its output and its results file."""

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
        # a results file that is extended by several runs stores the machine in each record
        one = result if "machine" in result else result["records"][-1]
        assert one["machine"]["cpus"] == os.cpu_count()
        return done.stdout, result

    return run
