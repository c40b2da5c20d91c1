"""Areas under the ROC curve: against R, brute force and simulations."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import psmvae
from psmvae.describe.auc import Area, score_area
from psmvae.describe.predictors import level_area


def brute_force(score, positive):
    """The area and DeLong's variance from all pairs."""
    x, y = score[positive], score[~positive]
    wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    return wins.mean(), wins.mean(1).var(ddof=1) / len(x) + wins.mean(0).var(ddof=1) / len(y)


def test_variance_equals_that_of_survival():
    """R's survival, ``concordance(y ~ x)``: a jackknife that divides by n² and not n (n − 1)."""
    x = np.array([1, 2, 2, 3, 5, 5, 6, 8, 2, 4, 5, 5, 7, 9, 9, 10.0])
    area = score_area(x, np.arange(16) >= 8)
    assert area.auc == 0.734375
    assert area.variance == pytest.approx(0.01446533203125 * 8 / 7, rel=1e-12)


def test_area_of_all_pairs_of_rows():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 12, 90).astype(float)
    positive = rng.random((90, 3)) < [0.2, 0.5, 0.7]
    area = score_area(score, positive)
    for k in range(3):
        auc, variance = brute_force(score, positive[:, k])
        assert area.auc[k] == pytest.approx(auc, rel=1e-12)
        assert area.auc[k] == pytest.approx(roc_auc_score(positive[:, k], score), rel=1e-12)
        assert area.variance[k] == pytest.approx(variance, rel=1e-12)
    low, high = area.interval()
    np.testing.assert_allclose(high - low, 2 * 1.96 * np.sqrt(area.variance), rtol=1e-4)


def test_separated_rows_have_no_interval():
    area = score_area(np.arange(20.0), np.arange(20) >= 10)
    assert area.auc == 1
    assert np.isnan(area.interval()).all()
    low, high = Area(np.array(0.99), np.array(0.01)).interval()
    assert (low, high) == (pytest.approx(0.794, abs=1e-3), 1)


def test_cross_validated_areas_of_levels_are_a_half_without_a_relation():
    rng = np.random.default_rng(1)
    areas = [level_area(rng.integers(0, 8, 200), rng.random(200) < 0.3, rng) for _ in range(300)]
    auc = np.array([area.auc for area in areas])
    assert auc.mean() == pytest.approx(0.5, abs=3 * auc.std() / np.sqrt(300))
    low, high = np.array([area.interval() for area in areas]).T
    assert 0.9 < np.mean((low < 0.5) & (high > 0.5)) < 0.99


def test_cross_validated_area_of_levels():
    """Positive with probability 0.8, 0.5 and 0.2: the area of the true probabilities is 0.75."""
    rng = np.random.default_rng(2)
    codes = rng.permutation(np.arange(6000) % 3)
    area = level_area(codes, rng.random(6000) < np.array([0.5, 0.8, 0.2])[codes], rng)
    p = np.array([0.2, 0.5, 0.8])
    # P(score of a positive row > that of a negative one), ties counted half
    positive, negative = p / p.sum(), (1 - p) / (1 - p).sum()
    truth = sum(positive[i] * (negative[:i].sum() + negative[i] / 2) for i in range(3))
    assert area.auc == pytest.approx(truth, abs=4 * np.sqrt(area.variance))


@pytest.fixture(scope="module")
def frame():
    """b is missing where a is high, c where b is missing, and d at random."""
    rng = np.random.default_rng(3)
    n = 600
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["city"] = rng.choice(["Basel", "Ghent", "Lyon"], n)
    lost = rng.random(n) < 1 / (1 + np.exp(1 - 2 * frame["a"]))
    frame.loc[lost, "b"] = np.nan
    frame.loc[lost & (rng.random(n) < 0.7), "c"] = np.nan
    frame.loc[rng.random(n) < np.where(frame["city"] == "Lyon", 0.5, 0.1), "d"] = np.nan
    return frame


