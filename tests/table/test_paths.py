"""Checks of output paths, and atomic writing."""

import os
import stat
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")

from psmvae.table import TableError, write_table  # noqa: E402
from psmvae.table.paths import atomic_path, check_output  # noqa: E402


class TestCheckOutput:
    def test_new_path_is_accepted(self, tmp_path, monkeypatch):
        check_output(tmp_path / "t.csv", force=False)
        monkeypatch.chdir(tmp_path)
        check_output("t.parquet", force=False)

    def test_an_existing_file_needs_force(self, csv):
        path = csv("a\n1\n")
        with pytest.raises(TableError, match="exists already"):
            check_output(path, force=False)
        check_output(path, force=True)

    def test_unknown_extension_and_folders_raise(self, tmp_path):
        with pytest.raises(TableError, match=r"unknown file format.*\.feather"):
            check_output(tmp_path / "t.xlsx", force=True)
        (tmp_path / "d.csv").mkdir()
        with pytest.raises(TableError, match="this is a folder"):
            check_output(tmp_path / "d.csv", force=True)
        with pytest.raises(TableError, match="no folder"):
            check_output(tmp_path / "none" / "t.csv", force=True)

    def test_too_long_name_raises(self, tmp_path):
        with pytest.raises(TableError):
            check_output(tmp_path / ("n" * 300 + ".csv"), force=False)

    def test_input_file_raises_also_through_links(self, csv, tmp_path, monkeypatch):
        path = csv("a\n1\n")
        (tmp_path / "link.csv").symlink_to(path)
        os.link(path, tmp_path / "hard.csv")
        (tmp_path / "sub").mkdir()
        monkeypatch.chdir(tmp_path / "sub")
        for name in (path, tmp_path / "link.csv", tmp_path / "hard.csv", Path("../table.csv")):
            with pytest.raises(TableError, match="is the input file"):
                check_output(name, force=True, inputs=[path])
            with pytest.raises(TableError, match="is the input file"):
                write_table(pa.table({"a": [2]}), name, force=True, inputs=[path])
        assert path.read_text() == "a\n1\n"

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes anywhere")
    def test_read_only_folder_raises(self, tmp_path):
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(TableError, match="not writable"):
                check_output(tmp_path / "t.csv", force=False)
        finally:
            tmp_path.chmod(0o700)

    def test_folder_without_write_access_raises(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(TableError, match="not writable"):
            check_output(tmp_path / "t.csv", force=False)


class TestAtomicPath:
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    def test_failure_leaves_the_existing_file(self, tmp_path, error):
        path = tmp_path / "t.csv"
        path.write_text("old")

        def interrupted():
            with atomic_path(path) as temporary:
                temporary.write_text("half")
                raise error

        with pytest.raises(error):
            interrupted()
        assert path.read_text() == "old"
        assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]

    def test_success_replaces_the_file_and_keeps_permissions(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("old")
        path.chmod(0o640)
        with atomic_path(path) as temporary:
            assert temporary.parent == tmp_path
            temporary.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_new_file_has_the_permissions_of_the_umask(self, tmp_path):
        (tmp_path / "plain").touch()
        with atomic_path(tmp_path / "t.csv") as temporary:
            temporary.write_text("new")
        assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_replaced_temporary_file_has_the_permissions_of_the_umask(self, tmp_path):
        (tmp_path / "plain").touch()
        with atomic_path(tmp_path / "t.csv") as temporary:
            other = tmp_path / "other"
            other.touch(mode=0o600)
            other.replace(temporary)
        assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_errors_have_the_given_path(self, tmp_path):
        def write(path):
            with atomic_path(path) as temporary:
                temporary.write_text("new")

        (tmp_path / "folder").mkdir()
        for name, error in (("no/t.csv", FileNotFoundError), ("folder", IsADirectoryError)):
            with pytest.raises(error) as told:
                write(tmp_path / name)
            assert told.value.filename == str(tmp_path / name)
        assert [file.name for file in tmp_path.iterdir()] == ["folder"]

    def test_link_stays_a_link(self, tmp_path):
        (tmp_path / "real.csv").write_text("old")
        (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
        with atomic_path(tmp_path / "link.csv") as temporary:
            temporary.write_text("new")
        assert (tmp_path / "link.csv").is_symlink()
        assert (tmp_path / "real.csv").read_text() == "new"

    def test_long_file_name(self, tmp_path):
        path = tmp_path / ("n" * 250 + ".csv")
        with atomic_path(path) as temporary:
            temporary.write_text("new")
        assert path.read_text() == "new"
