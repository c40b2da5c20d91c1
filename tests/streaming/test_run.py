"""Imputation of files to a folder: manifest, resuming and errors."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psmvae.streaming import ManifestError, PartError, impute_files
from psmvae.streaming.part import impute_part
from psmvae.table import OutputExistsError, TableError, read_table, write_table
from streaming.conftest import split


@pytest.fixture
def model(mean, tmp_path):
    path = tmp_path / "model.safetensors"
    mean.save(path)
    return path


def joined(folder, pattern="*.parquet"):
    return pa.concat_tables([read_table(path) for path in sorted(folder.glob(pattern))])


def manifest(folder):
    return json.loads((folder / "_psmvae_manifest.json").read_text())


def spoiled(table, path, rows=85):
    """Write the third part of the table with an unknown level in its second row group."""
    labels = split(table)[2]["label"].to_pylist()
    labels[100] = "new"
    pq.write_table(
        split(table)[2].set_column(3, "label", pa.array(labels)), path, row_group_size=rows
    )


def test_one_output_for_each_input(mean, model, table, folder, tmp_path):
    done = []
    out = tmp_path / "filled"
    result = impute_files(model, folder, out, progress=done.append)
    assert joined(out).equals(mean.transform(table))
    # the manifest does not disturb readers of the folder
    assert pq.read_table(out).equals(mean.transform(table))
    assert (result.n_rows, result.n_kept, result.skipped) == (300, 0, {})
    assert result.n_missing == sum(column.null_count for column in table.columns)
    assert [(one.name, one.n_done) for one in done] == [
        (f"part-{k}.parquet", k + 1) for k in range(3)
    ]
    written = manifest(out)
    assert list(written["outputs"]) == [f"part-{k}.parquet" for k in range(3)]
    assert written["outputs"]["part-1.parquet"]["start"] == 100
    assert [one["rows"] for one in written["identity"]["inputs"]] == [100, 30, 170]


def test_rows_per_file(mean, model, table, folder, tmp_path):
    out = tmp_path / "filled"
    impute_files(model, folder, out, rows_per_file=110)
    assert [pq.read_metadata(path).num_rows for path in sorted(out.glob("part*"))] == [110, 110, 80]
    assert joined(out).equals(mean.transform(table))


def test_a_folder_for_each_imputation(mean, model, table, folder, tmp_path):
    impute_files(model, folder, f"{tmp_path}/filled/{{i}}", multiple=2, random_state=3)
    expected = mean.sample(table, n=2, random_state=3)
    for k in (1, 2):
        assert joined(tmp_path / "filled" / str(k)).equals(expected[k - 1])
    assert manifest(tmp_path / "filled")["identity"]["settings"]["seed"] == 3


def test_subfolders_are_repeated(mean, model, table, folder, tmp_path):
    (folder / "more").mkdir()
    (folder / "part-2.parquet").rename(folder / "more" / "part-0.parquet")
    out = tmp_path / "filled"
    impute_files(model, folder, out)
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.parquet")) == [
        "more/part-0.parquet",
        "part-0.parquet",
        "part-1.parquet",
    ]


class TestNamesOfOutputs:
    """Output files are in the output folder, whatever the spelling of the input paths."""

    @pytest.fixture
    def here(self, table, tmp_path, monkeypatch):
        parts = split(table)
        for name, part in zip(("a/x", "work/b/y", "work/x"), parts, strict=True):
            path = tmp_path / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(part, path)
        monkeypatch.chdir(tmp_path / "work")
        return tmp_path

    def written(self, folder):
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))

    def test_a_folder_above(self, model, here):
        impute_files(model, ["../a/x.parquet", "b/y.parquet"], "out/run1")
        assert self.written(here / "work" / "out" / "run1") == ["a/x.parquet", "work/b/y.parquet"]
        assert self.written(here / "work" / "out") == [
            "run1/a/x.parquet",
            "run1/work/b/y.parquet",
        ]

    def test_absolute_and_relative_paths(self, model, here):
        impute_files(model, [here / "a" / "x.parquet", "b/y.parquet"], "out")
        assert self.written(here / "work" / "out") == ["a/x.parquet", "work/b/y.parquet"]

    def test_spellings_of_one_file(self, model, here):
        with pytest.raises(TableError, match=r"x\.parquet: this file is named twice"):
            impute_files(model, ["x.parquet", "./x.parquet"], "out")
        assert not (here / "work" / "out").exists()

    def test_one_name_for_two_files(self, here):
        from pyarrow import fs

        from psmvae.sources.places import Place
        from psmvae.streaming.run import _names

        place = here / "a" / "x.parquet"
        with pytest.raises(TableError, match="would also be that of"):
            _names([Place(str(place)), Place(str(place), fs.LocalFileSystem())])

    def test_inputs_as_outputs_by_uri(self, model, folder):
        with pytest.raises(TableError, match="the output is an input file"):
            impute_files(model, folder, folder.as_uri(), force=True)


class TestForce:
    """A run with ``force`` leaves no file of the run before it, and deletes nothing else."""

    def names(self, folder):
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))

    def test_fewer_inputs(self, model, folder, tmp_path):
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        (out / "mine.parquet").write_text("mine")
        impute_files(model, folder / "part-1.parquet", out, force=True)
        assert self.names(out) == ["mine.parquet", "part-1.parquet"]
        assert list(manifest(out)["outputs"]) == ["part-1.parquet"]
        assert len(list(folder.iterdir())) == 3

    def test_other_names_and_folders(self, model, folder, tmp_path):
        out = tmp_path / "filled"
        impute_files(model, folder, f"{out}/{{i}}/sub", multiple=2)
        assert len(self.names(out)) == 6
        impute_files(model, folder, out, force=True, rows_per_file=200)
        assert self.names(out) == ["part-00000.parquet", "part-00001.parquet"]
        impute_files(model, folder, f"{out}/{{i}}", multiple=1, force=True, rows_per_file=300)
        assert self.names(out) == ["1/part-00000.parquet"]

    def test_inputs_that_are_skipped(self, mice, model, table, folder, tmp_path):
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        mice.save(model)
        (folder / "part-1.parquet").write_bytes(b"no parquet")
        spoiled(table, folder / "part-2.parquet")
        result = impute_files(model, folder, out, force=True, on_error="skip")
        assert len(result.skipped) == 2
        assert self.names(out) == ["part-0.parquet"]

    def test_a_run_that_is_ended(self, mice, model, table, folder, tmp_path):
        """Files that were not yet replaced are known to the run that goes on."""
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        mice.save(model)
        spoiled(table, folder / "part-2.parquet")
        with pytest.raises(PartError):
            impute_files(model, folder, out, force=True)
        assert self.names(out) == [f"part-{k}.parquet" for k in range(3)]
        assert manifest(out)["replaced"] == ["part-2.parquet"]
        impute_files(model, folder, out, on_error="skip")
        assert self.names(out) == ["part-0.parquet", "part-1.parquet"]
        assert manifest(out)["replaced"] == []

    def test_files_that_no_manifest_lists(self, model, folder, tmp_path):
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        (out / "_psmvae_manifest.json").write_text("{}")
        impute_files(model, folder / "part-1.parquet", out, force=True)
        assert self.names(out) == [f"part-{k}.parquet" for k in range(3)]

    def test_files_outside_the_folder(self, model, folder, tmp_path):
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        changed = manifest(out)
        changed["outputs"]["part-0.parquet"]["files"] = [
            "../data/part-0.parquet",
            str(folder / "part-2.parquet"),
        ]
        (out / "_psmvae_manifest.json").write_text(json.dumps(changed))
        impute_files(model, folder / "part-1.parquet", out, force=True)
        assert len(self.names(folder)) == 3

    def test_files_that_are_inputs_now(self, model, folder, tmp_path):
        """An output of the earlier run is imputed, or cannot be read."""
        (folder / "more").mkdir()
        (folder / "part-2.parquet").rename(folder / "more" / "part-2.parquet")
        out = tmp_path / "filled"
        impute_files(model, folder, out)
        inputs = [out / "more" / "part-2.parquet", out / "part-0.parquet"]
        inputs[1].write_bytes(b"no parquet")
        impute_files(model, inputs, out, force=True, on_error="skip")
        assert self.names(out) == ["more/part-2.parquet", "part-0.parquet", "part-2.parquet"]
        assert inputs[1].read_bytes() == b"no parquet"


class TestParameters:
    @pytest.mark.parametrize("name", ["multiple", "rows_per_file"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_too_small(self, model, folder, tmp_path, name, value):
        with pytest.raises(ValueError, match=f"{name} must be >= 1, got {value}"):
            impute_files(model, folder, tmp_path / "filled", **{name: value})
        assert not (tmp_path / "filled").exists()

    def test_numbers_of_numpy(self, model, folder, tmp_path):
        given = {"multiple": 2, "random_state": 3, "rows_per_file": 110}
        of_numpy = {name: np.int64(value) for name, value in given.items()}
        impute_files(model, folder, tmp_path / "filled", **of_numpy)
        # the same run
        assert impute_files(model, folder, tmp_path / "filled", **given).n_kept == 3

    def test_no_output_folder(self, model, folder):
        with pytest.raises(ValueError, match="output must be the path of a folder"):
            impute_files(model, folder, "")

    def test_on_error(self, model, folder, tmp_path):
        with pytest.raises(ValueError, match="on_error must be 'stop' or 'skip', got 'ignore'"):
            impute_files(model, folder, tmp_path / "filled", on_error="ignore")


def test_finished_files_are_kept(model, folder, tmp_path, monkeypatch):
    out = tmp_path / "filled"
    impute_files(model, folder, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "part-1.parquet").unlink()
    (out / "part-2.parquet").write_bytes(b"half")
    calls = []
    monkeypatch.setattr(
        "psmvae.streaming.run.impute_part",
        lambda imputer, job: calls.append(job.start) or impute_part(imputer, job),
    )
    assert impute_files(model, folder, out).n_kept == 1
    assert calls == [100, 130]
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert {k: v for k, v in after.items() if "part" in k} == {
        k: v for k, v in before.items() if "part" in k
    }


def test_manifest_of_many_files_is_complete_at_the_end_and_after_an_error(
    model, folder, tmp_path, monkeypatch
):
    # only the first write is due
    monkeypatch.setattr("psmvae.streaming.manifest.MANY_PARTS", -1)
    monkeypatch.setattr("psmvae.streaming.manifest.PAUSE", 1e12)
    done, all_parts = [], {f"part-{k}.parquet" for k in range(3)}

    def stop_at_third(part):
        done.append(set(manifest(tmp_path / "stopped")["outputs"]))
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        impute_files(model, folder, tmp_path / "stopped", progress=stop_at_third)
    assert done == [set()] * 3
    assert set(manifest(tmp_path / "stopped")["outputs"]) == all_parts
    impute_files(model, folder, tmp_path / "filled")
    assert set(manifest(tmp_path / "filled")["outputs"]) == all_parts


class TestRefused:
    def test_another_model(self, mice, model, folder, tmp_path):
        impute_files(model, folder, tmp_path / "filled")
        mice.save(model)
        with pytest.raises(ManifestError, match="the model is not that of the run"):
            impute_files(model, folder, tmp_path / "filled")
        impute_files(model, folder, tmp_path / "filled", force=True)

    def test_another_input(self, model, table, folder, tmp_path):
        impute_files(model, folder, tmp_path / "filled")
        pq.write_table(split(table)[0], folder / "part-1.parquet")
        with pytest.raises(ManifestError, match=r"part-1\.parquet has changed"):
            impute_files(model, folder, tmp_path / "filled")
        (folder / "part-1.parquet").rename(folder / "part-7.parquet")
        with pytest.raises(ManifestError, match=r"part-7\.parquet is new"):
            impute_files(model, folder, tmp_path / "filled")
        (folder / "part-7.parquet").unlink()
        with pytest.raises(ManifestError, match=r"part-1\.parquet is not among them"):
            impute_files(model, folder, tmp_path / "filled")

    def test_other_settings(self, model, folder, tmp_path):
        impute_files(model, folder, tmp_path / "filled")
        with pytest.raises(ManifestError, match="multiple was None and is 2"):
            impute_files(model, folder, tmp_path / "filled", multiple=2)

    def test_files_of_someone_else(self, model, folder, tmp_path):
        (tmp_path / "filled").mkdir()
        (tmp_path / "filled" / "part-1.parquet").write_text("mine")
        with pytest.raises(OutputExistsError):
            impute_files(model, folder, tmp_path / "filled")
        assert [path.name for path in (tmp_path / "filled").iterdir()] == ["part-1.parquet"]

    def test_the_folder_of_the_inputs(self, model, folder):
        with pytest.raises(TableError, match="the output is an input file"):
            impute_files(model, folder, folder, force=True)

    def test_no_manifest(self, model, folder, tmp_path):
        (tmp_path / "filled").mkdir()
        (tmp_path / "filled" / "_psmvae_manifest.json").write_text("{}")
        with pytest.raises(ManifestError, match="not a manifest"):
            impute_files(model, folder, tmp_path / "filled")

    def test_columns(self, model, table, folder, tmp_path):
        for path in folder.iterdir():
            part = read_table(path)
            pq.write_table(part.append_column("note", part["label"]), path)
        with pytest.raises(TableError, match="column 'note', which the model does not have"):
            impute_files(model, folder, tmp_path / "filled")
        with pytest.raises(TableError, match="'x' cannot be ignored"):
            impute_files(model, folder, tmp_path / "filled", ignore=["x"])
        impute_files(model, folder, tmp_path / "filled", ignore=["note"])
        assert joined(tmp_path / "filled")["note"].equals(table["label"])


class TestErrorsInTheMiddle:
    def test_stop(self, mean, model, table, folder, tmp_path):
        spoiled(table, folder / "part-2.parquet")
        out = tmp_path / "filled"
        with pytest.raises(PartError, match=r"part-2\.parquet, row group 1: column 'label'"):
            impute_files(model, folder, out)
        # the first two files have neighbours without the row that is wrong
        assert sorted(path.name for path in out.iterdir()) == [
            "_psmvae_manifest.json",
            "part-0.parquet",
            "part-1.parquet",
        ]
        assert joined(out).equals(mean.transform(table).slice(0, 130))

    def test_skip(self, model, table, folder, tmp_path):
        spoiled(table, folder / "part-2.parquet")
        out = tmp_path / "filled"
        result = impute_files(model, folder, out, on_error="skip")
        assert list(result.skipped) == ["part-2.parquet"]
        assert "row group 1" in result.skipped["part-2.parquet"]
        assert len(manifest(out)["outputs"]) == 2
        # a skipped file is tried again
        assert impute_files(model, folder, out, on_error="skip").n_kept == 2

    def test_unreadable_file(self, model, folder, tmp_path):
        (folder / "part-1.parquet").write_bytes(b"no parquet")
        with pytest.raises(TableError, match=r"part-1\.parquet: cannot be read"):
            impute_files(model, folder, tmp_path / "filled")
        result = impute_files(model, folder, tmp_path / "filled", on_error="skip")
        assert [name.rpartition("/")[2] for name in result.skipped] == ["part-1.parquet"]
        assert result.n_rows == 270

    def test_other_columns(self, model, table, folder, tmp_path):
        pq.write_table(split(table)[0].drop(["x"]), folder / "part-0.parquet")
        with pytest.raises(TableError, match=r"part-0\.parquet: it has no column 'x'"):
            impute_files(model, folder, tmp_path / "filled")
        result = impute_files(model, folder, tmp_path / "filled", on_error="skip")
        assert len(result.skipped) == 1
        assert result.n_rows == 200


class TestABadFirstFile:
    """A file that differs from the fitted table or from most files is the one that is skipped."""

    def run(self, model, folder, out, **options):
        result = impute_files(model, folder, out, on_error="skip", **options)
        assert len(result.skipped) == 1
        name, reason = next(iter(result.skipped.items()))
        assert name == str(next(iter(sorted(folder.iterdir()))))
        assert result.n_rows == 200
        assert len(list(out.glob("part-*"))) == 2
        return reason

    def test_another_type(self, mean, model, table, folder, tmp_path):
        part = split(table)[0]
        pq.write_table(part.set_column(1, "x", part["label"]), folder / "part-0.parquet")
        reason = self.run(model, folder, tmp_path / "filled")
        assert "column 'x' is of type string, but of type double in" in reason
        with pytest.raises(TableError, match=r"part-0\.parquet: column 'x' is of type string"):
            impute_files(model, folder, tmp_path / "other")

    def test_another_type_after_a_column_without_values(self, model, table, folder, tmp_path):
        parts = split(table)
        empty = parts[1].set_column(1, "x", pa.nulls(30))
        pq.write_table(empty, folder / "part-1.parquet")
        pq.write_table(parts[0].set_column(1, "x", parts[0]["label"]), folder / "part-0.parquet")
        reason = self.run(model, folder, tmp_path / "filled")
        assert "column 'x' is of type string, but the model was fitted on numbers" in reason

    def test_an_unknown_column(self, model, table, folder, tmp_path):
        part = split(table)[0]
        pq.write_table(part.append_column("note", part["label"]), folder / "part-0.parquet")
        reason = self.run(model, folder, tmp_path / "filled")
        assert "column 'note', which the model does not have; ignore it" in reason

    def test_an_ignored_column(self, model, table, folder, tmp_path):
        part = split(table)[0]
        pq.write_table(part.append_column("note", part["label"]), folder / "part-0.parquet")
        reason = self.run(model, folder, tmp_path / "filled", ignore=["note"])
        assert "it has the column 'note', unlike" in reason

    @pytest.mark.parametrize("number", [0, 1])
    @pytest.mark.parametrize("what", ["text", "unknown", "ignored"])
    def test_text_files(self, mean, model, table, tmp_path, what, number):
        data, out = tmp_path / "texts", tmp_path / "filled"
        data.mkdir()
        parts = [table.slice(start, 100) for start in (0, 100, 200)]
        bad = parts[number]
        if what == "text":
            bad = bad.set_column(1, "x", bad["label"])
        else:
            bad = bad.append_column("note", bad["label"])
        parts[number] = bad
        for k, part in enumerate(parts):
            write_table(part, data / f"part-{k}.csv")
        ignore = ["note"] if what == "ignored" else []
        result = impute_files(model, data, out, on_error="skip", ignore=ignore)
        assert list(result.skipped) == [str(data / f"part-{number}.csv")]
        kept = [k for k in range(3) if k != number]
        assert sorted(path.name for path in out.glob("*.csv")) == [f"part-{k}.csv" for k in kept]


def test_drift_is_in_the_manifest(model, table, folder, tmp_path):
    import pyarrow.compute as pc

    part = split(table)[2]
    moved = part.set_column(1, "x", pc.add(part["x"], 3.0))
    pq.write_table(moved, folder / "part-2.parquet")
    done = []
    impute_files(model, folder, tmp_path / "filled", progress=done.append)
    found = manifest(tmp_path / "filled")["outputs"]
    names = [{one["column"] for one in found[f"part-{k}.parquet"]["drift"]} for k in range(3)]
    # `time` grows from file to file
    assert names == [{"time"}, set(), {"time", "x"}]
    of_x = next(one for one in done[2].outcome.drift if one.column == "x")
    assert str(of_x).startswith("x: population stability index")


def test_another_engine(mean, model, table, folder, tmp_path):
    """An engine may end jobs in any order; its errors that are not of the table end the run."""

    def backwards(imputer, jobs):
        for number in reversed(range(len(jobs))):
            yield number, impute_part(imputer, jobs[number])

    impute_files(model, folder, tmp_path / "filled", engine=backwards)
    assert joined(tmp_path / "filled").equals(mean.transform(table))

    def failing(imputer, jobs):
        yield 0, impute_part(imputer, jobs[0])
        yield 1, OSError("no space")

    with pytest.raises(OSError, match="no space"):
        impute_files(model, folder, tmp_path / "other", engine=failing, on_error="skip")
    assert list(manifest(tmp_path / "other")["outputs"]) == ["part-0.parquet"]
