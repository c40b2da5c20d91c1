"""``psmvae fit`` and ``psmvae impute`` of a table in several files, which need not fit into memory.

Files are imputed one after another to an output folder. A run that was ended goes on where it was.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psmvae.cli.columns import list_columns, list_mechanisms
from psmvae.cli.commands import fit_imputer
from psmvae.cli.files import check_input, check_model_output, check_written, write_somewhere
from psmvae.cli.messages import remedies_as_options, reworded
from psmvae.cli.methods import check_options, has_parameter, method_of
from psmvae.cli.options import check_known
from psmvae.cli.terminal import UsageError
from psmvae.imputers.base import SAMPLE_ROWS
from psmvae.imputers.model_file import save as save_model
from psmvae.sources import Source
from psmvae.streaming import FileTable, ManifestError, PartDone, PartError, PartResult, impute_files
from psmvae.table.errors import OutputExistsError, Reported, TableError
from psmvae.table.paths import SEPARATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psmvae.cli.options import EngineOptions, ModelSource, PartOptions, TableFiles
    from psmvae.cli.terminal import Terminal


def fit_parts(
    files: TableFiles,
    source: ModelSource,
    engine: EngineOptions,
    terminal: Terminal,
    *,
    sample_rows: int | None,
) -> None:
    """Fit a model to a sample of the rows of files and write it to a file."""
    method = source.options.chosen_method
    if engine.given and not has_parameter(method, "max_epochs"):
        raise UsageError(f"--engine ray trains networks, and {method} has none")
    output, ignore = Path(files.output), source.run.ignore or ()
    local = [Path(path) for path in files.tables if Path(path).is_file()]
    check_model_output(output, force=files.force, inputs=local)
    is_text = _is_text(files)
    with remedies_as_options(text_file=is_text):
        with terminal.working("Reading"):
            table = FileTable.open(files.tables, na=files.na or ())
        check_known("--ignore", ignore, table.schema.names)
        modelled = [name for name in table.schema.names if name not in ignore]
        if not modelled:
            raise UsageError("--ignore: no column is left to model")
        rows = Source(partial(_frames, table, modelled))
        options: dict[str, Any] = {"sample_rows": sample_rows or SAMPLE_ROWS}
        if engine.given:
            from psmvae.cli.cluster import fit_on_cluster

            options["fit"] = partial(fit_on_cluster, engine, source.run.device)
        imputer = fit_imputer(rows, modelled, list(ignore), source, terminal, **options)
    written = write_somewhere(partial(save_model, imputer, replace=files.force), output)
    terminal.say(f"wrote {written}")
    check_written([output], [written])
    list_columns(imputer, terminal)
    list_mechanisms(imputer, terminal)
    n_files = len(table.parts)
    terminal.say(
        f"{n_files:,} file{'' if n_files == 1 else 's'}: {table.n_rows:,} rows, of which "
        f"{imputer.n_rows_:,} were used"
    )


def impute_parts(
    files: TableFiles,
    source: ModelSource,
    parts: PartOptions,
    engine: EngineOptions,
    terminal: Terminal,
    *,
    multiple: int | None,
) -> None:
    """Fill the missing cells of a table in files."""
    model = source.files.model
    if model is None:
        raise UsageError(
            "several files are imputed with a fitted model: "
            "psmvae fit ... -o model.safetensors first, and -m model.safetensors here"
        )
    check_input(model)
    _check_method(model, source)
    progress = _Progress(terminal)
    settings: dict[str, Any] = {"device": source.run.device}
    try:
        with terminal.working("Imputing"):
            if engine.given:
                from psmvae.cli.cluster import engine_settings

                settings = engine_settings(engine, source.run.device)
            result = impute_files(
                model,
                files.tables,
                files.output,
                multiple=multiple,
                random_state=None if multiple is None else source.run.seed,
                rows_per_file=parts.rows_per_file,
                ignore=source.run.ignore or (),
                na=files.na or (),
                parameters=source.run.parameters(),
                on_error=parts.on_error.value,
                force=files.force,
                progress=progress,
                **settings,
            )
    except PartError as error:
        raise ValueError(_in_options(error, is_text=_is_text(files))) from error
    except OutputExistsError as error:
        raise UsageError(reworded(error, text_file=False)) from error
    except ManifestError as error:
        message = str(error).replace("start again with force", "start again with --force")
        raise UsageError(message) from error
    kept = f", {result.n_kept:,} files were done before" if result.n_kept else ""
    times = "" if multiple is None else f" {multiple} times"
    terminal.say(f"{result.n_rows:,} rows, {result.n_missing:,} missing cells filled{times}{kept}")
    if result.skipped:
        for name, reason in result.skipped.items():
            terminal.line(f"skipped {name}: {reason}")
        n_skipped = len(result.skipped)
        raise TableError(f"{n_skipped:,} file{'' if n_skipped == 1 else 's'} skipped")


class _Progress:
    """Shows each file that is done, with its warnings."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal, self._shown = terminal, set[str]()

    def __call__(self, part: PartDone) -> None:
        number = f"({part.n_done:,} of {part.n_parts:,})"
        if isinstance(part.outcome, PartResult):
            self._terminal.say(f"wrote {part.name}: {part.outcome.n_rows:,} rows {number}")
            for drift in part.outcome.drift:
                text = f"{drift} differs strongly from the training table"
                self._terminal.line(f"warning: {part.name}: {text}")
            for text in part.outcome.warnings:
                # the same for each file
                if text not in self._shown:
                    self._shown.add(text)
                    self._terminal.line(f"warning: {part.name}: {' '.join(text.split())}")


def _check_method(model: Path, source: ModelSource) -> None:
    from psmvae.imputers import load

    method = method_of(load(model, device="cpu"))
    check_options(method, source.run.given(), where=f"{model}, a model of {method}")


def _frames(table: FileTable, names: list[str]) -> Iterator[tuple[Any, str]]:
    for batch in table.batches():
        yield batch.table.select(names), batch.place


def _in_options(error: PartError, *, is_text: bool) -> str:
    cause: Any = error.__cause__
    if isinstance(cause, Reported):
        return f"{error.place}: {reworded(cause, text_file=is_text)}"
    return str(error)


def _is_text(files: TableFiles) -> bool:
    return files.tables[0].lower().endswith(tuple(SEPARATORS))
