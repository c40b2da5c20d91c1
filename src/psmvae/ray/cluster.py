"""The connection to Ray."""

from __future__ import annotations

import logging
from typing import Any


def connected_ray() -> Any:
    """Return the module ``ray``, connected to a cluster.

    Raises
    ------
    ImportError
        If Ray is not installed.
    """
    ray = _imported()
    if not ray.is_initialized():
        ray.init()
    return ray


def connect(address: str | None) -> Any:
    """Connect to the cluster at an address without messages on the terminal, and return ``ray``.

    "auto" is the cluster that this machine belongs to. None is the one in ``RAY_ADDRESS``, or a new
    one on this machine.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ConnectionError
        If there is no cluster at the address.
    """
    ray = _imported()
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def _imported() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(f"psmvae.ray needs {error.name}: pip install 'psmvae[ray]'") from error
    return ray
