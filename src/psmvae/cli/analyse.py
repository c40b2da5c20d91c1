"""``psmvae analyse``: fit a model to every imputation of a long file and pool the estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psmvae.cli import long_file
from psmvae.cli.files import is_text_file, write_text
from psmvae.cli.formula import formula_analysis
from psmvae.cli.formula_options import choose_format
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.pooled_table import POOLED, describe_test, formatted
from psmvae.cli.terminal import UsageError

if TYPE_CHECKING:
    from psmvae.cli.analyse_options import AnalyseOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.multiple import Analyses


def analyse(options: AnalyseOptions, terminal: Terminal) -> None:
    """Write the pooled estimates of a formula."""
    long_file.check_paths(options.table, [options.output], force=options.force)
    mi = long_file.read_long(options.table, options.na)
    names = mi.original.column_names
    analysis = formula_analysis(options.formula, options.family.value, names)
    with terminal.working("Fitting"):
        fits = mi.analyse(analysis)
    long_file.note_response(fits[0], terminal)
    long_file.warn_of_rows_left_out(fits, mi.original.num_rows)
    with remedies_as_options(text_file=is_text_file(options.table)):
        pooled = fits.pool(df=options.df.value)
    tested = None if options.test is None else _test(fits, options.test, options.method or "D1")
    summary = pooled.summary(exponentiate=options.exponentiate, conf_level=options.conf_level)
    how = choose_format(options.format, options.output)
    text = formatted(summary.to_pydict(), POOLED, how, conf_level=options.conf_level)
    if tested is not None and how == "csv":
        # a CSV file has the estimates only
        terminal.line(tested)
    elif tested is not None:
        text += f"\n{tested}\n"
    write_text(text, options.output, terminal, force=options.force)


def _test(fits: Analyses, hypothesis: str, method: Any) -> str:
    try:
        result = fits.test(hypothesis, method=str(method))  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f"--test: {error}") from error
    return describe_test(hypothesis, method, result)
