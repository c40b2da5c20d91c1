"""The commands that use an imputer: ``psmvae impute``, ``fit`` and ``sets``.

Each checks every path, reads the table, checks the options against its columns, and only then
starts long work. An output file is written completely or not at all.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from psmvae.cli.columns import list_columns, list_mechanisms
from psmvae.cli.files import (
    check_file_output,
    check_input,
    check_model_output,
    check_table_output,
    check_written,
    ignored_by_model,
    is_text_file,
    read_input,
    write_somewhere,
)
from psmvae.cli.messages import option, remedies_as_options
from psmvae.cli.methods import check_has_sets, check_options, has_parameter, method_of
from psmvae.cli.terminal import UsageError
from psmvae.demo.files import sets_table
from psmvae.imputers.model_file import save as save_model
from psmvae.multiple.long_format import IMPUTATION, ROW, stack_tables
from psmvae.table.column_checks import missing_value_codes
from psmvae.table.frames import open_table
from psmvae.table.io import check_format, write_table
from psmvae.table.wording import N_SHOWN, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from psmvae.cli.files import InputTable
    from psmvae.cli.options import Files, ModelSource, RunOptions
    from psmvae.cli.terminal import Terminal
    from psmvae.imputers.base import Imputer


def impute(
    files: Files, source: ModelSource, terminal: Terminal, *, multiple: int | None = None
) -> None:
    """Fill the missing cells of a table."""
    outputs = _outputs(files.output, multiple)
    long = multiple is not None and "{i}" not in files.output.name
    check_paths(files, source, outputs)
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ())
        check_format(table.incomplete(files.output), files.output)
        if long:
            _check_keys(files.table, table.table.column_names)
        imputer, table = fitted_imputer(table, source, terminal, draws=multiple is not None)
    with saving_model(imputer, files, source, terminal):
        with (
            remedies_as_options(text_file=is_text_file(files.table)),
            terminal.working("Imputing"),
        ):
            if multiple is None:
                filled = [imputer.transform(table.modelled)]
            else:
                made = imputer.impute_multiple(
                    table.modelled, multiple, random_state=source.run.seed
                )
                filled = list(made.tables)
        with terminal.working("Writing"):
            completed = table.completed(filled, files.output, computed=imputer.schema_.formulas)
            if long:
                completed = [stack_tables([table.incomplete(files.output), *completed])]
            pairs = zip(completed, outputs, strict=True)
            written = [_write(one, path, files) for one, path in pairs]
        last = "" if len(written) == 1 else f" to {written[-1].name}"
        terminal.say(f"wrote {written[0]}{last}")
        check_written(outputs, written)
    if source.files.model is None:
        list_columns(imputer, terminal)
        list_mechanisms(imputer, terminal)
    n_missing, n_left = _n_missing(table.modelled), _n_missing(filled[0])
    if n_missing == 0:
        warn_of_codes(table.modelled)
    times = "" if multiple is None else f" {multiple} times"
    terminal.say(f"{_rows(files, table)}, {n_missing:,} missing cells{_not_modelled(table)}")
    terminal.say(f"filled {n_missing - n_left:,} of them{times}{_validation_error(imputer)}")


def fit(files: Files, source: ModelSource, terminal: Terminal) -> None:
    """Fit a model to a table and write it to a file."""
    check_model_output(files.output, force=files.force, inputs=[files.table])
    check_input(files.table)
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ())
        imputer, table = fitted_imputer(table, source, terminal)
    _save_model(imputer, files.output, files, terminal)
    list_columns(imputer, terminal)
    list_mechanisms(imputer, terminal)
    terminal.say(f"{_rows(files, table)}{_not_modelled(table)}{_validation_error(imputer)}")


def sets(files: Files, source: ModelSource, terminal: Terminal) -> None:
    """Write the pattern set of each row."""
    model = source.files.model
    if model is None:
        method = source.options.chosen_method
        check_has_sets(method, where=f"--method {method}")
    check_paths(files, source, [files.output])
    with remedies_as_options(text_file=is_text_file(files.table)):
        table = read_input(files, source.run.ignore or ())
        imputer, table = fitted_imputer(table, source, terminal)
        method = method_of(imputer)
        check_has_sets(method, where=f"{model}, a model of {method},")
    with saving_model(imputer, files, source, terminal):
        with (
            remedies_as_options(text_file=is_text_file(files.table)),
            terminal.working("Assigning sets"),
        ):
            assigned = imputer.predict_set(table.modelled)
            proba = imputer.predict_set_proba(table.modelled)
        written = _write(sets_table(assigned, proba), files.output, files)
        terminal.say(f"wrote {written}")
        check_written([files.output], [written])
    counts = np.bincount(assigned, minlength=proba.shape[1])
    sizes = ", ".join(f"set {r}: {count:,}" for r, count in enumerate(counts))
    terminal.say(f"{_rows(files, table)} ({sizes}){_not_modelled(table)}")
    if len(counts) > 1:
        described = imputer.describe_sets(backend="pyarrow").to_pylist()
        for one in described:
            missing = f"; missing: {one['missing']}" if one["missing"] else ""
            terminal.say(f"  set {one['set']}: {one['mechanism']}{missing}")
    if len(counts) == 1 and imputer.get_params(deep=False)["n_sets"] == "auto":
        terminal.say(
            "one set: the masks give no evidence of more, or there is no mask model; "
            "--sets N fits N sets"
        )


def fitted_imputer(
    table: InputTable, source: ModelSource, terminal: Terminal, *, draws: bool = False
) -> tuple[Any, InputTable]:
    """Return the imputer of a command, and the table with the columns that it ignores.

    Unless the command ``draws`` or saves the model, what only proper draws need is not fitted.
    """
    path = source.files.model
    if path is not None:
        loaded = _load(path, source.run)
        return loaded, ignored_by_model(loaded, path, table)
    proper = draws or source.files.save_model is not None
    return _fit(table, source, terminal, proper=proper), table


@contextmanager
def saving_model(
    imputer: Imputer, files: Files, source: ModelSource, terminal: Terminal
) -> Iterator[None]:
    """Write the model of --save-model when the block has ended, also after an error.

    What the block writes is not lost if the model cannot be written, nor the reverse.
    """
    path = source.files.save_model
    try:
        yield
    except Exception:
        if path is not None:
            # the first error is the one to report
            try:
                _save_model(imputer, path, files, terminal)
            except Exception as second:  # noqa: BLE001
                terminal.line(f"warning: {path} was not written: {second}")
        raise
    if path is not None:
        _save_model(imputer, path, files, terminal)


def _save_model(imputer: Imputer, path: Path, files: Files, terminal: Terminal) -> None:
    written = write_somewhere(partial(save_model, imputer, replace=files.force), path)
    terminal.say(f"wrote {written}")
    check_written([path], [written])


def _write(table: Any, path: Path, files: Files) -> Path:
    """Write a table and return its path; see `write_somewhere`."""
    inputs = [files.table]
    return write_somewhere(partial(write_table, table, force=files.force, inputs=inputs), path)


def _load(path: Path, run: RunOptions) -> Imputer:
    from psmvae.imputers import load

    imputer: Imputer = load(path, device=run.device)
    method = method_of(imputer)
    check_options(method, run.given(), where=f"{path}, a model of {method}")
    imputer.set_params(**run.parameters())
    return imputer


def _fit(
    table: InputTable, source: ModelSource, terminal: Terminal, *, proper: bool = True
) -> Imputer:
    names = table.modelled.column_names
    return fit_imputer(table.modelled, names, table.ignored, source, terminal, proper=proper)


def fit_imputer(
    rows: Any,
    names: Sequence[str],
    ignored: Sequence[str],
    source: ModelSource,
    terminal: Terminal,
    *,
    proper: bool = True,
    fit: Callable[..., object] | None = None,
    **options: Any,
) -> Imputer:
    """Fit the imputer of a command to a table or a source with these columns.

    ``fit(rows, imputer, **options)`` replaces the imputer's own method.
    """
    source.options.check_columns(names)
    imputer = source.options.imputer(source.run)
    method = source.options.chosen_method
    if not proper and has_parameter(method, "numeric_draws"):
        imputer.set_params(draws="model")
    if fit is not None:
        with terminal.working("Fitting"):
            fit(rows, imputer, **options)
    elif has_parameter(method, "max_epochs"):
        with terminal.training() as callback:
            imputer.fit(rows, callback=callback, **options)
    else:
        with terminal.working("Fitting"):
            imputer.fit(rows, **options)
    if ignored:
        # stored in the model file: tables that are imputed later may have these columns too
        imputer.ignored_columns_ = list(ignored)
    return imputer


def _outputs(output: Path, multiple: int | None) -> list[Path]:
    """One path, or one per imputation if the file name contains {i}."""
    braces = re.findall(r"\{[^{}]*\}", output.name)
    others = [place for place in braces if place != "{i}"]
    if multiple is not None and others:
        raise UsageError(f"{output}: the number of an imputation is written {{i}}, not {others[0]}")
    if "{i}" not in braces:
        return [output]
    if multiple is None:
        raise UsageError(f"{output}: {{i}} is the number of an imputation and needs --multiple")
    return [output.with_name(output.name.replace("{i}", str(i))) for i in range(1, multiple + 1)]


def _check_keys(path: Path, names: Iterable[str]) -> None:
    """Refuse a table with the columns that a long file adds."""
    for name in (IMPUTATION, ROW):
        if name in names:
            raise UsageError(
                f"{path} has a column named {name!r}, which --multiple would add; rename it, or "
                "write one file per imputation with {i} in the output's name"
            )


def check_paths(
    files: Files, source: ModelSource, tables: Iterable[Path], *, others: Iterable[Path] = ()
) -> None:
    """Refuse inputs that do not exist, and outputs that cannot or must not be written."""
    model, save = source.files.model, source.files.save_model
    inputs = [files.table] if model is None else [files.table, model]
    for path in tables:
        check_table_output(path, force=files.force, inputs=inputs)
    for path in others:
        check_file_output(path, force=files.force, inputs=inputs)
    if save is not None:
        check_model_output(save, force=files.force, inputs=inputs)
    for path in inputs:
        check_input(path)


def warn_of_codes(table: Any) -> None:
    """Warn of text columns that may hold codes for missing cells, in a table without any."""
    frame = open_table(table)
    found: dict[str, dict[str, int]] = {}
    for position, name in enumerate(frame.names):
        kind = table.schema.field(position).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found[name] = missing_value_codes(frame.cells(position))
    found = {name: codes for name, codes in found.items() if codes}
    if found:
        listed = "; ".join(f"column {name!r} has {counted(codes)}" for name, codes in found.items())
        codes = list(dict.fromkeys(code for codes in found.values() for code in codes))[:N_SHOWN]
        message = f"no cell is missing, but {listed}: {option('--na', codes)} marks them as missing"
        warnings.warn(message, UserWarning, stacklevel=2)


def _n_missing(table: Any) -> int:
    missing = (pc.sum(pc.is_null(column, nan_is_null=True)).as_py() for column in table.columns)
    return sum(count or 0 for count in missing)


def _rows(files: Files, table: InputTable) -> str:
    return f"{files.table}: {table.table.num_rows:,} rows"


def _not_modelled(table: InputTable) -> str:
    return f", not modelled: {', '.join(table.ignored)}" if table.ignored else ""


def _validation_error(imputer: Imputer) -> str:
    error = getattr(imputer, "best_validation_error_", None)
    return "" if error is None else f", validation error {error:.4f} standard deviations"
