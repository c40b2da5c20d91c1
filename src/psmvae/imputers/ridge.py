"""Bayesian ridge regressions fitted by scikit-learn, stored as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Ridge(NamedTuple):
    """Posterior mean of a Bayesian ridge regression: E[y] = intercept + xᵀcoef."""

    coef: Floats
    intercept: np.float64

    @classmethod
    def of(cls, fitted: Any) -> Self:
        """Copy a BayesianRidge."""
        return cls(np.asarray(fitted.coef_), np.float64(fitted.intercept_))

    def predict(self, x: Floats) -> Floats:
        """Return the posterior predictive mean of each row."""
        mean: Floats = x @ self.coef + self.intercept
        return mean

    @staticmethod
    def pack(regressions: Sequence[Ridge]) -> dict[str, NDArray[Any]]:
        """Concatenate the coefficients of regressions; `unpack` is the inverse."""
        return {
            "coef": np.concatenate([each.coef for each in regressions]),
            "intercept": np.array([each.intercept for each in regressions]),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], n_features: Sequence[int]) -> list[Self]:
        """Return packed regressions as views; raise ValueError for wrong shapes.

        ``n_features`` is the number of predictors of each regression.
        """
        coef, intercept = arrays["coef"], arrays["intercept"]
        if coef.shape != (sum(n_features),) or intercept.shape != (len(n_features),):
            raise ValueError("The coefficients of the chain do not fit its predictors.")
        parts = np.split(coef, np.cumsum(n_features)[:-1])
        return [cls(*each) for each in zip(parts, intercept, strict=True)]
