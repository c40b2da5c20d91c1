"""Bayesian ridge regressions fitted by scikit-learn, kept as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Ridge(NamedTuple):
    """Bayesian ridge regression: y ~ N(intercept + xᵀcoef, noise + (x − center)ᵀ Σ (x − center)).

    That is one cell by itself, the other numbers taken as known: what scikit-learn draws from. All
    cells share the coefficients, the intercept and the noise, so `draw` first draws these.

    Attributes
    ----------
    coef : ndarray of shape (column,)
        Posterior mean of the coefficients.
    intercept : float
        Of the mean.
    center : ndarray of shape (column,)
        Mean of the training rows.
    sigma : ndarray of shape (column · (column + 1) / 2,)
        Posterior covariance of the coefficients, the lower triangle row by row.
    noise : float
        Variance of y about its mean: the sum of squared residuals over ``n_rows − effective``.
    n_rows : float
        Rows with y observed.
    effective : float
        Effective number of coefficients: what the prior leaves of their number.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> x = np.arange(12.0).reshape(6, 2) % 5
    >>> fitted = BayesianRidge().fit(x, x @ [1.0, 2.0])
    >>> ridge = Ridge.of(fitted, np.array([0, 1]), 2, n_rows=6)
    >>> bool(np.allclose(ridge.predict(x), fitted.predict(x)))
    True
    >>> ridge.draw(x, np.random.default_rng(0)).shape
    (6,)
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
        """What a BayesianRidge of scikit-learn found in ``n_rows``, its columns ``at`` of ``n``."""
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
        """Mean of the posterior predictive distribution of each row."""
        mean: Floats = x @ self.coef + self.intercept
        return mean

    def deviation(self, x: Floats) -> Floats:
        """Standard deviation of the posterior predictive distribution of each row."""
        away = x - self.center
        # rounding must not make a variance negative
        uncertain = np.maximum(((away @ self.covariance()) * away).sum(1), 0.0)
        deviation: Floats = np.sqrt(uncertain + self.noise)
        return deviation

    def covariance(self) -> Floats:
        """Σ as a matrix."""
        n = len(self.coef)
        sigma = np.zeros((n, n))
        sigma[np.tril_indices(n)] = self.sigma
        return sigma + np.tril(sigma, -1).T

    def draw(self, x: Floats, rng: np.random.Generator) -> Floats:
        """One draw from the joint posterior predictive distribution of the rows.

        The noise's variance from its scaled inverse χ² distribution, given it the coefficients and
        the intercept, given these the cells: Rubin's normal-linear imputation. Drawn cell by cell,
        what is uncertain of the line would average out over cells.
        """
        # one less for the intercept; one at least, as R's mice has it
        freedom = max(self.n_rows - self.effective - 1, 1.0)
        scale = np.sqrt((self.n_rows - self.effective) / rng.chisquare(freedom))
        coef = _root(self.covariance()) @ rng.normal(size=len(self.coef))
        noise = np.sqrt(self.noise) * rng.normal(size=len(x))
        level = np.sqrt(self.noise / self.n_rows) * rng.normal()
        drawn: Floats = self.predict(x) + scale * ((x - self.center) @ coef + level + noise)
        return drawn

    def draw_cells(self, x: Floats, rng: np.random.Generator) -> Floats:
        """One draw from the posterior predictive distribution of each row by itself."""
        return rng.normal(self.predict(x), self.deviation(x))

    @staticmethod
    def pack(regressions: Sequence[Ridge]) -> dict[str, NDArray[Any]]:
        """Regressions on equally many columns side by side; `unpack` takes them apart."""
        return {name: np.stack([getattr(r, name) for r in regressions]) for name in Ridge._fields}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> list[Self]:
        """The regressions that were packed, as views; ValueError where they are none."""
        n = n_features
        sizes = [(n,), (), (n,), (n * (n + 1) // 2,), (), (), ()]
        for name, size in zip(cls._fields, sizes, strict=True):
            if arrays[name].shape[1:] != size:
                raise ValueError(f"{name} has shape {arrays[name].shape}.")
        return [cls(*parts) for parts in zip(*(arrays[f] for f in cls._fields), strict=True)]


def _root(sigma: Floats) -> Floats:
    """L with L Lᵀ = Σ; columns that take no part have zeros."""
    root, at = np.zeros_like(sigma), np.flatnonzero(sigma.diagonal() > 0)
    inner = sigma[np.ix_(at, at)]
    try:
        root[np.ix_(at, at)] = np.linalg.cholesky(inner)
    except np.linalg.LinAlgError:
        # rounding has made a variance negative
        value, vector = np.linalg.eigh(inner)
        root[np.ix_(at, at)] = vector * np.sqrt(np.maximum(value, 0.0))
    return root
