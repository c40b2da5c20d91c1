"""The kinds of a table's columns.

`psmvae.kinds` is imported inside functions because it loads PyTorch, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psmvae.table.cells import MAX_WHOLE, Cells
from psmvae.table.column_checks import accidental_text, stray_values
from psmvae.table.errors import KindMismatchError, StrayTextError, TooManyLevelsError
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from psmvae.kinds import Column

MAX_LEVELS = 1000
"""Largest number of levels that is modelled."""
# fields of a column that JSON holds as lists
_TUPLES = ("levels", "shares")


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

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns with observed cells. Only these are modelled."""
        return tuple(column for column in self.columns if column.n_observed > 0)

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
        return cls(columns)


def infer_kind(cells: Cells) -> str:
    """Infer the kind of a column.

    Bools are binary. Strings and categories are binary if exactly two levels are observed, ordinal
    if there are more and the data type is ordered, and categorical otherwise. Numbers are binary
    if they are exactly 0 and 1, integer if all are whole (pandas stores integers with missing
    values as floats), and real otherwise. Decimals are real. Positive and count columns are never
    inferred: they have to be declared.
    """
    if cells.family == "nothing":
        if cells.storage in {"string", "category"}:
            return "categorical"
        return {"boolean": "binary", "integer": "integer"}.get(cells.storage, "real")
    if cells.family == "bool":
        return "binary"
    if cells.family == "string" or cells.storage == "category":
        n_levels = len(cells.levels())
        if n_levels == 2:
            return "binary"
        return "ordinal" if cells.ordered and n_levels > 2 else "categorical"
    if cells.storage == "decimal" or cells.dtype.startswith("Decimal"):
        return "real"
    values = cells.observed()
    zero, one = values == 0, values == 1
    if zero.any() and one.any() and bool(np.all(zero | one)):
        return "binary"
    wide = values.astype(np.float64, copy=False)
    whole = bool(np.all((wide == np.rint(wide)) & (np.abs(wide) < MAX_WHOLE)))
    return "integer" if whole or cells.storage == "integer" else "real"


def make_column(cells: Cells, kind: str | None = None) -> Column:
    """Return the column's entry in the schema, with the statistics that its kind needs."""
    from psmvae.kinds import KINDS, Column

    check_finite(cells)
    name = kind if kind is not None else infer_kind(cells)
    plain = Column(cells.name, name, cells.dtype, cells.n_observed)
    if cells.n_observed == 0:
        return plain
    if KINDS[name].has_levels:
        plain = replace(plain, levels=cells.levels())
        _check_levels(cells, name, plain.n_levels)
        values = cells.codes(plain.levels)
    else:
        _check_numbers(cells, name)
        values = cells.values()
    check_domain(cells, name, values)
    column = KINDS[name].learn(values[~np.isnan(values)], plain)
    if not np.isfinite([column.center, column.scale, column.mean, column.deviation]).all():
        raise ValueError(
            f"column {cells.name!r} holds values too large to standardise (between "
            f"{np.nanmin(values):g} and {np.nanmax(values):g}): rescale it"
        )
    return column


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


def check_kinds(kinds: Mapping[Any, str], names: Iterable[str]) -> dict[str, str]:
    """Return declared kinds by column name, checked against the columns and kinds that exist."""
    from psmvae.kinds import KINDS

    declared = {str(name): kind for name, kind in kinds.items()}
    known = dict.fromkeys(names)
    if unknown := [name for name in declared if name not in known]:
        message = f"kinds names unknown columns {quoted(unknown)}; the table has {quoted(known)}"
        raise ValueError(message)
    for name, kind in declared.items():
        if kind not in list(KINDS):
            message = f"unknown kind {kind!r} for column {name!r}; expected one of {quoted(KINDS)}"
            raise ValueError(message)
    return declared


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
    values = cells.observed()
    broken = int(np.count_nonzero(values != np.rint(values))) if values.dtype.kind == "f" else 0
    if kind == "integer" and broken:
        reason = f"{broken} of {values.size} observed values are not whole numbers"
        raise KindMismatchError(cells.name, kind, reason, ("real",), "round it")
