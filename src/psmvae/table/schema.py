"""The kinds of a table's columns.

`psmvae.kinds` is imported inside functions because it loads PyTorch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.bounds import check_in_bounds, with_bounds
from psmvae.table.cells import Cells
from psmvae.table.column_checks import accidental_text, stray_values
from psmvae.table.declared import Bounds, DeclaredKind, declared_levels
from psmvae.table.derived import check_derived
from psmvae.table.errors import KindMismatchError, StrayTextError, TooManyLevelsError
from psmvae.table.fields import check_fields
from psmvae.table.inference import Inferred, infer_kind
from psmvae.table.wording import quoted, repeated

if TYPE_CHECKING:
    from psmvae.kinds import Column

MAX_LEVELS = 1000
"""Largest number of levels that is modelled."""
# fields of a column that JSON holds as lists
_TUPLES = ("levels", "shares", "observed")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order.

    Parameters
    ----------
    columns : tuple of Column
        All columns, including those without an observed cell.

    Examples
    --------
    >>> from psmvae.kinds import Column
    >>> age, void = Column("age", "integer", "Int64", 9), Column("void", "real", "Float64", 0)
    >>> schema = Schema((age, void))
    >>> schema.names
    ('age', 'void')
    >>> [column.name for column in schema.modelled]
    ['age']
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    columns: tuple[Column, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def modelled(self) -> tuple[Column, ...]:
        """The columns with observed cells that are not derived. Only these are modelled."""
        return tuple(one for one in self.columns if one.n_observed > 0 and not one.formula)

    @property
    def formulas(self) -> dict[str, str]:
        """The formulas of the derived columns, by name."""
        return {column.name: column.formula for column in self.columns if column.formula}

    @property
    def orders(self) -> dict[str, tuple[Any, ...]]:
        """The levels of ordinal columns whose order is not that of numbers, by name."""
        return {
            column.name: column.levels
            for column in self.columns
            if column.kind == "ordinal"
            and (isinstance(column.levels[0], str) or list(column.levels) != sorted(column.levels))
        }

    def renamed(self, names: Iterable[str]) -> Schema:
        """Return the same columns under other names.

        Parameters
        ----------
        names : iterable of str
            One name for each column.

        Returns
        -------
        Schema
        """
        pairs = zip(self.columns, names, strict=True)
        return Schema(tuple(replace(column, name=name) for column, name in pairs))

    def to_json(self) -> dict[str, Any]:
        """Return the schema as a dict that `json` can write.

        Returns
        -------
        dict
            Levels keep their types.
        """
        columns = [
            asdict(column) | {name: list(getattr(column, name)) for name in _TUPLES}
            for column in self.columns
        ]
        return {"columns": columns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_json` wrote.

        Parameters
        ----------
        data : mapping
            The result of `to_json`.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the data are not those of a schema, or have a kind that does not exist.
        """
        from psmvae.kinds import KINDS, Column

        try:
            columns = tuple(
                Column(**{**column, **{name: tuple(column.get(name, ())) for name in _TUPLES}})
                for column in data["columns"]
            )
        except (KeyError, TypeError, AttributeError) as error:
            message = f"this is not the JSON of a schema ({type(error).__name__}: {error})"
            raise ValueError(message) from error
        if unknown := sorted({column.kind for column in columns} - set(KINDS)):
            message = f"the schema has unknown kinds {quoted(unknown)}; known are {quoted(KINDS)}"
            raise ValueError(message)
        for column in columns:
            _check_stored(column)
        if twice := repeated([column.name for column in columns]):
            raise ValueError(f"the schema has columns of the same name: {quoted(twice)}")
        made = cls(columns)
        check_derived(made.formulas, made.names)
        return made


def _check_stored(column: Column) -> None:
    """Raise ValueError if the fields of a column from a file are not those of a fitted column."""
    from psmvae.kinds import KINDS

    check_fields(column)
    levels, observed = column.levels, column.observed
    has_levels = KINDS[column.kind].has_levels and column.n_observed > 0 and not column.formula
    shares = column.shares
    fits = {
        "n_observed": column.n_observed >= 0,
        "scale": column.scale > 0,
        "deviation": column.deviation > 0,
        "levels": bool(levels) == has_levels
        and len(set(levels)) == len(levels) <= MAX_LEVELS
        and len({isinstance(level, str) for level in levels}) <= 1,
        "shares": not shares or (len(shares) == len(levels) and min(shares) >= 0),
        "low": column.low is None or column.high is None or column.low <= column.high,
        "observed": not observed or (len(observed) == 2 and observed[0] <= observed[1]),
    }
    for name, fit in fits.items():
        if not fit:
            raise ValueError(f"column {column.name!r} has {name} that no fitted column has")


