"""What goes missing, who sees what, and what is scored."""

import numpy as np
import pandas as pd
import pytest

from psmvae.simulate import mcar
from psmvae_paper import EXPERIMENTS, Cell
from psmvae_paper.datasets import load
from psmvae_paper.measure import fit, measured, quietly, unfitted
from psmvae_paper.paper import paper
from psmvae_paper.protocol import _problem, make_problem, part


def cell(**changes):
    message = {"dataset": "breast", "mechanism": "mcar", "rate": 0.2, "seed": 0, "method": "mean"}
    return Cell(**(message | changes))


def written(tmp_path, table):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    return str(path)


def test_mask_is_drawn_before_split():
    x = load("breast").X.to_numpy()
    problem = make_problem(cell(seed=3))
    rng = np.random.default_rng(3)
    m = mcar(x, 0.2, rng).m
    order = rng.permutation(len(x))
    np.testing.assert_array_equal(problem.truth, x[order[:455]])
    np.testing.assert_array_equal(problem.m, m[order[:455]])
    np.testing.assert_array_equal(problem.test_truth, x[order[-56:]])
    np.testing.assert_array_equal(problem.y, load("breast").y[order[:455]])
    np.testing.assert_array_equal(problem.test_y, load("breast").y[order[-56:]])


def test_method_gets_observed_cells_only():
    problem = make_problem(cell())
    seen = problem.incomplete.to_numpy()
    np.testing.assert_array_equal(~np.isnan(seen), problem.m)
    np.testing.assert_array_equal(seen[problem.m], problem.truth[problem.m])
    test = problem.test_incomplete.to_numpy()
    np.testing.assert_array_equal(~np.isnan(test), problem.test_m)


def test_problem_does_not_depend_on_method():
    first = make_problem(cell(mechanism="mnar", n_rows=200, n_columns=7))
    _problem.cache_clear()
    again = make_problem(cell(mechanism="mnar", n_rows=200, n_columns=7, method="mice"))
    assert first is not again
    np.testing.assert_array_equal(first.truth, again.truth)
    pd.testing.assert_frame_equal(first.incomplete, again.incomplete)


@pytest.mark.parametrize("n_columns", [None, 3])
def test_mnar_cells_are_above_median_of_one_column(n_columns):
    for seed in range(3):
        problem = make_problem(cell(mechanism="mnar", rate=0.8, seed=seed, n_columns=n_columns))
        (j,) = np.flatnonzero((~problem.m).any(0))
        assert problem.truth[~problem.m[:, j], j].min() > np.median(problem.truth[:, j]) * 0.98
        # set 1 are the rows above, whether or not they went missing
        assert problem.sets[~problem.m[:, j]].all()
        assert 0.4 < problem.sets.mean() < 0.6


def test_larger_parts_contain_smaller_ones():
    x = np.random.default_rng(0).normal(size=(50, 10))
    small, few = part(x, 1, 10, 3)
    large, many = part(x, 1, 20, 6)
    assert set(small) < set(large)
    assert set(few) < set(many)
    assert list(small) != list(part(x, 2, 10, 3)[0])
    assert list(large) == sorted(large)


def test_drawn_columns_include_one_that_can_be_mnar(tmp_path):
    rng = np.random.default_rng(0)
    rare = (rng.random((100, 5)) < 0.03).astype(float)
    table = pd.DataFrame(np.column_stack([rare, rng.normal(size=100)]), columns=list("abcdef"))
    path = written(tmp_path, table)
    for seed in range(5):
        problem = make_problem(cell(dataset=path, mechanism="mnar", seed=seed, n_columns=2))
        assert problem.truth.shape == (80, 2)
        assert (~problem.m).any()


def test_column_names_do_not_depend_on_seed():
    names = {tuple(make_problem(cell(seed=seed, n_columns=3)).columns) for seed in range(3)}
    assert names == {("column0", "column1", "column2")}


def test_native_missing_cells_have_no_truth():
    problem = make_problem(cell(dataset="trial"))
    site = problem.columns.index("site")
    assert set(problem.truth[:, site]) == {0.0, 1.0, 2.0, 3.0}
    assert problem.discrete[site]
    native = np.isnan(problem.truth)
    assert native.any()
    assert not problem.m[native].any()
    assert problem.y is None


def test_scale_is_range_of_complete_values(tmp_path):
    table = pd.DataFrame({"varies": np.arange(50.0), "constant": 3.0, "rare": 0.0})
    table.loc[7, "rare"] = 1.0
    problem = make_problem(cell(dataset=written(tmp_path, table), rate=0.5))
    expected = np.ptp(problem.truth[:, 0])
    np.testing.assert_array_equal(problem.scale[:2], [expected, np.nan])
    np.testing.assert_array_equal(problem.discrete, [False, True, True])


def test_non_integer_columns_are_not_discrete(tmp_path):
    table = pd.DataFrame({"tenths": np.arange(50) % 3 / 10, "levels": np.arange(50) % 3})
    problem = make_problem(cell(dataset=written(tmp_path, table)))
    np.testing.assert_array_equal(problem.discrete, [False, True])


def test_unobserved_column_is_not_scored(tmp_path):
    table = pd.DataFrame({"a": np.arange(50.0), "b": np.arange(50.0)})
    problem = make_problem(cell(dataset=written(tmp_path, table), rate=1.0))
    assert np.isnan(problem.scale).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rows": 570}, "n_rows must be at most 569, which the data set has, got 570"),
        ({"n_columns": 31}, "n_columns must be at most 30"),
        ({"mechanism": "mnr"}, "unknown mechanism 'mnr'; known are mcar"),
        ({"dataset": "brest"}, "unknown data set 'brest'"),
    ],
)
def test_invalid_cells_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        make_problem(cell(**changes))


def test_constant_columns_cannot_be_mnar(tmp_path):
    table = pd.DataFrame({"a": np.zeros(20), "b": np.zeros(20)})
    with pytest.raises(ValueError, match="n_columns: found no 1 columns"):
        make_problem(cell(dataset=written(tmp_path, table), n_columns=1))


@pytest.mark.data
@pytest.mark.parametrize("name", ["rmse20", "rmse80"])
def test_mean_imputation_agrees_with_paper_under_mcar(name):
    printed, experiment = paper(name), EXPERIMENTS[name].only(methods=["mean"])
    found = {}
    for one in experiment.cells():
        if one.mechanism == "mcar":
            problem = make_problem(one)
            imputer = unfitted(one, problem, "cpu")
            with quietly():
                fit(imputer, problem)
                found.setdefault(one.dataset, []).append(measured(one, imputer, problem)[0])
    assert set(found) == set(experiment.datasets)
    for dataset, metrics in found.items():
        ours = np.mean([each["rmse"] for each in metrics])
        (rate,) = experiment.rates
        assert ours == pytest.approx(printed[dataset, "mcar", rate, "mean"].mean, rel=0.03)
