"""Checks of output paths, and atomic writing."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")

from psmvae.table import TableError, read_table, write_table  # noqa: E402
from psmvae.table.paths import atomic_path, check_output, check_place  # noqa: E402
from psmvae.table.temporary import remove_stale  # noqa: E402


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


class TestOnlyRegularFiles:
    """Pipes, sockets and devices are neither replaced nor read."""

    @pytest.fixture(params=["pipe", "device", "link to a device"])
    def special(self, request, tmp_path):
        path = tmp_path / "t.csv"
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "device":
            path = Path(os.devnull)
        else:
            path.symlink_to(os.devnull)
        return path

    def test_output_is_refused_even_with_force(self, special):
        before = special.stat()
        with pytest.raises(TableError, match=r"this is a (pipe|device); expected the name of a"):
            check_place(special, force=True)
        assert special.stat().st_mode == before.st_mode

    def test_it_is_not_replaced(self, special):
        before = special.stat()
        with pytest.raises(OSError, match="Only regular files are replaced") as told:
            atomic_path(special).__enter__()
        assert told.value.filename == str(special)
        assert (special.stat().st_mode, special.stat().st_ino) == (before.st_mode, before.st_ino)

    def test_a_pipe_that_appears_while_writing_is_not_replaced(self, tmp_path):
        path = tmp_path / "t.csv"

        def write():
            with atomic_path(path) as temporary:
                temporary.write_text("new")
                os.mkfifo(path)

        with pytest.raises(OSError, match="not a pipe"):
            write()
        assert path.is_fifo()
        assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]

    def test_input_is_refused(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        (tmp_path / "device.csv").symlink_to(os.devnull)
        for name in ("pipe", "device"):
            with pytest.raises(
                TableError, match=rf"{name}\.csv: this is a {name}; expected a file"
            ):
                read_table(tmp_path / f"{name}.csv")

    def test_a_link_to_itself(self, tmp_path):
        path = tmp_path / "loop.csv"
        path.symlink_to(path)
        with pytest.raises(TableError, match=r"loop\.csv: .*link that leads back to itself"):
            read_table(path)
        with pytest.raises(TableError, match=r"loop\.csv: .*link that leads back to itself"):
            check_output(path, force=True)
        with pytest.raises(OSError, match="symbolic link") as told:
            atomic_path(path).__enter__()
        assert told.value.errno == errno.ELOOP
        # an output is not blamed for its input
        check_output(tmp_path / "new.csv", inputs=[path])


class TestTakenInTheMeantime:
    def test_without_replace_nothing_is_replaced(self, tmp_path):
        path = tmp_path / "t.csv"

        def write():
            with atomic_path(path, replace=False) as temporary:
                temporary.write_text("new")
                path.write_text("from another process")

        with pytest.raises(FileExistsError) as told:
            write()
        assert told.value.filename == str(path)
        assert path.read_text() == "from another process"
        assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]

    @pytest.mark.parametrize("has_links", [True, False])
    def test_a_free_name_is_written(self, tmp_path, monkeypatch, has_links):
        if not has_links:
            monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(1, "no")))
        with atomic_path(tmp_path / "t.csv", replace=False) as temporary:
            temporary.write_text("new")
        assert (tmp_path / "t.csv").read_text() == "new"
        assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_errors_while_writing_name_the_file(tmp_path):
    """A full disk is simulated by a limit on the size of files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write():
        with atomic_path(tmp_path / "t.csv") as temporary:
            temporary.write_bytes(b"x" * 10_000)

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as told:
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.filename == str(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from psmvae.table.paths import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftovers_of_killed_processes_are_removed(tmp_path, environment):
    path, other = tmp_path / "o.csv", tmp_path / "other.csv"
    for target in (path, path, other):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(target)], env=environment, check=False
        )
        assert done.returncode == -signal.SIGKILL
    # names that look alike but are of others
    (tmp_path / ".o.csv.tmp").touch()
    (tmp_path / ".o.csv.0123456789abcdef.tmp").mkdir()
    # the second process removed the leftover of the first
    assert len(list(tmp_path.iterdir())) == 4
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left[:2] == [".o.csv.0123456789abcdef.tmp", ".o.csv.tmp"]
    assert left[2].startswith(".other.csv.")
    assert left[3:] == ["o.csv"]


def test_a_file_that_is_being_written_is_no_leftover(tmp_path):
    path = tmp_path / "o.csv"
    with atomic_path(path) as first:
        first.write_text("first")
        with atomic_path(path) as second:
            second.write_text("second")
        assert first.exists()
        assert not remove_stale(path, tmp_path / "other.csv")
        assert first.exists()
    assert remove_stale(path)
    assert path.read_text() == "first"
    assert [file.name for file in tmp_path.iterdir()] == ["o.csv"]


class TestWindows:
    """What Windows requires, checked on any system."""

    def test_a_temporary_file_is_closed_before_it_is_renamed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("psmvae.table.temporary.fcntl", None)
        opened, closed = [], []
        open_, close = os.open, os.close

        def recorded(path, *args):
            opened.append((os.fspath(path), found := open_(path, *args)))
            return found

        monkeypatch.setattr(os, "open", recorded)
        monkeypatch.setattr(os, "close", lambda number: closed.append(number) or close(number))
        with atomic_path(tmp_path / "t.csv") as temporary:
            assert [(str(temporary), number) for number in closed] == opened
            temporary.write_text("new")
        assert [number for _, number in opened] == closed
        assert (tmp_path / "t.csv").read_text() == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]

    def test_a_file_is_open_for_writing_when_it_is_flushed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("psmvae.table.paths._FLUSH_MODE", os.O_RDWR)
        path = tmp_path / "t.csv"
        path.write_text("old")
        path.chmod(0o444)
        modes = []
        monkeypatch.setattr(
            os, "fsync", lambda number: modes.append(stat.S_IMODE(os.fstat(number).st_mode))
        )
        with atomic_path(path) as temporary:
            temporary.write_text("new")
        # the permissions of a read-only file are set later
        assert [mode & stat.S_IWUSR for mode in modes] == [stat.S_IWUSR]
        assert stat.S_IMODE(path.stat().st_mode) == 0o444
