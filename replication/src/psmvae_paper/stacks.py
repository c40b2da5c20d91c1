"""Jobs: which cells are trained together, how a job is run, and the records it gives."""

from __future__ import annotations

import dataclasses
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from psmvae import Advanced
from psmvae._version import __version__
from psmvae_paper.measure import Curve, fit, measured, plain, quietly, unfitted
from psmvae_paper.methods import find_method
from psmvae_paper.protocol import make_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from psmvae_paper.cell import Cell
    from psmvae_paper.protocol import Problem

    Record = dict[str, Any]

_EPOCHS = 1000
# Rough cost of a classical method per row and column, in epochs of a deep one.
_CLASSICAL = {"mean": 0.01, "mice": 0.3, "mice-sample": 1.5, "missforest": 20.0}


@dataclass(frozen=True)
class Job:
    """Cells that are run together by one process.

    Parameters
    ----------
    fits : tuple of tuples of Cell
        Trainings, each with the cells that are measured on its fitted imputer.
    wanted : frozenset of str
        Keys of the cells that have no record yet. The others take part in a stacked training, so
        that a run that was killed and resumed gives the same results as an uninterrupted one.
    device : str
        The torch device.
    data_home : str or None
        The folder with the data.
    """

    fits: tuple[tuple[Cell, ...], ...]
    wanted: frozenset[str]
    device: str
    data_home: str | None

    @property
    def cells(self) -> list[Cell]:
        """The cells that get a record."""
        return [cell for cells in self.fits for cell in cells if cell.key in self.wanted]

    @property
    def cost(self) -> float:
        """A rough estimate of the work, comparable between jobs."""
        return sum(_cost(cells[0]) for cells in self.fits)


def make_jobs(
    cells: Iterable[Cell], there: Iterable[str], device: str, data_home: str | None
) -> list[Job]:
    """Group the cells that have no record into jobs, the largest first.

    On a GPU all seeds and mechanisms of a deep method are one job, since they are trained as one
    stack; on a CPU every training is a job.

    Parameters
    ----------
    cells : iterable of Cell
        All cells of the experiment.
    there : iterable of str
        Keys of the cells that have a record.
    device : str
        The device of the deep methods; the others run on the CPU.
    data_home : str or None
        The folder with the data.

    Returns
    -------
    list of Job
        In the order in which they are to be run.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> cells = [Cell("wine", "mcar", 0.2, seed, "psmvae-b") for seed in (0, 1)]
    >>> cells += [Cell("wine", "mcar", 0.2, 0, "psmvae-b-10000")]
    >>> [len(job.fits) for job in make_jobs(cells, (), "cuda", None)]
    [2]
    >>> [len(job.cells) for job in make_jobs(cells, (), "cpu", None)]
    [2, 1]
    """
    done = set(there)
    stacks: dict[Cell, dict[Cell, list[Cell]]] = {}
    for cell in cells:
        training = _training(cell)
        stacked = device != "cpu" and find_method(cell.method).deep and cell.measure != "curve"
        # mechanism and seed differ within a stack
        stack = dataclasses.replace(training, mechanism="any", seed=0) if stacked else training
        stacks.setdefault(stack, {}).setdefault(training, []).append(cell)
    jobs = []
    for fits in stacks.values():
        grouped = tuple(tuple(group) for group in fits.values())
        wanted = frozenset(cell.key for group in grouped for cell in group) - done
        deep = find_method(grouped[0][0].method).deep
        if wanted:
            jobs.append(Job(grouped, wanted, device if deep else "cpu", data_home))
    return sorted(jobs, key=lambda job: -job.cost)


def run_job(job: Job) -> Iterator[Record]:
    """Train and measure; yield a record for each wanted cell, also if it failed.

    Parameters
    ----------
    job : Job
        The cells.

    Yields
    ------
    dict
        See `psmvae_paper.records`.
    """
    ready: list[tuple[tuple[Cell, ...], Problem, Any]] = []
    for cells in job.fits:
        try:
            problem = make_problem(cells[0], job.data_home)
            with quietly():
                imputer = unfitted(cells[0], problem, job.device)
            ready.append((cells, problem, imputer))
        except Exception as error:  # noqa: BLE001 -- any error is recorded
            yield from _failed(job, cells, error)
    _reset_peak(job.device)
    stackable = job.device != "cpu" and job.fits[0][0].measure != "curve" and len(ready) > 1
    try:
        seconds = _fit_stack(ready) if stackable else None
    except Exception as error:  # noqa: BLE001 -- any error is recorded
        for cells, _, _ in ready:
            yield from _failed(job, cells, error)
        return
    for cells, problem, imputer in ready:
        share = None if seconds is None else (seconds / len(ready), len(ready))
        yield from _run_fit(job, cells, problem, imputer, share)


def failure(job: Job, cell: Cell, error: BaseException) -> Record:
    """Return the record of a cell that failed.

    Parameters
    ----------
    job : Job
        The job of the cell.
    cell : Cell
        The cell.
    error : exception
        What was raised.

    Returns
    -------
    dict
        A record with an ``error`` and no metrics.

    Examples
    --------
    >>> from psmvae_paper import Cell
    >>> cell = Cell("wine", "mcar", 0.2, 0, "mean")
    >>> failure(Job(((cell,),), frozenset(), "cpu", None), cell, ValueError("no"))["error"]
    'ValueError: no'
    """
    message = f"{type(error).__name__}: {error}"
    return _record(job, cell, {}, {"fit": None, "impute": None}, None, 1, message)


