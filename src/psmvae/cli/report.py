"""``psmvae report``: impute a table, or read its imputations, and write a page about it."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from psmvae.cli import long_file
from psmvae.cli.commands import check_paths, fitted_imputer, warn_of_codes
from psmvae.cli.files import check_file_output, check_input, is_text_file, read_input
from psmvae.cli.formula import formula_analysis
from psmvae.cli.messages import remedies_as_options
from psmvae.cli.options import check_known
from psmvae.cli.report_options import check_extension
from psmvae.cli.sensitivity import named_term
from psmvae.cli.terminal import UsageError
from psmvae.reporting import Report
from psmvae.reporting.data.collect import collect
from psmvae.sensitivity.tipping import tipping_point
from psmvae.table.frames import open_table
from psmvae.table.paths import atomic_path
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
    if options.imputations is None:
        check_paths(files, source, [], others=[files.output])
    else:
        _check_no_model(source)
        inputs = [files.table, options.imputations]
        check_file_output(files.output, force=files.force, inputs=inputs)
        for path in inputs:
            check_input(path)
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ())
        names = table.modelled.column_names
        check_known("--column", [options.column] if options.column else [], names)
        imputer: Any = None
        if options.imputations is None:
            imputer, table = fitted_imputer(table, source, terminal, draws=True)
            n = options.multiple or _N_IMPUTATIONS
            with terminal.working("Imputing"):
                mi = imputer.impute_multiple(table.modelled, n, random_state=source.run.seed)
        else:
            mi = long_file.read_long(options.imputations, files.na)
            _check_same_table(mi, table.modelled, options.imputations, files.table)
    if not mi.mask.any():
        warn_of_codes(table.modelled)
    fits, tipping = _analysed(mi, options, source.run.seed, terminal)
    with terminal.steps() as progress:
        data = collect(
            table.modelled if options.imputations is None else mi.original,
            imputer=imputer,
            mi=mi,
            analyses=fits,
            sensitivity=tipping,
            title=options.title or files.table.name,
            max_columns=options.max_columns,
            validate=not options.no_validation,
            random_state=source.run.seed,
            progress=progress,
            command=shlex.join(["psmvae", *sys.argv[1:]]),
        )
    made = Report(data)
    _write(made, files.output)
    for sentence in data["summary"]["sentences"]:
        terminal.say(sentence)
    terminal.say(f"wrote {files.output}")


def _check_no_model(source: ModelSource) -> None:
    """Refuse options of an imputer that would not be used."""
    given = source.given()
    if given:
        raise UsageError(f"--imputations has the imputations, so that {given[0]} has no effect")


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


def _write(made: Report, path: Path) -> None:
    """Write the format of the path's extension, completely or not at all."""
    match path.suffix.lower():
        case ".json":
            text = json.dumps(made.json(), indent=1, ensure_ascii=False) + "\n"
        case ".md":
            text = made.markdown()
        case _:
            text = made.html()
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
