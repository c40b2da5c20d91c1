"""Tables to model values and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psmvae.table.cells import MAX_WHOLE, Cells, New, as_numpy, holds
from psmvae.table.column_checks import doubt, strays
from psmvae.table.errors import UnsupportedColumnError
from psmvae.table.frames import Frame, open_table, quoted
from psmvae.table.schema import Schema, check_domain, check_finite, check_kinds, make_column
from psmvae.table.words import either, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from psmvae.kinds import Column


@dataclass(frozen=True)
class Encoded:
    """A table as a model sees it.

    Parameters
    ----------
    x : ndarray of float64, (row, column)
        Model values of the modelled columns: standardised numbers, counts or codes of levels; 0
        where missing.
    m : ndarray of bool, (row, column)
        True where observed.
    """

    x: NDArray[np.float64]
    m: NDArray[np.bool_]


@dataclass(frozen=True)
class Codec:
    """Turns tables into model values, and puts model values into a table's missing cells.

    Parameters
    ----------
    schema : Schema
        What the columns are; see `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[1.5, 0.0], [np.nan, 1.0], [2.5, np.nan]])
    >>> codec = Codec.fit(table)
    >>> [column.kind for column in codec.schema.columns]
    ['real', 'binary']
    >>> encoded = codec.encode(table)
    >>> encoded.x
    array([[-1.,  0.],
           [ 0.,  1.],
           [ 1.,  0.]])
    >>> encoded.m
    array([[ True,  True],
           [False,  True],
           [ True, False]])
    >>> codec.fill(table, np.ones((3, 2)))
    array([[1.5, 0. ],
           [2.5, 1. ],
           [2.5, 1. ]])
    """

    schema: Schema

    @classmethod
    def fit(cls, table: Any, *, kinds: Mapping[str, str] | None = None) -> Codec:
        """Learn what the columns of a table are.

        Parameters
        ----------
        table : DataFrame, Table, 2-D array or list of rows
            A pandas or polars DataFrame, a pyarrow Table, a NumPy array or a list of rows.
        kinds : mapping of str to str, optional
            Kinds of some columns by name (x0, x1, ... for an array); the rest are inferred, see
            `psmvae.table.infer_kind`.

        Returns
        -------
        Codec
            Ready to encode and fill this table and others with the same columns.

        Raises
        ------
        ValueError
            If there are no rows, no columns, nothing observed, columns of the same name, infinite
            values, or a declared kind that does not fit.
        TypeError
            If it is not a table, or columns hold what no kind can model.

        Warns
        -----
        UserWarning
            If columns have nothing observed: they are not modelled and stay missing. If a column
            of text would be one of numbers but for a few cells, or looks like an identifier.

        Examples
        --------
        >>> codec = Codec.fit([["a", 3], ["b", 4], ["c", None]], kinds={"x1": "categorical"})
        >>> [(column.kind, column.levels) for column in codec.schema.columns]
        [('categorical', ('a', 'b', 'c')), ('categorical', (3, 4))]
        """
        frame = open_table(table)
        declared = check_kinds(kinds or {}, frame.names)
        columns, failures, doubts = [], [], []
        for position, name in enumerate(frame.names):
            try:
                cells = frame.cells(position)
                columns.append(make_column(cells, declared.get(name)))
                doubts.append(None if name in declared else doubt(cells))
            except UnsupportedColumnError as error:
                # all of them at once, so that the user need not find them one by one
                failures.append(error)
        if failures:
            raise UnsupportedColumnError("\n".join(map(str, failures))) from failures[0]
        empty = [column.name for column in columns if column.n_observed == 0]
        if len(empty) == len(columns):
            message = f"every cell is missing: no column of {quoted(empty)} has an observed value"
            raise ValueError(message)
        if empty:
            message = f"columns with nothing observed are left missing: {quoted(empty)}"
            warnings.warn(message, UserWarning, stacklevel=2)
        for message in filter(None, doubts):
            warnings.warn(message, UserWarning, stacklevel=2)
        return cls(Schema(tuple(columns)))

    def encode(
        self,
        table: Any,
        *,
        handle_unknown: Literal["error", "missing"] = "error",
        standardise: bool = True,
    ) -> Encoded:
        """Model values of a table with the fitted columns.

        Parameters
        ----------
        table : DataFrame, Table, 2-D array or list of rows
            A frame's columns are found by name, in any order; an array's by position.
        handle_unknown : {"error", "missing"}, default="error"
            What to do about a level that was not there in `fit`.
        standardise : bool, default=True
            False gives numbers as the table has them, to the bit; codes of levels are the same.

        Returns
        -------
        Encoded
            x and m of the modelled columns, in the schema's order.

        Raises
        ------
        ValueError
            If columns are missing or too many, values infinite or not the kind's (say, below zero
            in a positive column), or levels unseen.
        TypeError
            If a column of numbers now holds strings or the reverse.

        Examples
        --------
        >>> codec = Codec.fit([["a"], ["b"], [None]])
        >>> codec.encode([["b"], ["z"]], handle_unknown="missing").m.tolist()
        [[True], [False]]
        """
        from psmvae.kinds import KINDS

        if handle_unknown not in {"error", "missing"}:
            message = f"handle_unknown must be 'error' or 'missing', got {handle_unknown!r}"
            raise ValueError(message)
        frame, where = self._open(table)
        shape = (frame.n_rows, len(self.schema.modelled))
        x, m = np.zeros(shape), np.zeros(shape, dtype=bool)
        for j, column in enumerate(self.schema.modelled):
            cells = _same_family(frame.cells(where[column.name]), column)
            check_finite(cells)
            values = _codes(cells, column, handle_unknown) if column.levels else cells.values()
            observed = ~np.isnan(values)
            kind = KINDS[column.kind]
            check_domain(cells, column.kind, values)
            if standardise:
                # what overflows here is cut at the limit
                with np.errstate(over="ignore"):
                    standard = kind.standardise(values, column)
                values = np.clip(standard, -kind.limit, kind.limit)
            x[:, j] = np.where(observed, values, 0.0)
            m[:, j] = observed
        return Encoded(x, m)

    def fill(self, table: Any, x: NDArray[Any]) -> Any:
        """Return the table with its missing cells replaced, and only these.

        Parameters
        ----------
        table : DataFrame, Table, 2-D array or list of rows
            As in `encode`. It is not changed.
        x : ndarray, (row, column)
            Model values of the modelled columns; only those of missing cells are used. A code is
            rounded to the nearest level.

        Returns
        -------
        DataFrame, Table or array
            Of the same type, with the same data types, index and order of columns; an array for a
            list. Observed cells are untouched, columns not modelled too. A value is rounded and
            held inside the limits where its column's type asks for it; a type that cannot hold
            the values is changed: that of a column with nothing in it, and that of integers with
            something missing in a column that is real (declared so, or fitted on fractions).

        Raises
        ------
        ValueError
            If x has another shape than the table's modelled columns, or is not finite in a cell
            to fill; and as in `encode`.

        Examples
        --------
        >>> codec = Codec.fit([["a"], ["b"], [None]])
        >>> codec.fill([["z"], [None]], np.ones((2, 1))).tolist()
        [['z'], ['b']]
        """
        frame, where = self._open(table)
        model_values = np.asarray(x)
        shape = (frame.n_rows, len(self.schema.modelled))
        if model_values.shape != shape:
            message = f"x must be (row, column) = {shape} for this table, got {model_values.shape}"
            raise ValueError(message)
        new = {}
        for j, column in enumerate(self.schema.modelled):
            cells = _same_family(frame.cells(where[column.name]), column)
            if cells.missing.any():
                picked = model_values[cells.missing, j].astype(np.float64)
                values = _restore(picked, column, cells)
                new[where[column.name]] = New(cells, values, _needs_fractions(column, cells))
        return frame.replace(new)

    def _open(self, table: Any) -> tuple[Frame, dict[str, int]]:
        """Return the table and where its columns are, by fitted name."""
        frame = open_table(table)
        names = self.schema.names
        if not frame.has_names:
            if len(frame.names) != len(names):
                message = (
                    f"X has {len(frame.names)} features, but imputer is expecting {len(names)} "
                    "features as input"
                )
                raise ValueError(message)
            return frame, {name: position for position, name in enumerate(names)}
        where = {name: position for position, name in enumerate(frame.names)}
        known = set(names)
        extra = [name for name in frame.names if name not in known]
        lost = [name for name in names if name not in where]
        if extra or lost:
            message = "The feature names should match those that were passed during fit."
            if extra:
                aside = either("", f" ({option('--ignore', extra[:3])} to set aside)")
                message += f"\nFeature names unseen at fit time: {quoted(extra)}{aside}"
            if lost:
                message += f"\nFeature names seen at fit time, yet now missing: {quoted(lost)}"
            raise ValueError(message)
        return frame, where


def _same_family(cells: Cells, column: Column) -> Cells:
    """Return the cells if they are what the column was fitted on: text, or numbers."""
    fitted_text = bool(column.levels) and isinstance(column.levels[0], str)
    if cells.family != "nothing" and fitted_text != (cells.family == "string"):
        message = (
            f"column {column.name!r} was fitted on {'strings' if fitted_text else 'numbers'} "
            f"({column.dtype}, {column.kind}), but now holds "
            f"{'numbers' if fitted_text else 'strings'} ({cells.dtype})"
        )
        found = strays(cells)
        if found is not None:
            message += f": {found.told()}"
        raise TypeError(message)
    return cells


def _codes(cells: Cells, column: Column, handle_unknown: str) -> NDArray[np.float64]:
    codes = cells.codes(column.levels)
    strange = codes == -1
    if strange.any():
        if handle_unknown == "error":
            levels = list(dict.fromkeys(cells.raw[strange].tolist()))
            remedy = either("handle_unknown='missing'", "--handle-unknown missing")
            message = (
                f"column {column.name!r} has {quoted(levels, 5)} in {np.count_nonzero(strange)} "
                f"rows, not among the {column.n_levels} levels it was fitted on "
                f"({quoted(column.levels, 5)}); {remedy} would treat these cells as missing"
            )
            raise ValueError(message)
        codes[strange] = np.nan
    return codes


def _restore(x: NDArray[np.float64], column: Column, cells: Cells) -> NDArray[Any]:
    """Table values of model values: float64, or the levels' own type."""
    from psmvae.kinds import KINDS

    broken = int(np.count_nonzero(~np.isfinite(x)))
    if broken:
        message = (
            f"x must be finite where a cell is to be filled, but {broken} of {x.size} values for "
            f"column {column.name!r} are not"
        )
        raise ValueError(message)
    with np.errstate(over="ignore"):
        values = KINDS[column.kind].restore(x, column)
    largest = np.finfo(np.float64).max
    values = np.clip(values, -largest, largest)
    if column.levels:
        codes = np.clip(np.rint(values), 0, column.n_levels - 1).astype(np.intp)
        values = _level_array(column)[codes]
    anew = not holds(cells, values) or (cells.storage == "object" and cells.family == "nothing")
    if anew and _whole(column.dtype) and column.kind != "real":
        # nothing in this column says that it was of integers when fitted
        values = as_numpy(values, np.dtype(np.int64))
    return values


def _whole(dtype: str) -> bool:
    return dtype.startswith(("Int", "UInt"))


def _needs_fractions(column: Column, cells: Cells) -> bool:
    """Tell whether integers must become floats to hold what their column can be."""
    # whole prices may be meant to stay so; a real column was declared, or had fractions
    fractions = column.kind == "real" or (column.kind == "positive" and not _whole(column.dtype))
    if not fractions or cells.storage not in {"integer", "object"} or not _whole(cells.dtype):
        return False
    # an observed cell that no float can hold keeps its value, and its column its type
    return bool(np.all(np.abs(cells.observed().astype(np.float64)) <= MAX_WHOLE))


def _level_array(column: Column) -> NDArray[Any]:
    levels = column.levels
    if isinstance(levels[0], str):
        return np.array(levels, dtype=object)
    if any(isinstance(level, int) and level > np.iinfo(np.int64).max for level in levels):
        # left alone, NumPy makes floats of int64 and uint64 together
        return np.array(levels, dtype=np.uint64)
    return np.array(levels)
