"""Marginal likelihoods of masks, and the Bayes factors made of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

from psmvae import MICEImputer
from psmvae.mechanism import evidence
from psmvae.mechanism.evidence import bayes_factors
from psmvae.mechanism.families import SD_CONSTANT, SD_LEVEL


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


def test_the_evidence_of_two_levels_is_the_integral():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 2, 200).astype(float)
    missing = rng.random(200) < np.where(level == 1, 0.6, 0.2)
    column = evidence._Column.of(level[:, None], np.zeros(1, dtype=bool))
    # log odds of a level: a constant and a part of its own, whose sum over the levels is 0
    constant, own = np.linspace(-8, 8, 321), np.linspace(-8, 8, 321)
    log_odds = constant[:, None, None] + own[:, None] * np.where(level == 1, 1.0, -1.0)
    precisions = SD_CONSTANT**-2, 2 * SD_LEVEL**-2
    total = log_likelihoods(log_odds, missing)
    for axis, values, precision in zip((1, 0), (constant, own), precisions, strict=True):
        density = 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * values**2
        total = total + np.expand_dims(density + np.log(values[1] - values[0]), axis)
    assert column.evidence(missing) == pytest.approx(float(logsumexp(total)), abs=0.15)


@pytest.mark.parametrize("n_levels", [0, 3])
def test_two_columns_may_interact(n_levels):
    rng = np.random.default_rng(5)
    a, b, c = rng.normal(size=(3, 500))
    others = np.stack([b, c], 1)
    if n_levels:
        others = np.column_stack([np.eye(n_levels)[rng.integers(0, n_levels, 500)][:, 1:], c])
    missing = rng.random(500) < expit(-0.7 + 1.5 * a * (2 * others[:, 0] - bool(n_levels)))
    features = np.column_stack([a, others])
    group = np.array([0] + [1] * (features.shape[1] - 2) + [2])
    is_mask = np.zeros(len(group), dtype=bool)
    found = bayes_factors(0.0, features, group, is_mask, missing)
    crossed = np.column_stack([features, a[:, None] * others[:, :-1]])
    # the explanation by the product is far better than those by one column
    assert found.any_columns < found.one_column - 10
    assert found.any_columns == pytest.approx(-evidence._linear(crossed, missing), abs=6)


def test_a_column_of_levels_is_one_column():
    rng = np.random.default_rng(3)
    code = rng.integers(0, 6, 600)
    missing = rng.random(600) < np.array([0.1, 0.6, 0.2, 0.7, 0.1, 0.5])[code]
    indicators = np.eye(6)[code][:, 1:]
    group, is_mask = np.zeros(5, dtype=int), np.zeros(5, dtype=bool)
    whole = bayes_factors(-400.0, indicators, group, is_mask, missing).one_column
    each = bayes_factors(-400.0, indicators, np.arange(5), is_mask, missing).one_column
    rate = missing.mean()
    constant = missing.sum() * np.log(rate) + (~missing).sum() * np.log1p(-rate)
    # six rates instead of two
    assert whole < each - 20
    assert -400.0 - whole > constant + 50


def test_an_incomplete_column_is_its_value_and_its_mask():
    rng = np.random.default_rng(4)
    x, masked = rng.normal(size=800), rng.random(800) < 0.3
    features = np.column_stack([np.where(masked, 0.0, x), masked])
    is_mask = np.array([False, True])
    by_both = rng.random(800) < np.where(masked, 0.1, np.where(x > 0, 0.8, 0.2))
    together = evidence._Column.of(features, is_mask).evidence(by_both)
    apart = [
        evidence._Column.of(features[:, [k]], np.zeros(1, dtype=bool)).evidence(by_both)
        for k in range(2)
    ]
    # the value with missing cells at the mean has a bin for them, which a region can fit
    assert together > max(apart) - 3
    by_mask = rng.random(800) < np.where(masked, 0.7, 0.1)
    alone = evidence._Column.of(features[:, 1:], np.zeros(1, dtype=bool)).evidence(by_mask)
    both = evidence._Column.of(features, is_mask).evidence(by_mask)
    assert alone - 1 < both < alone + 3


def test_many_levels_are_at_most_as_many_as_bins():
    code = np.arange(3000) % 200
    indicators = np.eye(200)[code][:, 1:]
    missing = np.random.default_rng(5).random(3000) < 0.3
    column = evidence._Column.of(indicators, np.zeros(199, dtype=bool))
    assert len(column.bins) == 32
    assert np.isfinite(column.evidence(missing))
    assert np.isfinite(column.explained(missing))


def test_the_rival_may_be_any_function_of_one_column():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(600, 4))
    # a mask by both tails is uncorrelated with the column
    missing = rng.random(600) < np.where(np.abs(features[:, 2]) > 1, 0.8, 0.1)
    rate = missing.mean()
    constant = missing.sum() * np.log(rate) + (~missing).sum() * np.log1p(-rate)
    found = bayes_factors(constant, features, np.arange(4), np.zeros(4, dtype=bool), missing)
    assert found.one_column < -60
    assert found.any_columns == pytest.approx(found.one_column - np.log(evidence.ONE / 4), abs=0.1)


def test_a_constant_is_no_rival():
    missing = np.arange(50) % 3 == 0
    column, is_mask = np.arange(2), np.zeros(2, dtype=bool)
    assert np.isnan(bayes_factors(-30.0, np.ones((50, 2)), column, is_mask, missing)).all()
    mixed = np.column_stack([np.ones(50), np.random.default_rng(0).normal(size=50)])
    alone = bayes_factors(-30.0, mixed[:, 1:], column[1:], is_mask[1:], missing)
    assert bayes_factors(-30.0, mixed, column, is_mask, missing) == alone
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


def test_a_mask_by_levels_is_not_attributed_to_a_value_that_they_predict():
    found = []
    for seed in range(5):
        rng = np.random.default_rng([800, seed])
        code, x = rng.integers(0, 6, 800), rng.normal(size=800)
        y = 0.7 * code + 0.5 * x + 0.7 * rng.normal(size=800)
        y[rng.random(800) < np.array([0.05, 0.1, 0.25, 0.45, 0.6, 0.75])[code]] = np.nan
        table = pd.DataFrame({"code": np.array(list("abcdef"))[code], "x": x, "y": y})
        found.append(MICEImputer(mask_model="auto", random_state=seed).fit(table).mechanism_["y"])
    certain = [one.chosen == "own value" and one.share_by_value > 0.8 for one in found]
    assert sum(certain) <= 1
