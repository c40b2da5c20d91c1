"""CSV and TSV files as the text of each cell.

pyarrow parses the files. Python's `csv` writes them, because `pyarrow.csv.write_csv` puts every
string in quotes and writes the float 1.0 as 1, which is read back as an integer.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import narwhals.stable.v2 as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from psmvae.table.errors import TableError
from psmvae.table.libraries import is_arrow_table, is_pandas_frame
from psmvae.table.nulls import set_null
from psmvae.table.wording import quoted, repeated

# Texts that always mean a missing cell. ".", "?" and "-" may: see `psmvae.table.column_checks`.
_NOT_AVAILABLE = ("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>")
MISSING = ("", *_NOT_AVAILABLE, "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None")
_HEAD = _BATCH = 1 << 16
# Bytes that pyarrow parses at once: in all, and for each column.
_MIN_BLOCK, _MAX_BLOCK, _BLOCK_PER_COLUMN = 1 << 20, 1 << 28, 1 << 12
# What a conversion to Arrow raises for objects that it has no type for.
_NOT_HELD = (pa.ArrowException, TypeError, ValueError, OverflowError)
# Advice in the error for a file whose separator does not match its extension, by separator.
_REMEDY = {
    ";": "write it with ',' between cells and '.' in numbers: in Python, "
    "pandas.read_csv(path, sep=';', decimal=',').to_csv(new_path, index=False)",
    "\t": "name it .tsv",
    ",": "name it .csv",
    "|": "write it with ',' between cells",
}


def parse_text(path: Path, separator: str) -> Any:
    """Return the text of each cell of a file, a table of strings without nulls."""
    names = _header(path, separator)
    try:
        # pyarrow itself knows the extension in lower case only
        compression = "gzip" if path.name.lower().endswith(".gz") else None
        with pa.input_stream(str(path), compression=compression) as file:
            table = pa_csv.read_csv(file, **_options(names, separator))
    except (pa.ArrowException, OSError) as error:
        raise _problem(path, separator, len(names), error) from error
    _check_names(path, names, table.column_names)
    return table


def stream_text(path: Path, separator: str) -> Iterator[Any]:
    """Return the tables of `parse_text` for one part of a file after another.

    ``path`` is a path, or an object with ``name`` and ``open`` for the content of a file elsewhere.
    """
    names = _header(path, separator)
    try:
        with _open(path) as file, pa_csv.open_csv(file, **_options(names, separator)) as reader:
            _check_names(path, names, reader.schema.names)
            for batch in reader:
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise _problem(path, separator, len(names), error) from error


def _options(names: list[str], separator: str) -> dict[str, Any]:
    types = dict.fromkeys(names, pa.string())
    convert = pa_csv.ConvertOptions(strings_can_be_null=False, column_types=types)
    # in a file with one column an empty line is a missing cell
    parse = pa_csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(names) > 1
    )
    # a block is a chunk of every column: blocks of few rows would make many chunks of a wide table
    size = min(max(_MIN_BLOCK, _BLOCK_PER_COLUMN * len(names)), _MAX_BLOCK)
    read = pa_csv.ReadOptions(block_size=size)
    return {"read_options": read, "convert_options": convert, "parse_options": parse}


def _check_names(path: Path, names: list[str], found: list[str]) -> None:
    if found == [""] != names:
        raise TableError(f"{path}: the first line is empty; expected a line of column names")
    if found != names:
        raise TableError(f"{path}: the line of column names cannot be read: {quoted(found)}")


def write_text(table: Any, to: Path | io.BytesIO, separator: str, *, compress: bool) -> None:
    """Write an Arrow table as CSV, quoting only what needs it."""
    with (
        to if isinstance(to, io.BytesIO) else to.open("wb") as file,
        text_writer(file, table.column_names, separator, compress=compress) as write,
    ):
        write(table)


class _Lines:
    """Ends lines with a line feed alone.

    `csv` quotes a cell with a carriage return only if lines end with one too (before Python 3.13).
    """

    def __init__(self, file: io.TextIOBase) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Write a line of `csv.writer`."""
        self._file.write(line[:-2] + "\n")


