"""Tables in several files, and imputers that are fitted quickly."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psmvae import MeanImputer, MICEImputer
from psmvae.imputers.blocks import BLOCK_ROWS

BLOCK = 64
# Rows of the files: none begins with a block but the first.
SIZES = (100, 30, 170)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setitem(BLOCK_ROWS, "cpu", BLOCK)


@pytest.fixture(scope="session")
def table():
    """300 rows with columns of several types."""
    rng = np.random.default_rng(0)
    n = sum(SIZES)
    x = rng.normal(size=n)
    columns = {
        "time": np.arange(n) / 8,
        "x": x,
        "count": rng.poisson(5 + 2 * (x > 0), n),
        "label": np.array(["low", "mid", "high"])[rng.integers(3, size=n)],
        "flag": rng.random(n) < 0.5,
    }
    names = list(columns)
    missing = {name: rng.random(n) < 0.2 for name in names}
    missing["time"][:] = False
    return pa.table({name: pa.array(columns[name], mask=missing[name]) for name in names})


def split(table, sizes=SIZES):
    starts = np.cumsum([0, *sizes])
    return [table.slice(start, size) for start, size in zip(starts, sizes, strict=False)]


@pytest.fixture
def folder(table, tmp_path):
    """The table in three Parquet files with two row groups each."""
    data = tmp_path / "data"
    data.mkdir()
    for number, part in enumerate(split(table)):
        rows = -(-part.num_rows // 2)
        pq.write_table(part, data / f"part-{number}.parquet", row_group_size=rows)
    return data


@pytest.fixture(scope="session")
def mean(table):
    return MeanImputer(random_state=0).fit(table)


@pytest.fixture(scope="session")
def mice(table):
    return MICEImputer(method="pmm", max_iter=2, random_state=0).fit(table)
