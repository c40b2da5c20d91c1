"""The imputer recovers the parameters of simulated data."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from psmvae import LogisticMask, PSMVAEImputer


def two_mask_patterns(n_rows=500, seed=0):
    """Two classes of rows: one misses the first three columns, the other the last three."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n_rows)
    x = rng.normal(size=(n_rows, 1)) + 0.5 * rng.normal(size=(n_rows, 6))
    rate = np.where((np.arange(6) < 3) ^ (label[:, None] == 0), 0.7, 0.05)
    return np.where(rng.random((n_rows, 6)) < rate, np.nan, x), label


@pytest.mark.parametrize(
    "mask", ["latent", pytest.param("logistic-ceiling", marks=pytest.mark.slow)]
)
def test_predict_set_recovers_two_mask_patterns(mask):
    table, label = two_mask_patterns()
    imputer = PSMVAEImputer(mask, n_sets=2, max_epochs=10, random_state=0).fit(table)
    assert adjusted_rand_score(label, imputer.predict_set(table)) > 0.8


def nonlinear_table(n_rows, seed):
    """Five nonlinear functions of two variables with noise, 20 % MCAR."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, n_rows))
    x = np.stack([u, v, u + v, u**2 / 2, np.sin(2 * v)], 1) + 0.3 * rng.normal(size=(n_rows, 5))
    missing = rng.random(x.shape) < 0.2
    return np.where(missing, np.nan, x), x, missing


@pytest.mark.slow
def test_95_percent_intervals_of_draws_have_nominal_coverage():
    table, truth, missing = nonlinear_table(600, seed=1)
    imputer = PSMVAEImputer(max_epochs=40, random_state=0).fit(table)
    draws = np.stack(imputer.sample(table, n=100))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    coverage = ((low <= truth) & (truth <= high))[missing].mean()
    assert 0.92 <= coverage <= 0.98


@pytest.mark.slow
def test_self_masking_reduces_the_bias_where_high_values_are_missing():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    x = z[:, None] + 0.6 * rng.normal(size=(1000, 3))
    missing = (x[:, 0] > 0.3) & (rng.random(1000) < 0.8)
    table = x.copy()
    table[missing, 0] = np.nan
    bias = {}
    for name, mask in (("none", "none"), ("logistic-ceiling", LogisticMask(columns=["x0"]))):
        imputer = PSMVAEImputer(mask, n_sets=1, max_epochs=5, random_state=0).fit(table)
        bias[name] = (imputer.transform(table)[:, 0] - x[:, 0])[missing].mean()
    assert bias["none"] < -0.3
    assert abs(bias["logistic-ceiling"]) < 0.5 * abs(bias["none"])


@pytest.mark.slow
def test_self_masking_adds_little_bias_where_cells_are_missing_at_random():
    """Also with skewed residuals, which a selection model can mistake for selection."""
    table, truth, missing = nonlinear_table(800, seed=2)
    # averaged over members: the bias of one varies by 0.1 to 0.3, even without a mask model
    imputer = PSMVAEImputer(
        "logistic-ceiling", n_sets=1, n_members=3, max_epochs=5, random_state=0
    ).fit(table)
    error = (imputer.transform(table) - truth) * missing
    bias = error.sum(0) / missing.sum(0) / truth.std(0)
    assert np.abs(bias).max() < 0.2