def make_column(
    cells: Cells, declared: DeclaredKind | None = None, bounds: Bounds | None = None
) -> Column:
    """Return the column's entry in the schema, with the statistics that its kind needs."""
    from psmvae.kinds import KINDS, Column

    check_finite(cells)
    name, reason = declared_or_inferred(cells, declared, bounds)
    plain = Column(cells.name, name, cells.dtype, cells.n_observed, reason=reason)
    if cells.n_observed == 0:
        return plain
    if KINDS[name].has_levels:
        listed = declared is not None and declared.levels
        levels = declared_levels(cells, declared) if declared and listed else cells.levels()
        plain = replace(plain, levels=levels)
        _check_levels(cells, name, plain.n_levels)
        values = cells.codes(plain.levels)
        if bounds is not None:
            check_in_bounds(cells, bounds)
    else:
        _check_numbers(cells, name)
        values = cells.values()
        plain = with_bounds(plain, cells, bounds)
    check_domain(cells, name, values)
    column = KINDS[name].learn(values[~np.isnan(values)], plain)
    if not np.isfinite([column.center, column.scale, column.mean, column.deviation]).all():
        raise ValueError(
            f"column {cells.name!r} holds values too large to standardise (between "
            f"{np.nanmin(values):g} and {np.nanmax(values):g}): rescale it"
        )
    return column


def declared_or_inferred(
    cells: Cells, declared: DeclaredKind | None, bounds: Bounds | None
) -> Inferred:
    """Return the kind of a column and the reason for it."""
    if declared is None:
        return infer_kind(cells, bounded=bounds is not None)
    order = " < " if declared.kind == "ordinal" else ", "
    levels = f": {order.join(map(str, declared.levels))}" if declared.levels else ""
    return Inferred(declared.kind, f"declared{levels}")


def check_finite(cells: Cells) -> None:
    """Raise if a column holds infinity."""
    n_rows = int(np.count_nonzero(np.isinf(cells.raw))) if cells.raw.dtype.kind == "f" else 0
    if n_rows:
        found = f"contains infinity (inf) in {n_rows} of {cells.raw.size} rows"
        expected = "expected finite numbers, or NaN where a value is missing"
        raise ValueError(f"column {cells.name!r} {found}; {expected}")


def check_domain(cells: Cells, kind: str, values: NDArray[np.float64]) -> None:
    """Raise if a column holds numbers outside the domain of its kind."""
    from psmvae.kinds import KINDS

    outside = KINDS[kind].outside(values)
    if n_rows := int(np.count_nonzero(outside)):
        found = f"{n_rows} of {cells.n_observed} observed values (such as {values[outside][0]:g})"
        reason, others = f"{found} are not {KINDS[kind].domain}", ("real", "integer")
        raise KindMismatchError(cells.name, kind, reason, others, "correct these values")


def _check_levels(cells: Cells, kind: str, n_levels: int) -> None:
    if kind == "binary" and n_levels > 2:
        reason = f"has {n_levels} levels, not two"
        raise KindMismatchError(cells.name, kind, reason, ("categorical",), "merge its levels")
    if n_levels > MAX_LEVELS:
        counts = (n_levels, cells.n_observed, MAX_LEVELS)
        raise TooManyLevelsError(cells.name, kind, *counts, accidental_text(cells))


def _check_numbers(cells: Cells, kind: str) -> None:
    if cells.family == "string":
        raise StrayTextError(cells.name, kind, cells.dtype, stray_values(cells))
    if cells.storage == "category":
        # a number that is no category would change the type of the column
        reason = f"has a categorical data type ({cells.dtype})"
        fitting = ("ordinal", "categorical")
        raise KindMismatchError(cells.name, kind, reason, fitting, "convert it to numbers")
    values = cells.observed()
    broken = int(np.count_nonzero(values != np.rint(values))) if values.dtype.kind == "f" else 0
    if kind == "integer" and broken:
        reason = f"{broken} of {values.size} observed values are not whole numbers"
        raise KindMismatchError(cells.name, kind, reason, ("real",), "round it")
