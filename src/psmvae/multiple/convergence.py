"""Convergence of chained equations: traces of the chains, and R-hat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from psmvae.multiple.pooling import Backend

Floats = NDArray[np.float64]
# R-hat above which chains have not converged (Gelman et al. 2013).
HIGH_R_HAT = 1.1
# Fewest iterations of a half chain that has a variance.
MIN_HALF = 2


@dataclass(frozen=True, eq=False)
class Convergence:
    """Traces of chained equations; made by `MICEImputer.convergence`.

    Chains start at random observed values. If they have converged, means and standard deviations of
    the imputed cells vary as much within a chain as between chains, and have no trend.

    Parameters
    ----------
    columns : tuple of str
        Columns with missing cells.
    mean : ndarray of shape (n_iterations, n_chains, n_columns)
        Mean of the imputed cells of each column.
    sd : ndarray of shape (n_iterations, n_chains, n_columns)
        Standard deviation of the imputed cells; 0 if a single cell is missing.
    backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        Library of the frames that are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from psmvae.multiple import Convergence
    >>> trace = np.random.default_rng(0).normal(size=(10, 20, 1))
    >>> found = Convergence(("bmi",), trace, np.abs(trace))
    >>> found.summary().columns.tolist()
    ['column', 'r_hat_mean', 'r_hat_sd']
    >>> len(found.traces())
    200
    """

    columns: tuple[str, ...]
    mean: Floats
    sd: Floats
    backend: Backend = "pandas"

    def r_hat(self) -> tuple[Floats, Floats]:
        """Return R-hat of the means and of the standard deviations of each column.

        Returns
        -------
        mean, sd : ndarray of shape (n_columns,)
            Split R-hat (Gelman et al. 2013): the square root of the pooled over the within-chain
            variance of half chains. Values near 1 are good. NaN if a trace is constant, or has
            fewer than four iterations.
        """
        return split_r_hat(self.mean), split_r_hat(self.sd)

    def summary(self) -> Any:
        """Return R-hat of each column.

        Returns
        -------
        DataFrame
            Columns column, r_hat_mean and r_hat_sd.
        """
        mean, sd = self.r_hat()
        values = {
            "column": list(self.columns),
            "r_hat_mean": mean.tolist(),
            "r_hat_sd": sd.tolist(),
        }
        return nw.from_dict(values, backend=self.backend).to_native()

    def traces(self) -> Any:
        """Return the traces in long format, for a plot of each column over the iterations.

        Returns
        -------
        DataFrame
            Columns column, chain and iteration (both from 1), mean and sd.
        """
        n_iterations, n_chains, n_columns = self.mean.shape
        at = np.indices((n_columns, n_chains, n_iterations)).reshape(3, -1)
        values = {
            "column": [self.columns[j] for j in at[0]],
            "chain": (at[1] + 1).tolist(),
            "iteration": (at[2] + 1).tolist(),
            "mean": self.mean.transpose(2, 1, 0).ravel().tolist(),
            "sd": self.sd.transpose(2, 1, 0).ravel().tolist(),
        }
        return nw.from_dict(values, backend=self.backend).to_native()


def split_r_hat(trace: Floats) -> Floats:
    """Return split R-hat of each column of ``trace`` ``(iteration, chain, column)``."""
    n = len(trace) // 2
    if n < MIN_HALF:
        return np.full(trace.shape[2], np.nan)
    halves = np.concatenate([trace[:n], trace[-n:]], axis=1)
    # squares of very large values overflow; a power of two changes nothing else
    largest = np.where(np.isfinite(halves), np.abs(halves), 0.0).max((0, 1))
    halves = np.ldexp(halves, -np.frexp(largest)[1])
    within = halves.var(0, ddof=1).mean(0)
    between = halves.mean(0).var(0, ddof=1)
    constant = within <= np.finfo(np.float64).tiny
    ratio = between / np.where(constant, 1.0, within)
    return np.where(constant, np.nan, np.sqrt((n - 1) / n + ratio))
