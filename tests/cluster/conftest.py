"""A Ray of two worker processes on this machine."""

import os

import numpy as np
import pytest

from cluster.processes import MARKER

OBJECT_STORE = 500 * 2**20


@pytest.fixture(scope="session")
def marker(tmp_path_factory):
    """A file that a worker makes when its work begins."""
    return tmp_path_factory.mktemp("marker") / "begun"


@pytest.fixture(scope="session")
def ray(root, marker):
    """Start Ray, with the package and the tests in its workers, and stop it after the tests."""
    ray = pytest.importorskip("ray")
    before, path = dict(os.environ), os.pathsep.join(map(str, (root / "src", root / "tests")))
    os.environ |= {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", MARKER: str(marker)}
    settings = {"include_dashboard": False, "log_to_driver": False}
    ray.init(num_cpus=2, object_store_memory=OBJECT_STORE, **settings)
    yield ray
    ray.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def table():
    """A table of 400 rows and 5 columns of which a fifth is missing, one of them binary."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(400, 5))
    table[:, 4] = table[:, 4] > 0
    table[rng.random(table.shape) < 0.2] = np.nan
    return table
