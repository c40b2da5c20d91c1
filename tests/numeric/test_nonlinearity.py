"""Whether nonlinear terms improve regressions of columns on each other, and what follows."""

import numpy as np
import pandas as pd
import pytest

from psmvae import PSMVAEImputer
from psmvae.chained.nonlinearity import MAX_PREDICTORS, nonlinear_gain
from psmvae.kinds import Column


def gain(x, m=None, kinds=None):
    kinds = kinds or ["real"] * x.shape[1]
    columns = tuple(Column(f"x{j}", kind, "Float64", 9) for j, kind in enumerate(kinds))
    m = np.ones(x.shape, dtype=bool) if m is None else m
    return nonlinear_gain(columns, np.where(m, x, 0.0), m, 0)


def linear(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(n, 6))


def square(n=1000, noise=0.5, seed=0):
    """Return a column and its square plus noise, and two columns that are independent of them."""
    x = np.random.default_rng(seed).normal(size=(n, 4))
    x[:, 1] = (x[:, 0] ** 2 - 1) / 2**0.5 + noise * x[:, 1]
    return x / x.std(0)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_nothing_is_gained_in_a_linear_table(rate):
    x = linear()
    m = np.random.default_rng(1).random(x.shape) >= rate
    assert gain(x, m) < 0.01


def test_the_gain_of_a_square_is_that_of_the_exact_regressions():
    # The square is explained up to its noise: .2 of its variance is left. Given it, nothing linear
    # or nonlinear is known of the sign of the first column. The others are independent: of the
    # squared errors 1 + 1 + 1 + 1, one becomes .2.
    assert gain(square(20_000)) == pytest.approx(0.2, abs=0.02)


def test_the_gain_in_a_table_with_many_columns():
    # A line and a square of the same source, beside columns with too few observed cells to be
    # predicted: variances 1, 1 and .5 of the noise. Linear regression leaves 1.5 / 2.5 of the
    # second column and the same of the first, the exact ones less.
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 2 + 2 * MAX_PREDICTORS))
    x[:, 1] = x[:, 0] + (x[:, 0] ** 2 - 1) / 2**0.5 + 0.5**0.5 * x[:, 1]
    x /= x.std(0)
    m = np.ones(x.shape, dtype=bool)
    m[90:, 2:] = False
    alone = gain(x[:, :2])
    assert alone > 1 / 3  # 1 - (.6 + .2) / (.6 + .6), were the first column not explained better
    assert gain(x, m) == pytest.approx(alone, abs=0.05)


def test_missing_predictors_and_levels_are_allowed():
    x = square()
    x[:, 3] = np.arange(len(x)) % 2
    m = np.random.default_rng(1).random(x.shape) >= 0.2
    columns = [Column(f"x{j}", "real", "Float64", 9) for j in range(3)]
    columns.append(Column("g", "binary", "String", 2, levels=("a", "b")))
    assert nonlinear_gain(tuple(columns), np.where(m, x, 0.0), m, 0) > 0.1


@pytest.mark.parametrize("n_observed", [0, 60])
def test_columns_with_few_observed_cells_are_left_out(n_observed):
    x = square(300)
    m = np.ones(x.shape, dtype=bool)
    m[n_observed:, :2] = False
    assert gain(x, m) < 0.02


def test_nothing_is_gained_without_columns_to_regress_on():
    assert gain(square()[:, :1]) == 0.0
    constant = np.ones((300, 2))
    assert gain(constant) == 0.0


def config(x, **parameters):
    imputer = PSMVAEImputer(n_sets=1, device="cpu", random_state=0, **parameters)
    imputer._read(pd.DataFrame(x).add_prefix("x"))
    return imputer.config_


def test_a_regression_is_used_in_small_tables_with_nonlinear_relations():
    assert config(linear()).regression is None
    assert config(square()).regression is not None
    assert config(square(499)).regression is None
    assert config(square(), regression=None).regression is None
    assert config(square(), validation_fraction=0.0).regression is None


def test_a_regression_lowers_the_error_of_a_square():
    x = square(600, noise=0.2)
    missing = np.zeros(x.shape, dtype=bool)
    missing[:120, 1] = True
    incomplete = np.where(missing, np.nan, x)
    error = {}
    for regression in (None, "auto"):
        imputer = PSMVAEImputer(regression=regression, random_state=0, max_epochs=40, device="cpu")
        filled = imputer.fit_transform(incomplete)
        error[regression] = np.sqrt(np.mean((filled - x)[missing] ** 2))
    assert imputer.linear_mean_ is not None
    assert error["auto"] < 0.8 * error[None]
