"""Output files that are written batch by batch and appear when they are complete."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from psmvae.sources.places import filesystem_of
from psmvae.streaming.dictionaries import SharedDictionaries
from psmvae.streaming.overlap import write_behind
from psmvae.table.paths import SEPARATORS, atomic_path, extension
from psmvae.table.text import text_writer

Write = Callable[[Any], None]


@contextmanager
def table_writer(
    path: str, schema: Any, group_rows: int, levels: Mapping[str, Sequence[Any]] | None = None
) -> Iterator[Write]:
    """Yield a function that writes Arrow tables to a file; an error leaves no file.

    Parameters
    ----------
    path : str
        A path or a URI; the extension gives the format.
    schema : pyarrow.Schema
        The schema of the tables; in text files all columns are strings.
    group_rows : int
        Rows of a row group, which are held in memory.
    levels : mapping of str to sequence, optional
        Levels of categorical columns, for the dictionaries of an Arrow file.
    """
    ending = extension(path)
    with output_file(path) as file:
        if ending in SEPARATORS:
            separator, compress = SEPARATORS[ending], ending.endswith(".gz")
            with text_writer(file, schema.names, separator, compress=compress) as write:
                yield write
        elif ending == ".parquet":
            with pq.ParquetWriter(file, schema) as parquet, _grouped(parquet, group_rows) as write:
                yield write
        else:
            # a file has one dictionary for each column, which may only be extended
            options = pa.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)
            shared = SharedDictionaries(levels or {})
            with pa.ipc.new_file(file, schema, options=options) as arrow:
                yield lambda table: arrow.write_table(shared(table))


@contextmanager
def _grouped(parquet: Any, group_rows: int) -> Iterator[Write]:
    """Collect tables until they fill a row group."""
    held: list[Any] = []

    def write_group(table: Any) -> None:
        parquet.write_table(table, row_group_size=table.num_rows)

    with write_behind(write_group) as begin:

        def flush() -> None:
            if held:
                begin(pa.concat_tables(held))
                held.clear()

        def write(table: Any) -> None:
            held.append(table)
            if sum(one.num_rows for one in held) >= group_rows:
                flush()

        yield write
        flush()


@contextmanager
def output_file(path: str) -> Iterator[Any]:
    """Yield an open file that becomes ``path`` when the block ends without an error."""
    filesystem, inner = filesystem_of(path)
    if filesystem is None:
        Path(inner).parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(inner) as temporary, temporary.open("wb") as file:
            yield file
        return
    temporary_path = f"{inner}.{secrets.token_hex(8)}.tmp"
    filesystem.create_dir(inner.rpartition("/")[0], recursive=True)
    try:
        with filesystem.open_output_stream(temporary_path) as file:
            yield file
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(temporary_path)
        raise
    filesystem.move(temporary_path, inner)


def delete_file(path: str) -> None:
    """Delete a file if there is one."""
    filesystem, inner = filesystem_of(path)
    if filesystem is None:
        Path(inner).unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):
        filesystem.delete_file(inner)
