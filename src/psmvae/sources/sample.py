"""A uniform sample of the rows of a source, in one pass and in bounded memory.

Row i has the key hash(seed, i), and the rows with the smallest keys are the sample. So it depends
on the seed and the positions, and not on batches. A row is added for each level, and for the
smallest and the largest number of a column, that is not in the sample: levels and ranges of the
sample are then those of the whole table.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae._quiet import quiet_warnings
from psmvae.sources.opening import Source
from psmvae.table.cells import Cells, Family
from psmvae.table.frames import Frame, open_table
from psmvae.table.libraries import is_arrow_table, is_pandas_frame, is_polars_frame
from psmvae.table.schema import MAX_LEVELS
from psmvae.table.wording import quoted

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

# Rows that are held before those with the largest keys are dropped, relative to the sample.
SLACK = 1.25
# Distinct numbers of a column that may be levels. Only so few are inferred to be.
MAX_DISTINCT = 10


class Sampler:
    """Collects the sample of a table from its frames.

    Parameters
    ----------
    n_rows : int
        Rows of the sample.
    seed : int
        Seed of the keys.
    levels : collection of str
        Columns of numbers that are declared to have levels.
    """

    def __init__(self, n_rows: int, seed: int, levels: Collection[str] = ()) -> None:
        self._n_rows, self._seed, self._levels = n_rows, seed, set(levels)
        self._names: tuple[str, ...] | None = None
        self._types: list[str] = []
        # what columns hold, and a table without rows in the types of all frames
        self._families: dict[str, tuple[Family, str]] = {}
        self._empty: Any = None
        self._n_seen, self._n_held = 0, 0
        self._held: list[tuple[Ints, Keys, Any]] = []
        self._threshold = np.uint64(2**64 - 1)
        self._trackers: list[_Tracker] = []
        self._extra: list[tuple[Ints, Any]] = []

    def add(self, table: Any, place: str) -> None:
        """Take the next frame of the table into account."""
        frame = open_table(table)
        self._check(frame, table, place)
        self._check_contents(frame, place)
        self._check_types(table, place)
        position = np.arange(self._n_seen, self._n_seen + frame.n_rows, dtype=np.int64)
        key = keys(position, self._seed)
        self._n_seen += frame.n_rows
        new = [t.new(frame.cells(j)) for j, t in enumerate(self._trackers)]
        extra = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *new]))
        for tracker in self._trackers:
            tracker.place(position)
        if extra.size:
            self._extra.append((position[extra], take(table, extra)))
        rows = np.flatnonzero(key <= self._threshold)
        if rows.size:
            kept = table if rows.size == frame.n_rows else take(table, rows)
            self._held.append((position[rows], key[rows], kept))
            self._n_held += rows.size
        if self._n_held > SLACK * self._n_rows:
            self._prune()

    def sample(self) -> Any:
        """Return the sample, in the order of the table."""
        if not self._held:
            raise ValueError("Found table with 0 sample(s) while a minimum of 1 is required.")
        if self._n_held > self._n_rows:
            self._prune()
        sampled = concat([table for _, _, table in self._held])
        if self._n_seen <= self._n_rows:
            return sampled
        position = np.concatenate([one for one, _, _ in self._held])
        frame = open_table(sampled)
        wanted = [t.absent(frame.cells(j)) for j, t in enumerate(self._trackers)]
        needed = np.setdiff1d(np.concatenate(wanted), position)
        tables = [sampled]
        for own, table in self._extra:
            rows = np.flatnonzero(np.isin(own, needed))
            if rows.size:
                tables.append(take(table, rows))
                position = np.concatenate([position, own[rows]])
        if len(tables) == 1:
            return sampled
        return take(concat(tables), np.argsort(position, kind="stable"))

    def _check(self, frame: Frame, table: Any, place: str) -> None:
        """Raise if the columns of a frame are not those of the first one."""
        types = _categories(table)
        if self._names is None:
            self._names, self._types = frame.names, types
            self._trackers = [_Tracker(name in self._levels) for name in frame.names]
        if frame.names != self._names:
            absent = [name for name in self._names if name not in frame.names]
            extra = [name for name in frame.names if name not in self._names]
            raise ValueError(
                f"{place} has other columns than the frames before it: absent {quoted(absent)}, "
                f"unexpected {quoted(extra)}, expected {quoted(self._names)} in this order"
            )
        for name, own, first in zip(frame.names, types, self._types, strict=True):
            if own != first:
                raise ValueError(
                    f"{place}: column {name!r} has the categories {own}, but the first frame has "
                    f"{first}; give all frames the same categories"
                )

    def _check_contents(self, frame: Frame, place: str) -> None:
        """Raise if a column holds numbers in one frame and strings in another."""
        for j, name in enumerate(frame.names):
            family = frame.cells(j).family
            if family == "nothing":
                continue
            first, where = self._families.setdefault(name, (family, place))
            if (family == "string") != (first == "string"):
                raise ValueError(
                    f"{place}: column {name!r} holds {family}s, but {first}s in {where}; convert "
                    "it to the same type in all frames"
                )

    def _check_types(self, table: Any, place: str) -> None:
        """Raise if no type holds the cells of a column in all frames."""
        native = table.to_native() if isinstance(table, nw.DataFrame) else table
        if not (is_polars_frame(native) or is_arrow_table(native)):
            # pandas and NumPy have a type for any two types
            return
        empty = native[:0]
        try:
            self._empty = empty if self._empty is None else concat([self._empty, empty])
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error

    def _prune(self) -> None:
        """Keep the rows with the smallest keys."""
        key = np.concatenate([one for _, one, _ in self._held])
        position = np.concatenate([one for one, _, _ in self._held])
        # keys are distinct, since the hash is a bijection
        rows = np.sort(np.argpartition(key, self._n_rows - 1)[: self._n_rows])
        table = take(concat([table for _, _, table in self._held]), rows)
        self._held = [(position[rows], key[rows], table)]
        self._n_held, self._threshold = rows.size, key[rows].max()


class _Tracker:
    """First rows of the levels of a column, and the rows of its smallest and largest number."""

    def __init__(self, has_levels: bool) -> None:
        self._most = MAX_LEVELS if has_levels else MAX_DISTINCT
        self._first: dict[Any, int] | None = {}
        self._fresh: dict[Any, int] = {}
        self._ends: list[tuple[float, int] | None] = [None, None]
        self._moved: list[tuple[float, int] | None] = [None, None]

    def new(self, cells: Cells) -> NDArray[np.intp]:
        """Return the rows of a frame that have a new level, or a new smallest or largest number."""
        self._fresh, self._moved = {}, [None, None]
        rows = np.flatnonzero(~cells.missing)
        if not rows.size:
            return rows
        values = cells.observed()
        if self._first is not None:
            distinct, at = _first_rows(values)
            for value, row in zip(distinct, at, strict=True):
                if value not in self._first:
                    self._fresh[value] = int(rows[row])
            most = MAX_LEVELS if cells.family == "string" else self._most
            if len(self._first) + len(self._fresh) > most:
                # too many to be levels
                self._first, self._fresh = None, {}
        if values.dtype.kind in "iuf":
            for side, at_end in enumerate((values.argmin(), values.argmax())):
                value, end = float(values[at_end]), self._ends[side]
                if end is None or (value < end[0] if side == 0 else value > end[0]):
                    self._moved[side] = (value, int(rows[at_end]))
        moved = [end[1] for end in self._moved if end is not None]
        return np.array([*self._fresh.values(), *moved], dtype=np.intp)

    def place(self, position: Ints) -> None:
        """Remember the positions of the rows that `new` returned."""
        if self._first is not None:
            for value, row in self._fresh.items():
                self._first[value] = int(position[row])
        for side, end in enumerate(self._moved):
            if end is not None:
                self._ends[side] = (end[0], int(position[end[1]]))

    def absent(self, cells: Cells) -> Ints:
        """Return positions of rows whose levels and numbers are not in the cells of a sample."""
        values = cells.observed()
        wanted = []
        if self._first is not None:
            present = set(_first_rows(values)[0])
            wanted = [at for value, at in self._first.items() if value not in present]
        for end, is_beyond in zip(self._ends, (np.less, np.greater), strict=True):
            if end is not None and (not values.size or is_beyond(end[0], values).all()):
                wanted.append(end[1])
        return np.array(wanted, dtype=np.int64)


def _first_rows(values: NDArray[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct values and the first row of each."""
    if values.dtype == object:
        first: dict[Any, int] = {}
        for row, value in enumerate(values.tolist()):
            first.setdefault(value, row)
        return list(first), list(first.values())
    distinct, at = np.unique(values, return_index=True)
    return distinct.tolist(), at.tolist()