def _run_fit(
    job: Job,
    cells: Sequence[Cell],
    problem: Problem,
    imputer: Any,
    share: tuple[float, int] | None,
) -> Iterator[Record]:
    """Fit, unless the imputer was fitted in a stack, and measure.

    `share` holds the cell's share of the seconds of a stack, and the size of the stack.
    """
    if share is None and not any(cell.key in job.wanted for cell in cells):
        # cells that have a record take part in stacks only
        return
    follows = cells[0].measure == "curve"
    curves = [Curve(cell, imputer, problem) for cell in cells] if follows else []
    if share is None:
        start = time.perf_counter()
        try:
            with quietly():
                fit(imputer, problem, curves)
        except Exception as error:  # noqa: BLE001 -- any error is recorded
            yield from _failed(job, cells, error)
            return
        taken = time.perf_counter() - start - sum(curve.seconds for curve in curves)
        share = taken, 1
    seconds, stacked = share
    for k, cell in enumerate(cells):
        if cell.key not in job.wanted:
            continue
        try:
            with quietly():
                if follows:
                    found = plain({"steps": curves[k].steps, "rmse": curves[k].rmse})
                    impute = curves[k].seconds
                else:
                    found, impute = measured(cell, imputer, problem)
            took = {"fit": seconds, "impute": impute}
            yield _record(job, cell, found, took, imputer, stacked, None)
        except Exception as error:  # noqa: BLE001 -- any error is recorded
            yield failure(job, cell, error)


def _fit_stack(ready: Sequence[tuple[Any, Problem, Any]]) -> float | None:
    """Train all as one stack and return the seconds; None if they cannot be stacked."""
    from psmvae_paper.stacked_fit import fit_stacked

    start = time.perf_counter()
    try:
        with quietly():
            fit_stacked([imputer for *_, imputer in ready], [p.incomplete for _, p, _ in ready])
    except ValueError:
        return None
    return time.perf_counter() - start


def _failed(job: Job, cells: Iterable[Cell], error: Exception) -> Iterator[Record]:
    for cell in cells:
        if cell.key in job.wanted:
            yield failure(job, cell, error)


def _record(
    job: Job,
    cell: Cell,
    found: dict[str, Any],
    seconds: Mapping[str, float | None],
    imputer: Any,
    stacked: int,
    error: str | None,
) -> Record:
    return {
        "key": cell.key,
        "cell": cell.to_json(),
        "metrics": found,
        "error": error,
        "seconds": dict(seconds),
        "stacked": stacked,
        "peak_memory_mib": _peak(job.device),
        "device": _device_name(job.device),
        "versions": _versions(),
        "settings": {} if imputer is None else _parameters(imputer),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _training(cell: Cell) -> Cell:
    """The cell with only the settings that affect training; equal for cells that share one."""
    settings = tuple((name, value) for name, value in cell.settings if name != "n_draws")
    return dataclasses.replace(cell, method=find_method(cell.method).fit, settings=settings)


def _cost(cell: Cell) -> float:
    """A rough estimate of the work of a training."""
    from psmvae_paper.datasets.catalogue import CATALOGUE

    entry = CATALOGUE.get(cell.dataset)
    rows, columns = (1000, 10) if entry is None else entry.shape
    rows, columns = cell.n_rows or rows, cell.n_columns or columns
    if not find_method(cell.method).deep:
        return rows * columns * _CLASSICAL.get(cell.method, 1.0)
    return rows * (cell.epochs or _EPOCHS)


def _parameters(imputer: Any) -> dict[str, Any]:
    """The imputer's parameters as plain values, objects by their repr."""
    parameters = imputer.get_params(deep=False) if hasattr(imputer, "get_params") else {}
    if "advanced" in parameters:
        parameters |= dataclasses.asdict(parameters.pop("advanced") or Advanced())
    kinds = parameters.pop("kinds", None)
    # open for every column
    parameters.pop("bounds", None)
    shown: dict[str, Any] = {}
    if kinds:
        found = sorted(set(kinds.values()))
        shown["kinds"] = "all real" if found == ["real"] else ", ".join(found)
    simple = str | bool | int | float | None
    for name, value in parameters.items():
        shown[name] = value if isinstance(value, simple) else repr(value)
    if parameters.get("n_sets") == "auto":
        shown["n_sets_"] = int(imputer.n_sets_)
    return plain(shown)


@cache
def _versions() -> dict[str, str]:
    packages = ("torch", "numpy", "scikit-learn")
    return {
        "psmvae": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


@cache
def _device_name(device: str) -> str:
    if device == "cpu":
        return "cpu"
    import torch

    return str(torch.cuda.get_device_name(device))


def _reset_peak(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: str) -> float | None:
    """Peak memory in MiB: of the GPU since the job began, or of the process since its start."""
    if device != "cpu":
        import torch

        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    try:
        import resource
    except ImportError:
        # not on Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # bytes on macOS, KiB elsewhere
    return round(used / (2**20 if platform.system() == "Darwin" else 2**10), 1)
