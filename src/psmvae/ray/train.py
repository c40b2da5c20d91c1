"""Data-parallel fits with Ray Train."""

# ruff: noqa: SLF001 (fits an imputer together with other processes)

from __future__ import annotations

import tempfile
from typing import Any, TypeVar

from sklearn.base import clone

from psmvae.imputers import checks
from psmvae.imputers.base import SAMPLE_ROWS
from psmvae.imputers.deep import DeepImputer
from psmvae.ray.cluster import connected_ray
from psmvae.sources import is_source
from psmvae.sources.opening import BATCH_ROWS

Deep = TypeVar("Deep", bound=DeepImputer)


def fit(
    X: Any,
    imputer: Deep,
    *,
    sample_rows: int = SAMPLE_ROWS,
    n_workers: int = 2,
    use_gpu: bool = False,
    cpus_per_worker: int = 1,
    max_failures: int = 3,
) -> Deep:
    """Fit a deep imputer with several workers, which average their gradients.

    Each worker holds the training table and computes the gradient of its part of every batch.
    The fit equals that of one process up to the rounding of gradients, for any number of workers.
    More workers pay where a batch takes long: with many columns, large networks or a large
    ``batch_size``.

    Parameters
    ----------
    X : table, source or ray.data.Dataset
        A table or a source as `fit` of the imputer takes it, or a Ray Dataset.
    imputer : imputer
        An imputer that trains networks. It is fitted in place.
    sample_rows : int, default=500_000
        Rows of a source or a Ray Dataset to fit to: the sample of `fit` of the imputer, which this
        process takes.
    n_workers : int, default=2
        Number of worker processes.
    use_gpu : bool, default=False
        Whether each worker has a GPU and gradients are averaged by NCCL. Without one they are
        averaged by gloo.
    cpus_per_worker : int, default=1
        Cores of each worker.
    max_failures : int, default=3
        How many times training starts anew after a worker was lost.

    Returns
    -------
    imputer
        The given imputer, fitted.

    Raises
    ------
    ImportError
        If Ray is not installed.
    TypeError
        If the imputer does not train networks; use `fit_many`, or its own ``fit``.
    RuntimeError
        If workers were lost more than `max_failures` times. The imputer is then unchanged.

    Examples
    --------
    >>> import psmvae
    >>> imputer = psmvae.PSMVAEImputer(random_state=0)
    >>> psmvae.ray.fit(df, imputer, n_workers=8)            # doctest: +SKIP
    >>> imputer.transform(df)                               # doctest: +SKIP
    """
    if not isinstance(imputer, DeepImputer):
        raise TypeError(
            f"psmvae.ray.fit averages gradients, and {type(imputer).__name__} has none; use "
            "psmvae.ray.fit_many, or the imputer's own fit."
        )
    for name, value in {"n_workers": n_workers, "cpus_per_worker": cpus_per_worker}.items():
        checks.whole_number(name, value, low=1)
    checks.whole_number("max_failures", max_failures, low=0)
    checks.whole_number("sample_rows", sample_rows, low=1)
    untrained = clone(imputer).set_params(device="cpu", verbose=False)
    untrained._check_parameters()
    if untrained.random_state is None:
        # all workers draw the same noise
        untrained.set_params(random_state=checks.seed("random_state", None))
    ray = connected_ray()
    if isinstance(X, ray.data.Dataset):
        X.context.execution_options.preserve_order = True
        X = iter(X.iter_batches(batch_size=BATCH_ROWS, batch_format="pyarrow"))
    if is_source(X):
        X = untrained._sample_of(X, sample_rows)
    _check(untrained, X, n_workers)
    from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchTrainer

    scaling = ScalingConfig(
        num_workers=n_workers,
        use_gpu=use_gpu,
        resources_per_worker={"CPU": cpus_per_worker, **({"GPU": 1} if use_gpu else {})},
    )
    settings = {"imputer": untrained, "table": ray.put(X)}
    # nothing is kept there: the fitted imputer is what the first worker returns
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        failures = FailureConfig(max_failures=max_failures)
        trainer = TorchTrainer(
            train_worker,
            train_loop_config=settings,
            scaling_config=scaling,
            run_config=RunConfig(storage_path=folder, failure_config=failures),
        )
        try:
            result = trainer.fit()
        except TrainingFailedError as error:
            reason = str(error).strip().splitlines()[-1]
            raise RuntimeError(f"training by {n_workers} workers failed: {reason}") from error
    _adopt(imputer, result.return_value)
    return imputer


def train_worker(settings: dict[str, Any]) -> Any:
    """Fit together with the other workers; the first one returns the fitted imputer."""
    import ray
    from ray.train.torch import get_device

    from psmvae.training.shard import ProcessShard

    imputer, device = settings["imputer"], get_device()
    imputer.set_params(device=str(device))
    shard = ProcessShard(device)
    imputer._fit_shard(ray.get(settings["table"]), shard)
    if shard.rank > 0:
        return None
    # the machine that asked may have no GPU
    imputer.model_.to("cpu")
    return imputer


def _check(imputer: DeepImputer, X: Any, n_workers: int) -> None:
    """Raise errors of the table here: a failed worker would be started again."""
    table = clone(imputer)
    table._read(X)
    config = table.config_
    steps = [config.batch_size, *([config.pretrain_batch_size] if config.pretrain_steps else [])]
    batch = min(*steps, table.n_rows_)
    if n_workers > batch:
        raise ValueError(
            f"{n_workers} workers cannot share batches of {batch} rows; use fewer workers, or a "
            "larger batch_size."
        )


def _adopt(imputer: DeepImputer, fitted: DeepImputer) -> None:
    """Give an imputer the fitted attributes of another, and keep its parameters."""
    parameters = imputer.get_params(deep=False)
    imputer.__dict__.update(vars(fitted))
    imputer.set_params(**parameters)
    imputer.model_.to(checks.torch_device(imputer.device))
