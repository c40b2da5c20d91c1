"""The manifest of an output folder: what was imputed with which model, and which files are done."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from psmvae._version import __version__
from psmvae.sources.files import FileTable
from psmvae.sources.places import Place, filesystem_of
from psmvae.streaming.writers import delete_file, output_file
from psmvae.table.errors import TableError

# readers of a folder of Parquet files leave out names that begin with an underscore
NAME = "_psmvae_manifest.json"
FORMAT, VERSION = "psmvae-manifest", 1
# A manifest is written after each part. With more parts than this, the next write waits for PAUSE
# times the seconds of the last one, so that writing takes at most a twentieth of a run; parts that
# were finished in between are imputed again if the process is killed.
MANY_PARTS, PAUSE = 1000, 20.0


class ManifestError(TableError):
    """An output folder of another run, or a manifest that cannot be read."""


@dataclass
class Manifest:
    """The manifest of a run.

    ``identity`` says what is imputed: the checksum of the model, the settings and the inputs.
    ``outputs`` has one record for each finished part, by the name of its first file, and
    ``skipped`` the errors of parts that were left out. ``replaced`` are the files of an earlier run
    that are still in the folder, relative to it.
    """

    folder: str
    identity: Mapping[str, Any]
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    # whether an earlier run has written the folder
    is_resumed: bool = False
    # time of the next write, and whether there are parts that the file does not have
    _due: float = field(default=0.0, init=False, repr=False)
    _is_behind: bool = field(default=False, init=False, repr=False)

    @classmethod
    def resume(cls, folder: str, identity: Mapping[str, Any]) -> Manifest:
        """Return the manifest of a folder, or a new one if there is none.

        Raises
        ------
        ManifestError
            If the folder has the manifest of another run; the message says what differs.
        """
        found = _read(folder)
        if found is None:
            return cls(folder, identity)
        for name, meaning in _MEANINGS.items():
            if found["identity"].get(name) != identity[name]:
                what = _difference(name, found["identity"].get(name), identity[name])
                raise ManifestError(
                    f"{_path(folder)}: {meaning} of the run that began there: {what}; "
                    "choose another folder, or start again with force"
                )
        replaced = set(found.get("replaced", ()))
        return cls(folder, identity, dict(found["outputs"]), replaced=replaced, is_resumed=True)

    @classmethod
    def restart(cls, folder: str, identity: Mapping[str, Any]) -> Manifest:
        """Return a new manifest, which knows the files of the run that it replaces."""
        try:
            found = _read(folder) or {"outputs": {}}
        except ManifestError:
            # what cannot be read lists no files
            return cls(folder, identity)
        files = {file for record in found["outputs"].values() for file in record.get("files", ())}
        return cls(folder, identity, replaced=files.union(found.get("replaced", ())))

    def delete(self, files: Iterable[str]) -> None:
        """Delete files of the earlier run in the folder, and no others."""
        for file in self.replaced.intersection(files):
            if _is_inside(file):
                delete_file(f"{self.folder.rstrip('/')}/{file}")
            self.replaced.discard(file)

    def finish(self, name: str, record: dict[str, Any]) -> None:
        """Add a finished part, and write the manifest if it is due."""
        self.skipped.pop(name, None)
        self.outputs[name] = record
        self.replaced.difference_update(record["files"])
        self._write_if_due()

    def skip(self, name: str, reason: str) -> None:
        """Add a part that was left out, and write the manifest if it is due."""
        self.skipped[name] = reason
        self._write_if_due()

    def is_done(self, name: str, paths: tuple[str, ...]) -> bool:
        """Return whether a part is finished and its files are as they were written."""
        record = self.outputs.get(name)
        if record is None:
            return False
        try:
            return bool([size_of(path) for path in paths] == record["sizes"])
        except OSError:
            return False

    def _write_if_due(self) -> None:
        self._is_behind = True
        if time.monotonic() >= self._due:
            self.write()

    def flush(self) -> None:
        """Write the manifest if the file does not have all parts."""
        if self._is_behind:
            self.write()

    def write(self) -> None:
        """Replace the file of the manifest."""
        began = time.monotonic()
        document = {
            "format": FORMAT,
            "version": VERSION,
            "psmvae": __version__,
            "identity": self.identity,
            "outputs": self.outputs,
            "skipped": self.skipped,
            "replaced": sorted(self.replaced),
        }
        with output_file(_path(self.folder)) as file:
            file.write(json.dumps(document, indent=1).encode())
        ended, many = time.monotonic(), len(self.outputs) > MANY_PARTS
        self._due, self._is_behind = ended + PAUSE * (ended - began) if many else 0.0, False


_MEANINGS = {
    "model": "the model is not that",
    "settings": "the settings are not those",
    "inputs": "the input files are not those",
}


def identity_of(model: os.PathLike[str] | str, table: FileTable, settings: Any) -> dict[str, Any]:
    """Return what identifies a run, as the values that are read from its manifest."""
    inputs = [
        {
            "file": str(part.place),
            "rows": part.stop - part.start,
            "size": part.size,
            "modified": part.modified,
        }
        for part in table.parts
    ]
    identity = {"model": checksum(model), "settings": dict(settings), "inputs": inputs}
    return dict(json.loads(json.dumps(identity, default=_plain)))


def _plain(value: Any) -> Any:
    """Return a NumPy number as one of Python, and the text of other objects."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def checksum(path: os.PathLike[str] | str) -> str:
    """Return the SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: str) -> int:
    """Return the size of a file; raise OSError if there is none."""
    filesystem, inner = filesystem_of(path)
    size = Place(inner, filesystem).stamp()[0]
    if size < 0:
        raise FileNotFoundError(path)
    return size


def _is_inside(file: str) -> bool:
    """Return whether a relative path is one of a file in the folder, which may be deleted."""
    path = PurePath(file)
    return not path.is_absolute() and ".." not in path.parts


def _path(folder: str) -> str:
    return f"{folder.rstrip('/')}/{NAME}"


def _read(folder: str) -> dict[str, Any] | None:
    filesystem, inner = filesystem_of(_path(folder))
    place = Place(inner, filesystem)
    try:
        with place.open() as file:
            content = file.read()
    except FileNotFoundError:
        return None
    try:
        found: Any = json.loads(content)
        is_manifest = found["format"] == FORMAT and found["version"] == VERSION
        _ = found["identity"]["inputs"], found["outputs"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{_path(folder)}: not a manifest of psmvae") from error
    if not is_manifest:
        raise ManifestError(f"{_path(folder)}: written by another version of psmvae")
    return dict(found)


def _difference(name: str, before: Any, now: Any) -> str:
    """Return the first difference, in words."""
    if name == "model":
        return f"its SHA-256 was {str(before)[:12]}… and is {str(now)[:12]}…"
    if name == "settings":
        changed = [key for key in now if (before or {}).get(key) != now[key]]
        return ", ".join(f"{key} was {before.get(key)!r} and is {now[key]!r}" for key in changed)
    files_before = {one["file"]: one for one in before or ()}
    files_now = {one["file"]: one for one in now}
    for file in files_now:
        if file not in files_before:
            return f"{file} is new"
        if files_before[file] != files_now[file]:
            return f"{file} has changed"
    gone = [file for file in files_before if file not in files_now]
    return f"{gone[0]} is not among them" if gone else "their order has changed"
