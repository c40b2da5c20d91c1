"""Paths of tables: formats, checks of an output path, and atomic writing."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psmvae.table.errors import OutputExistsError, TableError

AnyPath = str | os.PathLike[str]
SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
EXTENSIONS = (*SEPARATORS, ".parquet", ".feather", ".arrow")


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
        folder = target.resolve().parent
        for source in inputs:
            if _same_file(target, Path(source)):
                message = f"{path}: the output is the input file {source}; choose another name"
                raise TableError(message)
        if target.is_dir():
            raise TableError(f"{path}: this is a folder; expected the name of a file")
        if not folder.is_dir():
            raise TableError(f"{path}: there is no folder {folder}; create it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise TableError(f"{path}: the folder {folder} is not writable")
        if target.exists() and not force:
            raise OutputExistsError(path)
    except (OSError, RuntimeError) as error:
        # for example a name that is too long, or a circle of links
        raise TableError(f"{path}: {error}") from error


@contextmanager
def atomic_path(path: AnyPath) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` when the block ends without an error.

    If the block raises, the temporary file is removed and `path` is left as it was. A link stays a
    link, an existing file keeps its permissions, and errors name `path`.
    """
    target = Path(path).resolve()
    # shortened, because file systems limit the length of names
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    with _errors_name(path):
        # unlike tempfile, os.open applies the umask
        file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        mode = stat.S_IMODE(os.fstat(file).st_mode)
        os.close(file)
    try:
        yield temporary
        with _errors_name(path):
            if target.exists():
                shutil.copymode(target, temporary)
            else:
                # the block may have replaced the temporary file by another
                temporary.chmod(mode)
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _errors_name(path: AnyPath) -> Iterator[None]:
    """Raise errors of the file system with `path` as their file name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _same_file(one: Path, other: Path) -> bool:
    # `samefile` is also true of hard links, but both must exist
    both = one.exists() and other.exists()
    return one.samefile(other) if both else one.resolve() == other.resolve()
