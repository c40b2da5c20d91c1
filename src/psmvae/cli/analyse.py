"""``psmvae analyse``: fit a model to every imputation of a long file and pool the estimates."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from psmvae.cli.files import check_file_output, check_input, is_text_file, write_text
from psmvae.cli.formula import formula_analysis
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.pooled_table import describe_test, formatted
from psmvae.cli.terminal import UsageError
from psmvae.multiple import MultipleImputation
from psmvae.table.io import read_table

if TYPE_CHECKING:
    from psmvae.cli.analyse_options import AnalyseOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.multiple import Analyses


def analyse(options: AnalyseOptions, terminal: Terminal) -> None:
    """Write the pooled estimates of a formula."""
    _check_paths(options)
    mi = _read(options)
    names = mi.original.column_names
    analysis = formula_analysis(options.formula, options.family.value, names)
    with terminal.working("Fitting"):
        fits = mi.analyse(analysis)
    response = fits[0].model.endog_names
    if "[" in response:
        terminal.say(f"modelled: the probability of {response}")
    _warn_of_rows_left_out(fits, mi.original.num_rows)
    pooled = fits.pool(df=options.df.value)
    tested = None if options.test is None else _test(fits, options.test, options.method or "D1")
    summary = pooled.summary(exponentiate=options.exponentiate, conf_level=options.conf_level)
    how = options.chosen_format
    text = formatted(summary.to_pydict(), how, conf_level=options.conf_level)
    if tested is not None and how == "csv":
        # a CSV file has the estimates only
        terminal.line(tested)
    elif tested is not None:
        text += f"\n{tested}\n"
    write_text(text, options.output, terminal)


def _check_paths(options: AnalyseOptions) -> None:
    if options.output is not None:
        check_file_output(options.output, force=options.force, inputs=[options.table])
    check_input(options.table)


def _read(options: AnalyseOptions) -> MultipleImputation:
    with remedies_as_options(text_file=is_text_file(options.table)):
        table = read_table(options.table, na=options.na or ())
    try:
        mi = MultipleImputation.from_long(table)
    except ValueError as error:
        raise ValueError(
            f"{options.table}: {str(error).removesuffix('.')}; psmvae impute --multiple 20 writes "
            'such a file, and so does R\'s complete(imp, "long", include = TRUE)'
        ) from error
    if mi.m < 2:
        raise ValueError(
            f"{options.table}: there is one imputation, and Rubin's rules need at least 2; "
            "psmvae impute --multiple 20 writes 20"
        )
    return mi


def _test(fits: Analyses, hypothesis: str, method: Any) -> str:
    try:
        result = fits.test(hypothesis, method=str(method))  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f"--test: {error}") from error
    return describe_test(hypothesis, method, result)


def _warn_of_rows_left_out(fits: Analyses, n_rows: int) -> None:
    left_out = max(n_rows - int(fit.nobs) for fit in fits)
    if left_out:
        message = (
            f"{left_out:,} of {n_rows:,} rows were left out: a variable of the formula is still "
            "missing there, so it was not imputed"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
