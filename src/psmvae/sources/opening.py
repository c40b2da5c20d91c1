"""What counts as a table larger than memory, and how its frames are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from psmvae.table.libraries import is_polars_lazy_frame

# Rows of a batch of a data set or a lazy frame.
BATCH_ROWS = 16_384


@dataclass(frozen=True)
class Source:
    """A table as a sequence of frames of one library.

    Parameters
    ----------
    read : callable
        Returns an iterator of pairs: a frame, and where it is from, in words.
    """

    read: Callable[[], Iterator[tuple[Any, str]]]

    def frames(self) -> Iterator[tuple[Any, str]]:
        """Return the frames that have rows, and where they are from."""
        return ((frame, place) for frame, place in self.read() if len(frame) > 0)


def is_source(X: Any) -> bool:
    """Return whether an object is a source of frames, and not a table in memory."""
    if isinstance(X, Source | str | os.PathLike) or _is_dataset(X) or _is_lazy(X):
        return True
    if isinstance(X, list | tuple):
        # rows of a table are lists, tuples or arrays
        return bool(X) and all(isinstance(one, str | os.PathLike) or _is_frame(one) for one in X)
    return isinstance(X, Iterator)


def open_source(X: Any) -> Source:
    """Open a source.

    Parameters
    ----------
    X : path, list of paths, pyarrow Dataset, polars LazyFrame or iterable of frames
        Paths may be folders, patterns such as "data/*.parquet" and URIs. Files are read in the
        order of their paths, whatever the order in which they are given.
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return Source(lambda: _of_files([X]))
    if isinstance(X, list | tuple) and all(isinstance(one, str | os.PathLike) for one in X):
        return Source(lambda: _of_files(X))
    if _is_dataset(X):
        return Source(lambda: _of_dataset(X))
    if _is_lazy(X):
        lazy = X.to_native() if isinstance(X, nw.LazyFrame) else X
        return Source(lambda: _of_lazy(lazy))
    if _is_frame(X) or not isinstance(X, Iterable):
        # a single table in memory
        return Source(lambda: iter([(X, "the table")]))
    return Source(lambda: ((frame, f"frame {k}") for k, frame in enumerate(X, 1)))


def _of_files(paths: Any) -> Iterator[tuple[Any, str]]:
    from psmvae.sources.files import FileTable

    for batch in FileTable.open(paths).batches():
        yield batch.table, batch.place


def _of_dataset(dataset: Any) -> Iterator[tuple[Any, str]]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    fragments = list(dataset.get_fragments())
    if isinstance(dataset, ds.FileSystemDataset):
        fragments.sort(key=lambda fragment: fragment.path)
    for number, fragment in enumerate(fragments, 1):
        place = getattr(fragment, "path", f"fragment {number}")
        # a scanner adds the columns of the partitioning, and its batches are in order
        scanner = ds.Scanner.from_fragment(
            fragment, schema=dataset.schema, batch_size=BATCH_ROWS, batch_readahead=2
        )
        for batch in scanner.to_batches():
            yield pa.Table.from_batches([batch]), place


def _of_lazy(lazy: Any) -> Iterator[tuple[Any, str]]:
    if hasattr(lazy, "collect_batches"):
        frames = lazy.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
    else:
        frames = _slices(lazy)
    for number, frame in enumerate(frames, 1):
        yield frame, f"batch {number} of the lazy frame"


def _slices(lazy: Any) -> Iterator[Any]:
    """Collect one slice after another: polars before 1.34 has no batches."""
    start = 0
    while True:
        frame = lazy.slice(start, BATCH_ROWS).collect()
        if frame.height == 0:
            return
        yield frame
        start += frame.height


def _is_dataset(X: Any) -> bool:
    import sys

    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(X, module.Dataset)


def _is_lazy(X: Any) -> bool:
    if isinstance(X, nw.DataFrame | nw.LazyFrame):
        return isinstance(X, nw.LazyFrame)
    return is_polars_lazy_frame(X)


def _is_frame(X: Any) -> bool:
    return nw.dependencies.is_into_dataframe(X)
