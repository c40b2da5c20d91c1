"""A table by its name, or from a file."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psmvae.simulate import simulated_trial
from psmvae.table import read_table
from psmvae.table.frames import quoted
from psmvae.table.paths import EXTENSIONS, extension
from psmvae_paper.datasets.catalogue import CATALOGUE, Entry
from psmvae_paper.datasets.dataset import Dataset
from psmvae_paper.datasets.download import by_hand, download
from psmvae_paper.datasets.home import VARIABLE, data_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Read = tuple[NDArray[np.float64], NDArray[Any] | None]

_TRIAL = "trial"
_TRIAL_KINDS = {"arm": "binary", "age": "integer", "sex": "binary", "site": "categorical"}
_TRIAL_DESCRIPTION = (
    "A simulated randomised trial of 1,000 patients, some of whom drop out because their outcome "
    "is bad. psmvae.simulate.simulated_trial gives others, and what the missing values were."
)


def names() -> tuple[str, ...]:
    """Return the names that `load` knows.

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
        The folder with the files of named tables. Without it, that of the environment variable
        ``PSMVAE_DATA_HOME``, and without that a folder of the user's cache. A table is read from
        ``<name>.csv.gz`` or ``<name>.csv``, or else from the files as its publisher offers them;
        "breast" and "digits" come with scikit-learn where there is no such file, and "trial" is
        simulated.
    download : bool, default=False
        Whether files that are not there may be fetched, into that same folder.

    Returns
    -------
    Dataset
        Columns of named tables are numbers (float64), but for those of "trial". A file of one's
        own has neither target nor kinds.

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not hold what it should.
    FileNotFoundError
        If a file is not there; the message says how to get it.
    DownloadError
        If it cannot be fetched.
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
    message = (
        f"unknown data set {name!r}; known are {quoted(names())}, and the path of a file that ends "
        f"in one of {', '.join(EXTENSIONS)}"
    )
    raise ValueError(message)


def load_entry(entry: Entry, folder: Path, *, fetch: bool = False) -> Dataset:
    """Load a table of the catalogue from a folder; see `load`.

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
    # none for a table that ships with scikit-learn, which then has all it needs
    paths = [folder / source.file for source in entry.sources]
    if not all(path.is_file() for path in paths):
        if not fetch:
            message = (
                f"{entry.name}: there is no {entry.name}.csv.gz in {folder}, nor the files of its "
                f"publisher; psmvae_paper.datasets.load({entry.name!r}, download=True) in Python fetches "
                f"them, or set {VARIABLE} to the folder that has it, or "
                f"{by_hand(entry.sources, folder)}"
            )
            raise FileNotFoundError(message)
        download(entry.name, entry.sources, folder, lambda arrived: _published(entry, arrived))
    return _published(entry, paths)


def _prepared(entry: Entry, path: Path) -> Read:
    """Read a file with the very columns of the table, and no target but that of one that ships."""
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
        # the target of other rows, or of rows in another order, would be a wrong one
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
    # a last line that is cut short has all its columns, but not all its cells
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
    # as floats, integers can have gaps; columns with strings are complete
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
