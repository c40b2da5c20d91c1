"""Check the paths of a command before any time is spent. A bad path is a usage error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psmvae.cli.messages import reworded
from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.paths import SEPARATORS, check_output, check_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODEL_EXTENSION = ".safetensors"


def is_text_file(path: Path) -> bool:
    """Whether a path names a CSV or TSV file."""
    return path.name.lower().endswith(tuple(SEPARATORS))


def check_input(path: Path) -> None:
    """Refuse an input that does not exist."""
    if not path.exists():
        message = f"{path}: no such file"
        raise UsageError(message)


def check_table_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a path where a table cannot or must not be written."""
    try:
        check_output(path, force=force, inputs=inputs)
    except TableError as error:
        raise UsageError(reworded(error, text_file=True)) from error


def check_model_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a path where a model cannot or must not be written."""
    if path.suffix.lower() != MODEL_EXTENSION:
        message = f"{path}: a model is written to a {MODEL_EXTENSION} file"
        raise UsageError(message)
    try:
        check_place(path, force=force, inputs=inputs)
    except TableError as error:
        raise UsageError(reworded(error, text_file=True)) from error
