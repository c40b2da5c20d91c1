"""Cells that are missing whenever another column is, beside cells missing by their value."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import psmvae
from psmvae import MICEImputer
from psmvae.chained.tilt import LogOdds
from psmvae.mechanism.column import factor
from psmvae.mechanism.dropout import missing_with

DRAWS = 10


def trial(n=1500, seed=0):
    """y goes missing by its value, and whenever z is: a fifth of the rows leave before z."""
    rng = np.random.default_rng(seed)
    # with a single column that predicts y, the masks could as well depend on that
    x, w = rng.normal(size=(2, n))
    y = 0.7 * x + 0.7 * w + 0.6 * rng.normal(size=n)
    left = rng.random(n) < 0.2
    own = rng.random(n) < 1 / (1 + np.exp(1 - 2 * y))
    z = np.where(left, np.nan, 0.5 * x + rng.normal(size=n))
    frame = pd.DataFrame({"x": x, "z": z, "y": np.where(left | own, np.nan, y), "w": w})
    return frame, y, left


def test_a_column_that_is_never_missing_without_y_is_found():
    m = trial()[0].notna().to_numpy()
    assert missing_with(m, 2) == (1,)
    assert missing_with(m, 1) == ()
    assert missing_with(m, 0) == ()


def test_independent_masks_are_not_found():
    rng = np.random.default_rng(0)
    m = rng.random((400, 6)) < 0.5
    assert all(missing_with(m, j) == () for j in range(6))


def test_masks_that_are_almost_all_missing_are_not_found():
    m = np.random.default_rng(1).random((300, 5)) < 0.02
    assert all(missing_with(m, j) == () for j in range(5))


def test_equal_masks_leave_no_rows_and_are_not_found():
    lost = np.random.default_rng(2).random(300) < 0.3
    assert missing_with(np.column_stack([~lost, ~lost]), 0) == ()


def test_factor_restores_the_distribution_of_all_cells():
    value = np.linspace(-4, 4, 81)
    p, gamma = norm.pdf(value), 0.5 + 1.5 * value
    observed, missing = p / (1 + np.exp(gamma)), p / (1 + np.exp(-gamma))
    found = observed * factor(gamma, np.array([True, False]))
    for row, expected in zip(found, (missing, p), strict=True):
        np.testing.assert_allclose(row / row.sum(), expected / expected.sum(), rtol=1e-10)


def test_log_odds_of_rows_to_which_they_do_not_apply():
    value = np.array([-1.0, 0.0, 1.0])
    odds = LogOdds(np.array([-0.5, 0.5]), value, 2 * value[None], np.array([True]), (1,))
    applies = odds.applies(np.array([[True, True], [True, False]]))
    np.testing.assert_array_equal(applies, [True, False])
    x = np.array([[0.7, 0.7]])
    np.testing.assert_allclose(odds([0], x, applies), [[1.4, np.log1p(np.exp(1.4))]])
    levels = odds.of_levels([0], applies)
    np.testing.assert_allclose(levels[0], [2 * value, np.log1p(np.exp(2 * value))])


# most of the largest values are missing, so that draws exceed the observed ones
@pytest.mark.filterwarnings("ignore:imputed values outside")
@pytest.mark.parametrize("read", [False, True])
def test_imputations_of_both_reasons_are_unbiased(read, tmp_path):
    frame, y, left = trial()
    imputer = MICEImputer(mask_model="auto", random_state=0).fit(frame)
    if read:
        imputer.save(tmp_path / "m.safetensors")
        imputer = psmvae.load(tmp_path / "m.safetensors")
    finding = imputer.mechanism_["y"]
    assert finding.chosen == "own value"
    assert finding.n_joint == left.sum()
    assert f"{left.sum()} of its" in imputer.mechanism_.sentence("y")
    drawn = np.mean([t["y"] for t in imputer.sample(frame, DRAWS, random_state=0)], axis=0)
    single = imputer.transform(frame)["y"].to_numpy()
    own = frame["y"].isna().to_numpy() & ~left
    without = MICEImputer(random_state=0).fit(frame).transform(frame)["y"].to_numpy()
    assert without[own].mean() < y[own].mean() - 0.4
    for rows in (left, own):
        # the standard error of each mean is about .04, and that of γ adds to it
        assert abs(drawn[rows].mean() - y[rows].mean()) < 0.13
        # single values of missing cells are not beyond the observed ones
        assert abs(single[rows].mean() - y[rows].mean()) < 0.2


def test_warning_about_an_assumption_that_cannot_be_used():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    frame.loc[:5, "a"] = np.nan
    with pytest.warns(UserWarning, match="cells of 'a' are missing because of their value, but"):
        MICEImputer(mask_model=psmvae.SelfMask(columns=["a"]), random_state=0).fit(frame)
