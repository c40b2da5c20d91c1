"""Records: one line of JSON for each cell, in a file that stays readable after a killed run.

A record is an object with

- ``key`` and ``cell``: the `Cell`;
- ``metrics``: the measured values by name; empty for a failed cell;
- ``error``: None, or the exception as "ValueError: ...";
- ``seconds``: of ``fit`` (for a stack the cell's share) and ``impute``;
- ``stacked``: the number of models that were trained as one stack;
- ``peak_memory_mib``: of the GPU during the job, or of the process on a CPU;
- ``device``, ``versions``, ``settings`` (the imputer's parameters) and ``finished`` (UTC).
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

    Record = dict[str, Any]

FILE = "records.jsonl"
_NAMES = (FILE, f"{FILE}.gz")


class RecordError(ValueError):
    """Raised when records cannot be read; the message names the file and the line.

    Examples
    --------
    >>> issubclass(RecordError, ValueError)
    True
    """


def load_records(folder: str | os.PathLike[str]) -> list[Record]:
    """Read the records of a folder or a file; of two with the same key the later one is kept.

    Parameters
    ----------
    folder : path
        A folder with ``records.jsonl`` or ``records.jsonl.gz``, or such a file. In a folder with
        both, records of the plain file replace those of the other.

    Returns
    -------
    list of dict
        In the order in which the cells were first written. An incomplete last line is ignored.

    Raises
    ------
    FileNotFoundError
        If there are no records.
    RecordError
        If a line is not a record.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Writer(folder) as writer:
    ...     writer.append({"key": "a", "metrics": {"rmse": 0.1}})
    ...     writer.append({"key": "a", "metrics": {"rmse": 0.2}})
    >>> load_records(folder)
    [{'key': 'a', 'metrics': {'rmse': 0.2}}]
    """
    path = Path(folder)
    paths = [path] if path.is_file() else [path / name for name in reversed(_NAMES)]
    found = [path for path in paths if path.is_file()]
    if not found:
        raise FileNotFoundError(f"{path}: there are no records; expected a file {FILE} in it")
    latest: dict[str, Record] = {}
    for file in found:
        for record in _read(file):
            latest[record["key"]] = record
    return list(latest.values())


def done(records: Iterable[Record], *, failed: bool = True) -> set[str]:
    """Return the keys of the cells that have a record.

    Parameters
    ----------
    records : iterable of dict
        The records.
    failed : bool, default=True
        Whether failed cells count.

    Returns
    -------
    set of str
        The keys.

    Examples
    --------
    >>> records = [{"key": "a", "error": None}, {"key": "b", "error": "ValueError: no"}]
    >>> sorted(done(records)), sorted(done(records, failed=False))
    (['a', 'b'], ['a'])
    """
    return {record["key"] for record in records if failed or not record.get("error")}


def has_records(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a file of records.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    bool
        True if ``records.jsonl`` or ``records.jsonl.gz`` is there.
    """
    return any((Path(folder) / name).is_file() for name in _NAMES)


class Writer:
    r"""Appends records to the file of a folder; each record is synced to disk at once.

    Parameters
    ----------
    folder : path
        The folder of ``records.jsonl``; it is created if needed. An incomplete last line of a
        killed run is removed. Several processes can write to the same folder.

    Raises
    ------
    OSError
        If the folder cannot be created or written to.
    RecordError
        If the last line is neither a record nor the beginning of one.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Writer(folder) as writer:
    ...     writer.append({"key": "a"})
    >>> (Path(folder) / "records.jsonl").read_text()
    '{"key": "a"}\n'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder) / FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        with _locked(self._file):
            _repair(self.path)

    def append(self, record: Record) -> None:
        """Write one record.

        Parameters
        ----------
        record : dict
            With a ``key`` and values that JSON can represent.

        Raises
        ------
        ValueError
            If it has no key, or a value such as NaN that JSON cannot represent; nothing is written.
        """
        if not isinstance(record.get("key"), str):
            raise ValueError(f"a record needs a key, got {record!r}")
        line = json.dumps(record, allow_nan=False, ensure_ascii=False) + "\n"
        rest = memoryview(line.encode())
        with _locked(self._file):
            # usually one call, so that a signal cannot interrupt a line
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _read(path: Path) -> list[Record]:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RecordError(f"{path}: not a whole gzip file: {error}") from error
    *lines, last = data.split(b"\n")
    if _is_whole(last):
        lines.append(last)
    return [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _parse(path: Path, number: int, line: bytes) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}, line {number}: not JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("key"), str):
        raise RecordError(f"{path}, line {number}: expected a record with a key")
    for name in ("cell", "metrics", "seconds"):
        if not isinstance(record.get(name, {}), dict):
            raise RecordError(f"{path}, line {number}: {name} must be an object")
    if not isinstance(record.get("error"), str | None):
        raise RecordError(f"{path}, line {number}: error must be a text or null")
    return record


def _repair(path: Path) -> None:
    """Remove an incomplete last line, and complete one that lacks only its newline.

    Raises
    ------
    RecordError
        If the last line is not the beginning of a record.
    """
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if _is_whole(data[whole:]):
        with path.open("ab") as file:
            file.write(b"\n")
    elif whole < len(data):
        if not data[whole:].startswith(b"{"):
            raise RecordError(f"{path}: the last line is not a record; expected a file of records")
        os.truncate(path, whole)


def _is_whole(line: bytes) -> bool:
    """Whether the text after the last newline is a complete record."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


@contextmanager
def _locked(file: int) -> Iterator[None]:
    """Lock the file against other processes, whose half-written line would look incomplete."""
    try:
        import fcntl
    except ImportError:
        # Windows has no flock
        yield
        return
    # some network file systems have no locks
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
