"""The distribution of a cell among the rows where it is observed."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier

from psmvae.mechanism import observed as module
from psmvae.mechanism.bins import Bins
from psmvae.mechanism.leaves import Leaves
from psmvae.mechanism.observed import Observed, Residuals

SD = 0.6


@pytest.fixture(scope="module")
def column():
    """Values around a known prediction, a third of them missing."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(700, 3))
    prediction = features @ [1.0, 0.5, 0.0]
    values = prediction + SD * rng.normal(size=700)
    return features, prediction, values, rng.random(700) < 0.7


def fit(column, *, forest):
    features, prediction, values, observed = column
    bins = Bins.of(values[observed])
    made, found = Observed.fit(
        bins, features, prediction, values[observed], observed, forest=forest, seed=0, n_jobs=1,
    )  # fmt: skip
    return made, found


def truth(column, bins):
    edges = np.concatenate([[-np.inf], bins.edges, [np.inf]])
    return np.diff(stats.norm.cdf(edges, column[1][:, None], SD), axis=1)


@pytest.mark.parametrize("forest", [False, True])
def test_rows_are_distributions_near_the_truth(column, forest):
    made, found = fit(column, forest=forest)
    assert len(made.parts) == 2 + forest
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found > 0).all()
    assert made.weight.sum() == pytest.approx(1)
    expected = truth(column, made.bins)
    assert np.abs(found - expected).sum(1).mean() / 2 < 0.2
    # the mean is that of the truth
    np.testing.assert_allclose(
        (found @ made.bins.value).mean(), (expected @ made.bins.value).mean(), atol=0.05
    )


def test_other_rows_have_the_same_distribution(column):
    made, found = fit(column, forest=True)
    features, prediction, _, observed = column
    again = made.predict(features, prediction)
    np.testing.assert_allclose(again.sum(1), 1)
    # missing cells have no residual of their own: they are as new rows
    np.testing.assert_allclose(again[~observed], found[~observed], atol=1e-12)
    assert np.abs(again[observed] - found[observed]).max() > 1e-3


def test_levels_mix_the_probabilities_of_the_model_with_a_forest():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 2))
    proba = np.exp(features @ rng.normal(size=(2, 3)))
    proba /= proba.sum(1, keepdims=True)
    codes = (rng.random((400, 1)) > proba.cumsum(1)).sum(1).astype(float)
    observed = rng.random(400) < 0.8
    bins = Bins.of_levels(codes[observed], 3)
    made, found = Observed.fit(
        bins, features, proba, codes[observed], observed, forest=True, seed=0
    )
    assert made.parts[0] is None
    np.testing.assert_allclose(found.sum(1), 1)
    # the true probabilities have the larger weight
    assert made.weight[0] > 0.5


@pytest.mark.parametrize("row", [0, 30, 59])
def test_the_residual_of_a_row_is_left_out(row):
    prediction = np.random.default_rng(5).permutation(60).astype(float)
    values = prediction + 1e6 * (np.arange(60) == row)
    part = Residuals.of(prediction, values, similar=True)
    own = module._positions(part, prediction, np.ones(60, dtype=bool))
    spread = part.values(prediction, own).std(1)
    assert spread[row] == 0
    # its neighbours use it
    assert (spread[np.abs(prediction - prediction[row]) == 1] > 1e4).all()
    assert part.values(prediction).std(1)[row] > 1e4


def test_positions_follow_the_order_of_predictions_and_thinning(monkeypatch):
    rng = np.random.default_rng(2)
    prediction, observed = rng.normal(size=300), rng.random(300) < 0.6
    values = prediction[observed] + rng.normal(size=observed.sum())
    for kept in (4000, 40):
        monkeypatch.setattr(module, "MAX_KEPT", kept)
        part = Residuals.of(prediction[observed], values, similar=True)
        own = module._positions(part, prediction, observed)
        assert (own[~observed] == -1).all()
        rows = np.flatnonzero(own >= 0)
        assert len(rows) == min(kept, observed.sum())
        np.testing.assert_array_equal(part.prediction[own[rows]], prediction[rows])
        residual = np.full(300, np.nan)
        residual[observed] = values - prediction[observed]
        np.testing.assert_allclose(part.residual[own[rows]], residual[rows])


def test_residuals_of_similar_rows_have_their_spread():
    rng = np.random.default_rng(3)
    prediction = rng.uniform(0, 4, 3000)
    values = prediction + (0.1 + prediction) * rng.normal(size=3000)
    part = Residuals.of(prediction, values, similar=True)
    spread = part.values(np.array([0.5, 3.5])).std(1)
    np.testing.assert_allclose(spread, [0.6, 3.6], rtol=0.2)
    every = Residuals.of(prediction, values, similar=False).values(np.zeros(1))
    assert every.std() == pytest.approx((values - prediction).std(), rel=0.05)


def test_leaves_predict_as_the_forest_of_scikit_learn(column):
    features, _, values, observed = column
    at = (values[observed] > 0).astype(np.intp) + (values[observed] > 1)
    made, found = Leaves.fit(features, at, observed, 4, 5, None)
    assert found.shape == (700, 4)
    # the level that does not occur has probability 0
    assert (found[:, 3] == 0).all()
    np.testing.assert_allclose(found.sum(1), 1)
    forest = RandomForestClassifier(
        60, min_samples_leaf=5, max_features=0.4, oob_score=True, random_state=5
    ).fit(features[observed], at)
    np.testing.assert_allclose(
        found[~observed][:, :3], forest.predict_proba(features[~observed]), atol=1e-6
    )
    np.testing.assert_allclose(found[observed][:, :3], forest.oob_decision_function_)
    np.testing.assert_allclose(
        made.predict(features)[:, :3], forest.predict_proba(features), atol=1e-6
    )


def test_a_forest_is_grown_on_some_rows_of_a_long_table(column, monkeypatch):
    monkeypatch.setattr("psmvae.mechanism.leaves.MAX_ROWS", 120)
    features, _, values, observed = column
    _, found = Leaves.fit(features, (values[observed] > 0).astype(np.intp), observed, 2, 0, None)
    np.testing.assert_allclose(found.sum(1), 1)
    own = found[observed][np.arange(observed.sum()), (values[observed] > 0).astype(int)]
    assert own.mean() > 0.6
