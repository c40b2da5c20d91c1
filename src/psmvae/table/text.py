"""CSV and TSV files as the text of each cell.

pyarrow parses the files. They are written by Python's `csv`, because `pyarrow.csv.write_csv` puts
every string in quotes, also column names, and writes the float 1.0 as 1, so that a column of whole
floats comes back as one of integers.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

from psmvae.table.errors import TableError
from psmvae.table.quotes import broken_quote, has_odd_quotes
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Texts that always mean a missing cell. ".", "?" and "-" may: see `psmvae.table.column_checks`.
_NOT_AVAILABLE = ("NA", "N/A", "n/a", "#N/A", "#NA", "<NA>")
MISSING = ("", *_NOT_AVAILABLE, "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None")
_HEAD = 1 << 16
_BATCH = 1 << 16
# What to do about a file with another separator than its extension stands for.
_REMEDY = {
    "\t": "name it .tsv",
    ",": "name it .csv",
    ";": "write it with ',' between cells and '.' in numbers: in Python, "
    "pandas.read_csv(path, sep=';', decimal=',').to_csv(new_path, index=False)",
    "|": "write it with ',' between cells",
}


def parse_text(path: Path, separator: str) -> Any:
    """Return the text of each cell of a file, a table of strings without nulls."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    names = _header(path, separator)
    convert = pa_csv.ConvertOptions(
        strings_can_be_null=False, column_types=dict.fromkeys(names, pa.string())
    )
    # in a file with one column an empty line is a missing cell
    parse = pa_csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(names) > 1
    )
    try:
        table = pa_csv.read_csv(path, convert_options=convert, parse_options=parse)
    except (pa.ArrowException, OSError) as error:
        raise _problem(path, separator, len(names), error) from error
    if table.column_names != names:
        message = f"{path}: the line of column names cannot be read: {quoted(table.column_names)}"
        raise TableError(message)
    return table


def write_text(table: Any, path: Path, separator: str, *, compress: bool) -> None:
    """Write an Arrow table as CSV, quoting only what needs it."""
    with path.open("wb") as file:
        # without name and time in the header, the same table gives the same bytes
        stream: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compress else file
        with stream, io.TextIOWrapper(stream, encoding="utf-8", newline="") as lines:
            writer = csv.writer(lines, delimiter=separator, lineterminator="\n")
            writer.writerow(table.column_names)
            for batch in table.to_batches(max_chunksize=_BATCH):
                columns = [format_cells(column) for column in batch.columns]
                writer.writerows(zip(*columns, strict=True))


def format_cells(column: Any, digits: int | None = None) -> list[str | None]:
    """Return the cells of an Arrow array as text, None where missing.

    Numbers have the fewest digits that identify them, or `digits` significant ones.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_floating(kind):
        # str of a NumPy float32 has the fewest digits for a float32
        numbers = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else None
        numbers = column.to_numpy() if numbers is None else numbers
        return [None if number != number else _format(number, digits) for number in numbers]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        message = f"a column of type {kind} cannot be written as text"
        raise TableError(message)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return list(column.to_pylist())
    return list(column.cast(pa.string()).to_pylist())


def keep_text(filled: Any, text: Any, *, digits: int = 6) -> Any:
    """Return a filled table as text: the file's text in observed cells, filled values in others."""
    import pyarrow as pa

    table = as_arrow(filled)
    if table.column_names != text.column_names or table.num_rows != text.num_rows:
        message = (
            f"the filled table ({table.num_rows} rows, columns {quoted(table.column_names)}) and "
            f"the text ({text.num_rows} rows, columns {quoted(text.column_names)}) differ"
        )
        raise TableError(message)
    columns = []
    for name in text.column_names:
        column, original = table[name], text[name]
        if original.null_count == 0:
            columns.append(original)
            continue
        missing = original.is_null()
        fresh = iter(format_cells(column.filter(missing), digits))
        if pa.types.is_boolean(column.type):
            spelling = _bool_spelling(column.to_pylist(), original.to_pylist())
            fresh = iter([spelling.get(value, value) for value in fresh])
        cells = [cell if cell is not None else next(fresh) for cell in original.to_pylist()]
        columns.append(pa.chunked_array([pa.array(cells, type=pa.string())]))
    return pa.table(dict(zip(text.column_names, columns, strict=True)))


