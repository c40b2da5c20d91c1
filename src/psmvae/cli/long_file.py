"""The long file of a multiple imputation, read to fit a formula to it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from psmvae.cli.files import check_file_output, check_input, is_text_file
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.options import check_known
from psmvae.multiple import MultipleImputation
from psmvae.multiple.long_format import KEYS
from psmvae.table.errors import FormulaError
from psmvae.table.io import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from psmvae.cli.terminal import Terminal


def check_paths(table: Path, outputs: Iterable[Path | None], *, force: bool) -> None:
    """Refuse an input that does not exist and outputs that cannot or must not be written."""
    for output in outputs:
        if output is not None:
            check_file_output(output, force=force, inputs=[table])
    check_input(table)


def read_long(
    path: Path,
    na: Sequence[str] | None,
    *,
    derived: Mapping[str, str] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
) -> MultipleImputation:
    """Read the imputations of a long file, at least two; it stores neither formulas nor orders."""
    with remedies_as_options(text_file=is_text_file(path)):
        table = read_table(path, na=na or ())
    names = [one for one in table.column_names if one not in KEYS]
    check_known("--derive", derived or {}, names)
    check_known("--kind", levels or {}, names)
    try:
        mi = MultipleImputation.from_long(table, derived=derived, levels=levels)
    except FormulaError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{path}: {str(error).removesuffix('.')}; psmvae impute --multiple 20 writes "
            'such a file, and so does R\'s complete(imp, "long", include = TRUE)'
        ) from error
    if mi.m < 2:
        raise ValueError(
            f"{path}: there is one imputation, and Rubin's rules need at least 2; "
            "psmvae impute --multiple 20 writes 20"
        )
    return mi


def note_response(fit: Any, terminal: Terminal) -> None:
    """Say which level of a response of two levels is modelled."""
    response = fit.model.endog_names
    if "[" in response:
        terminal.say(f"modelled: the probability of {response}")


def warn_of_rows_left_out(fits: Iterable[Any], n_rows: int) -> None:
    """Warn if rows are left out because a variable of the formula is missing."""
    left_out = max(n_rows - int(fit.nobs) for fit in fits)
    if left_out:
        message = (
            f"{left_out:,} of {n_rows:,} rows were left out: a variable of the formula is still "
            "missing there, so it was not imputed"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
