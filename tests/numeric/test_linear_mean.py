"""Linear predictions averaged with those of the networks, in small tables."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from psmvae import PSMVAEImputer, load
from psmvae.chained.predictors import Predictors
from psmvae.imputers import resolve
from psmvae.imputers.linear_mean import MIN_PATTERNS, PRIOR_WEIGHT, LinearMean, weights, work
from psmvae.mechanism.gaussian import N_CYCLES, Gaussian, encode


def linear_table(n=300, seed=0, rate=0.2):
    """Six columns that depend linearly on each other; also the complete table."""
    rng = np.random.default_rng(seed)
    complete = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 6)) + 0.2 * rng.normal(size=(n, 6))
    return np.where(rng.random(complete.shape) < rate, np.nan, complete), complete


@pytest.fixture(scope="module")
def fitted():
    table, complete = linear_table()
    return PSMVAEImputer(max_epochs=3, random_state=0).fit(table), table, complete


def gaussian_of(table):
    imputer = PSMVAEImputer(random_state=0)
    encoded = imputer._read(table)
    predictors = Predictors.fit(tuple(imputer.schema_.modelled), encoded.x, encoded.m)
    return Gaussian.fit(predictors, encoded.x, encoded.m, 0, masks=False), predictors, encoded


def test_weights_are_those_of_least_squares():
    """With many cells the prior does not matter, and independent errors have known weights."""
    rng = np.random.default_rng(0)
    value, noise = np.zeros(200_000), rng.normal(size=(2, 200_000))
    for sd, expected in ((1.0, 0.5), (2.0, 0.2), (0.5, 0.8)):
        found = weights([(value, noise[0], sd * noise[1])])
        np.testing.assert_allclose(found, expected, atol=0.01)


def test_weights_of_few_cells_are_near_the_prior():
    rng = np.random.default_rng(0)
    value = rng.normal(size=5)
    assert weights([(value[:0], value[:0], value[:0])]) == pytest.approx([PRIOR_WEIGHT])
    for exact in (0, 1):
        noise = rng.normal(size=5)
        parts = (value, value + noise) if exact == 0 else (value + noise, value)
        found = weights([(value, *parts)])[0]
        assert abs(found - PRIOR_WEIGHT) < 0.3
        assert (found > PRIOR_WEIGHT) == (exact == 1)


def test_a_column_keeps_its_own_weight():
    """Two columns: linear predictions are exact in one and useless in the other."""
    rng = np.random.default_rng(0)
    value = rng.normal(size=5000)
    noisy = value + rng.normal(size=5000)
    found = weights([(value, noisy, value), (value, noisy, 10 * rng.normal(size=5000))])
    assert found[0] > 0.9
    assert found[1] < 0.1


def test_em_gives_the_regression_of_the_observed_rows():
    """With one incomplete column, maximum likelihood is that regression (Anderson 1957)."""
    table, complete = linear_table(800)
    table[:, 1:] = complete[:, 1:]
    # missing by another column, so that observed and missing rows differ
    table[complete[:, 1] > 0.3, 0] = np.nan
    gaussian, predictors, encoded = gaussian_of(table)
    found = gaussian.predict(predictors, encoded.x, encoded.m, {0: ()}, observed=True)[0]
    seen = encoded.m[:, 0]
    design = np.column_stack([np.ones(800), encoded.x[:, 1:]])
    coef = np.linalg.lstsq(design[seen], encoded.x[seen, 0], rcond=None)[0]
    np.testing.assert_allclose(found, design @ coef, atol=0.05)


@pytest.mark.parametrize("rate", [0.0, 0.002])
def test_a_column_that_is_nearly_a_function_of_others_is_predicted_by_it(rate):
    """Radius by area and perimeter: from the identity, EM takes many steps to this regression."""
    complete, rng = load_breast_cancer().data, np.random.default_rng(5)
    high = complete[:, 0] > np.median(complete[:, 0])
    missing = high & (rng.random(len(complete)) < 0.8)
    table = complete.copy()
    table[:, 1:][rng.random((len(table), 29)) < rate] = np.nan
    table[missing, 0] = np.nan
    imputer = PSMVAEImputer(max_epochs=1, random_state=0, mask_model="latent").fit(table)
    linear, column = imputer.linear_mean_, imputer.schema_.modelled[0]
    found = linear.gaussian.predict(linear.predictors, *imputer._encode(table), {0: ()})[0]
    design = np.column_stack([np.ones(len(complete)), complete[:, 1:]])
    coef = np.linalg.lstsq(design[~missing], complete[~missing, 0], rcond=None)[0]
    errors = [
        np.sqrt(np.square(prediction - complete[:, 0])[missing].mean())
        for prediction in (design @ coef, column.center + column.scale * found)
    ]
    assert errors[1] < 1.2 * errors[0]


def test_cycles_reach_what_many_steps_reach():
    gaussian, predictors, encoded = gaussian_of(linear_table(200, rate=0.5)[0])
    z, seen = encode(predictors, encoded.x, encoded.m, masks=False)
    start = Gaussian(np.zeros(6), np.eye(6), masks=False)
    likelihoods = []
    for n_steps in (2 * N_CYCLES, 400):
        slow = start
        for _ in range(n_steps):
            slow = slow._step(z, seen)
        likelihoods.append(log_likelihood(slow, z, seen))
    after_as_many, limit = likelihoods
    found = log_likelihood(gaussian, z, seen)
    assert limit - found < 0.2 * (limit - after_as_many)


def log_likelihood(model, z, seen):
    from scipy.stats import multivariate_normal

    return sum(
        multivariate_normal(model.mean[s], model.covariance[np.ix_(s, s)]).logpdf(row[s])
        for row, s in zip(z, seen, strict=True)
        if s.any()
    )


def test_single_imputations_are_averages(fitted):
    """With weight 1 they are conditional means of the Normal, with weight 0 those of the model."""
    imputer, table, _ = fitted
    linear, ends = imputer.linear_mean_, []
    for weight in (0.0, 1.0):
        fixed = np.full(6, weight)
        imputer.linear_mean_ = LinearMean(linear.predictors, linear.gaussian, fixed)
        ends.append(imputer.transform(table))
    imputer.linear_mean_ = None
    np.testing.assert_array_equal(imputer.transform(table), ends[0])
    imputer.linear_mean_ = linear
    np.testing.assert_allclose(
        imputer.transform(table), ends[0] + linear.weight * (ends[1] - ends[0]), atol=1e-9
    )
    row = np.flatnonzero(np.isnan(table).any(1))[0]
    missing = np.isnan(table[row])
    encoded = imputer._encode(table)[0][row]
    mean, covariance = linear.gaussian.mean, linear.gaussian.covariance
    z = (encoded - linear.predictors.center) / linear.predictors.scale - mean
    coef = np.linalg.solve(covariance[np.ix_(~missing, ~missing)], covariance[~missing][:, missing])
    expected = (mean[missing] + z[~missing] @ coef) * linear.predictors.scale[missing]
    expected += linear.predictors.center[missing]
    columns = imputer.schema_.modelled
    units = [columns[j].center + columns[j].scale * v for j, v in
             zip(np.flatnonzero(missing), expected, strict=True)]  # fmt: skip
    np.testing.assert_allclose(ends[1][row, missing], units, atol=1e-9)


@pytest.mark.slow
def test_the_average_is_more_accurate_on_a_linear_table():
    errors = {}
    for name, settings in {"average": {}, "network": {"regression": None}}.items():
        total = 0.0
        for seed in range(2):
            table, complete = linear_table(seed=seed)
            imputer = PSMVAEImputer(random_state=seed, mask_model="none", **settings).fit(table)
            total += np.square(imputer.transform(table) - complete).mean()
        errors[name] = total
    assert errors["average"] < errors["network"]


@pytest.mark.filterwarnings("ignore:max_time")
@pytest.mark.parametrize(
    "settings",
    [
        {"regression": None},
        {"validation_fraction": 0.0},
        {"mask_model": "logistic"},
        {"max_time": 1e-6},
    ],
)
def test_when_there_are_no_linear_predictions(settings):
    imputer = PSMVAEImputer(max_epochs=1, random_state=0, **settings).fit(linear_table(120)[0])
    assert imputer.linear_mean_ is None


def test_large_tables_have_none(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", 100)
    imputer = PSMVAEImputer(max_epochs=1, random_state=0).fit(linear_table(120)[0])
    assert imputer.linear_mean_ is None
    monkeypatch.undo()
    monkeypatch.setattr(resolve, "MAX_LINEAR_WORK", 10)
    imputer.fit(linear_table(120)[0])
    assert imputer.linear_mean_ is None


def test_work_counts_patterns_and_encoded_columns():
    table, _ = linear_table(100)
    frame = pd.DataFrame(table).add_prefix("x")
    frame["g"] = np.resize(["a", "b", "c"], 100)
    imputer = PSMVAEImputer(random_state=0)
    imputer._read(frame)
    columns = imputer.schema_.modelled
    patterns = np.array(list(itertools.product([False, True], repeat=8)))
    assert work(columns, patterns) == 256 * 8**3
    assert work(columns, patterns[:10]) == MIN_PATTERNS * 8**3


def test_columns_of_levels_keep_the_predictions_of_the_model():
    table, complete = linear_table()
    frame = pd.DataFrame(table).add_prefix("x")
    frame["g"] = pd.Series(np.where(complete[:, 0] > 0, "high", "low")).where(
        np.arange(300) % 5 > 0
    )
    imputer = PSMVAEImputer(max_epochs=2, random_state=0).fit(frame)
    assert imputer.linear_mean_.weight[6] == 0
    assert (imputer.linear_mean_.weight[:6] > 0).all()
    assert set(imputer.transform(frame)["g"]) == {"high", "low"}


def test_files_keep_them(fitted, tmp_path):
    imputer, table, _ = fitted
    imputer.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        load(tmp_path / "model.safetensors").transform(table), imputer.transform(table)
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mean", np.zeros(5), "not those of its columns"),
        ("covariance", np.zeros((6, 5)), "not those of its columns"),
        ("weight", np.full(6, 1.5), "from 0 to 1"),
        ("weight", np.full(6, np.nan), "from 0 to 1"),
        ("scale", np.zeros(6), "must be positive"),
        ("mean", None, "damaged"),
    ],
)
def test_damaged_arrays_are_refused(fitted, name, value, message):
    linear = fitted[0].linear_mean_
    arrays = linear.arrays() | {name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(ValueError, match=message):
        LinearMean.restore(linear.predictors.columns, arrays, linear.predictors.levels)
