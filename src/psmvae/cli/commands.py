"""What the commands that read a table do.

The order is the same in each: check every path, read the table, check the options against its
columns, and only then spend time. Outputs appear whole or not at all.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from psmvae.cli.methods import (
    check_has_sets,
    check_options,
    has_parameter,
    method_of,
    set_for_draws,
)
from psmvae.cli.passthrough import Parted, aside_for, read
from psmvae.cli.paths import check_input, check_model_output, check_table_output
from psmvae.cli.terminal import UsageError
from psmvae.demo.files import sets_table
from psmvae.table.column_checks import codes_for_missing, counted
from psmvae.table.frames import open_table
from psmvae.table.io import atomic_path, write_table
from psmvae.table.paths import SEPARATORS
from psmvae.table.words import command_line_words, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from psmvae.cli.options import Files, RunOptions
    from psmvae.cli.source import ModelSource
    from psmvae.cli.terminal import Terminal
    from psmvae.imputers.base import Imputer

P = ParamSpec("P")

# The column that numbers the imputations of a long file, named as in R's mice::complete.
IMPUTATION = "imputation"


def _in_own_words(
    command: Callable[Concatenate[Files, P], None],
) -> Callable[Concatenate[Files, P], None]:
    """Have what goes wrong in a command name its options."""

    def run(files: Files, /, *args: P.args, **kwargs: P.kwargs) -> None:
        text_file = files.table.name.lower().endswith(tuple(SEPARATORS))
        with command_line_words(text_file=text_file):
            command(files, *args, **kwargs)

    return run


@_in_own_words
def impute(
    files: Files, source: ModelSource, terminal: Terminal, *, multiple: int | None = None
) -> None:
    """Fill the missing cells of a table."""
    outputs = _outputs(files.output, multiple)
    _check_paths(files, source, outputs)
    whole = read(files, source.run.ignore)
    long = multiple is not None and len(outputs) == 1
    if long and IMPUTATION in whole.column_names:
        message = (
            f"{files.table} has a column named {IMPUTATION!r}, which --multiple would add; "
            "rename it, or write one file each with {i} in the output's name"
        )
        raise UsageError(message)

    imputer, parted = _fitted(whole, source, terminal, draws=multiple is not None)
    table = parted.table
    with terminal.working("Imputing"):
        if multiple is None:
            filled = [imputer.transform(table)]
        else:
            filled = imputer.sample(table, n=multiple, random_state=source.run.seed)
    n_before, n_after = _n_missing(table), _n_missing(filled[0])

    with terminal.working("Writing"):
        filled = parted.in_text_of(files, [parted.completed(one) for one in filled])
        if long:
            filled = [pa.concat_tables(_numbered(one, i) for i, one in enumerate(filled, start=1))]
        for one, path in zip(filled, outputs, strict=True):
            write_table(one, path, force=files.force, inputs=[files.table])

    if n_before == 0:
        _warn_of_codes(table)
    times = "" if multiple is None else f" {multiple} times"
    rows = f"{files.table}: {table.num_rows:,} rows"
    terminal.say(f"{rows}, {n_before:,} missing cells{_set_aside(parted)}")
    terminal.say(f"filled {n_before - n_after:,} of them{times}{_held_out(imputer)}")
    terminal.say(f"wrote {_listed(outputs)}")


@_in_own_words
def fit(files: Files, source: ModelSource, terminal: Terminal) -> None:
    """Fit a model to a table and save it."""
    check_model_output(files.output, force=files.force, inputs=[files.table])
    check_input(files.table)
    whole = read(files, source.run.ignore)
    imputer, parted = _fitted(whole, source, terminal)
    _save(imputer, files.output)
    terminal.say(f"{files.table}: {whole.num_rows:,} rows{_set_aside(parted)}{_held_out(imputer)}")
    terminal.say(f"wrote {files.output}")


@_in_own_words
def sets(files: Files, source: ModelSource, terminal: Terminal) -> None:
    """Write the pattern set of each row."""
    if source.files.model is None:
        method = source.options.chosen()
        check_has_sets(method, where=f"--method {method}")
    _check_paths(files, source, [files.output])
    imputer, parted = _fitted(read(files, source.run.ignore), source, terminal)
    table, method = parted.table, method_of(imputer)
    check_has_sets(method, where=f"{source.files.model}, a model of {method},")
    with terminal.working("Assigning sets"):
        chosen, proba = imputer.predict_set(table), imputer.predict_set_proba(table)
    result = sets_table(chosen, proba)
    write_table(result, files.output, force=files.force, inputs=[files.table])
    counts = np.bincount(chosen, minlength=proba.shape[1])
    sizes = ", ".join(f"set {r}: {count:,}" for r, count in enumerate(counts))
    terminal.say(f"{files.table}: {table.num_rows:,} rows ({sizes}){_set_aside(parted)}")
    if len(counts) == 1 and getattr(imputer, "n_sets", None) == "auto":
        terminal.say("one set: the masks bear out no more, or are ignored; --sets N fits N")
    terminal.say(f"wrote {files.output}")


def _outputs(output: Path, multiple: int | None) -> list[Path]:
    """One path, or one an imputation where the name has a place for its number."""
    braces = re.findall(r"\{[^{}]*\}", output.name)
    others = [place for place in braces if place != "{i}"]
    if multiple is not None and others:
        message = f"{output}: {{i}} stands for the number of an imputation, not {others[0]}"
        raise UsageError(message)
    if "{i}" not in braces:
        return [output]
    if multiple is None:
        message = f"{output}: {{i}} stands for the number of an imputation and needs --multiple"
        raise UsageError(message)
    return [output.with_name(output.name.replace("{i}", str(i))) for i in range(1, multiple + 1)]


def _check_paths(files: Files, source: ModelSource, outputs: Iterable[Path]) -> None:
    model, save = source.files.model, source.files.save_model
    inputs = [files.table] if model is None else [files.table, model]
    for path in outputs:
        check_table_output(path, force=files.force, inputs=inputs)
    if save is not None:
        check_model_output(save, force=files.force, inputs=inputs)
    for path in inputs:
        check_input(path)


def _fitted(
    whole: Any, source: ModelSource, terminal: Terminal, *, draws: bool = False
) -> tuple[Any, Parted]:
    """The imputer from the model file, or fitted to the table (and saved if asked)."""
    ignore, path = source.run.ignore or [], source.files.model
    if path is not None:
        loaded = _loaded(path, source.run)
        return loaded, Parted(whole, aside_for(loaded, path, whole.column_names, ignore))
    parted = Parted(whole, tuple(dict.fromkeys(ignore)))
    table = parted.table
    source.options.check_columns(table.column_names)
    imputer = source.options.imputer(source.run)
    if draws:
        set_for_draws(imputer)
    if has_parameter(source.options.chosen(), "max_epochs"):
        with terminal.training() as callback:
            imputer.fit(table, callback=callback)
    else:
        with terminal.working("Fitting"):
            imputer.fit(table)
    if ignore:
        # a file remembers them: new rows may have these columns too
        imputer.ignored_columns_ = ignore
    if source.files.save_model is not None:
        _save(imputer, source.files.save_model)
        terminal.say(f"wrote {source.files.save_model}")
    return imputer, parted


def _loaded(path: Path, run: RunOptions) -> Imputer:
    from psmvae.imputers import load

    imputer: Imputer = load(path, device=run.device)
    method = method_of(imputer)
    check_options(method, run.given(), where=f"{path}, a model of {method}")
    imputer.set_params(**run.parameters())
    return imputer


def _save(imputer: Imputer, path: Path) -> None:
    with atomic_path(path) as temporary:
        imputer.save(temporary)


def _warn_of_codes(table: Any) -> None:
    """Say which columns of text may hold codes for missing, where nothing is missing."""
    frame = open_table(table)
    found: dict[str, dict[str, int]] = {}
    for position, name in enumerate(frame.names):
        kind = table.schema.field(position).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found[name] = codes_for_missing(frame.cells(position))
    found = {name: codes for name, codes in found.items() if codes}
    if found:
        told = "; ".join(f"column {name!r} holds {counted(codes)}" for name, codes in found.items())
        codes = list(dict.fromkeys(code for codes in found.values() for code in codes))[:3]
        message = f"no cell is missing, but {told}: {option('--na', codes)} would read that so"
        warnings.warn(message, UserWarning, stacklevel=2)


def _numbered(table: Any, i: int) -> Any:
    return table.add_column(0, IMPUTATION, pa.array(np.full(table.num_rows, i)))


def _n_missing(table: Any) -> int:
    missing = (pc.sum(pc.is_null(column, nan_is_null=True)).as_py() for column in table.columns)
    return sum(count or 0 for count in missing)


def _set_aside(parted: Parted) -> str:
    return f", set aside: {', '.join(parted.aside)}" if parted.aside else ""


def _held_out(imputer: Imputer) -> str:
    error = getattr(imputer, "best_validation_error_", None)
    return "" if error is None else f", held-out error {error:.4f} standard deviations"


def _listed(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} to {paths[-1].name}"
