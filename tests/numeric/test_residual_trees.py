"""Trees grown on the residuals of the networks, in tables with few incomplete columns."""

import numpy as np
import pandas as pd
import pytest

from psmvae import PSMVAEImputer, load
from psmvae.imputers import residual_trees, resolve
from psmvae.imputers.residual_trees import MAX_COLUMNS, N_FOLDS, TREES_PER_FOLD, ResidualTrees


def step_table(n=900, seed=0, n_incomplete=1):
    """Four complete columns, and one that is a step function of them; also the complete table."""
    rng = np.random.default_rng(seed)
    complete = rng.normal(size=(n, 4))
    steps = 2.0 * (complete[:, 0] > 0.5) - 2.0 * (complete[:, 1] > 0.0) * (complete[:, 2] < 0.0)
    complete = np.column_stack([steps + 0.3 * rng.normal(size=n), complete])
    missing = rng.random(complete.shape) < 0.3
    missing[:, n_incomplete:] = False
    return np.where(missing, np.nan, complete), complete


def fit_trees(table, prediction=None, seed=0):
    m = ~np.isnan(table)
    predictions = {0: np.zeros(len(table)) if prediction is None else prediction}
    return *ResidualTrees.fit(np.nan_to_num(table), m, predictions, [0], seed), m


@pytest.fixture(scope="module")
def fitted():
    table, complete = step_table()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolve, "FEW_ROWS", 500)
        imputer = PSMVAEImputer(max_epochs=2, random_state=0).fit(table)
    return imputer, table, complete


def test_trees_find_steps_that_a_model_has_missed():
    """The error falls from the variance of the steps to near that of the noise, 0.09."""
    table, complete = step_table(3000)
    trees, found, m = fit_trees(table)
    error = np.square(found[0] - complete[:, 0])
    assert np.var(complete[:, 0]) > 1.5
    assert error[~m[:, 0]].mean() < 0.25
    # an observed cell is predicted as if it was missing, but by a third of the trees
    assert 1 < error[m[:, 0]].mean() / error[~m[:, 0]].mean() < 1.5
    assert 0.8 < trees.weight[0] <= 1
    assert (trees.weight[1:] == 0).all()


def test_an_observed_cell_does_not_influence_its_own_correction():
    table, _ = step_table()
    row = np.flatnonzero(~np.isnan(table[:, 0]))[5]
    changed = table.copy()
    changed[row, 0] += 3.0
    steps = []
    for each in (table, changed):
        trees, found, _ = fit_trees(each)
        steps.append(found[0] / trees.weight[0])
    assert steps[0][row] == pytest.approx(steps[1][row], rel=1e-12)
    assert not np.allclose(steps[0], steps[1])


def test_the_weight_is_that_of_least_squares():
    table, _ = step_table()
    table[:, 0] += 2.0 * np.random.default_rng(1).normal(size=len(table))
    trees, found, m = fit_trees(table)
    step, value = found[0][m[:, 0]] / trees.weight[0], table[m[:, 0], 0]
    assert 0 < trees.weight[0] < 1
    assert trees.weight[0] == pytest.approx(np.linalg.lstsq(step[:, None], value)[0][0])


def test_noise_is_not_corrected():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4000, 5))
    table[rng.random(4000) < 0.3, 0] = np.nan
    _, found, m = fit_trees(table)
    assert np.square(found[0][m[:, 0]]).mean() < 0.01


def test_missing_predictors_have_the_mean_of_the_observed_values():
    table, _ = step_table(n_incomplete=2)
    trees, _, m = fit_trees(table)
    np.testing.assert_allclose(trees.fill, np.nanmean(table, 0))
    filled = np.where(m, table, trees.fill)
    prediction = {0: np.zeros(len(table))}
    np.testing.assert_array_equal(
        trees.steps(prediction, np.nan_to_num(table, nan=99.0), m)[0],
        trees.steps(prediction, filled, m)[0],
    )


def test_corrections_are_means_over_all_trees_and_leave_observed_cells():
    table, _ = step_table()
    trees, found, m = fit_trees(table)
    features = np.where(m, table, trees.fill)
    features[:, 0] = 0.0
    values = np.stack(list(trees.trees[0].leaf_values(features)))
    assert values.shape == (N_FOLDS * TREES_PER_FOLD, len(table))
    expected = np.where(m[:, 0], 0.0, trees.weight[0] * values.mean(0))
    prediction = {0: np.full(len(table), 0.0)}
    step = trees.steps(prediction, table, m)[0]
    np.testing.assert_allclose(step, expected, atol=1e-12)
    np.testing.assert_allclose(found[0][~m[:, 0]], step[~m[:, 0]], atol=1e-12)
    np.testing.assert_array_equal(trees.correct(prediction, table, m)[0], step)


