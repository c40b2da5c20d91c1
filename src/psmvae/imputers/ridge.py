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
    def of(cls, fitted: Any, at: NDArray[np.intp], n: int) -> Self:
        """Copy a BayesianRidge fitted on the columns ``at`` of ``n``."""
        coef = np.zeros(n)
        coef[at] = fitted.coef_
        return cls(coef, np.float64(fitted.intercept_))

    def predict(self, x: Floats) -> Floats:
        """Return the posterior predictive mean of each row."""
        mean: Floats = x @ self.coef + self.intercept
        return mean

    @staticmethod
    def pack(regressions: Sequence[Ridge]) -> dict[str, NDArray[Any]]:
        """Stack regressions with the same number of columns; `unpack` is the inverse."""
        return {name: np.stack([getattr(r, name) for r in regressions]) for name in Ridge._fields}

    @classmethod
    def unpack(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> list[Self]:
        """Return packed regressions as views; raise ValueError for wrong shapes."""
        for name, size in zip(cls._fields, [(n_features,), ()], strict=True):
            if arrays[name].shape[1:] != size:
                raise ValueError(f"{name} has shape {arrays[name].shape}.")
        return [cls(*parts) for parts in zip(*(arrays[f] for f in cls._fields), strict=True)]
