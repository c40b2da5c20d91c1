"""Paths of tables: formats, checks of an output path, and atomic writing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from psmvae.table.errors import OutputExistsError, TableError
from psmvae.table.temporary import locked_file

AnyPath = str | os.PathLike[str]
SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
EXTENSIONS = (*SEPARATORS, ".parquet", ".feather", ".arrow")
# Windows writes a file to the disk only if it is open for writing.
_FLUSH_MODE = os.O_RDWR if os.name == "nt" else os.O_RDONLY


def extension(path: AnyPath) -> str:
    """Return the extension of a table's file, which gives its format."""
    for known in EXTENSIONS:
        if Path(path).name.lower().endswith(known):
            return known
    raise TableError(f"{path}: unknown file format; expected one of {', '.join(EXTENSIONS)}")


def check_output(path: AnyPath, *, force: bool = False, inputs: Sequence[AnyPath] = ()) -> None:
    """Raise if a table cannot or must not be written to a path; call it before long work."""
    extension(path)
    check_place(path, force=force, inputs=inputs)


def check_place(path: AnyPath, *, force: bool = False, inputs: Sequence[AnyPath] = ()) -> None:
    """Raise as `check_output` does, for a file with any extension."""
    target = Path(path)
    try:
        mode = _mode(path)
        folder = target.resolve().parent
        for source in inputs:
            if _same_file(target, Path(source)):
                message = f"{path}: the output is the input file {source}; choose another name"
                raise TableError(message)
        if mode is not None and not stat.S_ISREG(mode):
            raise TableError(f"{path}: this is {_described(mode)}; expected the name of a file")
        if not folder.is_dir():
            raise TableError(f"{path}: there is no folder {folder}; create it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise TableError(f"{path}: the folder {folder} is not writable")
        if mode is not None and not force:
            raise OutputExistsError(path)
    except (OSError, RuntimeError) as error:
        # for example a name that is too long
        raise TableError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def check_source(path: AnyPath) -> Path:
    """Return the path of a file to read; raise if it is no regular file.

    A pipe is refused because files are read more than once, and a device may have no end.
    """
    try:
        mode = _mode(path)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from error
    if mode is None:
        raise TableError(f"{path}: there is no such file")
    if not stat.S_ISREG(mode):
        advice = "" if stat.S_ISDIR(mode) else ": save its content to a file first"
        raise TableError(f"{path}: this is {_described(mode)}; expected a file{advice}")
    return Path(path)


@contextmanager
def atomic_path(path: AnyPath, *, replace: bool = True) -> Iterator[Path]:
    """Yield a temporary file that becomes `path` when the block ends without an error.

    If the block raises, the temporary file is removed and `path` is left as it was. A link stays a
    link, an existing file keeps its permissions, and errors of the file system name `path`. Only
    regular files are replaced, and none if `replace` is False: then FileExistsError is raised.
    Temporary files that killed processes left for `path` are removed.
    """
    with _errors_name(path):
        # raises for a circle of links, which `resolve` does not from Python 3.13 on
        _mode(path)
        target = Path(path).resolve()
        _check_replaceable(target)
    with ExitStack() as stack:
        with _errors_name(path):
            temporary = stack.enter_context(locked_file(target))
            created = stat.S_IMODE(temporary.stat().st_mode)
        with _errors_name(path, instead_of=temporary):
            yield temporary
        with _errors_name(path):
            mode = _check_replaceable(target)
            # before it may become read-only
            _flush(temporary)
            # the block may have replaced the temporary file by another
            temporary.chmod(created if mode is None else stat.S_IMODE(mode))
            if replace:
                temporary.replace(target)
            else:
                _move(temporary, target)


def _move(temporary: Path, target: Path) -> None:
    """Rename a file, but never over another one."""
    try:
        # unlike a rename, a hard link fails if the name is taken
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        # a file system without hard links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        temporary.replace(target)


def _flush(path: Path) -> None:
    """Write a file to the disk: some file systems report only then that it is full."""
    descriptor = os.open(path, _FLUSH_MODE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_replaceable(target: Path) -> int | None:
    """Return the mode of a regular file, None if there is none; raise OSError for all else."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"Only regular files are replaced, and not {_described(mode)}")
    return mode


def _mode(path: AnyPath) -> int | None:
    """Return the mode of what is at a path, links followed; None if there is nothing."""
    try:
        return Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            message = "this is a symbolic link that leads back to itself"
            raise OSError(errno.ELOOP, message) from error
        raise


def _described(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "no regular file")


@contextmanager
def _errors_name(path: AnyPath, instead_of: Path | None = None) -> Iterator[None]:
    """Raise errors of the file system with `path` as their file name.

    With `instead_of`, only errors without a file name or with this one.
    """
    try:
        yield
    except RuntimeError as error:
        if instead_of is not None:
            raise
        # `resolve` before Python 3.13, for a circle of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path)) from error
    except OSError as error:
        named = instead_of is None or error.filename in (None, str(instead_of), instead_of)
        if not named or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _same_file(one: Path, other: Path) -> bool:
    try:
        # `samefile` is also true of hard links, but both must exist
        both = one.exists() and other.exists()
        return one.samefile(other) if both else one.resolve() == other.resolve()
    except (OSError, RuntimeError):
        # such as a circle of links, which is reported where it is opened
        return False
