"""The fitted imputer of a command: read from a model file, or fitted to the input table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psmvae.cli.methods import check_options, has_parameter, method_of, set_for_draws
from psmvae.cli.reading import ignored_by_model
from psmvae.table.paths import atomic_path

if TYPE_CHECKING:
    from pathlib import Path

    from psmvae.cli.options import ModelSource, RunOptions
    from psmvae.cli.reading import InputTable
    from psmvae.cli.terminal import Terminal
    from psmvae.imputers.base import Imputer


def fitted_imputer(
    table: InputTable, source: ModelSource, terminal: Terminal, *, for_draws: bool = False
) -> tuple[Any, InputTable]:
    """Return the imputer of a command, and the table with the columns that it ignores."""
    path = source.files.model
    if path is not None:
        loaded = _load(path, source.run)
        return loaded, ignored_by_model(loaded, path, table)
    imputer = _fit(table, source, terminal, for_draws=for_draws)
    if source.files.save_model is not None:
        save_model(imputer, source.files.save_model)
        terminal.say(f"wrote {source.files.save_model}")
    return imputer, table


def save_model(imputer: Imputer, path: Path) -> None:
    """Write a fitted imputer; an interrupted write leaves no file."""
    with atomic_path(path) as temporary:
        imputer.save(temporary)


def _load(path: Path, run: RunOptions) -> Imputer:
    from psmvae.imputers import load

    imputer: Imputer = load(path, device=run.device)
    method = method_of(imputer)
    check_options(method, run.given(), where=f"{path}, a model of {method}")
    imputer.set_params(**run.parameters())
    return imputer


def _fit(table: InputTable, source: ModelSource, terminal: Terminal, *, for_draws: bool) -> Imputer:
    options, modelled = source.options, table.modelled
    options.check_columns(modelled.column_names)
    imputer = options.imputer(source.run)
    if for_draws:
        set_for_draws(imputer)
    if has_parameter(options.chosen_method, "max_epochs"):
        with terminal.training() as callback:
            imputer.fit(modelled, callback=callback)
    else:
        with terminal.working("Fitting"):
            imputer.fit(modelled)
    if table.ignored:
        # stored in the model file: tables that are imputed later may have these columns too
        imputer.ignored_columns_ = list(table.ignored)
    return imputer
