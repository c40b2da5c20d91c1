"""Refuse paths that cannot work before any time is spent: all of these are usage errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.io import check_output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODEL_EXTENSION = ".safetensors"


def check_input(path: Path) -> None:
    """Refuse an input that is not there."""
    if not path.exists():
        message = f"{path}: no such file"
        raise UsageError(message)


def check_table_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a place where no table can or may be written."""
    try:
        # What no option allows comes first, so that nobody is sent to --force in vain.
        check_output(path, force=True, inputs=inputs)
    except TableError as error:
        raise UsageError(str(error)) from error
    _check_free(path, force=force)


def check_model_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a place where no model can or may be written."""
    if path.suffix.lower() != MODEL_EXTENSION:
        message = f"{path}: a model is written to a {MODEL_EXTENSION} file"
        raise UsageError(message)
    if path.is_dir():
        message = f"{path}: this is a folder; expected the name of a file"
        raise UsageError(message)
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            message = f"{path}: the output is the input file {source}; choose another name"
            raise UsageError(message)
    folder = path.resolve().parent
    if not folder.is_dir():
        message = f"{path}: there is no folder {folder}; create it first"
        raise UsageError(message)
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"{path}: the folder {folder} is not writable"
        raise UsageError(message)
    _check_free(path, force=force)


def _check_free(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        message = f"{path}: the file exists already; --force replaces it"
        raise UsageError(message)
