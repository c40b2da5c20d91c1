"""Marginal likelihoods of a column's masks, for Bayes factors between explanations.

A held-out likelihood charges little for parameters: a regression on all other columns comes within
a nat or two of the value of the cell although its coefficients are fitted to it. A marginal
likelihood averages over the prior, and so charges for each coefficient. The rivals are sparse,
because masks usually depend on few columns: any function of one column, a linear function of two,
with or without their product, or a linear function of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from psmvae.mechanism.bins import N_BINS, Bins
from psmvae.mechanism.families import SD_LEVEL, fit_families
from psmvae.mechanism.odds import Family, fit_odds
from psmvae.mechanism.rivals import MAX_FEATURES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

# Prior probabilities of one, two and all columns.
ONE, TWO, ALL = 0.5, 0.25, 0.25
# Columns that are examined alone and in pairs: those that explain the masks best.
MAX_ALONE = 5
# Groups of values by which columns are ordered.
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
        Against the other columns: one, two with or without their product, or all, averaged over a
        prior.
    """

    one_column: float
    any_columns: float


def bayes_factors(
    evidence: float, features: Floats, group: Ints, is_mask: Bools, missing: Bools
) -> BayesFactors:
    """Compare the value of the cell with the other columns.

    Parameters
    ----------
    evidence : float
        Log marginal likelihood of the masks by the value of the cell.
    features : ndarray of shape (n_rows, n_features)
        The other columns, standardised, and their masks.
    group : ndarray of int of shape (n_features,)
        Column of each feature.
    is_mask : ndarray of bool of shape (n_features,)
        Whether a feature is the mask of its column.
    missing : ndarray of bool of shape (n_rows,)
        True where the cell is missing.
    """
    varies = features.std(0) > 0
    parts = [varies & (group == j) for j in np.unique(group[varies])]
    columns = [_Column.of(features[:, part], is_mask[part]) for part in parts]
    if not columns:
        return BayesFactors(np.nan, np.nan)
    columns.sort(key=lambda column: -column.explained(missing))
    alone = columns[:MAX_ALONE]
    one = [column.evidence(missing) for column in alone]
    every = np.concatenate([column.features for column in columns], 1)[:, :MAX_FEATURES]
    pairs = [np.hstack([a.features, b.features]) for a, b in combinations(alone, 2)]
    crossed = [
        np.hstack([pair, a.products(b)])
        for pair, (a, b) in zip(pairs, combinations(alone, 2), strict=True)
    ]
    explanations = [
        (ONE, one),
        (TWO, [_linear(each, missing) for each in pairs + crossed]),
        (ALL, [_linear(every, missing)]),
    ]
    total = sum(prior for prior, each in explanations if each)
    weighted = [
        np.log(prior / total / len(each)) + value for prior, each in explanations for value in each
    ]
    return BayesFactors(evidence - max(one), evidence - float(logsumexp(weighted)))


@dataclass(frozen=True, eq=False)
class _Column:
    """One of the other columns.

    ``values`` are the features other than masks. ``index`` is the bin of each row; ``masked`` rows
    are missing, and their bin says nothing. The bins of a column of several indicators are its
    levels, of which "missing" is one.
    """

    features: Floats
    values: Floats
    bins: Bins
    index: Ints
    masked: Bools
    ordered: bool

    @classmethod
    def of(cls, features: Floats, is_mask: Bools) -> Self:
        """Make a column of its features."""
        values, masked = features[:, ~is_mask], (features[:, is_mask] > 0).max(1, initial=False)
        if values.shape[1] == 1:
            bins = Bins.of(values[~masked, 0])
            return cls(features, values, bins, bins.index(values[:, 0]), masked, ordered=True)
        distinct, index = np.unique(features, axis=0, return_inverse=True)
        index = index.reshape(-1)
        # rare levels are one level
        rank = np.argsort(np.argsort(-np.bincount(index), kind="stable"), kind="stable")
        index, n = np.minimum(rank[index], N_BINS - 1), min(len(distinct), N_BINS)
        bins = Bins.of_levels(index.astype(np.float64), n)
        nowhere = np.zeros(len(index), dtype=bool)
        return cls(features, values, bins, index, nowhere, ordered=False)

    def evidence(self, missing: Bools) -> float:
        """Return the log marginal likelihood of the masks by any function of the column."""
        # rows with the same bin and mask are one row with a weight
        code, row = np.unique(2 * self.index + self.masked, return_inverse=True)
        weight = np.bincount(row).astype(np.float64)
        share = np.bincount(row, missing) / weight
        known = np.eye(len(self.bins))[code // 2]
        if not self.masked.any():
            return fit_families(
                known, share, self.bins, ordered=self.ordered, weight=weight
            ).evidence
        # the coefficient of the mask has the prior of a level
        masked = SD_LEVEL * (code % 2)[:, None].astype(np.float64)
        found = fit_families(known, share, self.bins, others=masked, weight=weight).evidence
        is_masked = np.eye(2)[code % 2]
        levels = Bins.of_levels(self.masked.astype(np.float64), 2)
        by_mask = fit_families(is_masked, share, levels, ordered=False, weight=weight).evidence
        return float(np.logaddexp(found, by_mask) - np.log(2))

    def products(self, other: _Column) -> Floats:
        """Return the products of values with those of another column: their interaction."""
        found = self.values[:, :, None] * other.values[:, None, :]
        return found.reshape(len(found), -1)[:, :MAX_FEATURES]

    def explained(self, missing: Bools) -> float:
        """Return the log-likelihood of the masks by the rates in groups of values."""
        group = self.index
        if self.ordered:
            edges = np.unique(np.quantile(self.index, np.arange(1, N_GROUPS) / N_GROUPS))
            group = np.where(self.masked, N_GROUPS, np.searchsorted(edges, self.index))
        n = int(group.max()) + 1
        counts = np.stack([np.bincount(group[missing == m], minlength=n) for m in (0, 1)])
        share = counts / np.maximum(counts.sum(0), 1)
        return float((counts * np.log(np.where(share > 0, share, 1.0))).sum())


def _linear(features: Floats, missing: Bools) -> float:
    """Return the log marginal likelihood of the masks by a linear function of the features."""
    # with a single bin, the odds are those of a logistic regression
    constant = Family("constant", np.ones((1, 1)), np.full((1, 1), PRECISION_CONSTANT))
    return fit_odds(np.ones((len(missing), 1)), missing, constant, features, PRECISION).evidence
