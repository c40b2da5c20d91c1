"""Imputation of files to files: one part after another, and only those that are not done."""

# ruff: noqa: SLF001 (reads the block size of imputers)

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.loading import load
from psmvae.multiple.long_format import IMPUTATION, ROW
from psmvae.sources.files import Content, FileTable
from psmvae.sources.places import AnyPath, Place, filesystem_of, find_files
from psmvae.streaming.manifest import Manifest, identity_of, size_of
from psmvae.streaming.part import Job, PartResult, impute_part
from psmvae.table.errors import OutputExistsError, TableError
from psmvae.table.wording import repeated

Outcome = PartResult | Exception
# The type of a file system, and the path of a file in it.
Location = tuple[str, str]
# Imputes jobs in any order, and yields their numbers and outcomes as they end.
Engine = Callable[[Imputer, Sequence[Job]], Iterator[tuple[int, Outcome]]]


@dataclass(frozen=True)
class PartDone:
    """A part that was imputed now or before, or was skipped; for progress.

    Parameters
    ----------
    name : str
        Name of its output file.
    outcome : PartResult, Exception or None
        What was imputed, why it was skipped, or None if an earlier run had finished it.
    n_done, n_parts : int
        Number of parts that are done, and of all parts.
    """

    name: str
    outcome: Outcome | None
    n_done: int
    n_parts: int


@dataclass(frozen=True)
class RunResult:
    """What a run did.

    Parameters
    ----------
    n_rows : int
        Rows of the table.
    n_missing : int
        Missing cells of the rows that were imputed.
    n_kept : int
        Parts that an earlier run had finished.
    skipped : dict of str to str
        Errors of the parts that were left out.
    """

    n_rows: int
    n_missing: int
    n_kept: int
    skipped: dict[str, str]


