"""A table in one or more files, as an ordered sequence of parts with known positions."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import pyarrow as pa

from psmvae.sources.places import AnyPath, Place, find_files
from psmvae.sources.readers import is_text, read_rows, read_schema
from psmvae.table.errors import TableError
from psmvae.table.io import mark_values
from psmvae.table.nulls import is_string_type
from psmvae.table.text_types import TypeScan, mark_missing
from psmvae.table.wording import quoted, repeated

Content = Literal["numbers", "strings"]
"""What the cells of a column are; bools count as numbers."""
Header = TypeVar("Header")


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
    keep : tuple of str
        Columns of Parquet and Arrow files whose cells are not compared with `na`.

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
    keep: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        paths: AnyPath | Sequence[AnyPath],
        *,
        na: Sequence[str] = (),
        needed: Collection[str] = (),
        allowed: Collection[str] | None = None,
        contents: Mapping[str, Content] | None = None,
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
        allowed : collection of str, optional
            Columns that a file may have beside those needed. By default all.
        contents : mapping of str to {"numbers", "strings"}, optional
            What columns hold. A file in which they hold something else does not decide about the
            types of the table.
        skipped : list of str, optional
            Gets the errors of files that are left out instead of raising them.

        Returns
        -------
        FileTable
            The table.

        Raises
        ------
        TableError
            If a file cannot be read or has other columns than most of them. The message names the
            file and the column.
        """
        places = find_files(paths)
        kinds = {is_text(place) for place in places}
        if len(kinds) > 1:
            text = next(place for place in places if is_text(place))
            raise TableError(f"{text}: text files and other files cannot be parts of one table")
        codes = (na,) if isinstance(na, str) else tuple(na)
        expected = _Expected(needed, allowed, contents or {})
        kind: type[_Scan] = _TextScan if kinds.pop() else _BinaryScan
        scan = kind(codes, expected, lenient=skipped is not None)
        for place in places:
            with _left_out(skipped):
                scan.look(place)
        scan.choose()
        for place, header in scan.headers:
            with _left_out(skipped):
                scan.add(place, header)
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
                table = _cast(mark_values(table, self.na, self.keep), self.schema, rows.place)
            n_read = rows.start + table.num_rows
            yield Batch(part.start + rows.start, table, text, rows.place)
        if n_read < stop:
            raise TableError(
                f"{part.place}: it had {part.stop - part.start} rows and has fewer now"
            )


class _Expected(NamedTuple):
    """What the columns of a file must be; see `FileTable.open`."""

    needed: Collection[str]
    allowed: Collection[str] | None
    contents: Mapping[str, Content]

    def check(self, place: Place, names: Sequence[str]) -> None:
        """Raise if a file has too few or too many columns."""
        _check_names(place, names)
        absent = [name for name in self.needed if name not in names]
        if absent:
            raise TableError(f"{place}: it has no column {quoted(absent)}, which is needed")
        if self.allowed is None:
            return
        known = {*self.needed, *self.allowed}
        if unknown := [name for name in names if name not in known]:
            raise TableError(
                f"{place}: it has the column {unknown[0]!r}, which the model does not have; "
                "ignore it, or fit the model again"
            )

    def wrong(self, schema: Any) -> set[str]:
        """Return the columns whose types do not hold what they should."""
        return {
            field.name
            for field in schema
            if field.name in self.contents and not _holds(field.type, self.contents[field.name])
        }


class _Scan:
    """Collects the files of a table.

    Each file is looked at first. So a file that differs from the others can be told, also where it
    is the first one. `headers` has what was found, `first` the file that the others are compared
    with.
    """

    def __init__(self, na: tuple[str, ...], expected: _Expected, *, lenient: bool) -> None:
        self.na, self.expected, self.lenient = na, expected, lenient
        self.headers: list[tuple[Place, Any]] = []
        self.parts: list[Part] = []
        self.first: Place | None = None
        self.names: list[str] | None = None

    def look(self, place: Place) -> None:
        """Read what `choose` compares of a file."""
        raise NotImplementedError

    def choose(self) -> None:
        """Choose the file whose columns are those of the table."""
        raise NotImplementedError

    def add(self, place: Place, header: Any) -> None:
        """Add a file."""
        raise NotImplementedError

    def table(self) -> FileTable:
        """Return the table."""
        raise NotImplementedError

    def check(self, place: Place, names: Sequence[str]) -> None:
        """Raise if the columns of a file are not those of the table."""
        self.expected.check(place, names)
        _check_columns(place, names, self.first or place, self.names)


