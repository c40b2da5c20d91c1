"""The log odds γ(x) of going missing, estimated from masks by shadow variables.

If the value x of a cell alone decides whether it goes missing, and p_obs(x | rest) is its
distribution among the rows where it is observed, then ::

    odds(missing | rest)    =  E over p_obs(x | rest) of exp γ(x)
    p(x | rest, missing)    ∝  p_obs(x | rest) · exp γ(x)

Values are grouped into bins, so that the first line is a likelihood of the masks with one number
γ for each bin. The functions γ of a family are linear in their parameters: γ = design · θ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from psmvae.chained.regression import transposed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Fisher scoring: steps at most, largest change of a parameter in a step, and gain in nats of the
# last step.
N_STEPS, MAX_STEP, TOLERANCE = 40, 3.0, 1e-3
# γ is limited, relative to its constant: odds of a bin are at most this much higher or lower.
MAX_LOG_ODDS = 12.0


@dataclass(frozen=True)
class Family:
    """Functions γ = base + design · θ with a Gaussian prior on θ.

    ``design`` is ``(bin, parameter)``, ``precision`` ``(parameter, parameter)`` the inverse of the
    prior covariance, ``base`` ``(bin,)`` a given function. ``name`` says what the family is.
    ``direction`` is the sign that all parameters but the first must have, 0 for any. For
    `fit_odds`, design and base may differ between rows: ``(row, bin, parameter)``, ``(row, bin)``.
    """

    name: str
    design: Floats
    precision: Floats
    base: Floats = field(default_factory=lambda: np.zeros(0))
    direction: float = 0.0

    def __post_init__(self) -> None:
        """Set the default of ``base``."""
        if not len(self.base):
            object.__setattr__(self, "base", np.zeros(self.design.shape[:-1]))

    def gamma(self, theta: Floats) -> Floats:
        """Return γ ``(..., bin)`` of parameters ``(..., parameter)``."""
        return np.asarray(theta @ transposed(self.design) + self.base)

    @cached_property
    def collapsed(self) -> tuple[Self, Floats | None]:
        """The family with the bins joined that it treats alike, and the matrix that joins them.

        The matrix ``(bin, joined bin)`` is None where all bins differ. Few bins are faster to fit.
        """
        rows = np.column_stack([self.design, self.base])
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
        if len(distinct) == len(rows):
            return self, None
        # NumPy 2.0 gives the inverse another dimension
        joins = (which.reshape(-1, 1) == np.arange(len(distinct))).astype(np.float64)
        return replace(self, design=distinct[:, :-1], base=distinct[:, -1]), joins


@dataclass(frozen=True)
class OddsFit:
    """A fitted function γ: parameters θ, their covariance, and the log-likelihood of the masks.

    ``offset_coef`` are the coefficients of a function of the other columns, empty without one.
    """

    family: Family
    theta: Floats
    covariance: Floats
    log_likelihood: float
    evidence: float
    offset_coef: Floats

    @property
    def gamma(self) -> Floats:
        """γ of each bin."""
        return self.gamma_of(self.theta)

    def gamma_of(self, theta: Floats) -> Floats:
        """Return γ ``(..., bin)`` of parameters ``(..., parameter)``."""
        gamma = self.family.gamma(theta)
        middle = np.median(gamma, axis=-1, keepdims=True)
        return np.asarray(np.clip(gamma, middle - MAX_LOG_ODDS, middle + MAX_LOG_ODDS))


def fit_odds(
    p_obs: Floats,
    missing: Bools | Floats,
    family: Family,
    others: Floats | None = None,
    others_precision: float = 1.0,
    start: Floats | None = None,
    weight: Floats | None = None,
) -> OddsFit:
    """Fit γ to the masks by maximum a posteriori, with Fisher scoring.

    Parameters
    ----------
    p_obs : ndarray of shape (n_rows, n_bins)
        Distribution of the cell among rows where it is observed, given the other columns.
    missing : ndarray of shape (n_rows,)
        True where the cell is missing; with ``weight``, the share of missing cells.
    family : Family
        The functions γ.
    others : ndarray of shape (n_rows, n_features), optional
        Standardised functions of the other columns that are added to the log odds.
    others_precision : float, default=1.0
        Precision of the Gaussian prior of their coefficients.
    start : ndarray, optional
        Parameters to start from.
    weight : ndarray of shape (n_rows,), optional
        Number of rows of the table that each row stands for. Default: 1.

    Returns
    -------
    OddsFit
        The fit; ``evidence`` is the Laplace approximation of the log marginal likelihood.
    """
    n_own = family.design.shape[-1]
    features = np.zeros((len(p_obs), 0)) if others is None else others
    precision = np.zeros((n_own + features.shape[1],) * 2)
    precision[:n_own, :n_own] = family.precision
    precision[n_own:, n_own:] = np.eye(features.shape[1]) * others_precision
    # keeps the equations solvable
    ridge = 1e-9 * np.eye(len(precision))
    theta = np.zeros(len(precision))
    y = missing.astype(np.float64)
    n_each = np.ones(len(y)) if weight is None else weight
    if start is not None:
        theta[:] = start
    elif family.design.ndim == 2:
        # the same odds in all bins
        rate = np.clip(np.average(y, weights=n_each), 1e-3, 1 - 1e-3)
        flat = np.log(rate / (1 - rate)) - family.base + np.zeros(len(family.design))
        theta[:n_own] = np.linalg.lstsq(family.design, flat, rcond=None)[0]

    def state(theta: Floats) -> tuple[float, Floats, Floats]:
        gamma = np.clip(family.gamma(theta[:n_own]), -30.0, 30.0)
        weighted = p_obs * np.exp(gamma)
        odds = weighted.sum(1)
        log_odds = np.log(odds) + features @ theta[n_own:]
        log_likelihood = float(n_each @ (y * log_odds - np.logaddexp(0.0, log_odds)))
        objective = log_likelihood - 0.5 * float(theta @ precision @ theta)
        tilted = weighted / odds[:, None]
        own = (
            np.einsum("rb,rbp->rp", tilted, family.design)
            if family.design.ndim > 2
            else tilted @ family.design
        )
        slopes = np.concatenate([own, features], 1)
        return objective, slopes, log_odds

    objective, slopes, log_odds = state(theta)
    for _ in range(N_STEPS):
        p = 0.5 * (1 + np.tanh(0.5 * log_odds))
        information = (slopes * (n_each * p * (1 - p))[:, None]).T @ slopes + precision + ridge
        gradient = slopes.T @ (n_each * (y - p)) - precision @ theta
        step = np.linalg.solve(information, gradient)
        step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-12))
        for _ in range(12):
            new = state(theta + step)
            if new[0] >= objective - 1e-12:
                break
            step = 0.5 * step
        else:
            break
        theta = theta + step
        gain, (objective, slopes, log_odds) = new[0] - objective, new
        if gain < TOLERANCE:
            break
    p = 0.5 * (1 + np.tanh(0.5 * log_odds))
    information = (slopes * (n_each * p * (1 - p))[:, None]).T @ slopes + precision + ridge
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    log_likelihood = float(n_each @ (y * log_odds - np.logaddexp(0.0, log_odds)))
    log_det_prior = np.linalg.slogdet(precision + ridge)[1]
    log_det = np.linalg.slogdet(information)[1]
    evidence = objective + 0.5 * (log_det_prior - log_det)
    return OddsFit(
        family, theta[:n_own], covariance[:n_own, :n_own], log_likelihood, float(evidence),
        theta[n_own:],
    )  # fmt: skip


def probability_missing(fit: OddsFit, p_obs: Floats, others: Floats | None = None) -> Floats:
    """Return the probability that each row's cell is missing."""
    log_odds = np.log(p_obs @ np.exp(np.clip(fit.family.gamma(fit.theta), -30.0, 30.0)))
    if others is not None:
        log_odds = log_odds + others @ fit.offset_coef
    return np.asarray(0.5 * (1 + np.tanh(0.5 * log_odds)))
