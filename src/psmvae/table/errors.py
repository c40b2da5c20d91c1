"""The errors a table can give, beside plain ValueError and TypeError."""

from __future__ import annotations


class TableError(ValueError):
    """A file that cannot be read as a table, or must not be written.

    Examples
    --------
    >>> from psmvae.table import TableError, read_table
    >>> try:
    ...     read_table("nowhere.csv")
    ... except TableError as error:
    ...     print(error)
    nowhere.csv: there is no such file
    """


class UnsupportedColumnError(TypeError):
    """A column that holds what no kind can model, such as dates or lists."""