def impute_files(
    model: str | os.PathLike[str],
    paths: AnyPath | Sequence[AnyPath],
    output: str | os.PathLike[str],
    *,
    multiple: int | None = None,
    random_state: int | None = None,
    rows_per_file: int | None = None,
    ignore: Sequence[str] = (),
    na: Sequence[str] = (),
    parameters: dict[str, Any] | None = None,
    device: str = "auto",
    on_error: Literal["stop", "skip"] = "stop",
    force: bool = False,
    engine: Engine | None = None,
    block_rows: int | None = None,
    progress: Callable[[PartDone], None] | None = None,
) -> RunResult:
    """Impute a table in files to a folder of files.

    The values are those of the table in memory. A run that was ended in any way goes on where it
    was: a manifest in the folder says which files are done.

    Parameters
    ----------
    model : path
        A model file.
    paths : path or sequence of paths
        Files, folders, patterns and URIs: the parts of one table, in the order of their paths.
    output : path
        The output folder, which is made if needed. It has one file for each input file. With
        ``multiple`` this is a long table with the columns ``.imp`` and ``.id``, or one file for
        each imputation if the path contains ``{i}``.
    multiple : int, optional
        Number of imputations. By default cells are imputed by their expected values.
    random_state : int, optional
        Seed of the draws. None gives the draws of ``imputer.sample``.
    rows_per_file : int, optional
        Rows of an output file, instead of one file for each input file.
    ignore : sequence of str
        Columns that are written as they are, beside those that the model ignores.
    na : sequence of str
        Codes of missing cells; see `psmvae.table.read_table`.
    parameters : dict, optional
        Parameters of the imputer to set, such as ``n_draws``.
    device : str, default="auto"
        Device of the model.
    on_error : {"stop", "skip"}, default="stop"
        Whether an input that cannot be read or imputed ends the run or is left out.
    force : bool, default=False
        Whether to start again in a folder with the results of another run. Its files are replaced,
        or deleted where this run does not write them.
    engine : callable, optional
        Imputes jobs by other processes: a function of the imputer and a list of jobs that yields
        the number of each job and its `PartResult` or exception as it ends. By default jobs are
        imputed one by one in this process.
    block_rows : int, optional
        Rows that the engine imputes together, on which values depend. By default those of `device`.
    progress : callable, optional
        Called with a `PartDone` when a part is done.

    Returns
    -------
    RunResult
        Numbers of rows and cells, and what was skipped.

    Raises
    ------
    TableError
        If an input cannot be read or imputed, which the message names, or if the folder has the
        results of another run. Parts that are done stay valid.
    ValueError
        If a parameter has a value that is not allowed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd, psmvae
    >>> from psmvae.streaming import impute_files
    >>> frame = pd.DataFrame({"a": [1.5, np.nan, 2.5], "b": [0.5, 1.0, np.nan]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(2):
    ...         frame.to_parquet(f"{folder}/{k}.parquet")
    ...     psmvae.MeanImputer().fit(frame).save(f"{folder}/model.safetensors")
    ...     inputs = f"{folder}/*.parquet"
    ...     result = impute_files(f"{folder}/model.safetensors", inputs, f"{folder}/filled")
    ...     pd.read_parquet(f"{folder}/filled/1.parquet")["a"].tolist()
    [1.5, 2.0, 2.5]
    >>> result.n_missing
    4
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"on_error must be 'stop' or 'skip', got {on_error!r}.")
    if not os.fspath(output):
        raise ValueError("output must be the path of a folder, got ''; '.' is the current folder.")
    multiple = _whole_number("multiple", multiple, low=1)
    rows_per_file = _whole_number("rows_per_file", rows_per_file, low=1)
    block_rows = _whole_number("block_rows", block_rows, low=1)
    random_state = _whole_number("random_state", random_state, low=0, high=2**32 - 1)
    imputer: Imputer = load(model, device=device).set_params(**(parameters or {}))
    failed: list[str] | None = [] if on_error == "skip" else None
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    table = _open(imputer, listed, ignore, na, failed)
    ignored = tuple(name for name in table.schema.names if name not in imputer.schema_.names)
    if multiple is not None:
        _check_keys(table, str(output))
    job = Job(table, 0, 0, (), multiple, random_state, ignored, lenient=on_error == "skip")
    plan = list(_plan(job, os.fspath(output), rows_per_file))
    settings = {
        "multiple": multiple,
        "seed": random_state,
        "rows_per_file": rows_per_file,
        "ignore": list(ignored),
        "na": list(table.na),
        "parameters": parameters or {},
        "block_rows": block_rows or imputer._block_rows(),
        "output": PurePosixPath(os.fspath(output)).name,
    }
    folder = _root(os.fspath(output))
    identity = identity_of(model, table, settings)
    begin = Manifest.restart if force else Manifest.resume
    manifest = begin(folder, identity)
    todo = {name: one for name, one in plan if not manifest.is_done(name, one.outputs)}
    # also those that are left out
    inputs = {_location(place) for place in find_files(listed)}
    _check_outputs(inputs, plan, todo, manifest, force=force)
    _delete_replaced(inputs, plan, manifest)
    manifest.write()
    for error in failed or ():
        manifest.skip(error.partition(": ")[0], error)
    return _run(imputer, manifest, plan, todo, engine or one_by_one, on_error, progress)


def one_by_one(imputer: Imputer, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
    """Impute jobs in this process, in their order; errors of a table are outcomes."""
    for number, job in enumerate(jobs):
        try:
            yield number, impute_part(imputer, job)
        except TableError as error:
            yield number, error


def _run(
    imputer: Imputer,
    manifest: Manifest,
    plan: Sequence[tuple[str, Job]],
    todo: dict[str, Job],
    engine: Engine,
    on_error: str,
    progress: Callable[[PartDone], None] | None,
) -> RunResult:
    """Impute the parts that are not done, and record each in the manifest."""
    names, n_missing = list(todo), 0
    kept = [name for name, _ in plan if name not in todo]
    n_done = 0

    def report_done(name: str, outcome: Outcome | None) -> None:
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(PartDone(name, outcome, n_done, len(plan)))

    for name in kept:
        n_missing += manifest.outputs[name]["missing"]
        report_done(name, None)
    try:
        for number, outcome in engine(imputer, list(todo.values())):
            name = names[number]
            if isinstance(outcome, Exception):
                # only errors of the table are skipped, and not those of a full disk
                if on_error == "stop" or not isinstance(outcome, TableError):
                    raise outcome
                manifest.delete(_files(todo[name], manifest.folder))
                manifest.skip(name, str(outcome))
            else:
                n_missing += outcome.n_missing
                manifest.finish(name, _record(todo[name], outcome, manifest.folder))
            report_done(name, outcome)
    except BaseException:
        # the first error is the one to report, also where the disk is full
        with suppress(OSError):
            manifest.flush()
        raise
    manifest.flush()
    n_rows = plan[-1][1].stop if plan else 0
    return RunResult(n_rows, n_missing, len(kept), dict(manifest.skipped))


def _record(job: Job, result: PartResult, folder: str) -> dict[str, Any]:
    return {
        "files": _files(job, folder),
        "start": job.start,
        "stop": job.stop,
        "sizes": [size_of(path) for path in job.outputs],
        "missing": result.n_missing,
        "drift": [one.record() for one in result.drift],
        "warnings": list(result.warnings),
    }


def _files(job: Job, folder: str) -> list[str]:
    """Return the paths of the files of a part in the folder of the manifest."""
    # slashes also in URIs and on Windows
    return [posixpath.relpath(path, folder) for path in job.outputs]


def _delete_replaced(
    inputs: set[Location], plan: Sequence[tuple[str, Job]], manifest: Manifest
) -> None:
    """Delete the files of an earlier run that this one does not write and does not read."""
    if not manifest.replaced:
        return
    written = {file for _, job in plan for file in _files(job, manifest.folder)}
    filesystem, inner = filesystem_of(manifest.folder)
    unwanted = [
        file
        for file in manifest.replaced - written
        if _location(Place(f"{inner.rstrip('/')}/{file}", filesystem)) not in inputs
    ]
    manifest.delete(unwanted)
    # what is left of them is an input now
    manifest.replaced &= written


def _location(place: Place) -> Location:
    """Return what two paths of the same file have in common."""
    if place.filesystem is None:
        return "", os.path.realpath(place.path)
    return place.filesystem.type_name, place.absolute()


def _plan(job: Job, output: str, rows_per_file: int | None) -> Iterator[tuple[str, Job]]:
    """Return the parts by the names of their files."""
    from dataclasses import replace

    table = job.table
    if rows_per_file is None:
        names = _names([part.place for part in table.parts])
        ranges: Iterable[tuple[str, int, int]] = (
            (name, part.start, part.stop)
            for name, part in zip(names, table.parts, strict=True)
            if part.stop > part.start
        )
    else:
        name = table.parts[0].place.name
        ending = name[name.index(".") :] if "." in name else ""
        starts = range(0, table.n_rows, rows_per_file)
        width = max(5, len(str(len(starts))))
        ranges = (
            (f"part-{k:0{width}}{ending}", start, min(start + rows_per_file, table.n_rows))
            for k, start in enumerate(starts)
        )
    folders = [output]
    if "{i}" in output:
        if job.multiple is None:
            raise TableError(f"{output}: {{i}} is the number of an imputation and needs multiple")
        folders = [output.replace("{i}", str(k)) for k in range(1, job.multiple + 1)]
    for name, start, stop in ranges:
        outputs = tuple(f"{folder.rstrip('/')}/{name}" for folder in folders)
        yield name, replace(job, start=start, stop=stop, outputs=outputs)


def _names(places: Sequence[Place]) -> list[str]:
    """Return the paths of files in the folder that contains all of them, one for each file."""
    paths = [place.absolute() for place in places]
    try:
        shared = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120
    except ValueError as error:
        # drives of Windows
        raise TableError(
            f"{places[0]}: no folder contains this and the other files; impute them separately, or "
            "choose rows_per_file"
        ) from error
    names = [Path(os.path.relpath(path, shared)).as_posix() for path in paths]
    if twice := repeated(names):
        both = [str(place) for place, name in zip(places, names, strict=True) if name == twice[0]]
        raise TableError(
            f"{both[0]}: the output file {twice[0]} would also be that of {both[1]}; "
            "impute them to different folders"
        )
    return names


def _root(output: str) -> str:
    """Return the folder of the manifest: the part of the path before that with ``{i}``."""
    if "{i}" not in output:
        return output
    before = output.partition("{i}")[0]
    return before.rpartition("/")[0] or "."


def _open(
    imputer: Imputer,
    paths: Sequence[AnyPath],
    ignore: Sequence[str],
    na: Sequence[str],
    failed: list[str] | None,
) -> FileTable:
    """Open the files, each of which must have the columns of the model."""
    fitted = imputer.schema_
    if clash := [name for name in ignore if name in fitted.names]:
        raise TableError(f"{clash[0]!r} cannot be ignored: the model was fitted on it")
    contents: dict[str, Content] = {
        column.name: "strings" if isinstance(next(iter(column.levels), 0), str) else "numbers"
        for column in fitted.modelled
    }
    allowed = {*ignore, *getattr(imputer, "ignored_columns_", [])}
    return FileTable.open(
        paths, na=na, needed=fitted.names, allowed=allowed, contents=contents, skipped=failed
    )


def _whole_number(
    name: str, value: Any, *, low: int, high: int = checks.MAX_WHOLE_NUMBER
) -> int | None:
    """Return a whole number as Python's own, which can be written to the manifest."""
    return None if value is None else checks.whole_number(name, value, low=low, high=high)


def _check_keys(table: FileTable, output: str) -> None:
    for name in (IMPUTATION, ROW):
        if name in table.schema.names and "{i}" not in output:
            raise TableError(
                f"{table.parts[0].place}: it has a column named {name!r}, which multiple would "
                "add; rename it, or write one folder per imputation with {i} in its name"
            )


def _check_outputs(
    inputs: set[Location],
    plan: Sequence[tuple[str, Job]],
    todo: dict[str, Job],
    manifest: Manifest,
    *,
    force: bool,
) -> None:
    """Raise if an output file is an input, or a file that no run has written."""
    for name, job in plan:
        for path in job.outputs:
            # a URI of another file system would be looked up for each file
            if "://" in path and not path.startswith("file://"):
                continue
            target = Place(filesystem_of(path)[1])
            if _location(target) in inputs:
                raise TableError(f"{path}: the output is an input file; choose another folder")
            is_new = name in todo and name not in manifest.outputs and not manifest.is_resumed
            if is_new and not force and Path(target.path).exists():
                raise OutputExistsError(path)
