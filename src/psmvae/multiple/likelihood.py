"""Log-likelihoods of fitted models, at their maximum with and without a restriction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Likelihood(NamedTuple):
    """Log-likelihood of one completed table and the parameters that maximise it.

    ``value`` is a function of all parameters: coefficients and, in linear models, the residual
    variance. ``full`` maximises it, ``restricted`` does under the null hypothesis.
    """

    value: Callable[[Floats], float]
    full: Floats
    restricted: Floats


def read_likelihood(result: Any, at: Sequence[int], values: Floats) -> Likelihood:
    """Read the likelihood of a result of statsmodels; the null hypothesis is ``b[at] = values``."""
    model = getattr(result, "model", None)
    if type(model).__module__.startswith("statsmodels."):
        from statsmodels.regression.linear_model import OLS

        if type(model) is OLS:
            return _linear(model, np.asarray(result.params), at, values)
        if _has_unit_dispersion(model, result):
            return _generalized_linear(model, np.asarray(result.params), at, values)
    kind = type(result if model is None else model).__name__
    raise TypeError(
        "method 'D3' needs likelihoods: results of statsmodels for OLS, Logit, Probit, Poisson or "
        f"a GLM of the binomial or Poisson family, got {kind}; use method 'D1' or 'D2'."
    )


def _has_unit_dispersion(model: Any, result: Any) -> bool:
    """Whether the coefficients are all parameters of a generalized linear model."""
    from statsmodels.discrete.discrete_model import Logit, Poisson, Probit
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM

    if type(model) is GLM:
        known = isinstance(model.family, families.Binomial | families.Poisson)
        # another scale is that of a quasi-likelihood
        return known and result.scale == 1
    return type(model) in (Logit, Probit, Poisson)


def _linear(model: Any, b: Floats, at: Sequence[int], values: Floats) -> Likelihood:
    x, y = model.exog, model.endog

    def with_variance(b: Floats) -> Floats:
        return np.append(b, np.mean((y - x @ b) ** 2))

    restricted, free = _null(b, at, values)
    restricted[free] = np.linalg.lstsq(x[:, free], y - x @ restricted, rcond=None)[0]
    return Likelihood(
        lambda parameters: float(model.loglike(parameters[:-1], scale=parameters[-1])),
        with_variance(b),
        with_variance(restricted),
    )


def _generalized_linear(model: Any, b: Floats, at: Sequence[int], values: Floats) -> Likelihood:
    from statsmodels.genmod.generalized_linear_model import GLM

    restricted, free = _null(b, at, values)
    if free.any() and type(model) is GLM:
        constraints = np.eye(len(b))[list(at)]
        # the default is an absolute tolerance of the deviance, coarse for small tables
        fit = model.fit_constrained((constraints, values), tol=1e-12, rtol=1e-11)
        restricted = np.asarray(fit.params)
    elif free.any():
        # `fit_constrained` of discrete models prints; the fixed coefficients are an offset
        offset = model.exog @ restricted
        for name in ("offset", "exposure"):
            own = getattr(model, name, None)
            offset = offset if own is None else offset + own
        null = type(model)(model.endog, model.exog[:, free], offset=offset)
        restricted[free] = null.fit(disp=False).params
    return Likelihood(lambda parameters: float(model.loglike(parameters)), b, restricted)


def _null(b: Floats, at: Sequence[int], values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return coefficients with the values of the null hypothesis, and which are free."""
    restricted, free = np.zeros(len(b)), np.ones(len(b), dtype=bool)
    restricted[list(at)], free[list(at)] = values, False
    return restricted, free
