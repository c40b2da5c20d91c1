"""Errors and warnings about tables. The facts they report are attributes.

Each structured class has a `problem`, a `remedy` for Python users, and `message(remedy)`, which
joins the two. The command line passes its own remedy, built from the attributes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from psmvae.table.wording import N_SHOWN, counted, quoted

if TYPE_CHECKING:
    from psmvae.kinds.base import Level


class TableError(ValueError):
    """A file that cannot be read as a table, or must not be written.

    Examples
    --------
    >>> from psmvae.table import TableError, read_table
    >>> try:
    ...     read_table("nowhere.csv")
    ... except TableError as error:
    ...     print(error)
    nowhere.csv: there is no such file
    """


@dataclass(frozen=True)
class StrayValues:
    """The cells that keep a text column from being numeric.

    Parameters
    ----------
    column : str
        The column's name.
    n_numbers : int
        Number of cells that hold a number.
    words : dict of str to int
        Texts that are not numbers, most frequent first, with their numbers of cells.
    formatted : dict of str to int
        Numbers that are not parsed as such: with thousands separators or a decimal comma.
    """

    column: str
    n_numbers: int
    words: dict[str, int]
    formatted: dict[str, int]

    @property
    def codes(self) -> tuple[str, ...]:
        """The words that `message` lists."""
        return tuple(self.words)[:N_SHOWN]

    @property
    def remedy(self) -> str:
        """What a Python user can do about `words`."""
        several = len(self.words) > 1
        them, values = ("them", "missing values") if several else ("it", "a missing value")
        return f"replace {them} by {values} and convert the column to numbers"

    def message(self, remedy: str | None = None) -> str:
        """Return the cells and what to do about them.

        Parameters
        ----------
        remedy : str, optional
            A remedy for `words` in place of `remedy`.

        Returns
        -------
        str
            A clause that follows a statement about the column.

        Examples
        --------
        >>> StrayValues("income", 199, {"unknown": 1}, {}).message("drop it")
        "'unknown' (1 cell) is not a number, 199 other cells are; drop it"
        """
        parts = []
        if self.words:
            rest = f"{self.n_numbers:,} other cell{'s are' if self.n_numbers > 1 else ' is'}"
            verb = "are not numbers" if len(self.words) > 1 else "is not a number"
            parts.append(f"{counted(self.words)} {verb}, {rest}")
            parts.append(self.remedy if remedy is None else remedy)
        if self.formatted:
            verb = "are" if len(self.formatted) > 1 else "is"
            parts.append(
                f"{counted(self.formatted)} {verb} not parsed as a number; write numbers with a "
                "decimal point and without thousands separators"
            )
        return "; ".join(parts)


class Reported:
    """Base of the structured errors and warnings: templates, and the fields of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    _problem: ClassVar[str]
    _remedy: ClassVar[str]

    def _texts(self) -> dict[str, str]:
        """Return texts for the templates, beside the fields."""
        return {}

    @property
    def problem(self) -> str:
        """What is wrong, without a remedy."""
        return self._problem.format(**vars(self), **self._texts())

    @property
    def remedy(self) -> str:
        """What a Python user can do about it."""
        return self._remedy.format(**vars(self), **self._texts())

    def message(self, remedy: str | None = None) -> str:
        """Return the problem and the remedy, or another remedy than that for Python users."""
        return f"{self.problem}; {self.remedy if remedy is None else remedy}"

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the fields: by default an exception loses its keyword arguments."""
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)


class _ReportedWithStray(Reported):
    """A problem of a column that may be due to a few stray values; `remedy` is one for these."""

    stray: StrayValues | None

    def message(self, remedy: str | None = None) -> str:
        if self.stray is None:
            return super().message(remedy)
        return f"{self.problem}: {self.stray.message(remedy)}"


@dataclass(eq=False, repr=False)
class OutputExistsError(Reported, TableError):
    """The output file exists, and replacing it was not allowed.

    Attributes
    ----------
    path : path
        The output file.
    """

    path: str | os.PathLike[str]
    _problem, _remedy = "{path}: the file exists already", "force=True replaces it"


@dataclass(eq=False, repr=False)
class UnsupportedColumnError(Reported, TypeError):
    """A column holds what no kind can model, such as dates, lists or a mixture of types.

    Attributes
    ----------
    column, content, convert_to : str
        Its name, what it is or holds ("is of type date32[day], which has no kind") and what it
        could be converted to.
    """

    column: str
    content: str
    convert_to: str = "numbers, strings or bools"
    _problem, _remedy = "column {column!r} {content}", "convert it to {convert_to}, or drop it"


@dataclass(eq=False, repr=False)
class UnsupportedColumnsError(UnsupportedColumnError):
    """Several columns hold what no kind can model. The other attributes are those of the first.

    Attributes
    ----------
    errors : tuple of UnsupportedColumnError
        One error for each column.
    """

    errors: tuple[UnsupportedColumnError, ...] = ()

    @classmethod
    def joining(cls, errors: list[UnsupportedColumnError]) -> UnsupportedColumnsError:
        """Return one error for all columns."""
        first = errors[0]
        return cls(first.column, first.content, first.convert_to, tuple(errors))

    def message(self, remedy: str | None = None) -> str:
        """Return the text of each error, one a line."""
        return "\n".join(error.message(remedy) for error in self.errors)


@dataclass(eq=False, repr=False)
class ColumnMismatchError(Reported, ValueError):
    """The columns are not those of the fitted table.

    Attributes
    ----------
    unexpected, absent : tuple of str
        Columns that were not in the fitted table, and those of it that are not in this one.
    """

    unexpected: tuple[str, ...]
    absent: tuple[str, ...]
    # scikit-learn's wording; the remedy concerns unexpected columns only
    _problem = "The feature names should match those that were passed during fit."
    _remedy = "drop these columns"

    def message(self, remedy: str | None = None) -> str:
        """Return the problem and both lists of columns."""
        lines = [self.problem]
        if self.unexpected:
            advice = self.remedy if remedy is None else remedy
            lines.append(f"Feature names unseen at fit time: {quoted(self.unexpected)} ({advice})")
        if self.absent:
            lines.append(f"Feature names seen at fit time, yet now missing: {quoted(self.absent)}")
        return "\n".join(lines)


@dataclass(eq=False, repr=False)
class UnknownLevelsError(Reported, ValueError):
    """A column has levels that were not in the fitted table.

    Attributes
    ----------
    column : str
        The column's name.
    levels, known_levels : tuple
        The unknown levels, in order of appearance, and those of the fitted table.
    n_cells : int
        Number of cells that hold an unknown level.
    """

    column: str
    levels: tuple[Level, ...]
    n_cells: int
    known_levels: tuple[Level, ...]
    _problem = (
        "column {column!r} has {unknown} in {n_cells} rows, not among the {n_known} levels it was "
        "fitted on ({known})"
    )
    _remedy = "handle_unknown='missing' treats these cells as missing{or_declare}"

    def _texts(self) -> dict[str, str]:
        texts = {"unknown": quoted(self.levels, 5), "known": quoted(self.known_levels, 5)}
        or_declare = ", or declare it integer in kinds to allow any whole number"
        numbers = not isinstance(self.known_levels[0], str | bool)
        return texts | {
            "n_known": str(len(self.known_levels)),
            "or_declare": or_declare if numbers else "",
        }


@dataclass(eq=False, repr=False)
class UnlistedLevelsError(Reported, ValueError):
    """A column has levels that are not among those declared for it.

    Attributes
    ----------
    column, kind : str
        The column's name and the declared kind.
    levels, listed : tuple
        The levels that are not declared, in order of appearance, and those that are.
    n_cells : int
        Number of cells that hold a level that is not declared.
    """

    column: str
    kind: str
    levels: tuple[Level, ...]
    n_cells: int
    listed: tuple[Level, ...]
    _problem = (
        "column {column!r} is declared {kind} with the levels {known}, but {n_cells} observed "
        "cells hold {unlisted}"
    )
    _remedy = "add these levels in kinds, or correct the cells"

    def _texts(self) -> dict[str, str]:
        return {"unlisted": quoted(self.levels, 5), "known": quoted(self.listed, 10)}


@dataclass(eq=False, repr=False)
class UnorderedLevelsError(Reported, ValueError):
    """All odds of a column with more than two levels are to change, and its order is unknown.

    Attributes
    ----------
    column : str
        The column's name.
    levels : tuple of str
        Its levels, as texts.
    factor : float
        The factor of the odds.
    """

    column: str
    levels: tuple[str, ...]
    factor: float
    _problem = "column {column!r} has {n} levels without an order"
    _remedy = "name the level whose odds change, {example!r}, or give the order, levels={order}"

    def _texts(self) -> dict[str, str]:
        return {
            "n": str(len(self.levels)),
            "example": f"odds of {self.levels[-1]} × {self.factor:g}",
            "order": f"{{{self.column!r}: [{quoted(self.levels)}]}} in their order",
        }


@dataclass(eq=False, repr=False)
class OutOfBoundsError(Reported, ValueError):
    """Observed values of a column are outside the bounds given for it.

    Attributes
    ----------
    column : str
        The column's name.
    low, high : float or None
        The bounds; None is no bound.
    values : tuple of float
        The distinct values outside, in ascending order.
    n_cells : int
        Number of cells that hold such a value.
    """

    column: str
    low: float | None
    high: float | None
    values: tuple[float, ...]
    n_cells: int
    _problem = (
        "column {column!r} has bounds {interval}, but {n_cells} observed cells are outside: {found}"
    )
    _remedy = "widen the bounds, or correct these values"

    def _texts(self) -> dict[str, str]:
        low = "-inf" if self.low is None else f"{self.low:g}"
        high = "inf" if self.high is None else f"{self.high:g}"
        shown = ", ".join(f"{value:g}" for value in self.values[:N_SHOWN])
        more = len(self.values) - N_SHOWN
        return {
            "interval": f"({low}, {high})",
            "found": f"{shown} and {more} more" if more > 0 else shown,
        }


@dataclass(eq=False, repr=False)
class FormulaError(Reported, ValueError):
    """The formula of a derived column cannot be used.

    Attributes
    ----------
    column, formula : str
        The derived column and its formula.
    reason, remedy_text : str
        What is wrong with it, and what can be done.
    """

    column: str
    formula: str
    reason: str
    remedy_text: str
    _problem = "the derived column {column!r} = {formula!r}: {reason}"
    _remedy = "{remedy_text}"


@dataclass(eq=False, repr=False)
class ConditionError(Reported, ValueError):
    """A condition that selects rows cannot be used.

    Attributes
    ----------
    condition : str
        The condition.
    reason, remedy_text : str
        What is wrong with it, and what can be done.
    """

    condition: str
    reason: str
    remedy_text: str
    _problem = "the condition {condition!r}: {reason}"
    _remedy = "{remedy_text}"


@dataclass(eq=False, repr=False)
class TooManyLevelsError(_ReportedWithStray, ValueError):
    """A column has more levels than can be modelled.

    Attributes
    ----------
    column, kind : str
        The column's name and its kind.
    n_levels, n_observed, max_levels : int
        Numbers of distinct values and of observed cells; most levels that are modelled.
    stray : StrayValues, optional
        The cells without which the column would be numeric, if they are few.
    """

    column: str
    kind: str
    n_levels: int
    n_observed: int
    max_levels: int
    stray: StrayValues | None = None
    _problem = (
        "column {column!r} ({kind}) has {n_levels} levels in {n_observed} observed rows, at most "
        "{max_levels} are modelled"
    )
    _remedy = "drop it (an identifier?) or group its levels"


@dataclass(eq=False, repr=False)
class KindMismatchError(Reported, ValueError):
    """A column's values do not fit the kind that was declared for it.

    Attributes
    ----------
    column, kind : str
        The column's name and the declared kind.
    reason, alternative : str
        Why it does not fit ("has 3 levels, not two") and what can be done ("round it").
    fitting_kinds : tuple of str
        Kinds that can be declared instead.
    """

    column: str
    kind: str
    reason: str
    fitting_kinds: tuple[str, ...]
    alternative: str
    _problem = "column {column!r} is declared {kind} but {reason}"
    _remedy = "declare it {fitting}, or {alternative}"

    def _texts(self) -> dict[str, str]:
        return {"fitting": " or ".join(self.fitting_kinds)}


@dataclass(eq=False, repr=False)
class StrayTextError(_ReportedWithStray, ValueError):
    """A column that was declared numeric holds text.

    Attributes
    ----------
    column, kind, dtype : str
        The column's name, declared kind and data type.
    stray : StrayValues, optional
        The cells that are not numbers, where others are.
    """

    column: str
    kind: str
    dtype: str
    stray: StrayValues | None = None
    _problem = "column {column!r} is declared {kind} but holds strings ({dtype})"
    _remedy = "declare it categorical, or convert it to numbers"


@dataclass(eq=False, repr=False)
class ContentMismatchError(_ReportedWithStray, TypeError):
    """A column that was fitted on numbers now holds strings or categories, or the reverse.

    Attributes
    ----------
    column, fitted, found : str
        Its name, what it held at fit and what it holds now: "numbers" or "strings", with the type.
    stray : StrayValues, optional
        The cells that are not numbers, where others are.
    """

    column: str
    fitted: str
    found: str
    stray: StrayValues | None = None
    _problem = "column {column!r} was fitted on {fitted}, but now holds {found}"
    _remedy = "convert it to {content}"

    def _texts(self) -> dict[str, str]:
        return {"content": self.fitted.partition(" ")[0]}


@dataclass(eq=False, repr=False)
class EmptyColumnsWarning(Reported, UserWarning):
    """Columns have no observed cell. They are not modelled and stay missing.

    Attributes
    ----------
    columns : tuple of str
        The columns' names.
    """

    columns: tuple[str, ...]
    _problem = "columns with nothing observed are left missing: {names}"
    _remedy = "drop them to avoid this warning"

    def _texts(self) -> dict[str, str]:
        return {"names": quoted(self.columns)}


@dataclass(eq=False, repr=False)
class StrayTextWarning(_ReportedWithStray, UserWarning):
    """A text column would be numeric without a few cells. It is modelled as levels.

    Attributes
    ----------
    column : str
        The column's name.
    stray : StrayValues
        The cells that are not numbers.
    """

    column: str
    stray: StrayValues
    _problem, _remedy = "column {column!r} is text and modelled as levels", "{stray.remedy}"


@dataclass(eq=False, repr=False)
class IdentifierWarning(Reported, UserWarning):
    """A column looks like an identifier. It is modelled like other columns.

    Attributes
    ----------
    column : str
        The column's name.
    n_levels, n_observed : int
        Numbers of distinct values and of observed cells.
    modelled_as : str
        "levels" for text, "numbers" for whole numbers.
    """

    column: str
    n_levels: int
    n_observed: int
    modelled_as: str = "levels"
    _problem = (
        "column {column!r} looks like an identifier ({n_levels:,} distinct values in "
        "{n_observed:,} observed cells) and is modelled as {modelled_as}"
    )
    _remedy = "drop it if it is one, or declare its kind if it is not"


@dataclass(eq=False, repr=False)
class ConstantColumnsWarning(Reported, UserWarning):
    """Columns have one distinct observed value. Their missing cells get this value.

    Attributes
    ----------
    columns : tuple of str
        The columns' names.
    """

    columns: tuple[str, ...]
    _problem = "columns with one distinct observed value say nothing about the others: {names}"
    _remedy = "drop them, or check how they were read"

    def _texts(self) -> dict[str, str]:
        return {"names": quoted(self.columns)}


@dataclass(eq=False, repr=False)
class OutsideRangeWarning(Reported, UserWarning):
    """Many imputed values are outside the observed range of their columns, or one is far outside.

    Attributes
    ----------
    columns : dict of str to int
        Number of imputed values outside the observed range, by column.
    """

    columns: dict[str, int]
    _problem = "imputed values outside the observed range: {counts}"
    _remedy = "check the model, or give bounds={{{first!r}: (low, high)}}"

    def _texts(self) -> dict[str, str]:
        return {"counts": counted(self.columns, "value"), "first": next(iter(self.columns))}


@dataclass(eq=False, repr=False)
class FormulaMismatchWarning(Reported, UserWarning):
    """Observed values of a derived column are not those of its formula, beyond rounding.

    Attributes
    ----------
    column, formula : str
        The derived column and its formula.
    n_cells, n_compared : int
        Number of observed values that differ, and number of values that were compared.
    largest : float
        The largest difference.
    """

    column: str
    formula: str
    n_cells: int
    n_compared: int
    largest: float
    _problem = (
        "the derived column {column!r} = {formula!r} differs from the formula in {n_cells:,} of "
        "{n_compared:,} observed cells, by up to {largest:.3g}"
    )
    _remedy = "check the formula and the units of its columns"


@dataclass(eq=False, repr=False)
class FormulaDomainWarning(Reported, UserWarning):
    """The formula of a derived column has no finite value in some rows. These cells are kept.

    Attributes
    ----------
    column, formula : str
        The derived column and its formula.
    n_rows : int
        Number of rows where it is not finite, such as a logarithm of a negative number.
    """

    column: str
    formula: str
    n_rows: int
    _problem = (
        "the derived column {column!r} = {formula!r} is not finite in {n_rows:,} rows, which keep "
        "their cells"
    )
    _remedy = "give bounds for the columns of the formula"