class _BinaryScan(_Scan):
    """Parquet and Arrow files, which have a schema."""

    schema: Any = None

    def look(self, place: Place) -> None:
        """Read the schema of a file."""
        schema, n_rows = read_schema(place)
        self.expected.check(place, schema.names)
        self.headers.append((place, (schema, n_rows)))

    def choose(self) -> None:
        """Choose the first file with the right types and the most common columns."""
        found = [(place, schema) for place, (schema, _) in self.headers]
        right = [one for one in found if not self.expected.wrong(one[1])]
        if found:
            self.first, self.schema = _most_common(right or found, lambda schema: schema.names)
            self.names = self.schema.names

    def add(self, place: Place, header: Any) -> None:
        """Add a file."""
        schema, n_rows = header
        self.check(place, schema.names)
        unified = _unified(self.schema, schema, place, self.first or place)
        for name in self.expected.wrong(unified) - self.expected.wrong(self.schema):
            raise TableError(
                f"{place}: column {name!r} is of type {schema.field(name).type}, but the model was "
                f"fitted on {self.expected.contents[name]}; convert it"
            )
        self.schema = unified
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

    def look(self, place: Place) -> None:
        """Read the column names of a file, None if it has no rows."""
        names = None
        # otherwise the first file that differs ends the scan, and need not be found before
        if self.lenient and (rows := next(read_rows(place), None)) is not None:
            names = rows.table.column_names
            self.expected.check(place, names)
        self.headers.append((place, names))

    def choose(self) -> None:
        """Choose the first file with the most common columns."""
        found: list[tuple[Place, list[str]]] = [one for one in self.headers if one[1] is not None]
        if found:
            first, names = _most_common(found, lambda names: names)
            self.first, self.names = first, names

    def add(self, place: Place, header: Any) -> None:  # noqa: ARG002
        """Read a file and add it."""
        n_rows = 0
        types = copy.deepcopy(self.types)
        for rows in read_rows(place):
            if n_rows == 0:
                self.check(place, rows.table.column_names)
            types = types or TypeScan(rows.table.column_names)
            types.add(mark_missing(rows.table, self.na))
            n_rows += rows.table.num_rows
        if n_rows and self.names is None:
            self.first, self.names = place, list(rows.table.column_names)
        if self.lenient and types is not None:
            self._check_types(types, place)
        self.types = types
        self.parts.append(_part(place, self.parts, n_rows))

    def _check_types(self, types: TypeScan, place: Place) -> None:
        """Raise if a file makes a column of text of one of numbers, which no file could mend."""
        for name in self.expected.wrong(self._schema(types)):
            if self.expected.contents[name] == "numbers":
                raise TableError(
                    f"{place}: column {name!r} has cells that are not numbers, but the model was "
                    "fitted on numbers; correct them, or give them as codes of missing cells (na)"
                )

    def table(self) -> FileTable:
        """Return the table."""
        if self.types is None:
            raise TableError(f"{self.parts[0].place}: there are column names but no rows")
        return FileTable(tuple(self.parts), self._schema(self.types), self.types, self.na)

    def _schema(self, types: TypeScan) -> Any:
        empty = pa.table({name: pa.array([], pa.string()) for name in self.names or ()})
        return types.convert(empty).schema


@contextmanager
def _left_out(skipped: list[str] | None) -> Iterator[None]:
    """Collect the error of a file that is left out, if there is a list for it."""
    try:
        yield
    except TableError as error:
        if skipped is None:
            raise
        skipped.append(str(error))


def _most_common(
    found: Sequence[tuple[Place, Header]], names: Callable[[Header], Sequence[str]]
) -> tuple[Place, Header]:
    """Return the first file with the most common set of columns."""
    sets = [frozenset(names(header)) for _, header in found]
    # of those that are equally common, the one that comes first
    return found[sets.index(Counter(sets).most_common(1)[0][0])]


def _holds(kind: Any, content: Content) -> bool:
    """Whether a type of Arrow can hold numbers (or bools), or strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return True
    if content == "strings":
        return is_string_type(kind)
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _part(place: Place, before: Sequence[Part], n_rows: int) -> Part:
    start = before[-1].stop if before else 0
    return Part(place, start, start + n_rows, *place.stamp())


def _check_names(place: Place, names: Sequence[str]) -> None:
    if not names:
        raise TableError(f"{place}: the file has no columns")
    if twice := ", ".join(repeated(names)):
        raise TableError(f"{place}: column names must be unique, these occur twice: {twice}")


def _check_columns(
    place: Place, names: Sequence[str], first: Place, expected: Sequence[str] | None
) -> None:
    """Raise if the columns of a file are not those of the first one."""
    _check_names(place, names)
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
