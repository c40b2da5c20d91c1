"""A table in one or more files, as an ordered sequence of parts with known positions."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from psmvae.sources.places import AnyPath, Place, find_files
from psmvae.sources.readers import is_text, read_rows, read_schema
from psmvae.table.errors import TableError
from psmvae.table.io import mark_values
from psmvae.table.text_types import TypeScan, mark_missing
from psmvae.table.wording import quoted, repeated


class Batch(NamedTuple):
    """Rows of a table: position of the first one, the rows, their text, and where they are.

    ``text`` has the cells of a text file as they are written.
    """

    start: int
    table: Any
    text: Any
    place: str

    @property
    def stop(self) -> int:
        """The position after the last row."""
        return self.start + int(self.table.num_rows)


@dataclass(frozen=True)
class Part:
    """A file of a table: its rows are those from ``start`` to ``stop`` of the table.

    ``size`` and ``modified`` are the bytes and the time of the last change in nanoseconds.
    """

    place: Place
    start: int
    stop: int
    size: int
    modified: int


@dataclass(frozen=True)
class FileTable:
    """A table in files of one format, which need not fit into memory.

    Parameters
    ----------
    parts : tuple of Part
        The files, in the order of their paths.
    schema : pyarrow.Schema
        The columns of the table. Each file has them, in any order.
    types : TypeScan, optional
        The types of the columns of text files.
    na : tuple of str
        Codes of missing cells; see `read_table`.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from psmvae.streaming import FileTable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(2):
    ...         pq.write_table(pa.table({"a": [1.5, None]}), f"{folder}/{k}.parquet")
    ...     FileTable.open(folder).n_rows
    4
    """

    parts: tuple[Part, ...]
    schema: Any
    types: TypeScan | None = None
    na: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        paths: AnyPath | Sequence[AnyPath],
        *,
        na: Sequence[str] = (),
        needed: Collection[str] = (),
        skipped: list[str] | None = None,
    ) -> FileTable:
        """Find the files and check that their columns agree; text files are read once.

        Parameters
        ----------
        paths : path or sequence of paths
            Files, folders, patterns and URIs.
        na : sequence of str
            Codes of missing cells; see `read_table`.
        needed : collection of str
            Columns that each file must have.
        skipped : list of str, optional
            Gets the errors of files that are left out instead of raising them.

        Returns
        -------
        FileTable
            The table.

        Raises
        ------
        TableError
            If a file cannot be read or has other columns than the first one. The message names the
            file and the column.
        """
        places = find_files(paths)
        kinds = {is_text(place) for place in places}
        if len(kinds) > 1:
            text = next(place for place in places if is_text(place))
            raise TableError(f"{text}: text files and other files cannot be parts of one table")
        codes = (na,) if isinstance(na, str) else tuple(na)
        scan = _TextScan(codes) if kinds.pop() else _BinaryScan(codes)
        for place in places:
            try:
                scan.add(place, needed)
            except TableError as error:
                if skipped is None:
                    raise
                skipped.append(str(error))
        if not scan.parts:
            raise TableError(f"{places[0]}: no file can be read: {(skipped or [''])[0]}")
        return scan.table()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.parts[-1].stop

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Read rows, one batch after another.

        Parameters
        ----------
        start : int, default=0
            Position of the first row.
        stop : int, optional
            Position after the last row; the end of the table by default.

        Yields
        ------
        Batch
            Rows of one file: ``start``, ``table``, ``text`` and ``place``.
        """
        stop = self.n_rows if stop is None else min(stop, self.n_rows)
        for part in self.parts:
            low, high = max(start, part.start), min(stop, part.stop)
            if low < high:
                yield from self._batches(part, low - part.start, high - part.start)

    def _batches(self, part: Part, start: int, stop: int) -> Iterator[Batch]:
        n_read = start
        for rows in read_rows(part.place, start, stop):
            table, text = rows.table, None
            _check_columns(part.place, table.column_names, part.place, self.schema.names)
            table = table.select(self.schema.names)
            if self.types is not None:
                text = table
                table = _converted(self.types, mark_missing(text, self.na), rows.place)
            else:
                table = _cast(mark_values(table, self.na), self.schema, rows.place)
            n_read = rows.start + table.num_rows
            yield Batch(part.start + rows.start, table, text, rows.place)
        if n_read < stop:
            raise TableError(
                f"{part.place}: it had {part.stop - part.start} rows and has fewer now"
            )


