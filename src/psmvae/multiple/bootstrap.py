"""Bootstrap covariance of an analysis of one completed table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.estimates import Estimates, check_same_terms, read_estimates
from psmvae.multiple.long_format import reset_index


def bootstrap_estimates(
    analysis: Callable[[Any], Any], table: Any, n_samples: int, seed: np.random.SeedSequence
) -> Estimates:
    """Return the estimates of a table, with the covariance of those of bootstrap samples."""
    if n_samples < 2:
        raise ValueError(f"bootstrap must be at least 2 samples, got {n_samples}.")
    whole = read_estimates(analysis(table))
    rng = np.random.default_rng(seed)
    n_rows = len(table)
    each = []
    for k in range(n_samples):
        one = read_estimates(analysis(take_rows(table, rng.integers(n_rows, size=n_rows))))
        check_same_terms(whole, one, ("the table", f"bootstrap sample {k}"))
        each.append(one.estimate)
    covariance = np.atleast_2d(np.cov(each, rowvar=False))
    variance = covariance.diagonal().copy()
    return Estimates(whole.terms, whole.estimate, variance, covariance, whole.dfcom)


def take_rows(table: Any, rows: NDArray[np.int64]) -> Any:
    """Return these rows of a table, as a table of the same type."""
    if isinstance(table, np.ndarray):
        return table[rows]
    return reset_index(nw.from_native(table, eager_only=True)[rows].to_native())
