"""Little's test against closed forms, numerical maximum likelihood and published figures."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import psmvae


def direct_statistic(x):
    """d² with mean and covariance from numerical maximisation of the Normal likelihood."""
    d = x.shape[1]
    seen = ~np.isnan(x)
    at = np.tril_indices(d)

    def unpack(theta):
        root = np.zeros((d, d))
        root[at] = theta[d:]
        return theta[:d], root @ root.T

    def loss(theta):
        mu, sigma = unpack(theta)
        return -sum(
            stats.multivariate_normal.logpdf(row[o], mu[o], sigma[np.ix_(o, o)])
            for row, o in zip(x, seen, strict=True)
        )

    start = np.concatenate([np.nanmean(x, 0), np.diag(np.nanstd(x, 0))[at]])
    best = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-5})
    mu, sigma = unpack(best.x)
    total = 0.0
    for pattern in np.unique(seen, axis=0):
        rows = x[(seen == pattern).all(1)][:, pattern]
        away = rows.mean(0) - mu[pattern]
        total += len(rows) * away @ np.linalg.inv(sigma[np.ix_(pattern, pattern)]) @ away
    return total


def test_statistic_of_two_columns_in_closed_form():
    """With holes in y only, d² = Σ_j n_j (x̄_j − x̄)² / s², over the two patterns j."""
    rng = np.random.default_rng(1)
    x = rng.normal(3, 2, 80)
    y = x + rng.normal(size=80)
    lost = rng.random(80) < 0.4
    expected = sum(
        part.size * (part.mean() - x.mean()) ** 2 / x.var() for part in (x[lost], x[~lost])
    )
    test = psmvae.missingness(np.column_stack([x, np.where(lost, np.nan, y)])).little
    assert test.statistic == pytest.approx(expected, rel=1e-6)
    assert (test.df, test.n_rows, test.n_patterns) == (1, 80, 2)
    assert test.p_value == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-6)
    assert test.ratio == test.statistic


def test_statistic_by_numerical_maximum_likelihood():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + [1, -2, 5]
    x[rng.random(x.shape) < 0.25] = np.nan
    x[0] = np.nan
    # a row without a value is no pattern
    seen = x[~np.isnan(x).all(1)]
    test = psmvae.missingness(x).little
    assert test.statistic == pytest.approx(direct_statistic(seen), rel=1e-4)
    assert test.n_rows == len(seen) < 60


def test_statistic_does_not_depend_on_units():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100, 3))
    x[rng.random(x.shape) < 0.2] = np.nan
    first = psmvae.missingness(x).little.statistic
    again = psmvae.missingness(x * [1e-8, 1.0, 1e9] + [0, 5, 1e9]).little.statistic
    assert again == pytest.approx(first, rel=1e-6)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R has the data")
def test_figure_that_naniar_publishes(tmp_path):
    """The documentation of R's naniar: mcar_test(airquality) is 35.1, df 14, p 0.00142."""
    path = tmp_path / "airquality.csv"
    code = f'write.csv(datasets::airquality, "{path}", row.names = FALSE, na = "")'
    subprocess.run(["Rscript", "-e", code], check=True, capture_output=True)
    test = psmvae.missingness(pd.read_csv(path)).little
    assert f"{test.statistic:.1f} {test.df} {test.p_value:.5f}" == "35.1 14 0.00142"
    assert test.n_patterns == 4


