"""Full disks, pipes as outputs, and outputs that appear while a model is fitted."""

import contextlib
import os
import resource
import subprocess
import sys

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from psmvae.cli import commands  # noqa: E402
from psmvae.imputers import load  # noqa: E402
from psmvae.table import read_table  # noqa: E402

MEAN = ["--method", "mean"]


@contextlib.contextmanager
def full_disk(size):
    """Let no file grow beyond a number of bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestFullDisk:
    def test_the_table_is_written_if_the_model_cannot_be(self, psmvae, table, tmp_path):
        model = tmp_path / "m.safetensors"
        with full_disk(1000):
            result = psmvae("impute", table, "-o", tmp_path / "o.csv", "--save-model", model, *MEAN)
        assert result.code == 1
        errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
        assert errors == [f"error: [Errno 27] File too large: '{model}'"]
        assert f"wrote {tmp_path / 'o.csv'}" in result.err
        assert read_table(tmp_path / "o.csv")["age"].null_count == 0
        assert names(tmp_path) == ["o.csv", "patients.csv"]

    def test_the_model_is_written_if_the_table_cannot_be(
        self, psmvae, table, tmp_path, monkeypatch
    ):
        def fails(*_, **__):
            raise OSError(28, "No space left on device", "o.csv")

        monkeypatch.setattr(commands, "write_table", fails)
        model = tmp_path / "m.safetensors"
        result = psmvae("impute", table, "-o", tmp_path / "o.csv", "--save-model", model, *MEAN)
        assert result.code == 1
        assert "error: [Errno 28] No space left on device: 'o.csv'" in result.err
        assert f"wrote {model}" in result.err
        assert load(model).n_rows_ == 12

    def test_a_fitted_model(self, refused, table, tmp_path):
        model = tmp_path / "m.safetensors"
        with full_disk(1000):
            error = refused(1, "fit", table, "-o", model, *MEAN)
        assert error == f"error: [Errno 27] File too large: '{model}'"
        assert names(tmp_path) == ["patients.csv"]

    def test_a_table(self, refused, table, tmp_path):
        for ending in ("csv", "csv.gz", "parquet", "feather"):
            output = tmp_path / f"o.{ending}"
            with full_disk(100):
                error = refused(1, "impute", table, "-o", output, *MEAN)
            assert error.startswith(f"error: {output}: cannot be written: ")
        assert names(tmp_path) == ["patients.csv"]

    @pytest.mark.slow
    def test_in_a_process_of_its_own(self, environment, table, tmp_path):
        outputs = ["-o", tmp_path / "o.csv", "--save-model", tmp_path / "m.safetensors"]
        arguments = ["impute", table, *MEAN, *outputs]
        done = subprocess.run(
            [sys.executable, "-m", "psmvae", *map(str, arguments)],
            env=environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert names(tmp_path) == ["o.csv", "patients.csv"]


class TestPipes:
    def test_force_replaces_no_pipe(self, refused, table, tmp_path):
        output = tmp_path / "o.csv"
        os.mkfifo(output)
        error = refused(2, "impute", table, "-o", output, "--force", *MEAN)
        assert error == f"error: {output}: this is a pipe; expected the name of a file"
        assert output.is_fifo()

    def test_a_pipe_is_no_input(self, refused, tmp_path):
        for name, command in (("p.csv", "impute"), ("p.safetensors", "info")):
            os.mkfifo(tmp_path / name)
            output = ["-o", tmp_path / "o.csv"] if command == "impute" else []
            error = refused(2, command, tmp_path / name, *output)
            assert "this is a pipe; expected a file" in error


class TestTakenInTheMeantime:
    @pytest.fixture
    def taken(self, monkeypatch):
        """Create a file while the model is fitted."""

        def take(path):
            fit = commands._fit

            def slow(*arguments, **options):
                path.write_text("of another process")
                return fit(*arguments, **options)

            monkeypatch.setattr(commands, "_fit", slow)

        return take

    @pytest.mark.parametrize(
        ("name", "other"),
        [
            ("o.csv", "o-2.csv"),
            ("o.b.csv.gz", "o.b-2.csv.gz"),
            ("o.parquet", "o-2.parquet"),
        ],
    )
    def test_a_table_is_written_beside_it(self, psmvae, table, tmp_path, taken, name, other):
        beside = tmp_path / other
        taken(tmp_path / name)
        result = psmvae("impute", table, "-o", tmp_path / name, *MEAN)
        assert result.code == 1
        assert f"the result is in {beside}" in result.err
        assert (tmp_path / name).read_text() == "of another process"
        assert read_table(beside)["age"].null_count == 0

    def test_a_report_is_written_beside_it(self, psmvae, table, tmp_path, taken):
        page = tmp_path / "r.md"
        taken(page)
        result = psmvae("report", table, "-o", page, "--no-validation", "--multiple", 2, *MEAN)
        assert result.code == 1
        assert page.read_text() == "of another process"
        assert (tmp_path / "r-2.md").read_text().startswith("# ")

    def test_a_model_is_written_beside_it(self, psmvae, table, tmp_path, taken):
        model = tmp_path / "m.safetensors"
        taken(model)
        result = psmvae("fit", table, "-o", model, *MEAN)
        assert result.code == 1
        assert model.read_text() == "of another process"
        assert load(tmp_path / "m-2.safetensors").n_rows_ == 12

    def test_force_replaces_it(self, psmvae, table, tmp_path, taken):
        taken(tmp_path / "o.csv")
        result = psmvae("impute", table, "-o", tmp_path / "o.csv", "--force", *MEAN)
        assert result.code == 0
        assert read_table(tmp_path / "o.csv")["age"].null_count == 0


def test_a_column_that_the_output_cannot_hold_is_found_before_the_fit(
    refused, tmp_path, monkeypatch
):
    table = pa.table({"x": [1.5, None, 2.5], "tags": [["a"], ["b", "c"], None]})
    pq.write_table(table, tmp_path / "nested.parquet")
    monkeypatch.setattr(commands, "_fit", None)
    arguments = ["impute", tmp_path / "nested.parquet", "--ignore", "tags", *MEAN]
    error = refused(1, *arguments, "-o", tmp_path / "o.csv")
    assert "o.csv: cannot be written: column 'tags': a column of type list" in error
    assert names(tmp_path) == ["nested.parquet"]
