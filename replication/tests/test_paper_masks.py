"""The paper's masks and score: against NumPy's older functions, and against what it printed."""

import numpy as np
import pytest

from psmvae_paper import Cell
from psmvae_paper.measure import filled, measured, unfitted
from psmvae_paper.metrics import column_range, rmse
from psmvae_paper.paper import paper
from psmvae_paper.paper_masks import printed_mask, printed_order, printed_rmse
from psmvae_paper.protocol import make_problem


def table(n=400, d=6):
    return np.random.default_rng(1).normal(size=(n, d))


@pytest.mark.parametrize("seed", range(5))
def test_mcar_masks_use_legacy_generator(seed):
    # as the paper's program did
    np.random.seed(seed)  # noqa: NPY002
    missing = np.random.binomial(size=(400, 6), n=1, p=0.2) == 1  # noqa: NPY002
    m, sets = printed_mask(table(), "mcar", 0.2, seed)
    np.testing.assert_array_equal(m, ~missing)
    assert not sets.any()
    np.random.seed(seed)  # noqa: NPY002
    order = np.random.permutation(400)  # noqa: NPY002
    np.testing.assert_array_equal(printed_order(400, seed), order)


@pytest.mark.parametrize("mechanism", ["mnar", "mnar-mcar"])
def test_mnar_masks_hide_cells_above_median(mechanism):
    x = table()
    x[:5, 3] = np.nan
    # a column that no median splits is never drawn
    x[:, 0] = 1.0
    m, sets = printed_mask(x, mechanism, 0.9, 3)
    over = x > np.nanmedian(x, axis=0)
    (column,) = [j for j in range(6) if (over[:, j] == (sets == 1)).all()]
    assert column != 0
    above = over[:, column]
    share = (~m[above, column]).mean()
    assert share == pytest.approx(0.9 if mechanism == "mnar" else 0.5, abs=0.08)
    assert m[~above & ~np.isnan(x[:, column]), column].all()
    assert not m[np.isnan(x)].any()
    rest = np.delete(~m & ~np.isnan(x), column, axis=1).mean()
    assert rest == pytest.approx(0.0 if mechanism == "mnar" else 0.9, abs=0.03)


def test_unsupported_masks_are_rejected():
    with pytest.raises(ValueError, match="got 'mar'"):
        printed_mask(table(), "mar", 0.2, 0)
    with pytest.raises(ValueError, match="no column"):
        printed_mask(np.ones((30, 2)), "mnar", 0.2, 0)


def test_score_equals_error_if_mask_keeps_mean_and_deviation():
    x = table(4000, 2)
    m = np.ones(x.shape, dtype=bool)
    m[::2, 0] = False
    # the seen half has the values of the other
    x[1::2, 0] = x[::2, 0]
    guess = np.where(m, x, 0.3)
    error = rmse(x, guess, m, column_range(x), np.array([False, False]))
    assert printed_rmse(x, guess, m) == pytest.approx(error, rel=1e-4)


def score(dataset, mechanism, rate, method):
    """The mean over the paper's seeds of score and error."""
    found = []
    for seed in range(5):
        cell = Cell(dataset, mechanism, rate, seed, method, masks="paper")
        problem = make_problem(cell)
        imputer = unfitted(cell, problem, "cpu").fit(problem.incomplete)
        values = filled(imputer, problem)
        against = (problem.truth, values, problem.m, problem.scale, problem.discrete)
        found.append((printed_rmse(problem.truth, values, problem.m), rmse(*against)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(
    ("mechanism", "method"), [("mcar", "mean"), ("mnar", "mean"), ("mnar", "mice")]
)
def test_score_reproduces_printed_figures_for_breast(mechanism, method):
    printed, error = score("breast", mechanism, 0.8, method)
    assert printed == pytest.approx(
        paper("rmse80")["breast", mechanism, 0.8, method].mean, abs=2e-4
    )
    if mechanism == "mnar":
        # what was printed is far from the error of the same imputations
        assert abs(printed - error) > 0.03


@pytest.mark.data
@pytest.mark.parametrize("mechanism", ["mcar", "mnar"])
@pytest.mark.parametrize("dataset", ["letter", "wine", "adult", "spam"])
def test_score_reproduces_printed_figures_for_mean_imputation(dataset, mechanism):
    rate = 0.8 if dataset == "spam" else 0.2
    key = (dataset, mechanism, rate, "mean")
    printed, _ = score(dataset, mechanism, rate, "mean")
    assert printed == pytest.approx((paper("rmse20") | paper("rmse80"))[key].mean, abs=2e-4)


def test_cell_on_paper_masks_records_score_and_error():
    cell = Cell("breast", "mnar", 0.8, 0, "mean", masks="paper")
    problem = make_problem(cell)
    imputer = unfitted(cell, problem, "cpu").fit(problem.incomplete)
    found, _ = measured(cell, imputer, problem)
    assert found["rmse_printed"] != found["rmse"]
    other = Cell("breast", "mnar", 0.8, 0, "mean")
    assert not np.array_equal(problem.m, make_problem(other).m)
    assert "rmse_printed" not in measured(other, imputer, make_problem(other))[0]
