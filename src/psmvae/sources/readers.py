"""Batches of rows of one file, from a row on; errors name the file and the row group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from psmvae.sources.places import Place
from psmvae.table.errors import TableError
from psmvae.table.paths import SEPARATORS, extension
from psmvae.table.text import stream_text

# Rows that are read at once.
BATCH_ROWS = 16_384


class Rows(NamedTuple):
    """Rows of a file: the number of the first one, the table, and the place for messages."""

    start: int
    table: Any
    place: str


def is_text(place: Place) -> bool:
    """Whether a file is a CSV or TSV file."""
    return extension(place.name) in SEPARATORS


def read_schema(place: Place) -> Any:
    """Return the schema and the number of rows of a Parquet or Arrow file."""
    with _errors(place), place.random_access() as file:
        if extension(place.name) == ".parquet":
            with pq.ParquetFile(file) as parquet:
                return parquet.schema_arrow, parquet.metadata.num_rows
        n_rows = 0
        schema, batches = _arrow_batches(file)
        for batch in batches:
            n_rows += batch.num_rows
        return schema, n_rows


def read_rows(place: Place, start: int = 0, stop: int | None = None) -> Iterator[Rows]:
    """Read the rows ``start`` to ``stop`` of a file; cells of text files are strings."""
    ending = extension(place.name)
    if ending in SEPARATORS:
        found = _text_rows(place, SEPARATORS[ending])
    elif ending == ".parquet":
        found = _parquet_rows(place, start)
    else:
        found = _arrow_rows(place)
    for rows in found:
        if stop is not None and rows.start >= stop:
            break
        low = max(start - rows.start, 0)
        high = rows.table.num_rows if stop is None else min(stop - rows.start, rows.table.num_rows)
        if low < high:
            yield Rows(rows.start + low, rows.table.slice(low, high - low), rows.place)


def _parquet_rows(place: Place, start: int) -> Iterator[Rows]:
    """Read a Parquet file without the row groups before a row."""
    with _errors(place):
        file = place.random_access()
    with file, _errors(place), pq.ParquetFile(file) as parquet:
        first = 0
        for number in range(parquet.num_row_groups):
            n_rows = parquet.metadata.row_group(number).num_rows
            where = f"{place}, row group {number}"
            if first + n_rows > start:
                at = first
                with _errors(where):
                    for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[number]):
                        yield Rows(at, pa.Table.from_batches([batch]), where)
                        at += batch.num_rows
            first += n_rows


def _arrow_rows(place: Place) -> Iterator[Rows]:
    with _errors(place):
        file = place.random_access()
    with file, _errors(place):
        at = 0
        for number, batch in enumerate(_arrow_batches(file)[1]):
            for part in pa.Table.from_batches([batch]).to_batches(BATCH_ROWS):
                yield Rows(at, pa.Table.from_batches([part]), f"{place}, record batch {number}")
                at += part.num_rows


def _arrow_batches(file: Any) -> tuple[Any, Iterator[Any]]:
    try:
        reader = pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        # .arrow is also the extension of streams, which have no footer
        file.seek(0)
        stream = pa.ipc.open_stream(file)
        return stream.schema, iter(stream)
    return reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))


def _text_rows(place: Place, separator: str) -> Iterator[Rows]:
    at = 0
    path: Any = place if place.filesystem else _local(place)
    for table in stream_text(path, separator):
        yield Rows(at, table, f"{place}, rows {at + 1} to {at + table.num_rows}")
        at += table.num_rows


def _local(place: Place) -> Any:
    from pathlib import Path

    return Path(place.path)


@contextmanager
def _errors(place: Place | str) -> Iterator[None]:
    """Name the place in errors of pyarrow and of the file system."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise TableError(f"{place}: cannot be read: {reason}") from error
