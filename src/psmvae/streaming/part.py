"""Imputation of some rows of a table to output files, by itself.

A worker of any engine calls `impute_part`. Its result does not depend on other parts: rows of
neighbouring files that share a block with the part are read too.
"""

# ruff: noqa: SLF001 (works with the private methods of imputers)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from psmvae._quiet import recorded_warnings
from psmvae.imputers.base import Imputer
from psmvae.imputers.batches import BatchImputer, Blank
from psmvae.imputers.reference import Drift, DriftCount
from psmvae.multiple.long_format import IMPUTATION, ROW
from psmvae.sources.files import Batch, FileTable
from psmvae.streaming.overlap import read_ahead
from psmvae.streaming.schemas import in_schema, long_schema, output_schema
from psmvae.streaming.writers import Write, table_writer
from psmvae.table.codec import Encoded
from psmvae.table.errors import TableError
from psmvae.table.paths import SEPARATORS
from psmvae.table.text import keep_text, text_of_unchanged
from psmvae.table.text_types import mark_missing

# Rows of the row groups of all output files of a part together, which are held in memory.
GROUP_ROWS = 131_072


class PartError(TableError):
    """Rows that cannot be imputed; the message names the file and the row group.

    Parameters
    ----------
    place : str
        The file and the row group.
    reason : str
        Why the rows cannot be imputed. The error of the table is the ``__cause__``.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Job:
    """Rows of a table to impute, and where to write them. It can be pickled.

    Parameters
    ----------
    table : FileTable
        The whole table.
    start, stop : int
        Positions of the first row and of the row after the last one.
    outputs : tuple of str
        Paths or URIs of the output files: one, or one for each imputation.
    multiple : int, optional
        Number of imputations. Written to one file, they are in the long format of R's mice, with
        the imputations of a batch of rows below one another.
    random_state : int, optional
        Seed of the draws. None gives the draws of ``imputer.sample``.
    ignore : tuple of str
        Columns that are written as they are.
    lenient : bool, default=False
        Whether neighbouring rows that cannot be read are left out instead of an error.
    """

    table: FileTable
    start: int
    stop: int
    outputs: tuple[str, ...]
    multiple: int | None = None
    random_state: int | None = None
    ignore: tuple[str, ...] = ()
    lenient: bool = False


@dataclass(frozen=True)
class PartResult:
    """What was imputed.

    Parameters
    ----------
    n_rows, n_missing : int
        Numbers of rows, and of missing cells among them.
    drift : tuple of Drift
        Columns that differ strongly from the training table.
    warnings : tuple of str
        Texts of the warnings.
    """

    n_rows: int
    n_missing: int
    drift: tuple[Drift, ...] = ()
    warnings: tuple[str, ...] = ()


def impute_part(imputer: Imputer, job: Job) -> PartResult:
    """Impute the rows of a job and write them. If it fails, no output file is written.

    Parameters
    ----------
    imputer : Imputer
        A fitted imputer.
    job : Job
        The rows and the output files.

    Returns
    -------
    PartResult
        What was imputed.

    Raises
    ------
    PartError
        If the rows cannot be imputed, such as those with an unknown level.
    TableError
        If the rows cannot be read.
    OSError
        If an output file cannot be written.
    """
    imputer._check_fitted()
    with recorded_warnings(Warning) as caught:
        result = _Part(imputer, job).run()
    texts = tuple(dict.fromkeys(str(one.message) for one in caught))
    return PartResult(result.n_rows, result.n_missing, result.drift, texts)


class _Part:
    """The work of one job."""

    def __init__(self, imputer: Imputer, job: Job) -> None:
        self.imputer, self.job, self.table = imputer, job, _without_codes(job)
        self.modelled = [name for name in job.table.schema.names if name not in job.ignore]
        self.schema = output_schema(job.table.schema, imputer.schema_)
        columns = imputer.schema_.modelled
        self.drift = DriftCount(columns, imputer.reference_, imputer.missing_rate_)
        self.n_missing = 0
        self.is_text = job.outputs[0].lower().endswith(tuple(SEPARATORS))
        self.is_long = job.multiple is not None and len(job.outputs) == 1
        # where the rows at work are from, and whether they are rows of the job
        self.place, self.own = "", False

    def run(self) -> PartResult:
        """Impute all batches and write them."""
        job, size = self.job, self.imputer._block_rows()
        engine = BatchImputer(
            self.imputer,
            job.multiple,
            seed=self.imputer._draw_seed(job.random_state),
            start=job.start // size * size,
            observe=self._observe,
        )
        try:
            with ExitStack() as stack:
                writers = [stack.enter_context(self._writer(path)) for path in job.outputs]
                for batch, tables in engine(self._read(size), self._is_own):
                    self.place = batch.place
                    self._write(batch, tables, writers)
        except TableError:
            raise
        except (ValueError, TypeError) as error:
            raise PartError(self.place, str(error)) from error
        engine.warn()
        return PartResult(job.stop - job.start, self.n_missing, tuple(self.drift.found()))

    def _is_own(self, batch: Batch) -> bool:
        return self.job.start <= batch.start < self.job.stop

    def _read(self, size: int) -> Iterator[tuple[Batch, Any]]:
        """Read the rows of the job, and those before and after it in the same blocks."""
        job = self.job
        yield from self._neighbours(job.start // size * size, job.start)
        for batch in read_ahead(self.table.batches(job.start, job.stop)):
            self.place, self.own = batch.place, True
            yield batch, batch.table.select(self.modelled)
        yield from self._neighbours(job.stop, min(-(-job.stop // size) * size, job.table.n_rows))

    def _neighbours(self, start: int, stop: int) -> Iterator[tuple[Batch, Any]]:
        self.own, done = False, start
        try:
            for batch in self.table.batches(start, stop):
                self.place, table = batch.place, batch.table.select(self.modelled)
                if self.job.lenient:
                    # raises here where it would end the job
                    self.imputer._open_table(table)
                yield batch, table
                done = batch.stop
        except (ValueError, TypeError):
            if not self.job.lenient:
                raise
        if done < stop:
            empty = self.job.table.schema.empty_table()
            yield Batch(done, empty, None, self.place), Blank(stop - done)

    def _observe(self, encoded: Encoded) -> None:
        if self.own:
            self.drift.add(encoded)
            self.n_missing += int(np.count_nonzero(~encoded.m))

    def _writer(self, path: str) -> AbstractContextManager[Write]:
        schema = self.schema
        if self.is_text:
            schema = pa.schema([(name, pa.string()) for name in schema.names])
        if self.is_long:
            schema = long_schema(schema)
        levels = {one.name: one.levels for one in self.imputer.schema_.columns}
        return table_writer(path, schema, max(GROUP_ROWS // len(self.job.outputs), 1), levels)

    def _write(self, batch: Batch, tables: Sequence[Any], writers: Sequence[Write]) -> None:
        completed = [self._completed(batch, table) for table in tables]
        if not self.is_long:
            for write, table in zip(writers, completed, strict=True):
                write(table)
            return
        incomplete = self._text(batch)
        if incomplete is None:
            incomplete = in_schema(batch.table, self.schema, batch.place)
        for number, table in enumerate([incomplete, *completed]):
            writers[0](_with_keys(table, number, batch.start))

    def _completed(self, batch: Batch, filled: Any) -> Any:
        """Return all columns of completed rows, as they are written."""
        columns = {name: batch.table[name] for name in self.job.ignore}
        columns |= {name: filled[name] for name in self.modelled}
        table = pa.table({name: columns[name] for name in self.schema.names})
        table = in_schema(table, self.schema, batch.place)
        text = self._text(batch)
        if text is None:
            return table
        computed = self.imputer.schema_.formulas
        return keep_text(table, text_of_unchanged(text, batch.table, table, computed))

    def _text(self, batch: Batch) -> Any:
        """Return the cells as they are written, null where missing; None if files are not text."""
        if not self.is_text or batch.text is None:
            return None
        return mark_missing(batch.text, self.job.table.na, keep=self.job.ignore)


def _without_codes(job: Job) -> Any:
    """Return the table of a job, without codes of missing cells in ignored columns."""
    return replace(job.table, keep=job.ignore) if job.table.na else job.table


def _with_keys(table: Any, number: int, start: int) -> Any:
    """Return rows with the number of the imputation and their numbers in the table, from 1."""
    n_rows = table.num_rows
    keys = {
        IMPUTATION: pa.array(np.full(n_rows, number, dtype=np.int64)),
        ROW: pa.array(np.arange(start + 1, start + 1 + n_rows, dtype=np.int64)),
    }
    columns = keys | dict(zip(table.column_names, table.columns, strict=True))
    return pa.Table.from_arrays(list(columns.values()), schema=long_schema(table.schema))
