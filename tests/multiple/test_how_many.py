"""The number of imputations and Monte Carlo errors against published formulas."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from psmvae.multiple import Analyses
from psmvae.multiple.how_many import (
    fmi_upper_limit,
    how_many,
    imputations_needed,
    jackknife_error,
)
from psmvae.multiple.rubin import pool_scalars


def fits(m=10, backend="pandas"):
    rng = np.random.default_rng(0)
    results = [
        {"a": (rng.normal(0, 0.5), 1.0), "b": (2 + rng.normal(0, 0.3), 1.0)} for _ in range(m)
    ]
    return Analyses(results, backend=backend)


def test_the_quadratic_rule():
    # 1 + (.5 / .05)² / 2 = 51, 1 + (.1 / .05)² / 2 = 3, and never below 2
    assert imputations_needed(np.array([0.5, 0.1, 0.0]), 0.05).tolist() == [51, 3, 2]


def test_the_upper_limit_of_missing_information():
    # plogis(qlogis(fmi) + z * sqrt(2 / m)) of R's howManyImputations
    shifted = math.log(0.39 / 0.61) + 1.959963984540054 * math.sqrt(2 / 5)
    found = fmi_upper_limit(np.array([0.39, 0.0]), 5, 0.95)
    assert found == pytest.approx([1 / (1 + math.exp(-shifted)), 0.0])


def test_the_number_is_that_of_the_term_with_least_information():
    result = how_many(fits(), cv=0.05)
    table = result.summary()
    pooled = fits().pool()
    assert table["fmi"].tolist() == pytest.approx(pooled.pooled.fmi)
    assert result.m == table["m"].max() == math.ceil(1 + (table["fmi_high"].max() / 0.05) ** 2 / 2)
    assert result.m_now == 10
    assert f"{result.m} are needed" in repr(result)
    assert how_many(fits(), cv=0.1).m < result.m


def test_the_jackknife_of_a_mean_is_its_standard_error():
    x = np.random.default_rng(1).normal(size=12)
    left_out = np.array([np.delete(x, k).mean() for k in range(12)])
    assert jackknife_error(left_out) == pytest.approx(x.std(ddof=1) / np.sqrt(12))


def test_monte_carlo_errors():
    table = how_many(fits()).summary()
    b = fits().pool().pooled.b
    # the pooled estimate is a mean over imputations
    assert table["estimate_mce"].tolist() == pytest.approx(np.sqrt(b / 10))
    # standard error and p-value: the jackknife of White, Royston and Wood, written out
    estimate = np.array([[one["a"][0]] for one in fits()])
    errors, p_values = [], []
    for k in range(10):
        pooled = pool_scalars(np.delete(estimate, k, 0), np.ones((9, 1)))
        errors.append(math.sqrt(pooled.t[0]))
        t = abs(pooled.estimate[0]) / errors[-1]
        p_values.append(2 * stats.t.sf(t, pooled.df[0]))
    for name, values in (("std_error", errors), ("p_value", p_values)):
        spread = sum((value - np.mean(values)) ** 2 for value in values)
        assert table[f"{name}_mce"][0] == pytest.approx(math.sqrt(9 / 10 * spread))


def test_monte_carlo_errors_are_the_spread_over_repeated_imputations():
    rng = np.random.default_rng(2)
    estimate, variance = rng.normal(0, 0.5, (2000, 20, 1)), np.ones((20, 1))
    errors = [math.sqrt(pool_scalars(one, variance).t[0]) for one in estimate]
    found = [
        how_many(Analyses([{"a": (q, 1.0)} for q in one.ravel()])).columns["std_error_mce"][0]
        for one in estimate[:100]
    ]
    assert np.mean(found) == pytest.approx(np.std(errors), rel=0.1)


@pytest.mark.parametrize("how", [{"scale": "log"}, {"df": "rubin", "dfcom": 20.0}, {"dfcom": 9.0}])
def test_values_are_those_of_the_pooled_summary(how):
    rng = np.random.default_rng(3)
    ratios = Analyses([{"a": (rng.uniform(2, 3), 1.0)} for _ in range(8)])
    found, pooled = how_many(ratios, **how).summary(), ratios.pool(**how).summary()
    for name in ("estimate", "std_error", "p_value", "fmi"):
        assert found[name].tolist() == pytest.approx(pooled[name].tolist())
    if "scale" in how:
        # the jackknife of the geometric mean
        logs = np.log([one["a"][0] for one in ratios])
        means = np.exp([np.delete(logs, k).mean() for k in range(8)])
        assert found["estimate_mce"][0] == pytest.approx(7 / np.sqrt(8) * means.std(ddof=1))


def test_the_frame_is_of_the_library_of_the_table():
    assert isinstance(how_many(fits(backend="polars")).summary(), pl.DataFrame)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: how_many(fits(), cv=0), "cv must be"),
        (lambda: how_many(fits(), conf_level=95), "conf_level"),
        (lambda: how_many(fits(2)), "at least 3"),
        (lambda: how_many(Analyses([1.0, 2.0, 3.0])), "have none"),
    ],
)
def test_wrong_requests_are_errors(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_text_is_no_number():
    with pytest.raises(TypeError, match="cv must be a number, got '5'"):
        how_many(fits(), cv="5")
