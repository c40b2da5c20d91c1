"""The files of a command: paths are checked before any time is spent, a table is read once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import typer

from psmvae.cli.messages import reworded
from psmvae.cli.options import check_known
from psmvae.cli.terminal import UsageError
from psmvae.table.errors import OutputExistsError, TableError
from psmvae.table.io import mark_values, read_table, read_text
from psmvae.table.paths import SEPARATORS, atomic_path, check_output, check_place, check_source
from psmvae.table.text import keep_text, text_of_unchanged
from psmvae.table.text_types import infer_types, mark_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from psmvae.cli.terminal import Terminal
    from psmvae.imputers.base import Imputer

MODEL_EXTENSION = ".safetensors"


def is_text_file(path: Path) -> bool:
    """Whether a path names a CSV or TSV file."""
    return path.name.lower().endswith(tuple(SEPARATORS))


def check_input(path: Path) -> None:
    """Refuse an input that does not exist or is no regular file."""
    try:
        check_source(path)
    except TableError as error:
        raise UsageError(str(error)) from error


def check_table_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a path where a table cannot or must not be written."""
    try:
        check_output(path, force=force, inputs=inputs)
    except TableError as error:
        raise UsageError(reworded(error, text_file=True)) from error


def check_model_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a path where a model cannot or must not be written."""
    if path.suffix.lower() != MODEL_EXTENSION:
        raise UsageError(f"{path}: a model is written to a {MODEL_EXTENSION} file")
    check_file_output(path, force=force, inputs=inputs)


class TableFile(Protocol):
    """Options with the path of a table and the texts that mark missing cells."""

    @property
    def table(self) -> Path:
        """The path of the table."""

    @property
    def na(self) -> list[str] | None:
        """Texts that mark missing cells, in addition to the default ones."""


def check_file_output(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a path where a file cannot or must not be written."""
    try:
        check_place(path, force=force, inputs=inputs)
    except TableError as error:
        raise UsageError(reworded(error, text_file=True)) from error


def write_somewhere(write: Callable[[Path], None], path: Path) -> Path:
    """Write a result to a path, or beside it if another process has taken it; return where.

    The path was free, or could be replaced, when the command began.
    """
    candidates = itertools.chain([path], (beside(path, number) for number in itertools.count(2)))
    for candidate in candidates:
        try:
            write(candidate)
        except (OutputExistsError, FileExistsError):
            continue
        return candidate
    raise AssertionError  # the candidates have no end


def beside(path: Path, number: int) -> Path:
    """Return the path of a numbered file: ``filled-2.csv`` for ``filled.csv``."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix.lower() == ".gz" else path.suffix
    return path.with_name(f"{path.name.removesuffix(suffix)}-{number}{suffix}")


def check_written(wanted: Sequence[Path], written: Sequence[Path]) -> None:
    """Raise if results are not where they were wanted."""
    moved = [(a, b) for a, b in zip(wanted, written, strict=True) if a != b]
    if moved:
        where = ", ".join(f"{a} (the result is in {b})" for a, b in moved)
        raise TableError(f"created by another process in the meantime: {where}")


def write_text(text: str, path: Path | None, terminal: Terminal, *, force: bool) -> None:
    """Write text to a file, completely or not at all, or to standard output.

    Without ``force``, a file that another process has created in the meantime is kept.
    """
    if path is None:
        typer.echo(text, nl=False)
        return

    def write(target: Path) -> None:
        with atomic_path(target, replace=force) as temporary:
            temporary.write_text(text, encoding="utf-8")

    written = write_somewhere(write, path)
    terminal.say(f"wrote {written}")
    check_written([path], [written])


@dataclass(frozen=True)
class InputTable:
    """A table and which of its columns are ignored: copied to the output, not modelled.

    ``text`` has the cells as they are written in a text file, all of them strings, and ``na`` the
    texts that mark missing cells, in addition to the default ones. ``unmarked`` is the table of a
    file that is not text, with the values that ``na`` marks.
    """

    table: Any
    text: Any = None
    na: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    unmarked: Any = None

    @property
    def modelled(self) -> Any:
        """The table without the ignored columns."""
        if not self.ignored:
            return self.table
        ignored = set(self.ignored)
        names = enumerate(self.table.column_names)
        return self.table.select([at for at, name in names if name not in ignored])

    def ignoring(self, names: Sequence[str]) -> InputTable:
        """Return the table with these columns ignored."""
        ignored, table = tuple(dict.fromkeys(names)), self.table
        if self.unmarked is not None:
            table = mark_values(self.unmarked, self.na, keep=ignored)
        return replace(self, table=table, ignored=ignored)

    def as_written(self) -> Any:
        """The cells as text, null where missing. In ignored columns no cell is missing."""
        return mark_missing(self.text, na=self.na, keep=self.ignored)

    def incomplete(self, output: Path) -> Any:
        """Return all columns as they are, for an output file."""
        return self.table if self.text is None or not is_text_file(output) else self.as_written()

    def completed(
        self, filled: Sequence[Any], output: Path, computed: Iterable[str] = ()
    ) -> list[Any]:
        """Return all columns of filled tables, for an output file.

        In ``computed`` columns observed cells may have changed, too.
        """
        tables = [self._with_ignored(one) for one in filled]
        if self.text is None or not is_text_file(output):
            return tables
        text = self.as_written()
        return [
            keep_text(one, text_of_unchanged(text, self.table, one, computed)) for one in tables
        ]

    def _with_ignored(self, filled: Any) -> Any:
        if not self.ignored:
            return filled
        # all at once: each `set_column` copies the list of columns
        fresh = {field.name: (field, filled[field.name]) for field in filled.schema}
        old = zip(self.table.schema, self.table.columns, strict=True)
        pairs = [fresh.get(field.name, (field, column)) for field, column in old]
        schema = pa.schema([field for field, _ in pairs], metadata=self.table.schema.metadata)
        return pa.Table.from_arrays([column for _, column in pairs], schema=schema)


def read_input(files: TableFile, ignore: Sequence[str] = ()) -> InputTable:
    """Read the table of a command, which must have rows and the columns to ignore.

    A text file is parsed once: the types are inferred from the cells as they are written.
    """
    na, text, unmarked = tuple(files.na or ()), None, None
    if is_text_file(files.table):
        text = read_text(files.table)
        table = infer_types(mark_missing(text, na=na))
    else:
        table = unmarked = read_table(files.table)
    if table.num_rows == 0:
        raise TableError(f"{files.table}: there are column names but no rows")
    check_known("--ignore", ignore, table.column_names)
    if set(table.column_names) <= set(ignore):
        raise UsageError("--ignore: no column is left to model")
    return InputTable(table, text, na, unmarked=unmarked).ignoring(ignore)


def ignored_by_model(imputer: Imputer, path: Path, source: InputTable) -> InputTable:
    """Return the table with the columns ignored that a model from a file does not use.

    These are the columns of --ignore and those that were ignored when the model was fitted. The
    latter need not be in the table.
    """
    fitted = imputer.schema_.names
    clash = [name for name in source.ignored if name in fitted]
    if clash:
        message = f"--ignore: {path} was fitted on {', '.join(map(repr, clash))} and needs it"
        raise UsageError(message)
    stored = set(getattr(imputer, "ignored_columns_", [])) - set(fitted)
    names = source.table.column_names
    return source.ignoring([name for name in names if name in source.ignored or name in stored])
