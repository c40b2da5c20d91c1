"""Marginal likelihoods of a column's masks, for Bayes factors between explanations.

A held-out likelihood charges little for parameters: a regression on all other columns comes within
a nat or two of the value of the cell although its coefficients are fitted to it. A marginal
likelihood averages over the prior, and so charges for each coefficient. The rivals are sparse,
because masks usually depend on few columns: any function of one column, a linear function of two,
or a linear function of all.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from psmvae.mechanism.bins import Bins
from psmvae.mechanism.families import fit_families
from psmvae.mechanism.odds import Family, fit_odds
from psmvae.mechanism.rivals import MAX_FEATURES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Prior probabilities of one, two and all columns.
ONE, TWO, ALL = 0.5, 0.25, 0.25
# Features that are examined alone and in pairs: those that explain the masks best.
MAX_ALONE = 5
# Groups by which features are ordered.
N_GROUPS = 8
# Prior precision of coefficients, for one standard deviation of a feature, and of the constant.
PRECISION, PRECISION_CONSTANT = 1.0, 0.04


class BayesFactors(NamedTuple):
    """Logarithms of Bayes factors, in nats: positive ones favour the value of the cell.

    NaN was not computed.

    Attributes
    ----------
    one_column : float
        Against that one of the other columns that explains the masks best.
    any_columns : float
        Against the other columns: one, two or all, averaged over a prior.
    """

    one_column: float
    any_columns: float


def bayes_factors(evidence: float, features: Floats, missing: Bools) -> BayesFactors:
    """Compare the value of the cell with the other columns.

    Parameters
    ----------
    evidence : float
        Log marginal likelihood of the masks by the value of the cell.
    features : ndarray of shape (n_rows, n_features)
        The other columns, standardised.
    missing : ndarray of bool of shape (n_rows,)
        True where the cell is missing.
    """
    used = features[:, features.std(0) > 0]
    if not used.shape[1]:
        return BayesFactors(np.nan, np.nan)
    explained = np.array([_explained(x, missing) for x in used.T])
    best = np.argsort(-explained, kind="stable")
    alone = used[:, best[:MAX_ALONE]]
    pairs = combinations(range(alone.shape[1]), 2)
    one = [_by_one(x, missing) for x in alone.T]
    parts = [
        (ONE, one),
        (TWO, [_linear(alone[:, list(pair)], missing) for pair in pairs]),
        (ALL, [_linear(used[:, best[:MAX_FEATURES]], missing)]),
    ]
    total = sum(prior for prior, each in parts if each)
    weighted = [
        np.log(prior / total / len(each)) + value for prior, each in parts for value in each
    ]
    return BayesFactors(evidence - max(one), evidence - float(logsumexp(weighted)))


def _by_one(feature: Floats, missing: Bools) -> float:
    """Return the log marginal likelihood of the masks by any function of one feature."""
    bins = Bins.of(feature)
    known = np.eye(len(bins))[bins.index(feature)]
    return fit_families(known, missing, bins, coarse=True).evidence


def _linear(features: Floats, missing: Bools) -> float:
    """Return the log marginal likelihood of the masks by a linear function of the features."""
    # with a single bin, the odds are those of a logistic regression
    constant = Family("constant", np.ones((1, 1)), np.full((1, 1), PRECISION_CONSTANT))
    return fit_odds(np.ones((len(missing), 1)), missing, constant, features, PRECISION).evidence


def _explained(feature: Floats, missing: Bools) -> float:
    """Return the log-likelihood of the masks by the rates in groups of a feature."""
    edges = np.unique(np.quantile(feature, np.arange(1, N_GROUPS) / N_GROUPS))
    group = np.searchsorted(edges, feature)
    counts = np.stack([np.bincount(group[missing == m], minlength=len(edges) + 1) for m in (0, 1)])
    share = counts / np.maximum(counts.sum(0), 1)
    return float((counts * np.log(np.where(share > 0, share, 1.0))).sum())
