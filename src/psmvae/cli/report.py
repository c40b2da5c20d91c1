"""``psmvae report``: impute a table, or read its imputations, and write a page about it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from psmvae.cli import long_file
from psmvae.cli.commands import check_paths, fitted_imputer, saving_model, warn_of_codes
from psmvae.cli.files import (
    check_file_output,
    check_input,
    is_text_file,
    read_input,
    write_text,
)
from psmvae.cli.formula import formula_analysis
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.options import check_known
from psmvae.cli.report_options import check_extension, read_pairs
from psmvae.cli.sensitivity import named_term
from psmvae.cli.terminal import UsageError
from psmvae.reporting import Report
from psmvae.reporting.data.collect import collect
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.scatter import pair_positions
from psmvae.reporting.report import check_installed
from psmvae.sensitivity.tipping import tipping_point
from psmvae.table.frames import open_table
from psmvae.table.wording import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae.cli.options import Files, ModelSource
    from psmvae.cli.report_options import ReportOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.multiple import Analyses, MultipleImputation
    from psmvae.sensitivity import TippingPoint

_N_IMPUTATIONS = 20


def report(files: Files, source: ModelSource, options: ReportOptions, terminal: Terminal) -> None:
    """Write a report on the missing cells of a table and their imputations."""
    check_extension(files.output)
    if files.output.suffix.lower() == ".html":
        check_installed()
    if options.imputations is not None:
        _report_on_imputations(files, source, options, options.imputations, terminal)
        return
    check_paths(files, source, [], others=[files.output])
    n, seed = options.multiple or _N_IMPUTATIONS, source.run.seed
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ())
        _check_columns(options, table.modelled)
        imputer, table = fitted_imputer(table, source, terminal, draws=True)
    with saving_model(imputer, files, source, terminal):
        with (
            remedies_as_options(text_file=is_text_file(files.table)),
            terminal.working("Imputing"),
        ):
            mi = imputer.impute_multiple(table.modelled, n, random_state=seed)
        if not mi.mask.any():
            warn_of_codes(table.modelled)
        _write_report(files, options, seed, terminal, mi=mi, imputer=imputer)


def _report_on_imputations(
    files: Files, source: ModelSource, options: ReportOptions, imputations: Path, terminal: Terminal
) -> None:
    """Report on the imputations of a long file."""
    # the long file does not store formulas, and shifted cells need them
    given = [one for one in source.given() if one != "--derive" or options.column is None]
    if given:
        raise UsageError(f"--imputations has the imputations, so that {given[0]} has no effect")
    inputs = [files.table, imputations]
    check_file_output(files.output, force=files.force, inputs=inputs)
    for path in inputs:
        check_input(path)
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ()).modelled
    _check_columns(options, table)
    mi = long_file.read_long(imputations, files.na, derived=source.options.formulas())
    _check_same_table(mi, table, imputations, files.table)
    _write_report(files, options, source.run.seed, terminal, mi=mi)


def _write_report(
    files: Files,
    options: ReportOptions,
    seed: int,
    terminal: Terminal,
    *,
    mi: MultipleImputation,
    imputer: Any = None,
) -> None:
    """Analyse the imputations, make the report and write it."""
    fits, tipping = _analysed(mi, options, seed, terminal)
    with terminal.steps() as progress:
        data = collect(
            mi.original,
            imputer=imputer,
            mi=mi,
            analyses=fits,
            sensitivity=tipping,
            pairs=read_pairs(options.pair, open_table(mi.original).names) if options.pair else None,
            title=options.title or files.table.name,
            max_columns=options.max_columns,
            validate=not options.no_validation,
            random_state=seed,
            progress=progress,
            command=shlex.join(["psmvae", *sys.argv[1:]]),
        )
        text = _text(Report(data), files.output)
    for sentence in data["summary"]["sentences"]:
        terminal.say(sentence)
    write_text(text, files.output, terminal, force=files.force)


def _check_columns(options: ReportOptions, table: Any) -> None:
    """Refuse options that name columns of another table, or of another kind, before any work."""
    check_known("--column", [options.column] if options.column else [], table.column_names)
    if options.pair:
        pair_positions(read_columns(table), read_pairs(options.pair, table.column_names))


def _check_same_table(mi: MultipleImputation, table: Any, imputations: Path, path: Path) -> None:
    """Refuse imputations of another table."""
    names = open_table(mi.original).names
    if list(names) != table.column_names or len(mi.mask) != table.num_rows:
        raise ValueError(
            f"{imputations} has imputations of another table than {path}: {len(mi.mask):,} rows "
            f"and the columns {quoted(names)}, not {table.num_rows:,} rows and the columns "
            f"{quoted(table.column_names)}"
        )


def _analysed(
    mi: MultipleImputation, options: ReportOptions, seed: int, terminal: Terminal
) -> tuple[Analyses | None, TippingPoint | None]:
    """Fit the formula to every imputation, and shift a column if asked."""
    if options.formula is None:
        return None, None
    names = open_table(mi.original).names
    analysis = formula_analysis(options.formula, options.family.value, names)
    with terminal.working("Fitting the formula"):
        fits = mi.analyse(analysis)
        long_file.note_response(fits[0], terminal)
        long_file.warn_of_rows_left_out(fits, len(mi.mask))
        if options.column is None:
            return fits, None
        term = named_term(list(fits[0].params.index), options.term)
        tipping = tipping_point(
            mi, analysis, options.column, options.deltas, term=term, random_state=seed
        )
    return fits, tipping


def _text(made: Report, path: Path) -> str:
    """Return the report in the format of the path's extension."""
    match path.suffix.lower():
        case ".json":
            return made._json_text()  # noqa: SLF001 (as `write_json` writes it)
        case ".md":
            return made.markdown()
    return made.html()
