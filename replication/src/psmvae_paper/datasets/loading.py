"""Load a table by its name, or from a file."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate import simulated_trial
from psmvae.table import read_table
from psmvae.table.paths import EXTENSIONS, extension
from psmvae_paper.datasets.catalogue import CATALOGUE, Entry
from psmvae_paper.datasets.dataset import Dataset
from psmvae_paper.datasets.download import download, manual_steps
from psmvae_paper.datasets.home import VARIABLE, data_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Read = tuple[NDArray[np.float64], NDArray[Any] | None]

_TRIAL = "trial"
_TRIAL_KINDS = {"arm": "binary", "age": "integer", "sex": "binary", "site": "categorical"}
_TRIAL_DESCRIPTION = (
    "A simulated randomised trial of 1,000 patients, in which patients with a bad outcome drop out "
    "more often. psmvae.simulate.simulated_trial makes others, with the true values."
)


def names() -> tuple[str, ...]:
    """Return the names of the tables.

    Returns
    -------
    tuple of str
        The names.

    Examples
    --------
    >>> names()
    ('adult', 'breast', 'credit', 'letter', 'spam', 'wine', 'mnist', 'digits', 'trial')
    """
    return (*CATALOGUE, _TRIAL)


def load(
    name: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = False,
) -> Dataset:
    """Load a table by its name, or from a file.

    Parameters
    ----------
    name : str or path
        One of `names`, or the path of a CSV, TSV, Parquet or Feather file.
    data_home : path, optional
        The folder with the files of named tables; by default the folder of the environment
        variable ``PSMVAE_DATA_HOME``, else one in the user's cache. A table is read from
        ``<name>.csv.gz`` or ``<name>.csv``, else from the files of its publisher. Without such
        files "breast" and "digits" are taken from scikit-learn; "trial" is simulated.
    download : bool, default=False
        Whether missing files are downloaded into this folder.

    Returns
    -------
    Dataset
        Columns of named tables are float64, except in "trial". A user's file has neither target
        nor kinds.

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not have the expected content.
    FileNotFoundError
        If a file is missing; the message says how to get it.
    DownloadError
        If it cannot be downloaded.
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> data = load("breast")
    >>> data.X.shape, data.y.shape, data.kinds["mean_radius"]
    ((569, 30), (569,), 'real')
    >>> trial = load("trial")
    >>> int(trial.X["week12"].isna().sum()) > 400
    True
    """
    _pandas()
    if isinstance(name, str) and name in CATALOGUE:
        return load_entry(CATALOGUE[name], data_folder(data_home), fetch=download)
    if name == _TRIAL:
        return _trial()
    path = Path(name)
    if isinstance(name, os.PathLike) or path.name.lower().endswith(EXTENSIONS):
        table = read_table(path.expanduser())
        return Dataset(path.name[: -len(extension(path))], table.to_pandas())
    known = ", ".join(map(repr, names()))
    message = (
        f"unknown data set {name!r}; known are {known}, and the path of a file that ends in one of "
        f"{', '.join(EXTENSIONS)}"
    )
    raise ValueError(message)


def load_entry(entry: Entry, folder: Path, *, fetch: bool = False) -> Dataset:
    """Load a table of the catalogue from a folder; see `load`.

    Parameters
    ----------
    entry : Entry
        The table.
    folder : Path
        The folder.
    fetch : bool, default=False
        Whether missing files are downloaded.

    Returns
    -------
    Dataset
        The table.

    Examples
    --------
    >>> from pathlib import Path
    >>> load_entry(CATALOGUE["digits"], Path("nowhere"))
    Dataset(name='digits', shape=(1797, 64))
    """
    pd = _pandas()
    values, target = _find(entry, folder, fetch)
    X = pd.DataFrame(values, columns=entry.columns)
    return Dataset(entry.name, X, target, dict(entry.kinds), entry.description)


def _find(entry: Entry, folder: Path, fetch: bool) -> Read:
    for ending in (".csv.gz", ".csv"):
        path = folder / f"{entry.name}{ending}"
        if path.is_file():
            return _prepared(entry, path)
    # empty for a table of scikit-learn
    paths = [folder / source.file for source in entry.sources]
    if not all(path.is_file() for path in paths):
        if not fetch:
            message = (
                f"{entry.name}: {folder} has neither {entry.name}.csv.gz nor the files of its "
                f"publisher; psmvae_paper.datasets.load({entry.name!r}, download=True) in Python "
                f"downloads them, or set {VARIABLE} to the folder that has them, or "
                f"{manual_steps(entry.sources, folder)}"
            )
            raise FileNotFoundError(message)
        download(entry.name, entry.sources, folder, lambda arrived: _published(entry, arrived))
    return _published(entry, paths)


def _prepared(entry: Entry, path: Path) -> Read:
    """Read a CSV file with the columns of the table; the target is known for scikit-learn only."""
    pd = _pandas()
    try:
        table = pd.read_csv(path)
        found = [str(name) for name in table.columns]
        values = table.to_numpy(dtype=np.float64, na_value=np.nan) if found else np.empty((0, 0))
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"{path}: not a table of numbers: {error}"
        raise ValueError(message) from error
    _check_shape(entry, (values, None), str(path))
    if found != entry.columns:
        expected, other = next(
            pair for pair in zip(entry.columns, found, strict=True) if pair[0] != pair[1]
        )
        message = f"{path}: expected the columns of {entry.name}: {expected!r}, found {other!r}"
        raise ValueError(message)
    _check_missing(entry, values, str(path))
    if np.isinf(values).any():
        message = f"{path}: contains infinity; expected finite numbers"
        raise ValueError(message)
    if not entry.sources:
        shipped, target = entry.read([])
        # only for the same rows in the same order
        if np.allclose(values, shipped):
            return values, target
    return values, None


def _published(entry: Entry, paths: Sequence[Path]) -> Read:
    where = " and ".join(source.file for source in entry.sources) or "scikit-learn"
    try:
        read = entry.read(paths)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"{entry.name}: {where} cannot be read: {error}"
        raise ValueError(message) from error
    _check_shape(entry, read, where)
    _check_missing(entry, read[0], where)
    return read


def _check_missing(entry: Entry, values: NDArray[np.float64], where: str) -> None:
    # a file with an incomplete last line has too many missing cells
    n_missing = int(np.isnan(values).sum())
    if n_missing != entry.n_missing:
        message = (
            f"{entry.name}: expected {entry.n_missing} missing cells, found {n_missing} in {where}"
        )
        raise ValueError(message)


def _check_shape(entry: Entry, read: Read, where: str) -> None:
    values, target = read
    if values.shape != entry.shape:
        message = (
            f"{entry.name}: expected {_size(entry.shape)}, found {_size(values.shape)} in {where}"
        )
        raise ValueError(message)
    if target is not None and target.shape != (entry.n_rows,):
        message = f"{entry.name}: expected {entry.n_rows} targets, found {target.size} in {where}"
        raise ValueError(message)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} rows and {shape[1]} columns"


def _trial() -> Dataset:
    pd = _pandas()
    trial = simulated_trial(1000, rng=np.random.default_rng(0))
    # integer columns need floats for NaN; string columns are complete
    X = pd.DataFrame(
        {
            name: column if column.dtype.kind == "U" else column.astype(np.float64)
            for name, column in trial.complete.items()
        }
    ).where(trial.m)
    kinds = {name: _TRIAL_KINDS.get(name, "real") for name in trial.names}
    return Dataset(_TRIAL, X, None, kinds, _TRIAL_DESCRIPTION)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        message = "data sets are pandas frames: pip install 'psmvae[pandas]'"
        raise ImportError(message) from error
    return pd
