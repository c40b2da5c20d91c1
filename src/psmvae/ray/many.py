"""Independent fits, each in a process of its own."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from psmvae.imputers import checks
from psmvae.imputers.base import Imputer
from psmvae.imputers.deep import DeepImputer
from psmvae.multiple.bootstrap import take_rows
from psmvae.ray.cluster import connected_ray

AnyImputer = TypeVar("AnyImputer", bound=Imputer)


def fit_many(
    X: Any,
    imputer: AnyImputer,
    n: int,
    *,
    bootstrap: bool = False,
    random_state: int | np.random.RandomState | None = None,
    cpus_per_fit: int = 1,
    gpus_per_fit: float = 0,
    max_retries: int = 3,
) -> list[AnyImputer]:
    """Fit copies of an imputer that differ in their seed, each as a task of its own.

    With ``bootstrap`` each copy is fitted to a bootstrap sample of the rows. Imputing the table
    once with each copy then gives multiple imputations that include the uncertainty of the
    parameters, for any imputer. Without it the copies are members of an ensemble.

    Parameters
    ----------
    X : table
        A table as `fit` of the imputer takes it.
    imputer : imputer
        The imputer to be copied. It is not fitted itself.
    n : int
        Number of copies.
    bootstrap : bool, default=False
        Whether each copy is fitted to rows drawn with replacement.
    random_state : int, RandomState or None, default=None
        Seed from which the seeds and the samples of rows of all copies are derived.
    cpus_per_fit : int, default=1
        Cores of each fit.
    gpus_per_fit : float, default=0
        GPUs of each fit; 0.5 lets two fits share one.
    max_retries : int, default=3
        How many times a fit starts anew after its process was lost.

    Returns
    -------
    list of imputers
        The fitted copies. Copy k is the same for any cluster of the same type of device.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ray.exceptions.RayError
        If a process was lost more than `max_retries` times.

    Examples
    --------
    >>> import psmvae
    >>> fits = psmvae.ray.fit_many(                         # doctest: +SKIP
    ...     df, psmvae.PSMVAEImputer(), 20, bootstrap=True, random_state=0
    ... )
    >>> tables = [fit.sample(df, 1)[0] for fit in fits]     # doctest: +SKIP
    """
    checks.whole_number("n", n, low=1)
    checks.whole_number("cpus_per_fit", cpus_per_fit, low=1)
    checks.number("gpus_per_fit", gpus_per_fit, 0.0)
    checks.whole_number("max_retries", max_retries, low=0)
    checks.yes_or_no("bootstrap", bootstrap)
    seeds = np.random.SeedSequence(checks.seed("random_state", random_state)).generate_state(n)
    ray = connected_ray()
    untrained = clone(imputer)
    if isinstance(untrained, DeepImputer):
        untrained.set_params(device="cuda" if gpus_per_fit else "cpu", verbose=False)
    task = ray.remote(num_cpus=cpus_per_fit, num_gpus=gpus_per_fit, max_retries=max_retries)(
        fit_one
    )
    table, model = ray.put(X), ray.put(untrained)
    fits: list[AnyImputer] = ray.get(
        [task.remote(table, model, int(seed), bootstrap=bootstrap) for seed in seeds]
    )
    for fit in fits:
        if isinstance(fit, DeepImputer) and isinstance(imputer, DeepImputer):
            fit.set_params(device=imputer.device, verbose=imputer.verbose)
            fit.model_.to(checks.torch_device(imputer.device))
    return fits


def fit_one(X: Any, imputer: AnyImputer, seed: int, *, bootstrap: bool) -> AnyImputer:
    """Fit a copy of an imputer with this seed, to a bootstrap sample of the rows or to all."""
    copy = clone(imputer).set_params(random_state=seed)
    if bootstrap:
        n_rows = len(X)
        X = take_rows(X, np.random.default_rng(seed).integers(n_rows, size=n_rows))
    copy.fit(X)
    if isinstance(copy, DeepImputer):
        # the machine that asked may have no GPU
        copy.model_.to("cpu")
    fitted: AnyImputer = copy
    return fitted
