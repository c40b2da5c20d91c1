"""Imputation of a table that comes in batches, with the values of the whole table at once.

Batches are opened and encoded as they come. Values are computed for the whole blocks of rows that
`psmvae.imputers.blocks` defines, and a batch is completed when those of its last row are there.
"""

# ruff: noqa: SLF001 (imputes encoded rows by the private methods of imputers)

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmvae._caller import warn_at_caller
from psmvae.imputers.ambient import without_ambient_settings
from psmvae.imputers.reference import DriftCount, DriftWarning
from psmvae.sources import Source
from psmvae.table.codec import Codec, Encoded, RangeCheck
from psmvae.table.completion import Completion
from psmvae.table.errors import FormulaDomainWarning
from psmvae.table.frames import Frame

if TYPE_CHECKING:
    from psmvae.imputers.base import Imputer

Key = TypeVar("Key")
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Blank(NamedTuple):
    """Rows of a table that cannot be read, in place of a batch that only fills up blocks."""

    n_rows: int


class _Opened(NamedTuple, Generic[Key]):
    """A batch whose values are not complete yet."""

    key: Key
    frame: Frame | None
    codec: Codec
    incomplete: Bools
    stop: int


class BatchImputer:
    """Imputes batches of one table.

    Parameters
    ----------
    imputer : Imputer
        A fitted imputer.
    n : int, optional
        Number of completed tables to draw. By default cells are imputed by their expected values.
    seed : int, default=0
        Seed of the draws.
    start : int, default=0
        Position of the first row in the whole table, the first one of a block.
    observe : callable, optional
        Called with the model values of each batch.
    """

    def __init__(
        self,
        imputer: Imputer,
        n: int | None = None,
        *,
        seed: int = 0,
        start: int = 0,
        observe: Callable[[Encoded], None] | None = None,
    ) -> None:
        self._imputer, self._n, self._seed, self._observe = imputer, n, seed, observe
        self._size = imputer._block_rows()
        if start % self._size:
            raise ValueError(f"start must be a multiple of {self._size}, got {start}.")
        self._check = RangeCheck()
        self._undefined: dict[str, int] = {}
        # encoded rows without values, the position of the first one and of the row after the last
        self._x: list[Floats] = []
        self._m: list[Bools] = []
        self._done = self._end = start
        self._values: deque[NDArray[Any]] = deque()

    def __call__(
        self, batches: Iterable[tuple[Key, Any]], wanted: Callable[[Key], bool] | None = None
    ) -> Iterator[tuple[Key, list[Any]]]:
        """Complete batches ``(key, table)``; those that are not ``wanted`` only fill up blocks.

        Returns pairs of a key and the completed tables, in the order of the batches.
        """
        waiting: deque[_Opened[Key]] = deque()
        for key, table in batches:
            with without_ambient_settings():
                waiting.append(self._open(key, table))
                self._impute((self._end - self._done) // self._size * self._size)
            while waiting and waiting[0].stop <= self._done:
                yield from self._release(waiting.popleft(), wanted)
        with without_ambient_settings():
            self._impute(self._end - self._done)
        while waiting:
            yield from self._release(waiting.popleft(), wanted)

    def warn(self) -> None:
        """Warn of implausible values in all batches so far."""
        self._check.warn()
        formulas = self._imputer.schema_.formulas
        for name, n_rows in self._undefined.items():
            if n_rows:
                warning = FormulaDomainWarning(name, formulas[name], n_rows)
                warnings.warn(warning, stacklevel=2)

    def _open(self, key: Key, table: Any) -> _Opened[Key]:
        if isinstance(table, Blank):
            n_columns = len(self._imputer.schema_.modelled)
            self._x.append(np.zeros((table.n_rows, n_columns)))
            self._m.append(np.ones((table.n_rows, n_columns), dtype=bool))
            self._end += table.n_rows
            complete = np.zeros(table.n_rows, dtype=bool)
            return _Opened(key, None, Codec(self._imputer.schema_), complete, self._end)
        frame, codec, encoded = self._imputer._open_table(table)
        if self._observe is not None:
            self._observe(encoded)
        self._x.append(encoded.x)
        self._m.append(encoded.m)
        self._end += frame.n_rows
        return _Opened(key, frame, codec, np.asarray(~encoded.m.all(1)), self._end)

    def _impute(self, n_rows: int) -> None:
        """Compute the values of the next rows: whole blocks, or all that are left."""
        if n_rows == 0:
            return
        x, m = np.concatenate(self._x), np.concatenate(self._m)
        self._x, self._m = [x[n_rows:]], [m[n_rows:]]
        x, m = x[:n_rows], m[:n_rows]
        if self._n is None:
            self._values.append(self._imputer._points_by_block(x, m))
        else:
            block = self._done // self._size
            self._values.append(
                self._imputer._draws_by_block(x, m, self._n, self._seed, first_block=block)
            )
        self._done += n_rows

    def _release(
        self, batch: _Opened[Key], wanted: Callable[[Key], bool] | None
    ) -> Iterator[tuple[Key, list[Any]]]:
        values = self._take(int(np.count_nonzero(batch.incomplete)))
        if batch.frame is None or (wanted is not None and not wanted(batch.key)):
            return
        imputer = self._imputer
        donors = None if self._n is None else imputer.donors_
        with without_ambient_settings():
            completion = Completion(
                batch.frame, batch.codec, imputer.schema_.names, batch.incomplete,
                donors=donors, check=self._check,
            )  # fmt: skip
            if self._n is None:
                tables = [completion(values)]
            else:
                tables = [completion(values[:, k]) for k in range(self._n)]
        for name, n_rows in completion.undefined.items():
            self._undefined[name] = self._undefined.get(name, 0) + n_rows
        yield batch.key, tables

    def _take(self, n_rows: int) -> NDArray[Any]:
        """Return the values of the next rows with a missing cell."""
        n_columns = len(self._imputer.schema_.modelled)
        shape = (0, n_columns) if self._n is None else (0, self._n, n_columns)
        parts: list[NDArray[Any]] = [np.zeros(shape)] if n_rows == 0 else []
        while n_rows > 0:
            part = self._values.popleft()
            parts.append(part[:n_rows])
            if len(part) > n_rows:
                self._values.appendleft(part[n_rows:])
            n_rows -= len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def completed_batches(
    imputer: Imputer, source: Source, n: int | None = None, seed: int = 0
) -> Iterator[list[Any]]:
    """Complete the frames of a source; warn of implausible values and of drift at the end."""
    drift = DriftCount(imputer.schema_.modelled, imputer.reference_, imputer.missing_rate_)
    engine = BatchImputer(imputer, n, seed=seed, observe=drift.add)
    place = "the first frame"

    def frames() -> Iterator[tuple[None, Any]]:
        nonlocal place
        for frame, where in source.frames():
            place = where
            yield None, frame

    try:
        for _, tables in engine(frames()):
            yield tables
    except (ValueError, TypeError) as error:
        # the text of the error has no place
        error.add_note(f"in {place}")
        raise
    engine.warn()
    if found := drift.found():
        warn_at_caller(DriftWarning(tuple(found)))