def sample_rows(source: Source, n_rows: int, seed: int, levels: Collection[str] = ()) -> Any:
    """Return a table of ``n_rows`` rows, or of all rows if there are fewer; see `Sampler`."""
    sampler = Sampler(n_rows, seed, levels)
    for table, place in source.frames():
        sampler.add(table, place)
    return sampler.sample()


def keys(position: Ints, seed: int) -> Keys:
    """Return the keys of rows: SplitMix64 of the position, which is a bijection for each seed."""
    with np.errstate(over="ignore"):
        start = mix(np.array([seed], dtype=np.int64).view(np.uint64))
        return mix(position.view(np.uint64) + start)


def mix(number: Keys) -> Keys:
    """Return the next number of SplitMix64."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def take(table: Any, rows: NDArray[Any]) -> Any:
    """Return rows of a table of any library."""
    if isinstance(table, np.ndarray | list | tuple):
        return np.asarray(table)[rows]
    return nw.from_native(table, eager_only=True)[rows.tolist()].to_native()


def concat(tables: list[Any]) -> Any:
    """Return tables of one library on top of each other; integers become floats where needed.

    Raises
    ------
    ValueError
        If a column has types that no other type holds.
    """
    if len(tables) == 1:
        return tables[0]
    if isinstance(tables[0], np.ndarray | list | tuple):
        return np.concatenate([np.asarray(table) for table in tables])
    frames = [nw.from_native(table, eager_only=True) for table in tables]
    native = [frame.to_native() for frame in frames]
    if all(map(is_arrow_table, native)):
        return _concat_arrow(native)
    if all(map(is_polars_frame, native)):
        return _concat_polars(native)
    with quiet_warnings():
        # pandas before version 3 warns that columns without values will count for the result's type
        warnings.simplefilter("ignore", FutureWarning)
        return nw.concat(frames).to_native()


def _concat_arrow(tables: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _other_types(error) from error


def _concat_polars(tables: list[Any]) -> Any:
    import polars as pl

    try:
        return pl.concat(tables, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise _other_types(error) from error


def _other_types(error: Exception) -> ValueError:
    reason = str(error).splitlines()[0]
    return ValueError(f"the types of columns differ from those before: {reason}; convert them")


def _categories(table: Any) -> list[str]:
    """Return the categories of a pandas frame's columns, which pandas loses where they differ."""
    if not is_pandas_frame(table):
        return [""] * len(open_table(table).names)
    return [
        quoted(dtype.categories) + (" (ordered)" if dtype.ordered else "")
        if hasattr(dtype, "categories")
        else ""
        for dtype in table.dtypes
    ]
