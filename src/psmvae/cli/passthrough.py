"""The table of a command, and the columns in it that are set aside: carried along, not modelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psmvae.cli.terminal import UsageError
from psmvae.table.errors import TableError
from psmvae.table.io import keep_text, read_table, read_text
from psmvae.table.paths import SEPARATORS, extension

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from psmvae.cli.options import Files
    from psmvae.imputers.base import Imputer


@dataclass(frozen=True)
class Parted:
    """A table and which of its columns are set aside.

    Parameters
    ----------
    whole : pyarrow.Table
        All columns.
    aside : tuple of str
        Names of those that are not modelled.
    """

    whole: Any
    aside: tuple[str, ...] = ()

    @property
    def table(self) -> Any:
        """The columns to model."""
        return self.whole.drop_columns(list(self.aside)) if self.aside else self.whole

    def completed(self, filled: Any) -> Any:
        """Return the whole table with the filled columns in their places."""
        if not self.aside:
            return filled
        whole = self.whole
        for field in filled.schema:
            position = whole.column_names.index(field.name)
            whole = whole.set_column(position, field, filled[field.name])
        return whole

    def in_text_of(self, files: Files, filled: Sequence[Any]) -> list[Any]:
        """Return filled tables with cells as the input writes them, where both files are text."""
        if not all(extension(path) in SEPARATORS for path in (files.table, files.output)):
            return list(filled)
        text = read_text(files.table, na=files.na or (), as_is=self.aside)
        return [keep_text(one, text) for one in filled]


def read(files: Files, ignore: Sequence[str] | None) -> Any:
    """Return the table of a command, which must have rows and the columns to ignore."""
    whole = read_table(files.table, na=files.na or ())
    if whole.num_rows == 0:
        message = f"{files.table}: there are column names but no rows"
        raise TableError(message)
    known = whole.column_names
    unknown = [name for name in ignore or () if name not in known]
    if unknown:
        message = f"--ignore: no column {', '.join(map(repr, unknown))} in the table; "
        raise UsageError(message + f"its columns are {', '.join(map(repr, known))}")
    if set(known) <= set(ignore or ()):
        message = "--ignore: no column is left to model"
        raise UsageError(message)
    return whole


def aside_for(
    imputer: Imputer, path: Path, names: Iterable[str], given: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns that a model from a file sets aside: those given, and those it was told.

    A column that the model was told of at fit need not be there.
    """
    known = imputer.schema_.names
    clash = [name for name in given if name in known]
    if clash:
        message = f"--ignore: {path} was fitted on {', '.join(map(repr, clash))} and needs it"
        raise UsageError(message)
    told = getattr(imputer, "ignored_columns_", [])
    return tuple(name for name in names if name in given or (name in told and name not in known))
