"""Files on any file system that pyarrow knows: paths, folders, patterns and addresses (URIs)."""

from __future__ import annotations

import fnmatch
import glob
import gzip
import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, cast

from psmvae.table.errors import TableError
from psmvae.table.paths import EXTENSIONS, check_source, extension
from psmvae.table.wording import repeated

AnyPath = str | os.PathLike[str]
_PATTERN = "*?["


@dataclass(frozen=True)
class Place:
    """A file: its path, and its file system if it is not that of the machine.

    It has what `psmvae.table.text` needs of a path.
    """

    path: str
    # a pyarrow file system
    filesystem: Any = None

    def __str__(self) -> str:
        return self.path if self.filesystem is None else f"{self.filesystem.type_name}:{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name if self.filesystem else Path(self.path).name

    def absolute(self) -> str:
        """Return the path from the root of the file system, the same for all spellings of it."""
        if self.filesystem is None:
            return os.path.abspath(self.path)  # noqa: PTH100
        # two slashes at the beginning would be kept
        return posixpath.normpath("/" + self.path.lstrip("/"))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the content, decompressed."""
        if self.filesystem is None:
            return Path(self.path).open(mode)
        stream: IO[bytes] = self.filesystem.open_input_file(self.path)
        if self.name.lower().endswith(".gz"):
            return cast("IO[bytes]", gzip.open(stream, "rb"))
        return stream

    def random_access(self) -> Any:
        """Open the file for pyarrow."""
        if self.filesystem is None:
            import pyarrow as pa

            return pa.OSFile(self.path)
        return self.filesystem.open_input_file(self.path)

    def stamp(self) -> tuple[int, int]:
        """Return the size in bytes and the time of the last change in nanoseconds."""
        if self.filesystem is None:
            status = Path(self.path).stat()
            return status.st_size, status.st_mtime_ns
        info = self.filesystem.get_file_info(self.path)
        return int(info.size), int(info.mtime_ns or 0)


def find_files(given: AnyPath | Iterable[AnyPath]) -> list[Place]:
    """Return the files that paths, folders, patterns and URIs name, sorted by path.

    Raises
    ------
    TableError
        If a file does not exist, has an unknown format or is named twice.
    """
    listed = [given] if isinstance(given, str | os.PathLike) else list(given)
    places = [place for one in listed for place in _expand(os.fspath(one))]
    if not places:
        raise TableError(f"{', '.join(map(str, listed))}: no files found")
    if twice := repeated(str(Place(place.absolute(), place.filesystem)) for place in places):
        raise TableError(f"{twice[0]}: this file is named twice; name it once")
    for place in places:
        extension(place.name)
        if place.filesystem is None:
            check_source(place.path)
    return sorted(places, key=lambda place: place.path)


def filesystem_of(path: str) -> tuple[Any, str]:
    """Return the file system of a URI, None for that of the machine, and the path in it."""
    if "://" not in path:
        return None, path
    import pyarrow as pa
    from pyarrow import fs

    try:
        filesystem, inner = fs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: {str(error).splitlines()[0]}") from error
    return (None, inner) if isinstance(filesystem, fs.LocalFileSystem) else (filesystem, inner)


def _expand(path: str) -> list[Place]:
    if "://" in path and any(sign in path for sign in _PATTERN):
        # a pattern is no valid URI
        folder, _, pattern = path.rpartition("/")
        filesystem, inner = filesystem_of(folder)
        found = _in_folder(filesystem, inner) if filesystem else _local_folder(inner)
        return [place for place in found if fnmatch.fnmatch(place.name, pattern)]
    filesystem, inner = filesystem_of(path)
    if filesystem is not None:
        return _elsewhere(filesystem, inner)
    if Path(inner).is_dir():
        return _local_folder(inner)
    if not Path(inner).exists() and any(sign in inner for sign in _PATTERN):
        return [Place(one) for one in glob.glob(inner, recursive=True) if Path(one).is_file()]  # noqa: PTH207
    return [Place(inner)]


def _elsewhere(filesystem: Any, path: str) -> list[Place]:
    from pyarrow import fs

    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.Directory:
        return _in_folder(filesystem, path)
    if info.type != fs.FileType.File:
        raise TableError(f"{path}: there is no such file")
    return [Place(path, filesystem)]


def _in_folder(filesystem: Any, folder: str) -> list[Place]:
    from pyarrow import fs

    root = PurePosixPath(folder.strip("/"))
    found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    files = [info.path for info in found if info.type == fs.FileType.File]
    return [
        Place(path, filesystem)
        for path in files
        if _is_table(PurePosixPath(path.strip("/")).relative_to(root))
    ]


def _local_folder(folder: str) -> list[Place]:
    root = Path(folder)
    found = (path for path in root.rglob("*") if path.is_file())
    return [Place(str(path)) for path in found if _is_table(path.relative_to(root))]


def _is_table(path: PurePath) -> bool:
    """Whether a file is a table, by its path in a folder; hidden files and the like are not."""
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and path.name.lower().endswith(EXTENSIONS)
