"""Marginal likelihoods of masks, and the Bayes factors made of them."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from psmvae import MICEImputer
from psmvae.mechanism import evidence
from psmvae.mechanism.evidence import bayes_factors


def log_likelihoods(log_odds, missing):
    """Log-likelihood of masks ``(row,)`` by log odds ``(..., row)``."""
    return np.where(missing, log_odds, 0.0).sum(-1) - np.logaddexp(0.0, log_odds).sum(-1)


@pytest.mark.parametrize(("n", "slope"), [(40, 0.0), (100, 1.0), (300, 2.0)])
def test_the_evidence_of_a_linear_function_is_the_integral(n, slope):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    missing = rng.random(n) < expit(slope * x - 0.5)
    constant, coef = np.linspace(-6, 6, 241), np.linspace(-5, 5, 201)
    total = log_likelihoods(constant[:, None, None] + coef[:, None] * x, missing)
    precisions = evidence.PRECISION_CONSTANT, evidence.PRECISION
    for axis, values, precision in zip((1, 0), (constant, coef), precisions, strict=True):
        density = 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * values**2
        total = total + np.expand_dims(density + np.log(values[1] - values[0]), (axis))
    found = evidence._linear(x[:, None], missing)
    assert found == pytest.approx(float(logsumexp(total)), abs=0.1)


def test_the_rival_may_be_any_function_of_one_column():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(600, 4))
    # a mask by both tails is uncorrelated with the column
    missing = rng.random(600) < np.where(np.abs(features[:, 2]) > 1, 0.8, 0.1)
    rate = missing.mean()
    constant = missing.sum() * np.log(rate) + (~missing).sum() * np.log1p(-rate)
    found = bayes_factors(constant, features, missing)
    assert found.one_column < -60
    assert found.any_columns == pytest.approx(found.one_column - np.log(evidence.ONE / 4), abs=0.1)


def test_a_constant_is_no_rival():
    missing = np.arange(50) % 3 == 0
    assert np.isnan(bayes_factors(-30.0, np.ones((50, 2)), missing)).all()
    mixed = np.column_stack([np.ones(50), np.random.default_rng(0).normal(size=50)])
    alone = bayes_factors(-30.0, mixed[:, 1:], missing)
    assert bayes_factors(-30.0, mixed, missing) == alone
    assert np.isfinite(alone).all()


def chosen(n, by, seed):
    """What is chosen for y = 1 + x1 + .5 x2 + e with correlated x1, x2, x3."""
    rng = np.random.default_rng([n, seed])
    x = rng.multivariate_normal(np.zeros(3), 0.4 + 0.6 * np.eye(3), n, method="cholesky")
    y = 1 + x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n)
    log_odds = 1.5 * x[:, 0] - 0.5 if by == "x1" else 1.5 * (y - 1) - 0.5
    y[rng.random(n) < expit(log_odds)] = np.nan
    imputer = MICEImputer(mask_model="auto", random_state=seed).fit(np.column_stack([y, x]))
    return imputer.mechanism_["x0"].chosen


def test_one_column_is_told_from_a_value_that_it_predicts():
    # the regression on x1 and x2 has a correlation of .93 with x1
    by_column = [chosen(300, "x1", seed) for seed in range(8)]
    by_value = [chosen(500, "own value", seed) for seed in range(6)]
    assert by_column.count("own value") <= 1
    assert by_value.count("own value") >= 5
