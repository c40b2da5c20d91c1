"""Errors and warnings about a table, with remedies that name options of the command line."""

from __future__ import annotations

import shlex
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psmvae.table import errors as e

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def option(name: str, values: Iterable[str]) -> str:
    """Return an option as it is typed in a shell, once for each value."""
    # a value that starts with a dash would be parsed as another option
    return " ".join(
        f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" for value in values
    )


@contextmanager
def remedies_as_options(*, text_file: bool) -> Iterator[None]:
    """Reword the errors that a block raises and the warnings that it shows; see `reworded`."""
    show_before = warnings.showwarning

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        show_before(reworded(message, text_file=text_file), *args, **kwargs)

    warnings.showwarning = show
    try:
        yield
    except (ValueError, TypeError) as error:
        if not isinstance(error, e.Reported):
            raise
        raise ValueError(reworded(error, text_file=text_file)) from error
    finally:
        warnings.showwarning = show_before


def reworded(report: object, *, text_file: bool) -> str:
    """Return the text of an error or warning, with a remedy for the command line if it has one."""
    if isinstance(report, e.UnsupportedColumnsError):
        return "\n".join(reworded(one, text_file=text_file) for one in report.errors)
    if not isinstance(report, e.Reported):
        return str(report)
    return report.message(_remedy(report, text_file=text_file))


def _remedy(report: e.Reported, *, text_file: bool) -> str | None:
    """The options that solve a problem; None where the library's own remedy holds."""
    from psmvae.multiple import MissingInformationWarning

    if isinstance(report, MissingInformationWarning):
        return (
            "use more imputations (psmvae impute --multiple), add columns that predict the missing "
            "values, and compare other imputation models (--method)"
        )
    # loads scikit-learn, which a command that reports has loaded
    from psmvae.imputers import fit_warnings as w

    match report:
        case e.OutputExistsError():
            return "--force replaces it"
        case e.UnsupportedColumnError(column=column, convert_to=target):
            return f"convert it to {target}, or leave it out with {option('--ignore', [column])}"
        case (
            e.ColumnMismatchError(unexpected=names)
            | e.EmptyColumnsWarning(columns=names)
            | e.ConstantColumnsWarning(columns=names)
        ):
            return _leave_out(names)
        case e.UnknownLevelsError():
            return "--handle-unknown missing treats these cells as missing"
        case e.UnlistedLevelsError(column=column, kind=kind, levels=levels, listed=listed):
            every = ",".join(map(str, (*listed, *levels)))
            return f"list them in their order ({option('--kind', [f'{column}={kind}:{every}'])})"
        case e.UnorderedLevelsError(column=column, levels=levels):
            one = option("--operation", [f"odds of {levels[-1]}"])
            order = option("--kind", [f"{column}=ordinal:{','.join(levels)}"])
            return (
                f"name the level whose odds change ({one}), or list them in their order ({order})"
            )
        case e.OutOfBoundsError(column=column):
            return f"widen --bounds {column}=LOW:HIGH, or correct these values"
        case e.OutsideRangeWarning(columns=counts):
            return f"check the model, or give --bounds {next(iter(counts))}=LOW:HIGH"
        case w.ImproperDrawsWarning():
            return "use --method psmvae, mice or mean"
        case w.FewRowsWarning():
            return "compare with --method mice, or collect more rows"
        case w.NothingLearnedWarning():
            return "train longer (--epochs, --max-time), or compare with --method mice and mean"
        case w.MaxTimeWarning():
            return "increase --max-time, or fit on fewer rows"
        case w.MechanismTimeWarning():
            return "increase --max-time, or leave out columns"
        case e.FormulaDomainWarning():
            return "give --bounds for the columns of the formula"
        case e.IdentifierWarning(column=column):
            return _leave_out([column])
        case e.KindMismatchError(column=column, fitting_kinds=kinds, alternative=alternative):
            return f"{option('--kind', [f'{column}={kinds[0]}'])}, or {alternative}"
        case (
            e.TooManyLevelsError(stray=e.StrayValues() as stray)
            | e.StrayTextError(stray=e.StrayValues() as stray)
            | e.ContentMismatchError(stray=e.StrayValues() as stray)
            | e.StrayTextWarning(stray=stray)
        ):
            return _read_as_missing(stray) if text_file else None
        case e.TooManyLevelsError(column=column):
            ignore = option("--ignore", [column])
            return f"leave it out with {ignore} (an identifier?) or group its levels"
        case e.StrayTextError(column=column):
            return f"{option('--kind', [f'{column}=categorical'])}, or convert it to numbers"
    return None


def _leave_out(names: Sequence[str]) -> str:
    verb, them = ("leaves", "it") if len(names) == 1 else ("leave", "them")
    return f"{option('--ignore', names)} {verb} {them} out"


def _read_as_missing(stray: e.StrayValues) -> str:
    verb = "read" if len(stray.codes) > 1 else "reads"
    them = "them" if len(stray.words) > 1 else "it"
    return f"{option('--na', stray.codes)} {verb} {them} as missing"