def test_single_imputations_are_corrected(fitted):
    imputer, table, complete = fitted
    trees, missing = imputer.residual_trees_, np.isnan(table)
    corrected = imputer.transform(table)
    imputer.residual_trees_ = None
    without = imputer.transform(table)
    imputer.residual_trees_ = trees
    np.testing.assert_array_equal(corrected[~missing], table[~missing])
    assert list(trees.trees) == [0]

    def error(filled):
        return np.square(filled - complete)[missing].mean()

    assert error(corrected) < 0.8 * error(without)


def test_blocks_and_single_rows_give_the_same_values(fitted):
    imputer, table, _ = fitted
    rows = np.flatnonzero(np.isnan(table[:, 0]))[:3]
    whole = imputer.transform(table)
    for row in rows:
        np.testing.assert_allclose(imputer.transform(table[[row]])[0], whole[row], atol=1e-6)


def test_files_keep_them(fitted, tmp_path):
    imputer, table, _ = fitted
    imputer.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(table), imputer.transform(table))
    assert again.residual_trees_.weight[0] == imputer.residual_trees_.weight[0]


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
def test_when_there_are_no_trees(monkeypatch, settings):
    monkeypatch.setattr(resolve, "FEW_ROWS", 500)
    imputer = PSMVAEImputer(max_epochs=1, random_state=0, **settings).fit(step_table()[0])
    assert imputer.residual_trees_ is None


def test_which_columns_have_trees(monkeypatch):
    """Numeric ones with missing cells, if few columns have any and the table has many rows."""
    monkeypatch.setattr(resolve, "FEW_ROWS", 500)
    columns, mask = {}, resolve.LatentMask()
    for n_incomplete in (1, MAX_COLUMNS, MAX_COLUMNS + 1):
        frame = pd.DataFrame(step_table(n_incomplete=n_incomplete)[0]).add_prefix("x")
        frame["g"] = np.resize(["a", "b", None], 900) if n_incomplete == 1 else "a"
        frame.loc[0, "g"] = "b"
        imputer = PSMVAEImputer(random_state=0)
        m = imputer._read(frame).m
        columns[n_incomplete] = resolve.corrected_columns(mask, imputer.schema_.modelled, m)
    assert columns == {1: [0], MAX_COLUMNS: [0, 1, 2], MAX_COLUMNS + 1: []}
    monkeypatch.undo()
    assert resolve.corrected_columns(mask, imputer.schema_.modelled, m) == []


def test_columns_with_few_observed_cells_have_none(monkeypatch):
    monkeypatch.setattr(residual_trees, "MIN_CELLS", 10_000)
    trees, found, _ = fit_trees(step_table()[0])
    assert trees.trees == {}
    assert (found[0] == 0).all()
    restored = ResidualTrees.restore(5, trees.arrays(), [])
    assert restored.trees == {}


@pytest.mark.parametrize(
    ("name", "value", "columns", "message"),
    [
        ("fill", np.zeros(4), [0], "not those of its columns"),
        ("weight", np.full(5, 1.5), [0], "from 0 to 1"),
        ("weight", np.full(5, np.nan), [0], "from 0 to 1"),
        ("fill", None, [0], "damaged"),
        ("root", None, [0], "damaged"),
        ("weight", np.zeros(5), [7], "does not have"),
        ("weight", np.zeros(5), ["0"], "does not have"),
        ("weight", np.zeros(5), 0, "does not have"),
        ("weight", np.zeros(5), [0, 0], "inconsistent"),
    ],
)
def test_damaged_arrays_are_refused(fitted, name, value, columns, message):
    arrays = fitted[0].residual_trees_.arrays() | {name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(ValueError, match=message):
        ResidualTrees.restore(5, arrays, columns)


def test_large_tables_are_sampled(monkeypatch):
    """The mechanism then has fewer rows than the trees, with the corrected predictions."""
    monkeypatch.setattr(resolve, "FEW_ROWS", 500)
    monkeypatch.setattr("psmvae.imputers.latent.MAX_TREE_ROWS", 800)
    monkeypatch.setattr("psmvae.imputers.latent.MAX_MASK_ROWS", 600)
    table, _ = step_table()
    imputer = PSMVAEImputer(max_epochs=1, random_state=0).fit(table)
    assert imputer.residual_trees_ is not None
    assert not np.isnan(imputer.transform(table)).any()