@contextmanager
def text_writer(
    file: Any, names: Sequence[str], separator: str, *, compress: bool
) -> Iterator[Callable[[Any], None]]:
    """Write the column names, and yield a function that writes the rows of Arrow tables."""
    # without name and time in the header, the same table gives the same bytes
    stream: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compress else file
    with stream, io.TextIOWrapper(stream, encoding="utf-8", newline="") as lines:
        writer = csv.writer(_Lines(lines), delimiter=separator, lineterminator="\r\n")
        writer.writerow(names)

        def write(table: Any) -> None:
            for batch in table.to_batches(max_chunksize=_BATCH):
                columns = [_format_cells(column) for column in batch.columns]
                writer.writerows(zip(*columns, strict=True))

        yield write


def keep_text(filled: Any, text: Any, *, digits: int = 6) -> Any:
    """Return a filled table as text: the file's text in observed cells, filled values in others."""
    table = as_arrow(filled)
    if table.column_names != text.column_names or table.num_rows != text.num_rows:
        raise TableError(
            f"the filled table ({table.num_rows} rows, columns {quoted(table.column_names)}) and "
            f"the text ({text.num_rows} rows, columns {quoted(text.column_names)}) differ"
        )
    columns = {name: _keep_text(table[name], text[name], digits) for name in text.column_names}
    return pa.table(columns)


def text_of_unchanged(text: Any, table: Any, filled: Any, columns: Iterable[str]) -> Any:
    """Return the text of a table without the cells of some columns that have changed."""
    for name in columns:
        before, after = table[name], filled[name]
        same = pc.equal(before.cast(after.type), after).fill_null(False)
        kept = set_null(text[name], pc.invert(same))
        text = text.set_column(text.column_names.index(name), name, kept)
    return text


def _keep_text(column: Any, text: Any, digits: int) -> Any:
    if text.null_count == 0:
        return text
    cells, fresh = text.to_pylist(), _format_cells(column.filter(text.is_null()), digits)
    if pa.types.is_boolean(column.type):
        spelling = _bool_spelling(column.to_pylist(), cells)
        fresh = [spelling.get(value, value) for value in fresh]
    values = iter(fresh)
    kept = [next(values) if cell is None else cell for cell in cells]
    return pa.chunked_array([pa.array(kept, type=pa.string())])


def _bool_spelling(values: list[bool | None], cells: list[str | None]) -> dict[str | None, str]:
    """Return how this file spells Arrow's "true" and "false"."""
    seen = {value: cell for value, cell in zip(values, cells, strict=True) if cell is not None}
    spelling: dict[str | None, str] = {}
    for value, word in ((True, "true"), (False, "false")):
        other = seen.get(not value, word)
        guess = word.upper() if other.isupper() else word.title() if other.istitle() else word
        spelling[word] = seen.get(value, guess)
    return spelling


def as_arrow(table: Any) -> Any:
    """Return a table of any frame library as a pyarrow Table, without the index of pandas."""
    if is_arrow_table(table):
        return table
    if is_pandas_frame(table):
        # pyarrow would add it as a column, with a name of its own if it has none
        table = table.reset_index(drop=True)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        found = type(table).__name__
        raise TypeError(f"expected a pyarrow Table or a DataFrame to write, got {found}") from error
    try:
        return frame.to_arrow()
    except _NOT_HELD as error:
        wrong = [name for name in frame.columns if not _is_arrow(frame.select(name))]
        raise TableError(f"column {quoted(wrong)}: {str(error).splitlines()[0]}") from error


def _is_arrow(frame: nw.DataFrame[Any]) -> bool:
    try:
        frame.to_arrow()
    except _NOT_HELD:
        return False
    return True


