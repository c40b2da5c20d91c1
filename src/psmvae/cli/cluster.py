"""The workers of a Ray cluster for ``psmvae fit`` and ``psmvae impute``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psmvae.imputers.blocks import BLOCK_ROWS
from psmvae.ray.cluster import connect
from psmvae.ray.engine import Pool
from psmvae.ray.train import fit

if TYPE_CHECKING:
    from psmvae.cli.options import EngineOptions
    from psmvae.imputers.deep import DeepImputer


def fit_on_cluster(
    options: EngineOptions, device: str, rows: Any, imputer: DeepImputer, **settings: Any
) -> None:
    """Fit an imputer by several workers."""
    use_gpu = _use_gpu(connect(options.address), device)
    fit(rows, imputer, n_workers=options.workers or 2, use_gpu=use_gpu, **settings)


def engine_settings(options: EngineOptions, device: str) -> dict[str, Any]:
    """Return the settings of `psmvae.streaming.impute_files` for the workers of a cluster."""
    pool = Pool(options.workers, _use_gpu(connect(options.address), device))
    # only the workers need their device
    return {"device": "cpu", "engine": pool, "block_rows": BLOCK_ROWS[pool.device]}


def _use_gpu(ray: Any, device: str) -> bool:
    """Return whether workers have a GPU: with "auto" if the cluster has one."""
    return device.startswith("cuda") or (device == "auto" and "GPU" in ray.cluster_resources())