def test_p_values_are_uniform_under_the_null_hypothesis():
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(200):
        x = rng.normal(size=(100, 2)) @ [[1, 0.6], [0, 0.8]]
        x[rng.random(x.shape) < 0.2] = np.nan
        variables = psmvae.describe.variables.read_variables(x)
        p_values.append(psmvae.describe.little.little_test(variables, None, rng).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_levels_are_coded_by_indicators():
    rng = np.random.default_rng(5)
    city = rng.choice(["Basel", "Ghent", "Lyon"], 90)
    y = rng.normal(size=90)
    y[rng.random(90) < 0.3] = np.nan
    text = pd.DataFrame({"city": city, "y": y})
    coded = pd.DataFrame({"Ghent": city == "Ghent", "Lyon": city == "Lyon", "y": y})
    first, second = psmvae.missingness(text).little, psmvae.missingness(coded).little
    assert first.statistic == pytest.approx(second.statistic, rel=1e-9)
    assert first.df == second.df == 2


def test_effect_size_and_its_interval():
    """The mean of x differs by one standard deviation between halves: 0.5 from the middle."""
    rng = np.random.default_rng(6)
    lost = np.arange(4000) % 2 == 0
    x = rng.normal(size=4000) + lost
    y = np.where(lost, np.nan, rng.normal(size=4000))
    test = psmvae.missingness(np.column_stack([x, y])).little
    # in units of the standard deviation of all rows, √1.25
    assert test.distance == pytest.approx(0.5 / np.sqrt(1.25), abs=0.03)
    assert test.distance_low < test.distance < test.distance_high
    n_low, n_high = (test.n_rows * d**2 for d in (test.distance_low, test.distance_high))
    assert stats.ncx2.cdf(test.statistic, 1, n_low) == pytest.approx(0.975)
    assert stats.ncx2.cdf(test.statistic, 1, n_high) == pytest.approx(0.025)


def test_columns_that_are_left_out():
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 100))
    frame = pd.DataFrame({"a": a, "b": b, "sum": a + b, "one": 1.0})
    frame["code"] = [f"c{i % 30}" for i in range(100)]
    plain = frame[["a", "b"]].copy()
    for table in (frame, plain):
        table.loc[:20, "b"] = np.nan
    test = psmvae.missingness(frame).little
    assert set(test.left_out) == {"one", "code", "sum"}
    assert test.df == 1
    assert test.statistic == pytest.approx(psmvae.missingness(plain).little.statistic)


def test_a_column_that_is_constant_among_complete_rows_only():
    """All rows of arm 0 lack a cell, and arm is 1 in the complete rows: it is no linear function.

    One complete row of arm 0 makes arm vary among them, and changes the statistic little.
    """
    rng = np.random.default_rng(5)
    arm = np.repeat([0.0, 1.0], 100)
    x = np.column_stack([arm, rng.normal(size=(200, 2)), 2 * arm])
    x[np.arange(100), 1 + np.arange(100) % 2] = np.nan
    x[100:150, 1] = np.nan
    test = psmvae.missingness(x).little
    # 2 · arm is one
    assert test.left_out == ("x3",)
    assert test.statistic == pytest.approx(direct_statistic(x[:, :3]), rel=1e-4)
    x[0, 1] = 0.0
    again = psmvae.missingness(x).little
    assert again.left_out == ("x3",)
    assert again.statistic == pytest.approx(test.statistic, rel=0.05)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[1.0], [np.nan], [3.0]], "one pattern"),
        ([[1.0, 2.0], [3.0, 4.0]], "one pattern"),
        ([[1.0, np.nan], [1.0, 2.0], [1.0, 2.0]], "no column with several values"),
        ([[1.0, 2.0, np.nan], [2.0, 1.0, 5.0], [3.0, np.nan, 1.0]], "singular"),
    ],
)
def test_not_available(table, reason):
    test = psmvae.missingness(table).little
    assert reason in test.reason
    for name in ("statistic", "p_value", "distance", "distance_low", "distance_high", "ratio"):
        assert np.isnan(getattr(test, name))


def test_no_step_of_em_for_fewer_rows_than_columns(monkeypatch):
    def no_step(*arguments):
        raise AssertionError

    monkeypatch.setattr("psmvae.describe.normal._em_step", no_step)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 30))
    table[rng.random(table.shape) < 0.1] = np.nan
    assert "too few rows" in psmvae.missingness(table).little.reason