def test_predictors_of_holes(frame):
    found = psmvae.missingness(frame)
    rows = found.predictors.set_index(["column", "predictor", "by"])
    lost = frame["b"].isna().to_numpy()
    row = rows.loc[("b", "a", "value")]
    assert row["auc"] == pytest.approx(brute_force(frame["a"].to_numpy(), lost)[0], rel=1e-12)
    assert row["conf_low"] > 0.7
    assert (row["n_missing"], row["n_observed"]) == (lost.sum(), (~lost).sum())
    mask = rows.loc[("b", "c", "mask")]
    auc, variance = brute_force(frame["c"].isna().to_numpy().astype(float), lost)
    assert mask["auc"] == pytest.approx(auc, rel=1e-12)
    assert mask["conf_high"] == pytest.approx(auc + 1.959964 * np.sqrt(variance), rel=1e-6)
    # values are compared where they are observed
    seen = frame["d"].notna().to_numpy()
    auc, _ = brute_force(frame["d"].to_numpy()[seen], lost[seen])
    assert rows.loc[("b", "d", "value"), "auc"] == pytest.approx(auc, rel=1e-12)
    # the levels of city, and a column of its own strength first
    assert rows.loc[("d", "city", "value"), "conf_low"] > 0.6
    assert found.predictors.query("column == 'd'")["predictor"].iloc[0] == "city"
    assert ("a", "b", "value") not in rows.index
    assert ("b", "a", "mask") not in rows.index


def test_joint_areas(frame):
    joint = psmvae.missingness(frame).joint.set_index("column")
    assert joint.index.tolist() == ["b", "c", "d"]
    assert joint.loc["c", "auc"] > 0.9
    single = psmvae.missingness(frame).predictors.query("column == 'b' and by == 'value'")
    assert joint.loc["b", "auc"] > single["auc"].max()
    assert (joint["conf_low"] < joint["auc"]).all()
    assert (joint["conf_high"] <= 1).all()


def test_joint_area_sees_both_tails():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 1000))
    b[np.abs(a) > 1] = np.nan
    found = psmvae.missingness(np.column_stack([a, b]))
    assert found.joint["auc"].item() > 0.95
    assert abs(found.predictors["auc"][0] - 0.5) < 0.1


def test_joint_area_is_a_half_without_a_relation():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 8))
    x[rng.random(x.shape) < 0.2] = np.nan
    joint = psmvae.missingness(x).joint
    assert joint["auc"].mean() == pytest.approx(0.5, abs=0.05)
    assert ((joint["conf_low"] < 0.5) & (joint["conf_high"] > 0.5)).sum() >= 6


def test_too_few_cells_give_no_area():
    x = np.random.default_rng(6).normal(size=(100, 2))
    x[:9, 0] = np.nan
    found = psmvae.missingness(x)
    assert found.predictors[["auc", "conf_low", "conf_high"]].isna().all(axis=None)
    assert found.predictors["n_missing"].item() == 9
    assert np.isnan(found.joint["auc"].item())
    assert "fewer than 10 missing" in str(found)


def test_rows_are_drawn_above_the_limit():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(3000, 3))
    x[:150, 0] = np.nan
    x[:150, 1] += 1
    found = psmvae.missingness(x, max_rows=500)
    assert found.little.n_rows == found.joint["n_rows"].item() == 500
    assert found.predictors["n_missing"].tolist() == [150, 150]
    # half of the rows may be those with a hole, which are few
    assert found.joint["auc"].item() == pytest.approx(found.predictors["auc"][0], abs=0.06)
    assert str(psmvae.missingness(x, max_rows=500)) == str(found)
    other = psmvae.missingness(x, max_rows=500, random_state=1)
    assert other.little.statistic != found.little.statistic
    assert psmvae.missingness(x, max_rows=None).little.n_rows == 3000
