"""`psmvae fit` and `psmvae impute` of several files, in real processes."""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import psmvae
import psmvae.cli
from psmvae.table import read_table
from streaming.conftest import split


@pytest.fixture
def run(environment):
    """Run ``psmvae ...`` and return the exit code and what it wrote to standard error."""

    def run(*arguments, **options):
        done = subprocess.run(
            [sys.executable, "-m", "psmvae", *map(str, arguments)],
            env=environment, capture_output=True, text=True, timeout=300, check=False, **options,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stderr

    return run


@pytest.fixture
def main():
    """Run ``psmvae ...`` in this process, which is faster."""

    def run(*arguments):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            code = psmvae.cli.main([str(each) for each in arguments])
        return code, err.getvalue()

    return run


@pytest.fixture
def model(mean, tmp_path):
    path = tmp_path / "m.safetensors"
    mean.save(path)
    return path


def joined(folder):
    return pa.concat_tables([read_table(path) for path in sorted(folder.glob("part*"))])


def test_fit_and_impute(run, table, folder, tmp_path, monkeypatch):
    monkeypatch.undo()
    model, out = tmp_path / "m.safetensors", tmp_path / "filled"
    files = sorted(folder.iterdir())
    code, err = run("fit", *files, "-o", model, "--method", "mean", "--sample-rows", "200")
    assert code == 0, err
    assert "3 files: 300 rows, of which 20" in err
    imputer = psmvae.load(model)
    assert 200 <= imputer.n_rows_ < 210
    code, err = run("impute", *files, "-m", model, "-o", f"{out}/", "--multiple", "2")
    assert code == 0, err
    assert "wrote part-1.parquet: 30 rows (2 of 3)" in err
    long, expected = joined(out), imputer.sample(table, n=2, random_state=0)
    for number in (1, 2):
        rows = long.filter(pc.equal(long[".imp"], number)).drop([".imp", ".id"])
        assert rows.combine_chunks().equals(expected[number - 1].combine_chunks())
    # again: nothing is left to do
    code, err = run("impute", folder, "-m", model, "-o", f"{out}/", "--multiple", "2")
    assert code == 0, err
    assert "3 files were done before" in err


def test_ignored_columns_and_text_files(main, table, tmp_path):
    for number, part in enumerate(split(table)):
        named = part.append_column("name", pa.array(["NA"] * part.num_rows))
        named.to_pandas().to_csv(tmp_path / f"part-{number}.csv", index=False)
    model, out = tmp_path / "m.safetensors", tmp_path / "filled"
    pattern = f"{tmp_path}/part-*.csv"
    code, err = main("fit", pattern, "-o", model, "--method", "mean", "--ignore", "name")
    assert code == 0, err
    code, err = main("impute", pattern, "-m", model, "-o", f"{out}/", "--rows-per-file", "200")
    assert code == 0, err
    found = pd.concat(
        [pd.read_csv(path, keep_default_na=False) for path in sorted(out.glob("part*"))]
    )
    assert len(found) == 300
    assert (found["name"] == "NA").all()
    assert (found["x"].astype(str) != "").all()


def test_errors_are_worded_for_the_command_line(main, table, folder, model, tmp_path):
    out = tmp_path / "filled"
    code, err = main("impute", folder, "-o", f"{out}/")
    assert (code, "psmvae fit" in err) == (2, True)
    labels = split(table)[2]["label"].to_pylist()
    labels[100] = "new"
    spoiled = split(table)[2].set_column(3, "label", pa.array(labels))
    pq.write_table(spoiled, folder / "part-2.parquet", row_group_size=85)
    code, err = main("impute", folder, "-m", model, "-o", f"{out}/")
    assert code == 1
    assert "part-2.parquet, row group 1: column 'label'" in err
    assert "--handle-unknown missing" in err
    code, err = main("impute", folder, "-m", model, "-o", f"{out}/", "--on-error", "skip")
    assert code == 1
    assert "skipped part-2.parquet:" in err
    assert err.splitlines()[-1] == "error: 1 file skipped"
    code, err = main("impute", folder, "-m", model, "-o", f"{out}/", "--multiple", "3")
    assert (code, "start again with --force" in err) == (2, True)


def test_a_full_disk(run, table, folder, model, tmp_path):
    """A limit on the size of files stands for a full disk: the last file does not fit."""
    x = np.random.default_rng(0).normal(size=20_000)
    many = table.take(np.arange(20_000) % 300).set_column(1, "x", pa.array(x))
    pq.write_table(many, folder / "part-3.parquet")
    size = 100_000

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    out = tmp_path / "filled"
    code, err = run("impute", folder, "-m", model, "-o", f"{out}/", preexec_fn=limit)
    assert code == 1
    assert "File too large" in err
    assert "filled/part-3.parquet" in err
    left = {path.name for path in out.iterdir()}
    assert not any(name.endswith(".tmp") for name in left)
    done = json.loads((out / "_psmvae_manifest.json").read_text())["outputs"]
    assert left == {*done, "_psmvae_manifest.json"}
    assert len(done) == 3


@pytest.mark.slow
def test_killed_and_started_again(environment, run, tmp_path, monkeypatch):
    """After kill -9 in the middle, the result is that of a run that was not interrupted."""
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    data = tmp_path / "data"
    data.mkdir()
    for number in range(12):
        rows = rng.normal(size=(9000, 6))
        rows[rng.random(rows.shape) < 0.2] = np.nan
        frame = pd.DataFrame(rows, columns=list("abcdef"))
        frame.to_parquet(data / f"part-{number:02}.parquet")
    model = tmp_path / "m.safetensors"
    psmvae.MeanImputer(random_state=0).fit(frame).save(model)
    command = ["impute", data, "-m", model, "--multiple", "5", "-o"]
    assert run(*command, f"{tmp_path}/whole/")[0] == 0
    out = tmp_path / "filled"
    process = subprocess.Popen(
        [sys.executable, "-m", "psmvae", *map(str, command), f"{out}/"],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    manifest = out / "_psmvae_manifest.json"
    while process.poll() is None:
        if manifest.exists() and len(json.loads(manifest.read_text())["outputs"]) >= 2:
            os.kill(process.pid, signal.SIGKILL)
            break
        time.sleep(0.01)
    process.wait()
    done = len(json.loads(manifest.read_text())["outputs"])
    assert process.returncode == -signal.SIGKILL
    assert 2 <= done < 12
    code, err = run(*command, f"{out}/")
    assert code == 0, err
    assert f"{done} files were done before" in err
    for path in sorted((tmp_path / "whole").glob("part*")):
        assert (out / path.name).read_bytes() == path.read_bytes()
    assert {path.name for path in out.iterdir()} == {
        path.name for path in (tmp_path / "whole").iterdir()
    }