class _Scan:
    """Collects the files of a table."""

    def __init__(self, na: tuple[str, ...]) -> None:
        self.na = na
        self.parts: list[Part] = []
        self.names: list[str] | None = None

    def check(self, place: Place, names: Sequence[str], needed: Collection[str]) -> None:
        """Raise if the columns of a file are not those of the first one."""
        absent = [name for name in needed if name not in names]
        if absent:
            raise TableError(f"{place}: it has no column {quoted(absent)}, which is needed")
        first = self.parts[0].place if self.parts else place
        _check_columns(place, names, first, self.names)


class _BinaryScan(_Scan):
    """Parquet and Arrow files, which have a schema."""

    schema: Any = None

    def add(self, place: Place, needed: Collection[str]) -> None:
        """Add a file."""
        schema, n_rows = read_schema(place)
        self.check(place, schema.names, needed)
        if self.schema is not None:
            schema = _unified(self.schema, schema, place, self.parts[0].place)
        self.schema, self.names = schema, schema.names
        self.parts.append(_part(place, self.parts, n_rows))

    def table(self) -> FileTable:
        """Return the table."""
        schema = self.schema
        if self.na:
            schema = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
        return FileTable(tuple(self.parts), schema, None, self.na)


class _TextScan(_Scan):
    """Text files, whose types are those that hold the cells of all files."""

    types: TypeScan | None = None

    def add(self, place: Place, needed: Collection[str]) -> None:
        """Read a file and add it."""
        n_rows = 0
        types = copy.deepcopy(self.types)
        for rows in read_rows(place):
            if n_rows == 0:
                self.check(place, rows.table.column_names, needed)
            types = types or TypeScan(rows.table.column_names)
            types.add(mark_missing(rows.table, self.na))
            n_rows += rows.table.num_rows
        self.types = types
        if self.names is None and n_rows:
            self.names = list(rows.table.column_names)
        self.parts.append(_part(place, self.parts, n_rows))

    def table(self) -> FileTable:
        """Return the table."""
        if self.types is None:
            raise TableError(f"{self.parts[0].place}: there are column names but no rows")
        empty = pa.table({name: pa.array([], pa.string()) for name in self.names or ()})
        return FileTable(tuple(self.parts), self.types.convert(empty).schema, self.types, self.na)


def _part(place: Place, before: Sequence[Part], n_rows: int) -> Part:
    start = before[-1].stop if before else 0
    return Part(place, start, start + n_rows, *place.stamp())


def _check_columns(
    place: Place, names: Sequence[str], first: Place, expected: Sequence[str] | None
) -> None:
    """Raise if the columns of a file are not those of the first one."""
    if not names:
        raise TableError(f"{place}: the file has no columns")
    if twice := ", ".join(repeated(names)):
        raise TableError(f"{place}: column names must be unique, these occur twice: {twice}")
    if expected is None or set(names) == set(expected):
        return
    absent = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    found = [f"it has no column {quoted(absent)}"] if absent else []
    found += [f"it has the column {quoted(extra)}"] if extra else []
    raise TableError(f"{place}: {' and '.join(found)}, unlike {first}")


def _unified(schema: Any, other: Any, place: Place, first: Place) -> Any:
    """Return types that hold the columns of two files, such as floats for integers and floats."""
    fields = []
    for field in schema:
        own = other.field(field.name)
        pair = [pa.schema([one.with_nullable(True)]) for one in (field, own)]
        try:
            kind = pa.unify_schemas(pair, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            raise TableError(
                f"{place}: column {field.name!r} is of type {own.type}, but of type {field.type} "
                f"in {first}"
            ) from error
        fields.append(field.with_type(kind).with_nullable(field.nullable or own.nullable))
    return pa.schema(fields, schema.metadata)


def _cast(table: Any, schema: Any, place: str) -> Any:
    if table.schema.equals(schema):
        return table
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise TableError(f"{place}: column {field.name!r}: {reason}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def _converted(types: TypeScan, text: Any, place: str) -> Any:
    try:
        return types.convert(text)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"{place}: the file has changed: {reason}") from error
