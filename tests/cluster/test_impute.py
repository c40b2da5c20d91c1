"""Imputation by actors of a real local Ray: the values of one process, whatever is killed."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import psmvae
from cluster.processes import Killer, SlowImputer
from psmvae import MICEImputer, PSMVAEImputer
from psmvae.ray.engine import Pool
from psmvae.streaming import FileTable, Job, PartError, impute_files
from psmvae.streaming.manifest import NAME

pytestmark = [
    pytest.mark.ray,
    # Ray's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

# Rows of the files: none but the first begins with a block of 4,096 rows.
SIZES = (5000, 1, 7000, 3000)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    n = sum(SIZES)
    table = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(n, 4))
    missing = rng.random(table.shape) < 0.2
    columns = {f"x{j}": pa.array(table[:, j], mask=missing[:, j]) for j in range(4)}
    label = np.where(table[:, 0] > 0, "high", "low")
    return pa.table(columns | {"label": pa.array(label, mask=rng.random(n) < 0.2)})


@pytest.fixture(scope="module")
def parts(large):
    starts = np.cumsum([0, *SIZES])
    return [large.slice(start, size) for start, size in zip(starts, SIZES, strict=False)]


@pytest.fixture(scope="module")
def data(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=2000)
    return folder


@pytest.fixture(scope="module")
def deep(large):
    settings = {"n_sets": 2, "max_epochs": 2, "draws": "model", "device": "cpu", "random_state": 0}
    return PSMVAEImputer(**settings).fit(large.slice(0, 1000))


@pytest.fixture(scope="module")
def mice(large):
    return MICEImputer(max_iter=2, random_state=0).fit(large.slice(0, 1000))


def read(folder):
    """Read the files of a folder in their order."""
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet")))


def imputation(long, number):
    return long.filter(pc.equal(long[".imp"], number)).drop([".imp", ".id"])


def finished(folder):
    """The files that the manifest lists as done."""
    manifest = folder / NAME
    return json.loads(manifest.read_text())["outputs"] if manifest.exists() else {}


def leftovers(folder):
    return sorted(path.name for path in folder.rglob("*") if path.name.endswith(".tmp"))


def test_files_have_the_values_of_the_table_in_memory(ray, deep, large, data, tmp_path):
    done = []
    result = psmvae.ray.impute(
        data, deep, output=tmp_path / "one", n_workers=2, progress=done.append
    )
    assert (result.n_rows, result.skipped, len(done)) == (sum(SIZES), {}, len(SIZES))
    assert read(tmp_path / "one").equals(deep.transform(large))
    psmvae.ray.impute(
        data, deep, output=tmp_path / "two", multiple=2, rows_per_file=6000, n_workers=2
    )
    long = read(tmp_path / "two")
    for number, expected in enumerate(deep.sample(large, n=2), 1):
        assert imputation(long, number).equals(expected)


def test_a_dataset_has_the_values_of_the_table_in_memory(ray, mice, large, parts):
    dataset = ray.data.from_arrow(parts)
    imputed = psmvae.ray.impute(dataset, mice, rows_per_file=5000, n_workers=2)
    assert pa.concat_tables(ray.get(imputed.to_arrow_refs())).equals(mice.transform(large))
    drawn = psmvae.ray.impute(dataset, mice, multiple=2, rows_per_file=5000, n_workers=2)
    long = pa.concat_tables(ray.get(drawn.to_arrow_refs()))
    for number, expected in enumerate(mice.sample(large, n=2), 1):
        assert imputation(long, number).equals(expected)


def test_errors_name_the_file(ray, mice, parts, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for number, part in enumerate(parts):
        if number == 2:
            other = pc.replace_substring(part["label"], "high", "other")
            part = part.set_column(4, "label", other)
        pq.write_table(part, data / f"{number}.parquet")
    with pytest.raises(PartError, match=r"2\.parquet.*'other'"):
        psmvae.ray.impute(data, mice, output=tmp_path / "stopped", n_workers=1)
    assert leftovers(tmp_path) == []
    result = psmvae.ray.impute(
        data, mice, output=tmp_path / "skipped", on_error="skip", n_workers=1
    )
    assert list(result.skipped) == ["2.parquet"]
    assert len(list((tmp_path / "skipped").glob("*.parquet"))) == len(SIZES) - 1


def test_what_cannot_be_imputed_is_refused(ray, mice, parts, tmp_path):
    dataset = ray.data.from_arrow(parts)
    with pytest.raises(TypeError, match="output is for files"):
        psmvae.ray.impute(dataset, mice, output=tmp_path / "out")
    with pytest.raises(TypeError, match=r"must be paths or a ray\.data\.Dataset, got dict"):
        psmvae.ray.impute({}, mice)
    with pytest.raises(ValueError, match="n_workers"):
        psmvae.ray.impute(dataset, mice, n_workers=0)


@pytest.mark.parametrize("max_failures", [0, 3])
def test_an_actor_is_killed(ray, large, data, tmp_path, marker, max_failures):
    """Its file is done again by another actor, or the run fails and other files stay valid."""
    imputer = SlowImputer(random_state=0).fit(large)
    table = FileTable.open(data)
    jobs = [
        Job(table, part.start, part.stop, (str(tmp_path / part.place.name),))
        for part in table.parts
    ]
    killer = Killer("ray::MapWorker(MapBatches(FileWorker))", marker)
    with killer:
        engine = Pool(n_workers=2, max_failures=max_failures)(imputer, jobs)
        if max_failures == 0:
            with pytest.raises(RuntimeError, match="Ray could not finish"):
                list(engine)
        else:
            assert sorted(number for number, _ in engine) == list(range(len(jobs)))
    assert killer.killed
    assert leftovers(tmp_path) == []
    expected, written = imputer.transform(large), sorted(tmp_path.glob("*.parquet"))
    assert len(written) == len(jobs) if max_failures else len(written) < len(jobs)
    for path in written:
        part = table.parts[int(path.stem)]
        assert pq.read_table(path).equals(expected.slice(part.start, part.stop - part.start))


def test_the_command_is_interrupted_and_goes_on(ray, mice, large, data, tmp_path, environment):
    """After Ctrl-C finished files stay, and a second run makes the others."""
    model, output = tmp_path / "model.safetensors", tmp_path / "out"
    mice.save(model)
    address = ray.get_runtime_context().gcs_address
    command = [
        *(sys.executable, "-m", "psmvae", "impute", str(data), "-m", str(model)),
        *("-o", str(output), "--multiple", "3", "--rows-per-file", "1000"),
        *("--engine", "ray", "--address", address, "--workers", "1"),
    ]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 200
    while not finished(output) and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 128 + signal.SIGINT, errors
    assert errors.splitlines()[-1] == "error: interrupted"
    assert leftovers(output) == []
    assert 0 < len(finished(output)) < 16
    again = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert again.returncode == 0, again.stderr
    assert "were done before" in again.stderr
    expected = tmp_path / "expected"
    impute_files(model, data, expected, multiple=3, random_state=0, rows_per_file=1000)
    assert read(output).equals(read(expected))


def test_the_command_fits_by_two_workers(ray, large, data, tmp_path, environment):
    model = tmp_path / "model.safetensors"
    address = ray.get_runtime_context().gcs_address
    command = [
        *(sys.executable, "-m", "psmvae", "fit", str(data), "-o", str(model), "--epochs", "2"),
        *("--sample-rows", "500", "--engine", "ray", "--address", address),
    ]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "15,001 rows, of which" in done.stderr
    assert psmvae.load(model).transform(large)["x0"].null_count == 0
