"""The input table of a command: read once, with its cells as they are written in a text file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psmvae.cli.options import check_known
from psmvae.cli.paths import is_text_file
from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.io import keep_text, read_table, read_text
from psmvae.table.text_types import infer_types, mark_missing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from psmvae.cli.options import Files
    from psmvae.imputers.base import Imputer


@dataclass(frozen=True)
class InputTable:
    """A table and which of its columns are ignored: copied to the output, not modelled.

    Parameters
    ----------
    table : pyarrow.Table
        All columns.
    text : pyarrow.Table, optional
        The cells as they are written in a text file, all of them strings.
    na : tuple of str
        Texts that mark missing cells, in addition to the default ones.
    ignored : tuple of str
        Names of the ignored columns.
    """

    table: Any
    text: Any = None
    na: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def modelled(self) -> Any:
        """The table without the ignored columns."""
        return self.table.drop_columns(list(self.ignored)) if self.ignored else self.table

    def ignoring(self, names: Sequence[str]) -> InputTable:
        """Return the table with these columns ignored."""
        return replace(self, ignored=tuple(dict.fromkeys(names)))

    def as_written(self) -> Any:
        """The cells as text, null where missing. In ignored columns no cell is missing."""
        return mark_missing(self.text, na=self.na, keep=self.ignored)

    def completed(self, filled: Sequence[Any], output: Path) -> list[Any]:
        """Return all columns of filled tables, for an output file."""
        tables = [self._with_ignored(one) for one in filled]
        if self.text is None or not is_text_file(output):
            return tables
        text = self.as_written()
        return [keep_text(one, text) for one in tables]

    def _with_ignored(self, filled: Any) -> Any:
        table = self.table
        for field in filled.schema if self.ignored else ():
            position = table.column_names.index(field.name)
            table = table.set_column(position, field, filled[field.name])
        return table if self.ignored else filled


def read_input(files: Files, ignore: Sequence[str] = ()) -> InputTable:
    """Read the table of a command, which must have rows and the columns to ignore.

    A text file is parsed once: the types are inferred from the cells as they are written.
    """
    na = tuple(files.na or ())
    if is_text_file(files.table):
        text = read_text(files.table)
        table = infer_types(mark_missing(text, na=na))
    else:
        text, table = None, read_table(files.table, na=na)
    if table.num_rows == 0:
        message = f"{files.table}: there are column names but no rows"
        raise TableError(message)
    check_known("--ignore", ignore, table.column_names)
    if set(table.column_names) <= set(ignore):
        message = "--ignore: no column is left to model"
        raise UsageError(message)
    return InputTable(table, text, na).ignoring(ignore)


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
