"""Bayesian ridge regressions fitted by scikit-learn, stored as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Ridge(NamedTuple):
    """Bayesian ridge regression: y ~ N(intercept + xᵀcoef, noise + (x − center)ᵀ Σ (x − center)).

    This is the posterior predictive distribution of one cell, from which scikit-learn draws. All
    cells share the coefficients, the intercept and the noise variance, so `draw` draws these first.

    ``coef`` is the posterior mean of the coefficients, ``center`` the mean of the training rows and
    ``sigma`` the lower triangle of Σ in row-major order. ``noise`` is the sum of squared residuals
    over ``n_rows − effective``, the rows with y observed less the effective number of coefficients.
    """

    coef: Floats
    intercept: np.float64
    center: Floats
    sigma: Floats
    noise: np.float64
    n_rows: np.float64
    effective: np.float64

    @classmethod
    def of(cls, fitted: Any, at: NDArray[np.intp], n: int, n_rows: int) -> Self:
        """Copy a BayesianRidge fitted on ``n_rows`` rows and the columns ``at`` of ``n``."""
        coef, center, sigma = np.zeros(n), np.zeros(n), np.zeros((n, n))
        coef[at], center[at] = fitted.coef_, fitted.X_offset_
        sigma[np.ix_(at, at)] = fitted.sigma_
        return cls(
            coef,
            np.float64(fitted.intercept_),
            center,
            sigma[np.tril_indices(n)],
            np.float64(1 / fitted.alpha_),
            np.float64(n_rows),
            # the sum of α s² / (λ + α s²) over the singular values s of x
            np.float64(len(at) - fitted.lambda_ * np.trace(fitted.sigma_)),
        )

    def predict(self, x: Floats) -> Floats:
        """Return the posterior predictive mean of each row."""
        mean: Floats = x @ self.coef + self.intercept
        return mean

    def deviation(self, x: Floats) -> Floats:
        """Return the posterior predictive standard deviation of each row."""
        away = x - self.center
        # rounding can make the quadratic form negative
        uncertain = np.maximum(((away @ self.covariance()) * away).sum(1), 0.0)
        deviation: Floats = np.sqrt(uncertain + self.noise)
        return deviation

    def covariance(self) -> Floats:
        """Return Σ as a full matrix."""
        n = len(self.coef)
        sigma = np.zeros((n, n))
        sigma[np.tril_indices(n)] = self.sigma
        return sigma + np.tril(sigma, -1).T

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Draw once from the joint posterior predictive distribution of the rows.

        The noise variance comes from its scaled inverse χ² distribution, the coefficients and the
        intercept are drawn given it, and the cells given these: Rubin's normal-linear imputation.
        If cells were drawn independently, the uncertainty of the coefficients would average out.
        """
        # one degree of freedom for the intercept; at least one, as in R's mice
        freedom = max(self.n_rows - self.effective - 1, 1.0)
        scale = np.sqrt((self.n_rows - self.effective) / rng.chisquare(freedom))
        coef = _root(self.covariance()) @ rng.normal(size=len(self.coef))
        noise = np.sqrt(self.noise) * rng.normal(size=len(x))
        level = np.sqrt(self.noise / self.n_rows) * rng.normal()
        drawn: Floats = self.predict(x) + scale * ((x - self.center) @ coef + level + noise)
        return drawn

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Draw from the posterior predictive distribution of each row independently."""
        return rng.normal(self.predict(x), self.deviation(x))

    @staticmethod
    def pack(regressions: Sequence[Ridge]) -> dict[str, NDArray[Any]]:
        """Stack regressions with the same number of columns; `unpack` is the inverse."""
        return {name: np.stack([getattr(r, name) for r in regressions]) for name in Ridge._fields}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> list[Self]:
        """Return packed regressions as views; raise ValueError for wrong shapes."""
        n = n_features
        sizes = [(n,), (), (n,), (n * (n + 1) // 2,), (), (), ()]
        for name, size in zip(cls._fields, sizes, strict=True):
            if arrays[name].shape[1:] != size:
                raise ValueError(f"{name} has shape {arrays[name].shape}.")
        return [cls(*parts) for parts in zip(*(arrays[f] for f in cls._fields), strict=True)]


def _root(sigma: Floats) -> Floats:
    """Return L with L Lᵀ = Σ; unused columns are zero."""
    root, at = np.zeros_like(sigma), np.flatnonzero(sigma.diagonal() > 0)
    inner = sigma[np.ix_(at, at)]
    try:
        root[np.ix_(at, at)] = np.linalg.cholesky(inner)
    except np.linalg.LinAlgError:
        # rounding made an eigenvalue negative
        value, vector = np.linalg.eigh(inner)
        root[np.ix_(at, at)] = vector * np.sqrt(np.maximum(value, 0.0))
    return root
