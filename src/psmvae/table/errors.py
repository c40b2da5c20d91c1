"""Errors and warnings about tables. The facts they report are attributes.

Each structured class has a `problem` (what is wrong), a `remedy` (what a Python user can do) and
`message(remedy)`, which joins the two. A caller with another interface, such as the command line,
passes its own remedy to `message` and builds it from the attributes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from psmvae.table.stray_values import StrayValues
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    import os

    from psmvae.kinds import Level


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


class Reported:
    """Base of the structured errors and warnings: a text made from the fields of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @abstractmethod
    def _parts(self) -> tuple[str, str]:
        """Return the problem and the remedy."""

    @property
    def problem(self) -> str:
        """What is wrong, without a remedy."""
        return self._parts()[0]

    @property
    def remedy(self) -> str:
        """What a Python user can do about it."""
        return self._parts()[1]

    def message(self, remedy: str | None = None) -> str:
        """Return the whole text.

        Parameters
        ----------
        remedy : str, optional
            A remedy in place of the one for Python users.

        Returns
        -------
        str
            The problem and the remedy.
        """
        return f"{self.problem}; {self.remedy if remedy is None else remedy}"

    def __str__(self) -> str:
        """Return the text with the Python remedy."""
        return self.message()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the fields: by default an exception loses its keyword arguments."""
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)


class _ReportedWithStray(Reported):
    """A problem of a column that may be due to a few stray values; `remedy` is one for these."""

    stray: StrayValues | None

    def message(self, remedy: str | None = None) -> str:
        """Return the whole text; see `Reported.message`."""
        if self.stray is None:
            return super().message(remedy)
        return f"{self.problem}: {self.stray.message(remedy)}"


@dataclass(eq=False, repr=False)
class OutputExistsError(Reported, TableError):
    """The output file exists, and replacing it was not allowed.

    Parameters
    ----------
    path : path
        The output file.
    """

    path: str | os.PathLike[str]

    def _parts(self) -> tuple[str, str]:
        return f"{self.path}: the file exists already", "force=True replaces it"


@dataclass(eq=False, repr=False)
class UnsupportedColumnError(Reported, TypeError):
    """A column holds what no kind can model, such as dates, lists or a mixture of types.

    Parameters
    ----------
    column : str
        The column's name.
    content : str
        What the column is or holds, as a clause: "is of type date32[day], which has no kind".
    convert_to : str
        What it could be converted to.
    """

    column: str
    content: str
    convert_to: str = "numbers, strings or bools"

    def _parts(self) -> tuple[str, str]:
        problem = f"column {self.column!r} {self.content}"
        return problem, f"convert it to {self.convert_to}, or drop it"


@dataclass(eq=False, repr=False)
class UnsupportedColumnsError(UnsupportedColumnError):
    """Several columns hold what no kind can model. The other attributes are those of the first.

    Parameters
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
        """Return the text of each error, one a line; see `Reported.message`."""
        return "\n".join(error.message(remedy) for error in self.errors)


