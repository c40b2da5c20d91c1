"""Imputation of parts of a table in files."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from psmvae.sources.places import find_files
from psmvae.streaming import FileTable, Job, PartError, impute_part
from psmvae.table import TableError, read_table, write_table
from streaming.conftest import SIZES, split


def imputed(imputer, files, tmp_path, ranges, ending=".parquet", **options):
    """Impute ranges of rows to files, the last one first, and return the joined table."""
    paths = [tmp_path / f"out-{start:03}{ending}" for start, _ in ranges]
    for (start, stop), path in reversed(list(zip(ranges, paths, strict=True))):
        job = pickle.loads(pickle.dumps(Job(files, start, stop, (str(path),), **options)))
        assert impute_part(imputer, job).n_rows == stop - start
    return pa.concat_tables([read_table(path) for path in paths])


RANGES = {
    "files": [(0, 100), (100, 130), (130, 300)],
    "rows": [(0, 70), (70, 140), (140, 210), (210, 280), (280, 300)],
    "whole": [(0, 300)],
}


@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
def test_parts_have_the_values_of_the_table_in_memory(mice, table, folder, tmp_path, ranges):
    files = FileTable.open(folder)
    assert [part.stop for part in files.parts] == [100, 130, 300]
    assert imputed(mice, files, tmp_path, ranges).equals(mice.transform(table))
    drawn = mice.sample(table, n=2)
    long = imputed(mice, files, tmp_path, ranges, multiple=2)
    for number, expected in enumerate([table, *drawn]):
        rows = long.filter(pa.compute.equal(long[".imp"], number)).combine_chunks()
        assert rows[".id"].to_pylist() == list(range(1, 301))
        assert rows.drop([".imp", ".id"]).equals(expected.combine_chunks())


def test_one_file_for_each_imputation(mean, table, folder, tmp_path):
    outputs = tuple(str(tmp_path / f"{k}.parquet") for k in (1, 2))
    job = Job(FileTable.open(folder), 0, 300, outputs, multiple=2, random_state=5)
    impute_part(mean, job)
    for path, expected in zip(outputs, mean.sample(table, n=2, random_state=5), strict=True):
        assert read_table(path).equals(expected)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".feather"])
def test_formats(mean, table, tmp_path, ending):
    data = tmp_path / "data"
    data.mkdir()
    for number, part in enumerate(split(table)):
        write_table(part, data / f"{number}{ending}")
    files = FileTable.open(str(data / "*"))
    assert files.n_rows == 300
    assert files.schema.equals(table.schema)
    found = imputed(mean, files, tmp_path, RANGES["files"], ending)
    whole = tmp_path / f"whole{ending}"
    write_table(mean.transform(table), whole)
    assert found["label"].to_pylist() == read_table(whole)["label"].to_pylist()
    assert found["x"].to_numpy() == pytest.approx(read_table(whole)["x"].to_numpy(), rel=1e-5)


def test_observed_text_is_kept(mean, table, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    pa_csv.write_csv(table, path)
    text = path.read_text().splitlines()
    text[1] = '0.0,+1.50,007,"low",true'
    path.write_text("\n".join(text) + "\n")
    # a count with leading zeros makes its column one of labels
    files = FileTable.open(path)
    assert files.schema.field("count").type == pa.string()
    text[1] = '0.0,+1.50,NA,"low",true'
    path.write_text("\n".join(text) + "\n")
    impute_part(mean, Job(FileTable.open(path), 0, 300, (str(out),)))
    assert out.read_text().splitlines()[1] == "0.0,+1.50,6,low,true"


def test_ignored_columns_are_written_as_they_are(mean, table, tmp_path):
    more = table.append_column("note", pa.array([None, "a", "NA"] * 100))
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(more, path)
    impute_part(mean, Job(FileTable.open(path), 0, 300, (str(out),), ignore=("note",)))
    assert read_table(out).equals(mean.transform(table).append_column("note", more["note"]))


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_codes_of_missing_cells_are_not_those_of_ignored_columns(mean, table, tmp_path, ending):
    note = pa.array(["a", "?", "-9"] * 100)
    more = table.append_column("note", note).append_column("id", pa.array([-9, 1, 2] * 100))
    more = more.set_column(2, "count", pa.array([-9, 3, 4] * 100))
    path, out = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    write_table(more, path)
    files = FileTable.open(path, na=["?", "-9"])
    impute_part(mean, Job(files, 0, 300, (str(out),), ignore=("note", "id")))
    found = read_table(out)
    assert found["note"].to_pylist() == note.to_pylist()
    assert found["id"].to_pylist() == [-9, 1, 2] * 100
    assert min(found["count"].to_pylist()) >= 0


class TestDictionariesOfArrowFiles:
    """An Arrow file has one dictionary for each column, and batches have their own."""

    LABELS = (["low", "high"], ["mid", "high"], ["high", "mid", "low"])

    @pytest.fixture
    def coded(self, table):
        parts = []
        for part, labels in zip(split(table), self.LABELS, strict=True):
            values = [labels[k % len(labels)] if k % 5 else None for k in range(part.num_rows)]
            column = pa.DictionaryArray.from_arrays(
                pa.array([None if v is None else labels.index(v) for v in values], pa.int8()),
                pa.array(labels),
            )
            # its categories are others in each file
            site = pa.array([f"{labels[0]}-{k % 3}" for k in range(part.num_rows)])
            part = part.set_column(3, "label", column)
            parts.append(part.append_column("site", site.dictionary_encode()))
        return parts

    @pytest.fixture
    def imputer(self, coded):
        from psmvae import MeanImputer

        whole = pa.concat_tables(coded, promote_options="permissive").drop(["site"])
        return MeanImputer(random_state=0).fit(whole.unify_dictionaries())

    @pytest.mark.parametrize("multiple", [None, 3])
    @pytest.mark.parametrize("source", [".parquet", ".arrow"])
    @pytest.mark.parametrize("ending", [".feather", ".arrow"])
    def test_batches_with_other_categories(
        self, imputer, coded, tmp_path, multiple, source, ending
    ):
        for number, part in enumerate(coded):
            write_table(part, tmp_path / f"{number}{source}")
        out = tmp_path / f"out{ending}"
        files = FileTable.open([tmp_path / f"{k}{source}" for k in range(3)])
        impute_part(imputer, Job(files, 0, 300, (str(out),), multiple, ignore=("site",)))
        found = read_table(out)
        given = [value for part in coded for value in part["label"].to_pylist()]
        sites = [value for part in coded for value in part["site"].to_pylist()]
        for number in range(1 if multiple is None else multiple + 1):
            rows = found
            if multiple is not None:
                rows = found.filter(pa.compute.equal(found[".imp"], number))
            assert rows["site"].to_pylist() == sites
            labels = rows["label"].to_pylist()
            if multiple is None or number > 0:
                assert set(labels) == {"low", "mid", "high"}
                pairs = zip(labels, given, strict=True)
                assert all(now == old for now, old in pairs if old is not None)
            else:
                assert labels == given

    def test_fitted_levels_are_written_once(self, imputer, coded, tmp_path):
        """Other readers, such as polars, do not know dictionaries that are extended."""
        pl = pytest.importorskip("polars")
        for number, part in enumerate(coded):
            write_table(part.drop(["site"]), tmp_path / f"{number}.arrow")
        files = FileTable.open([tmp_path / f"{k}.arrow" for k in range(3)])
        impute_part(imputer, Job(files, 0, 300, (str(tmp_path / "out.arrow"),), multiple=2))
        with pa.OSFile(str(tmp_path / "out.arrow")) as file, pa.ipc.open_file(file) as opened:
            assert opened.num_record_batches > 1
        assert pl.read_ipc(tmp_path / "out.arrow").height == 900


def test_dictionary_columns(table, tmp_path):
    from psmvae import MeanImputer

    coded = table.set_column(3, "label", table["label"].combine_chunks().dictionary_encode())
    imputer = MeanImputer(random_state=0).fit(coded)
    path, out = tmp_path / "in.feather", tmp_path / "out.feather"
    feather.write_feather(coded, path, chunksize=50)
    impute_part(imputer, Job(FileTable.open(path), 0, 300, (str(out),), multiple=None))
    expected = imputer.transform(coded)["label"].cast(pa.string())
    assert read_table(out)["label"].cast(pa.string()).equals(expected)


def test_integers_and_floats_in_different_files(mean, table, tmp_path):
    """pandas writes integers with missing values as floats."""
    parts = split(table)
    as_float = parts[1].set_column(2, "count", parts[1]["count"].cast(pa.float64()))
    for number, part in enumerate([parts[0], as_float, parts[2]]):
        pq.write_table(part, tmp_path / f"{number}.parquet")
    files = FileTable.open([tmp_path / f"{k}.parquet" for k in (2, 0, 1)])
    assert files.schema.field("count").type == pa.float64()
    out = tmp_path / "out"
    out.mkdir()
    found = imputed(mean, files, out, RANGES["files"])
    assert found["count"].to_pylist() == mean.transform(table)["count"].to_pylist()


class TestErrors:
    def test_other_columns(self, table, tmp_path):
        for number, part in enumerate(split(table)):
            part = part.rename_columns(["time", "x", "n", "label", "flag"]) if number == 1 else part
            pq.write_table(part, tmp_path / f"{number}.parquet")
        message = r"1\.parquet: it has no column 'count' and it has the column 'n', unlike .*0\.par"
        with pytest.raises(TableError, match=message):
            FileTable.open(tmp_path)

    def test_other_types(self, table, tmp_path):
        for number, part in enumerate(split(table)):
            part = part.set_column(1, "x", part["label"]) if number == 2 else part
            pq.write_table(part, tmp_path / f"{number}.parquet")
        message = r"2\.parquet: column 'x' is of type string, but of type double in .*0\.parquet"
        with pytest.raises(TableError, match=message):
            FileTable.open(tmp_path)

    def test_unknown_level_in_the_middle(self, mean, table, folder, tmp_path):
        labels = split(table)[2]["label"].to_pylist()
        labels[100] = "new"
        part = split(table)[2].set_column(3, "label", pa.array(labels))
        pq.write_table(part, folder / "part-2.parquet", row_group_size=85)
        out = tmp_path / "out.parquet"
        message = r"part-2\.parquet, row group 1: column 'label' .*'new'"
        with pytest.raises(PartError, match=message):
            impute_part(mean, Job(FileTable.open(folder), 130, 300, (str(out),)))
        assert [path.name for path in tmp_path.iterdir()] == ["data"]

    def test_broken_row_group(self, mean, folder, tmp_path):
        files = FileTable.open(folder)
        path = folder / "part-1.parquet"
        with pq.ParquetFile(path) as parquet:
            at = parquet.metadata.row_group(1).column(0).data_page_offset
        content = bytearray(path.read_bytes())
        content[at : at + 200] = bytes(200)
        path.write_bytes(content)
        with pytest.raises(TableError, match=r"part-1\.parquet, row group 1: cannot be read"):
            impute_part(mean, Job(files, 100, 130, (str(tmp_path / "out.parquet"),)))
        # rows that share a block with those that cannot be read
        job = Job(files, 130, 300, (str(tmp_path / "out.parquet"),))
        with pytest.raises(TableError, match=r"part-1\.parquet"):
            impute_part(mean, job)
        lenient = Job(files, 130, 300, (str(tmp_path / "out.parquet"),), lenient=True)
        assert impute_part(mean, lenient).n_rows == SIZES[2]
        assert read_table(tmp_path / "out.parquet")["x"].null_count == 0

    def test_text_and_parquet(self, folder):
        (folder / "more.csv").write_text("x\n1\n")
        with pytest.raises(TableError, match="text files and other files"):
            FileTable.open(folder)

    def test_no_files(self, tmp_path):
        with pytest.raises(TableError, match="no files found"):
            FileTable.open(tmp_path / "*.parquet")
        with pytest.raises(TableError, match="there is no such file"):
            FileTable.open(tmp_path / "x.parquet")
        with pytest.raises(TableError, match="unknown file format"):
            FileTable.open(__file__)

    def test_a_file_twice(self, folder, monkeypatch):
        with pytest.raises(TableError, match="named twice"):
            FileTable.open([folder, folder / "part-1.parquet"])
        monkeypatch.chdir(folder)
        for other in ("./part-1.parquet", "../data/part-1.parquet", folder / "part-1.parquet"):
            with pytest.raises(TableError, match="named twice"):
                FileTable.open(["part-1.parquet", other])


class TestFilesOfAFolder:
    @pytest.fixture
    def files(self, table, tmp_path):
        data = tmp_path / "_data"
        names = ("a", ".hidden", ".ipynb_checkpoints/b", "_temporary/c", "more/d", "more/_e")
        for name in names:
            path = data / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table.slice(0, 1), path)
        return data

    @pytest.mark.parametrize(
        "given", [".", "./", "../_data", "./../_data", "./more/.."], ids=lambda one: one
    )
    def test_local(self, files, monkeypatch, given):
        monkeypatch.chdir(files)
        names = [Path(place.path).name for place in find_files(given)]
        assert names == ["a.parquet", "d.parquet"]

    def test_folders_with_an_underscore_may_be_named(self, files, monkeypatch):
        monkeypatch.chdir(files.parent)
        assert len(find_files("./_data")) == 2
        assert len(find_files("./_data/_temporary/")) == 1

    @pytest.mark.parametrize("given", ["store://_data", "store://_data/", "store:///_data"])
    def test_elsewhere(self, files, monkeypatch, given):
        from pyarrow import fs

        root = fs.SubTreeFileSystem(str(files.parent), fs.LocalFileSystem())
        monkeypatch.setattr(
            "psmvae.sources.places.filesystem_of", lambda path: (root, path.partition("://")[2])
        )
        assert [place.name for place in find_files(given)] == ["a.parquet", "d.parquet"]


def test_addresses(mean, table, folder, tmp_path):
    """URIs of a file system of pyarrow, for input and output."""
    files = FileTable.open(folder.as_uri() + "/part-*.parquet")
    assert files.n_rows == 300
    out = tmp_path / "filled" / "all.parquet"
    impute_part(mean, Job(files, 0, 300, (out.as_uri(),)))
    assert read_table(out).equals(mean.transform(table))


def test_another_file_system(mean, table, folder, tmp_path, monkeypatch):
    """A file system that is not the machine's own, as that of a cloud store."""
    from pyarrow import fs

    root = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def filesystem_of(path):
        return (root, path.partition("://")[2]) if "://" in path else (None, path)

    monkeypatch.setattr("psmvae.sources.places.filesystem_of", filesystem_of)
    monkeypatch.setattr("psmvae.streaming.writers.filesystem_of", filesystem_of)
    for paths in (
        "store://data",
        ["store://data/part-2.parquet", "store://data/part-[01].parquet"],
    ):
        files = FileTable.open(paths)
        assert files.n_rows == 300
    impute_part(mean, Job(files, 0, 300, ("store://filled/all.parquet",)))
    assert read_table(tmp_path / "filled" / "all.parquet").equals(mean.transform(table))
    write_table(table, tmp_path / "data" / "x.csv.gz")
    text = FileTable.open("store://data/x.csv.gz")
    assert text.schema.equals(table.schema)


def test_threads_leave_the_warnings_of_the_process(mice, folder, tmp_path):
    table = FileTable.open(folder)
    shown = warnings._showwarnmsg_impl

    def work(number):
        for k in range(4):
            impute_part(mice, Job(table, 0, 40, (str(tmp_path / f"{number}-{k}.parquet"),)))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert warnings._showwarnmsg_impl is shown
