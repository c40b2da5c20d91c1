"""The connection to Ray."""

from __future__ import annotations

from typing import Any


def connected_ray() -> Any:
    """Return the module ``ray``, connected to a cluster.

    Raises
    ------
    ImportError
        If Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("psmvae.ray needs Ray: pip install 'psmvae[ray]'") from error
    if not ray.is_initialized():
        ray.init()
    return ray