@dataclass(eq=False, repr=False)
class ColumnMismatchError(Reported, ValueError):
    """The columns are not those of the fitted table.

    Parameters
    ----------
    unexpected : tuple of str
        Columns that were not in the fitted table. The remedy concerns these only.
    absent : tuple of str
        Columns of the fitted table that are not in this one.
    """

    unexpected: tuple[str, ...]
    absent: tuple[str, ...]

    def _parts(self) -> tuple[str, str]:
        # scikit-learn's wording
        problem = "The feature names should match those that were passed during fit."
        return problem, "drop these columns"

    def message(self, remedy: str | None = None) -> str:
        """Return the whole text; see `Reported.message`."""
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

    Parameters
    ----------
    column : str
        The column's name.
    levels : tuple
        The unknown levels, in order of appearance.
    n_cells : int
        Number of cells that hold one of them.
    known_levels : tuple
        The levels of the fitted table.
    """

    column: str
    levels: tuple[Level, ...]
    n_cells: int
    known_levels: tuple[Level, ...]

    def _parts(self) -> tuple[str, str]:
        problem = (
            f"column {self.column!r} has {quoted(self.levels, 5)} in {self.n_cells} rows, not "
            f"among the {len(self.known_levels)} levels it was fitted on "
            f"({quoted(self.known_levels, 5)})"
        )
        return problem, "handle_unknown='missing' treats these cells as missing"


@dataclass(eq=False, repr=False)
class TooManyLevelsError(_ReportedWithStray, ValueError):
    """A column has more levels than can be modelled.

    Parameters
    ----------
    column : str
        The column's name.
    kind : str
        Its kind.
    n_levels : int
        Number of distinct values.
    n_observed : int
        Number of observed cells.
    max_levels : int
        Largest number of levels that is modelled.
    stray : StrayValues, optional
        The cells without which the column would be numeric, if they are few.
    """

    column: str
    kind: str
    n_levels: int
    n_observed: int
    max_levels: int
    stray: StrayValues | None = None

    def _parts(self) -> tuple[str, str]:
        problem = (
            f"column {self.column!r} ({self.kind}) has {self.n_levels} levels in "
            f"{self.n_observed} observed rows, at most {self.max_levels} are modelled"
        )
        return problem, "drop it (an identifier?) or group its levels"


@dataclass(eq=False, repr=False)
class KindMismatchError(Reported, ValueError):
    """A column's values do not fit the kind that was declared for it.

    Parameters
    ----------
    column : str
        The column's name.
    kind : str
        The declared kind.
    reason : str
        Why it does not fit, as a clause: "has 3 levels, not two".
    fitting_kinds : tuple of str
        Kinds that can be declared instead.
    alternative : str
        What else can be done, as a clause: "round it".
    """

    column: str
    kind: str
    reason: str
    fitting_kinds: tuple[str, ...]
    alternative: str

    def _parts(self) -> tuple[str, str]:
        problem = f"column {self.column!r} is declared {self.kind} but {self.reason}"
        return problem, f"declare it {' or '.join(self.fitting_kinds)}, or {self.alternative}"


@dataclass(eq=False, repr=False)
class StrayTextError(_ReportedWithStray, ValueError):
    """A column that was declared numeric holds text.

    Parameters
    ----------
    column : str
        The column's name.
    kind : str
        The declared kind.
    dtype : str
        The column's data type.
    stray : StrayValues, optional
        The cells that are not numbers, where others are.
    """

    column: str
    kind: str
    dtype: str
    stray: StrayValues | None = None

    def _parts(self) -> tuple[str, str]:
        problem = f"column {self.column!r} is declared {self.kind} but holds strings ({self.dtype})"
        return problem, "declare it categorical, or convert it to numbers"


@dataclass(eq=False, repr=False)
class ContentMismatchError(_ReportedWithStray, TypeError):
    """A column that was fitted on numbers now holds strings, or the reverse.

    Parameters
    ----------
    column : str
        The column's name.
    fitted : str
        What it held at fit: "numbers" or "strings", with data type and kind.
    found : str
        What it holds now: "numbers" or "strings", with the data type.
    stray : StrayValues, optional
        The cells that are not numbers, where others are.
    """

    column: str
    fitted: str
    found: str
    stray: StrayValues | None = None

    def _parts(self) -> tuple[str, str]:
        problem = f"column {self.column!r} was fitted on {self.fitted}, but now holds {self.found}"
        return problem, f"convert it to {self.fitted.partition(' ')[0]}"


@dataclass(eq=False, repr=False)
class EmptyColumnsWarning(Reported, UserWarning):
    """Columns have no observed cell. They are not modelled and stay missing.

    Parameters
    ----------
    columns : tuple of str
        The columns' names.
    """

    columns: tuple[str, ...]

    def _parts(self) -> tuple[str, str]:
        problem = f"columns with nothing observed are left missing: {quoted(self.columns)}"
        return problem, "drop them to avoid this warning"


@dataclass(eq=False, repr=False)
class StrayTextWarning(_ReportedWithStray, UserWarning):
    """A text column would be numeric without a few cells. It is modelled as levels.

    Parameters
    ----------
    column : str
        The column's name.
    stray : StrayValues
        The cells that are not numbers.
    """

    column: str
    stray: StrayValues

    def _parts(self) -> tuple[str, str]:
        return f"column {self.column!r} is text and modelled as levels", self.stray.remedy


@dataclass(eq=False, repr=False)
class IdentifierWarning(Reported, UserWarning):
    """A text column looks like an identifier. It is modelled as levels.

    Parameters
    ----------
    column : str
        The column's name.
    n_levels : int
        Number of distinct values.
    n_observed : int
        Number of observed cells.
    """

    column: str
    n_levels: int
    n_observed: int

    def _parts(self) -> tuple[str, str]:
        problem = (
            f"column {self.column!r} looks like an identifier ({self.n_levels:,} levels in "
            f"{self.n_observed:,} observed cells) and is modelled as levels"
        )
        return problem, "drop it if it is one"