def as_arrow(table: Any) -> Any:
    """Return a table of any frame library as a pyarrow Table."""
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_pyarrow_table(table):
        return table
    try:
        return nw.from_native(table, eager_only=True).to_arrow()
    except TypeError as error:
        message = f"expected a pyarrow Table or a DataFrame to write, got {type(table).__name__}"
        raise TypeError(message) from error


def _format(number: Any, digits: int | None) -> str:
    value = float(number)
    if digits is None or (value.is_integer() and abs(value) < 1e15):
        return str(number)
    return repr(float(f"{value:.{digits}g}"))


def _bool_spelling(values: list[bool | None], cells: list[str | None]) -> dict[str | None, str]:
    """Return how this file spells Arrow's "true" and "false"."""
    seen = {value: cell for value, cell in zip(values, cells, strict=True) if cell is not None}
    spelling: dict[str | None, str] = {}
    for value, word in ((True, "true"), (False, "false")):
        other = seen.get(not value, word)
        guess = word.upper() if other.isupper() else word.title() if other.istitle() else word
        spelling[word] = seen.get(value, guess)
    return spelling


def _open(path: Path) -> IO[bytes]:
    if path.name.lower().endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _header(path: Path, separator: str) -> list[str]:
    """Return the column names, after checking that the file is text."""
    try:
        with _open(path) as file:
            head = file.read(_HEAD)
        if not head.strip(b"\r\n\xef\xbb\xbf"):
            message = f"{path}: the file is empty; expected a line of column names"
            raise TableError(message)
        if b"\0" in head:
            message = f"{path}: not a text file (it has zero bytes); expected UTF-8 text"
            raise TableError(message)
        _check_quotes(path, separator)
        with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            names = next(row for row in csv.reader(lines, delimiter=separator) if row)
    except UnicodeDecodeError as error:
        raise _problem(path, separator, 0, error) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise TableError(f"{path}: {error}") from error
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        message = f"{path}: column names must be unique, these occur twice: {quoted(twice)}"
        raise TableError(message)
    for other in (";", "\t", ",", "|"):
        if len(names) == 1 and other != separator and other in names[0]:
            message = (
                f"{path}: only one column, named {names[0]!r}; the file seems to be separated by "
                f"{other!r} where its extension says {separator!r}; {_REMEDY[other]}"
            )
            raise TableError(message)
    return names


def _check_quotes(path: Path, separator: str) -> None:
    """Raise for a quote that is not closed: the rows after it would be one long cell."""
    with _open(path) as file:
        # parsing all cells is slow, and most files have no such line
        if not has_odd_quotes(file):
            return
    with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
        wrong = broken_quote(lines, separator)
    if wrong is not None:
        message = f"{path}: {wrong}; close the quote or remove it"
        raise TableError(message)


def _records(reader: Any) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        # such as a quote that is never closed
        message = f"line {reader.line_num}: {error}"
        raise csv.Error(message) from error


def _problem(path: Path, separator: str, n_columns: int, error: Exception) -> TableError:
    """Return what is wrong with a file that pyarrow cannot read, and in which line."""
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as bad:
                    message = (
                        f"{path}: line {number} is not UTF-8 text ({bad.reason}); save it as UTF-8"
                    )
                    return TableError(message)
        with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as lines:
            reader = csv.reader(lines, delimiter=separator, strict=True)
            for row in _records(reader):
                if row and len(row) != n_columns:
                    message = (
                        f"{path}: line {reader.line_num} has {len(row)} fields; expected "
                        f"{n_columns}, as many as there are column names"
                    )
                    return TableError(message)
    except (OSError, EOFError, zlib.error, csv.Error) as worse:
        return TableError(f"{path}: {worse}")
    return TableError(f"{path}: {str(error).splitlines()[0]}")
