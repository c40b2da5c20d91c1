"""Ray's actors and workers on a GPU: the values of one process on the GPU."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psmvae
from psmvae import PSMVAEImputer

pytestmark = [
    pytest.mark.gpu,
    # Ray's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SETTINGS = {"n_sets": 2, "max_epochs": 3, "draws": "model", "device": "cuda", "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(9000, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(9000, 4))
    missing = rng.random(table.shape) < 0.2
    return pa.table({f"x{j}": pa.array(table[:, j], mask=missing[:, j]) for j in range(4)})


def test_gpu_actors_impute_as_one_process_on_the_gpu(ray, frame, tmp_path):
    imputer = PSMVAEImputer(**SETTINGS).fit(frame.slice(0, 1000))
    (tmp_path / "data").mkdir()
    for number, start in enumerate((0, 5000)):
        pq.write_table(frame.slice(start, 5000), tmp_path / "data" / f"{number}.parquet")
    psmvae.ray.impute(tmp_path / "data", imputer, output=tmp_path / "filled", use_gpu=True)
    files = sorted((tmp_path / "filled").glob("*.parquet"))
    found = pa.concat_tables(pq.read_table(file) for file in files)
    assert found.equals(imputer.transform(frame))


def test_a_worker_with_a_gpu_fits_as_one_process_on_the_gpu(ray, frame):
    imputer = PSMVAEImputer(**SETTINGS)
    psmvae.ray.fit(frame.slice(0, 1000), imputer, n_workers=1, use_gpu=True)
    alone = PSMVAEImputer(**SETTINGS).fit(frame.slice(0, 1000))
    assert imputer.history_[-1].best_validation_error == pytest.approx(
        alone.history_[-1].best_validation_error, rel=1e-3
    )
