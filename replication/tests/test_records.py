"""The file of records: whole lines, whatever happened to the run before."""

import gzip
import json
import subprocess
import sys

import pytest

from psmvae_paper.records import FILE, RecordError, Writer, done, load_records


def record(key, rmse=0.1, error=None):
    return {"key": key, "metrics": {"rmse": rmse}, "error": error, "label": "π' = ½"}


def write(folder, *records):
    with Writer(folder) as writer:
        for each in records:
            writer.append(each)


def test_records_are_read_in_written_order(tmp_path):
    written = [record("b"), record("a"), record("c", rmse=None)]
    write(tmp_path / "new" / "folder", *written)
    assert load_records(tmp_path / "new" / "folder") == written
    assert load_records(tmp_path / "new" / "folder" / FILE) == written


def test_later_record_of_same_key_is_used(tmp_path):
    write(tmp_path, record("a", error="ValueError: no"), record("b"))
    write(tmp_path, record("a", rmse=0.2))
    assert load_records(tmp_path) == [record("a", rmse=0.2), record("b")]
    assert len((tmp_path / FILE).read_text().splitlines()) == 3


@pytest.mark.parametrize("cut", [2, 5, 40])
def test_incomplete_last_line_is_ignored_and_overwritten(tmp_path, cut):
    write(tmp_path, record("a"), record("b"))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-cut])
    assert load_records(tmp_path) == [record("a")]
    write(tmp_path, record("c"))
    assert load_records(tmp_path) == [record("a"), record("c")]
    for line in path.read_text().splitlines():
        json.loads(line)


def test_plain_records_replace_compressed_ones(tmp_path):
    lines = "".join(json.dumps(record(key)) + "\n" for key in "ab")
    (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(lines.encode()))
    assert load_records(tmp_path) == [record("a"), record("b")]
    write(tmp_path, record("b", rmse=0.3))
    assert load_records(tmp_path) == [record("a"), record("b", rmse=0.3)]
    assert load_records(tmp_path / f"{FILE}.gz") == [record("a"), record("b")]


def test_broken_gzip_file_is_an_error(tmp_path):
    path = tmp_path / f"{FILE}.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 100)[:-10])
    with pytest.raises(RecordError, match="not a whole gzip file"):
        load_records(path)
    garbled = bytearray(gzip.compress(json.dumps(record("a")).encode() * 50))
    garbled[20:40] = bytes(20)
    path.write_bytes(garbled)
    with pytest.raises(RecordError, match="not a whole gzip file"):
        load_records(path)


def test_missing_records_error_names_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path.name}: there are no records"):
        load_records(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{oops", "line 2: not JSON"),
        ("[1]", "line 2: expected a record with a key"),
        ('{"key": "b", "metrics": null}', "line 2: metrics must be an object"),
        ('{"key": "b", "cell": 7}', "line 2: cell must be an object"),
        ('{"key": "b", "error": 5}', "line 2: error must be a text or null"),
        ("[" * 100_000, "line 2: not JSON"),
    ],
)
def test_invalid_line_error_names_line(tmp_path, line, message):
    write(tmp_path, record("a"))
    with (tmp_path / FILE).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RecordError, match=message):
        load_records(tmp_path)


@pytest.mark.parametrize("bad", [{"key": "b", "rmse": float("nan")}, {"rmse": 1.0}, {"key": 1}])
def test_invalid_record_is_not_written(tmp_path, bad):
    write(tmp_path, record("a"))
    before = (tmp_path / FILE).read_bytes()
    with Writer(tmp_path) as writer, pytest.raises(ValueError):
        writer.append(bad)
    assert (tmp_path / FILE).read_bytes() == before


def test_done_includes_failed_cells_by_default():
    records = [record("a"), record("b", error="ValueError: no")]
    assert done(records) == {"a", "b"}
    assert done(records, failed=False) == {"a"}


def test_last_line_without_newline_is_kept(tmp_path):
    path = tmp_path / FILE
    path.write_text("\n".join(json.dumps(record(key)) for key in "ab"))
    assert load_records(tmp_path) == [record("a"), record("b")]
    write(tmp_path, record("c"))
    assert load_records(tmp_path) == [record("a"), record("b"), record("c")]


def test_two_processes_can_write_to_one_folder(tmp_path):
    code = "import sys\nfrom psmvae_paper.records import Writer\n"
    code += "for k in range(40):\n    with Writer(sys.argv[1]) as writer:\n"
    code += "        writer.append({'key': sys.argv[2] + str(k), 'pixels': [k] * 3000})\n"
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    keys = {one["key"] for one in load_records(tmp_path)}
    assert keys == {f"{name}{k}" for name in "ab" for k in range(40)}


@pytest.mark.parametrize("text", ["my own notes", "a\nb", "[1, 2"])
def test_file_without_records_is_not_changed(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(RecordError, match="the last line is not a record"):
        Writer(tmp_path)
    assert (tmp_path / FILE).read_text() == text
