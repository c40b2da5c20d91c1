"""The folder of the data."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "PSMVAE_DATA_HOME"


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return `data_home`, else the folder of ``PSMVAE_DATA_HOME``, else the user's cache.

    Parameters
    ----------
    data_home : path, optional
        The folder.

    Returns
    -------
    Path
        The folder; it may not exist.

    Examples
    --------
    >>> data_folder("tables").name
    'tables'
    """
    # an empty variable counts as unset
    named = data_home if data_home is not None else os.getenv(VARIABLE) or None
    return Path(named).expanduser() if named is not None else _cache() / "psmvae"


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.getenv("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.getenv("XDG_CACHE_HOME") or Path.home() / ".cache")
