"""Explanations of the masks of a column, compared by the likelihood of masks that were held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psmvae.mechanism.families import Posterior, fit_collapsed
from psmvae.mechanism.odds import Family, fit_odds, probability_missing

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

N_FOLDS = 4
N_TREES, MIN_LEAF, FEATURE_FRACTION = 100, 5, 0.5
# Features of the logistic regression at most.
MAX_FEATURES = 200
# Precision of the prior of coefficients of the logistic regression, on standardised features.
PRECISION_LOGISTIC = 10.0
# Share of the missing rate in the forest's probabilities, so that none is 0 or 1.
FLOOR = 0.02


class Likelihoods(NamedTuple):
    """Log-likelihoods of held-out masks in nats, above that of a constant missing rate.

    NaN was not computed.

    Attributes
    ----------
    at_random : float
        The other columns explain the mask.
    own_value : float
        The value of the cell explains the mask.
    both : float
        The value of the cell and the other columns explain the mask.
    """

    at_random: float
    own_value: float
    both: float


def folds_of(n_rows: int, seed: int) -> Ints:
    """Deal the rows into folds."""
    return np.asarray(np.random.default_rng(seed).permutation(n_rows) % N_FOLDS)


def log_likelihood(probability: Floats, missing: Bools) -> float:
    """Return the log-likelihood of masks, in nats above that of their mean."""
    rate = np.clip(missing.mean(), 1e-12, 1 - 1e-12)
    constant = missing.sum() * np.log(rate) + (~missing).sum() * np.log1p(-rate)
    p = np.clip(probability, 1e-9, 1 - 1e-9)
    return float(np.where(missing, np.log(p), np.log1p(-p)).sum() - constant)


def own_value(
    posterior: Posterior, p_obs: Floats, missing: Bools, folds: Ints, others: Floats | None = None
) -> Floats:
    """Return the probability of each mask by the value of the cell, from the other folds."""

    def fitted(train: Bools) -> Floats:
        rows = np.flatnonzero(~train)
        total = np.zeros(len(rows))
        for weight, fit in zip(posterior.weight, posterior.fits, strict=True):
            features = None if others is None else others[train]
            n_others = 0 if others is None else others.shape[1]
            # the fit to all folds may be one without the other columns
            known = len(fit.offset_coef) == n_others
            start = np.append(fit.theta, fit.offset_coef if known else np.zeros(n_others))
            found = fit_collapsed(p_obs[train], missing[train], fit.family, features, start)
            held_out = None if others is None else others[rows]
            total += weight * probability_missing(found, p_obs[rows], held_out)
        return total

    return _by_fold(fitted, folds)


def logistic(features: Floats, missing: Bools, folds: Ints) -> Floats:
    """Return the probability of each mask by a logistic regression on the other columns.

    Of many columns, the regression uses the `MAX_FEATURES` most correlated with the mask.
    """
    # with a single bin, the odds are those of a logistic regression
    ones = np.ones((len(features), 1))
    constant = Family("constant", np.ones((1, 1)), np.full((1, 1), 1e-4))

    def fitted(train: Bools) -> Floats:
        used = features
        if features.shape[1] > MAX_FEATURES:
            away = missing[train] - missing[train].mean()
            used = features[:, np.argsort(-np.abs(away @ features[train]))[:MAX_FEATURES]]
        fit = fit_odds(ones[train], missing[train], constant, used[train], PRECISION_LOGISTIC)
        return probability_missing(fit, ones[~train], used[~train])

    return _by_fold(fitted, folds)


def forest(features: Floats, missing: Bools, seed: int, n_jobs: int | None) -> Floats:
    """Return the probability of each mask by a random forest on the other columns, out of bag."""
    from sklearn.ensemble import RandomForestClassifier

    model: Any = RandomForestClassifier(
        N_TREES,
        min_samples_leaf=MIN_LEAF,
        max_features=FEATURE_FRACTION,
        oob_score=True,
        n_jobs=n_jobs,
        random_state=seed,
    )
    model.fit(features, missing)
    rate = missing.mean()
    found = np.nan_to_num(model.oob_decision_function_[:, 1], nan=rate)
    return np.asarray((1 - FLOOR) * found + FLOOR * rate)


def _by_fold(fitted: Callable[[Bools], Floats], folds: Ints) -> Floats:
    found = np.empty(len(folds))
    for k in range(N_FOLDS):
        found[folds == k] = fitted(folds != k)
    return found
