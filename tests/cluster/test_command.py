"""``psmvae fit --engine ray`` in a real process."""

import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import psmvae
from cluster.processes import worker_processes

pytestmark = pytest.mark.ray


@pytest.fixture
def command(ray, table, tmp_path):
    """The command without the number of epochs."""
    path = tmp_path / "table.parquet"
    pd.DataFrame(table, columns=list("abcde")).to_parquet(path)
    address = ray.get_runtime_context().gcs_address
    model = tmp_path / "model.safetensors"
    return [
        *(sys.executable, "-m", "psmvae", "fit", str(path), "-o", str(model)),
        *("--sample-rows", "300", "--engine", "ray", "--address", address),
    ]


def test_a_model_is_fitted_by_two_workers(command, table, tmp_path, environment):
    done = subprocess.run(
        [*command, "--epochs", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 file: 400 rows, of which" in done.stderr
    frame = pd.DataFrame(table, columns=list("abcde"))
    imputed = psmvae.load(tmp_path / "model.safetensors").transform(frame)
    assert np.isfinite(imputed.to_numpy()).all()


def test_an_interrupted_fit_writes_nothing(command, tmp_path, environment):
    process = subprocess.Popen(
        [*command, "--epochs", "100000"], env=environment, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 200
    while len(worker_processes("ray::RayTrainWorker")) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 128 + signal.SIGINT, errors
    assert errors.splitlines()[-1] == "error: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]
    while worker_processes("ray::RayTrainWorker") and time.monotonic() < end:
        time.sleep(0.1)
    assert worker_processes("ray::RayTrainWorker") == []
