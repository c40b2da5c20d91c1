"""Temporary files beside an output file, and removal of those that a killed process left.

A process holds a lock on its temporary file, which the system releases when the process ends in
any way. A temporary file without a lock is therefore a leftover.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

# Windows has no fcntl: leftovers are not removed there
fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None

# file systems limit the length of names
_MAX_NAME = 100
_TOKEN_BYTES = 8
_NAME = re.compile(rf"(\..*\.)[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.tmp")


@contextmanager
def locked_file(target: Path) -> Iterator[Path]:
    """Yield a new, locked, empty file beside `target`, and remove it at the end if still there."""
    remove_stale(target)
    with ExitStack() as stack:
        while True:
            path = target.with_name(f"{_prefix(target)}{secrets.token_hex(_TOKEN_BYTES)}.tmp")
            # registered before it exists: Ctrl-C may come at any moment
            stack.callback(path.unlink, missing_ok=True)
            # unlike tempfile, os.open applies the umask
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            if fcntl is None:
                # Windows can neither rename nor remove a file that is open
                os.close(descriptor)
                break
            stack.callback(os.close, descriptor)
            if not _lock(descriptor) or _is_at(descriptor, path):
                break
            # another process took it for a leftover before it was locked
        # removed while it is locked
        stack.callback(path.unlink, missing_ok=True)
        yield path


def remove_stale(*targets: Path) -> bool:
    """Remove temporary files for these files that no process has locked; return if none is left."""
    if fcntl is None:
        return True
    prefixes: dict[Path, set[str]] = {}
    for target in targets:
        prefixes.setdefault(target.parent, set()).add(_prefix(target))
    left = False
    for folder, wanted in prefixes.items():
        # a folder that cannot be listed, a file of another user or one that is already gone
        with suppress(OSError):
            for entry in list(os.scandir(folder)):
                found = _NAME.fullmatch(entry.name)
                if found and found[1] in wanted and entry.is_file(follow_symlinks=False):
                    _remove_if_unlocked(folder / entry.name)
                    left |= (folder / entry.name).exists()
    return not left


def _remove_if_unlocked(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


def _prefix(target: Path) -> str:
    # file systems limit the number of bytes; a character that is cut in two is left out
    return f".{os.fsencode(target.name)[:_MAX_NAME].decode(errors='ignore')}."


def _lock(descriptor: int) -> bool:
    """Lock a file; False where the system or the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