def _format_cells(column: Any, digits: int | None = None) -> list[str | None]:
    """Return cells as text, None where missing; `digits` of numbers, by default all that matter."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_floating(kind):
        options = {"zero_copy_only": False} if isinstance(column, pa.Array) else {}
        numbers = column.to_numpy(**options)
        return [None if number != number else _format(number, digits) for number in numbers]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TableError(f"a column of type {kind} cannot be written as text")
    return list(column.cast(pa.string()).to_pylist())


def _format(number: Any, digits: int | None) -> str:
    value = float(number)
    if digits is None or (value.is_integer() and abs(value) < 1e15):
        # str of a NumPy float32 has the fewest digits for a float32
        return str(number)
    return repr(float(f"{value:.{digits}g}"))


def _open(path: Path) -> IO[bytes]:
    # `Place.open` decompresses
    if path.name.lower().endswith(".gz") and hasattr(path, "stem"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _lines(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(_open(path), "utf-8-sig", newline="")


def _header(path: Path, separator: str) -> list[str]:
    """Return the column names, after checking that the file is text."""
    try:
        with _open(path) as file:
            head = file.read(_HEAD)
        if not head.strip(b"\r\n\xef\xbb\xbf"):
            raise TableError(f"{path}: the file is empty; expected a line of column names")
        if b"\0" in head:
            raise TableError(f"{path}: not a text file (it has zero bytes); expected UTF-8 text")
        if wrong := _broken_quote(path, separator):
            raise TableError(f"{path}: {wrong}; close the quote or remove it")
        with _lines(path) as lines:
            names = next(row for row in csv.reader(lines, delimiter=separator) if row)
    except UnicodeDecodeError as error:
        raise _problem(path, separator, 0, error) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise TableError(f"{path}: {error}") from error
    nameless = [str(number) for number, name in enumerate(names, 1) if not name]
    if len(nameless) > 1:
        which = f"columns {', '.join(nameless[:5])}{' ...' if len(nameless) > 5 else ''}"
        raise TableError(f"{path}: {which} have no name; name each column in the first line")
    if twice := repeated(names):
        raise TableError(f"{path}: column names must be unique, these occur twice: {quoted(twice)}")
    for other, remedy in _REMEDY.items():
        if len(names) == 1 and other != separator and other in names[0]:
            raise TableError(
                f"{path}: only one column, named {names[0]!r}; the file seems to be separated by "
                f"{other!r} where its extension says {separator!r}; {remedy}"
            )
    return names


def _broken_quote(path: Path, separator: str) -> str | None:
    """Return the line whose quote is never closed, or closed in the middle of a cell, if any.

    pyarrow reads the rows after the quote as one long cell. The strict mode of Python's `csv`
    reports it, but also rejects files that are read as meant: a quote within a cell is text.
    """
    with _open(path) as file:
        # parsing all cells is slow, and most files have no line with an odd number of quotes
        if not any(line.count(b'"') % 2 for line in file):
            return None
    record: list[str] = []

    def recorded(lines: io.TextIOWrapper) -> Iterator[str]:
        for line in lines:
            record.append(line)
            yield line

    n_lines = 0
    with _lines(path) as lines:
        for _ in csv.reader(recorded(lines), delimiter=separator):
            first, n_lines = n_lines + 1, n_lines + len(record)
            error = _strict_error(record, separator)
            if error == "unexpected end of data":
                return f"line {first} opens a quote that is never closed"
            if error and len(record) > 1:
                place = f"line {n_lines}, inside a cell there"
                return f"line {first} opens a quote that is not closed before {place}"
            record.clear()
    return None


def _strict_error(record: list[str], separator: str) -> str | None:
    if len(record) == 1 and record[0].count('"') % 2 == 0:
        return None
    try:
        list(csv.reader(record, delimiter=separator, strict=True))
    except csv.Error as error:
        return str(error)
    return None


def _problem(path: Path, separator: str, n_columns: int, error: Exception) -> TableError:
    """Return what is wrong with a file that pyarrow cannot read, and in which line."""
    number = 1
    try:
        with _open(path) as file:
            for line in file:
                line.decode("utf-8")
                number += 1
        with _lines(path) as lines:
            reader = csv.reader(lines, delimiter=separator, strict=True)
            try:
                wrong = next((row for row in reader if row and len(row) != n_columns), None)
            except csv.Error as worse:
                # such as a quote that is never closed
                return TableError(f"{path}: line {reader.line_num}: {worse}")
    except UnicodeDecodeError as bad:
        reason = f"line {number} is not UTF-8 text ({bad.reason}); save it as UTF-8"
        return TableError(f"{path}: {reason}")
    except (OSError, EOFError, zlib.error) as worse:
        return TableError(f"{path}: {worse}")
    if wrong is None:
        return TableError(f"{path}: {str(error).splitlines()[0]}")
    return TableError(
        f"{path}: line {reader.line_num} has {len(wrong)} fields; expected {n_columns}, as many as "
        "there are column names"
    )
