"""Files that are written whole or not at all, and never over an input."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from psmvae.table.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
EXTENSIONS = (*SEPARATORS, ".parquet", ".feather", ".arrow")


def extension(path: str | os.PathLike[str]) -> str:
    """Return the extension that says what format a file has.

    Raises
    ------
    TableError
        If it is none of the known ones.

    Examples
    --------
    >>> extension("data/Table.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    for known in EXTENSIONS:
        if name.endswith(known):
            return known
    message = f"{path}: unknown file format; expected one of {', '.join(EXTENSIONS)}"
    raise TableError(message)


def check_output(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> None:
    """Refuse a path that a table must not or cannot be written to; call it before long work.

    Parameters
    ----------
    path : path
        Where the table is to go.
    force : bool, default=False
        Whether a file that is there may be replaced.
    inputs : sequence of paths
        Files that must never be replaced, by whatever name or link they go.

    Raises
    ------
    TableError
        If the extension is unknown, the folder is missing or not writable, the path is a folder
        or an input, or a file is there and `force` is not given.

    Examples
    --------
    >>> check_output("table.txt")
    Traceback (most recent call last):
        ...
    psmvae.table.errors.TableError: table.txt: unknown file format; expected one of .csv, ...
    """
    extension(path)
    check_place(path, force=force, inputs=inputs)


def check_place(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> None:
    """`check_output` for a file of any kind: all of it but the extension."""
    target = Path(path)
    try:
        folder = target.resolve().parent
        for source in inputs:
            if _same_file(target, Path(source)):
                message = f"{path}: the output is the input file {source}; choose another name"
                raise TableError(message)
        if target.is_dir():
            message = f"{path}: this is a folder; expected the name of a file"
            raise TableError(message)
        if target.exists() and not force:
            message = f"{path}: the file exists already; allow it to be replaced or choose another"
            raise TableError(message)
        if not folder.is_dir():
            message = f"{path}: there is no folder {folder}; create it first"
            raise TableError(message)
        if not os.access(folder, os.W_OK | os.X_OK):
            message = f"{path}: the folder {folder} is not writable"
            raise TableError(message)
    except (OSError, RuntimeError) as error:
        # a name too long, a loop of links
        raise TableError(f"{path}: {error}") from error


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside `path` that takes its name when the block ends well.

    If the block raises, also by an interrupt, the temporary file is removed and what was at
    `path` stays. A link at `path` is followed, so that it stays a link. A file that was there keeps
    its permissions; a new one has those of the umask. Errors name `path`, not the temporary file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_path(Path(folder) / "note.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     [file.name for file in Path(folder).iterdir()]
    ['note.txt']
    """
    target = Path(path).resolve()
    # shortened so that the name stays inside the file system's limit
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    with _told_of(path):
        # opened by hand: unlike the tempfile module this leaves the permissions to the umask
        file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        mode = stat.S_IMODE(os.fstat(file).st_mode)
        os.close(file)
    try:
        yield temporary
        with _told_of(path):
            if target.exists():
                shutil.copymode(target, temporary)
            else:
                # who wrote it may have put a file of its own there
                temporary.chmod(mode)
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _told_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise errors of the file system as of `path`, the name that a user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        # also true of hard links
        return one.samefile(other)
    return one.resolve() == other.resolve()
