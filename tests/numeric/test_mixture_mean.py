"""Predictions of Gaussian mixtures averaged with those of the networks, in larger tables."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from psmvae import PSMVAEImputer, load
from psmvae.imputers import mixture_mean, resolve
from psmvae.imputers.linear_mean import relative_gain
from psmvae.imputers.mixture_mean import (
    CELLS_PER_PARAMETER,
    MAX_COMPONENTS,
    N_MIXTURES,
    MixtureMean,
    fit_seconds,
    mixture_gain,
    n_components,
    n_cycles,
)
from psmvae.models.gaussian_mixture import GaussianMixture

FEW_ROWS = 500


def curved_table(n=1000, seed=0, rate=0.2):
    """Six numbers on a curved surface and a binary column; also the complete table."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, size=(n, 2))
    shapes = [np.sin(3 * z[:, 0]), z[:, 0] ** 2, z[:, 0] * z[:, 1], np.abs(z[:, 1]), *z.T]
    complete = np.column_stack(shapes) + 0.1 * rng.normal(size=(n, 6))
    complete = np.column_stack([complete, z[:, 0] * z[:, 1] > 0])
    return np.where(rng.random(complete.shape) < rate, np.nan, complete), complete


def linear_table(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    complete = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 7)) + rng.normal(size=(n, 7))
    return np.where(rng.random(complete.shape) < 0.2, np.nan, complete)


def read(table):
    imputer = PSMVAEImputer(random_state=0)
    encoded = imputer._read(table)
    return tuple(imputer.schema_.modelled), encoded.x, encoded.m


@pytest.fixture(scope="module")
def fitted():
    table, complete = curved_table()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
        imputer = PSMVAEImputer(
            max_epochs=2, random_state=0, mask_model="latent", device="cpu"
        ).fit(table)
    return imputer, table, complete


def with_weight(mixture, weight):
    return dataclasses.replace(mixture, weight=np.full(7, weight))


def test_a_mixture_gains_on_a_curved_table_and_not_on_a_linear_one():
    assert mixture_gain(*read(curved_table()[0]), 0) > 0.2
    assert mixture_gain(*read(linear_table()), 0) < 0.0


def test_only_incomplete_tables_where_it_gains_have_mixtures(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    configs = []
    for table in (curved_table()[0], linear_table(), curved_table()[1]):
        imputer = PSMVAEImputer(random_state=0)
        imputer._read(table)
        configs.append(imputer.config_.mixture)
    assert configs == [True, False, False]


def test_single_imputations_are_averages(fitted):
    """With weight 0 they are those of the model, with weight 1 those of the mixtures."""
    imputer, table, _ = fitted
    own, ends = imputer.mixture_mean_, []
    numbers, missing = slice(0, 6), np.isnan(table)
    for weight in (0.0, 1.0):
        imputer.mixture_mean_ = with_weight(own, weight)
        ends.append(imputer.transform(table))
    imputer.mixture_mean_ = None
    np.testing.assert_array_equal(imputer.transform(table), ends[0])
    imputer.mixture_mean_ = own
    found = imputer.transform(table)
    averaged = ends[0] + own.weight * (ends[1] - ends[0])
    np.testing.assert_allclose(found[:, numbers], averaged[:, numbers], atol=1e-6)
    np.testing.assert_array_equal(found[~missing], table[~missing])
    assert set(found[:, 6]) == {0.0, 1.0}
    assert (ends[0] != ends[1])[missing].any()


def test_the_average_is_more_accurate_on_a_curved_table(fitted):
    imputer, table, complete = fitted
    own, errors = imputer.mixture_mean_, []
    for each in (None, own):
        imputer.mixture_mean_ = each
        error = np.square(imputer.transform(table) - complete)[:, :6]
        errors.append(error[np.isnan(table[:, :6])].mean())
    assert errors[1] < 0.9 * errors[0]
    assert (own.weight > 0.3).all()


def test_binary_columns_are_imputed_by_the_averaged_probability(fitted):
    imputer, table, _ = fitted
    own = imputer.mixture_mean_
    x, m = imputer._encode(table)
    probability = np.full((len(x), 2), 0.5)
    every = with_weight(own, 1.0)
    averaged = every.average({6: probability}, x, m, [6])[6]
    rows = ~m[:, 6]
    np.testing.assert_allclose(averaged.sum(1), 1.0)
    assert ((averaged >= 0) & (averaged <= 1)).all()
    assert (averaged[~rows] == 0.5).all()
    points = every.average_points(x, {6: probability}, x, m)
    np.testing.assert_array_equal(points[rows, 6], averaged[rows].argmax(1))
    np.testing.assert_array_equal(points[~rows, 6], x[~rows, 6])


def test_predictions_are_means_over_the_mixtures_within_the_observed_range(fitted):
    imputer, table, _ = fitted
    own = with_weight(imputer.mixture_mean_, 1.0)
    x, m = imputer._encode(table)
    zeros = dict.fromkeys(range(6), np.zeros(len(x)))
    both = own.average(zeros, x, m, zeros)
    each = [
        dataclasses.replace(own, mixtures=(one,)).average(zeros, x, m, zeros)
        for one in own.mixtures
    ]
    assert len(each) == N_MIXTURES["cpu"]
    assert any((each[0][j] != each[1][j]).any() for j in zeros)
    for j in zeros:
        np.testing.assert_allclose(both[j], (each[0][j] + each[1][j]) / 2, atol=1e-6)
    far = np.where(m, 100 * x, x)
    for j, found in own.average(zeros, far, m, zeros).items():
        observed = x[m[:, j], j]
        assert observed.min() - 1e-6 <= found[~m[:, j]].min()
        assert found[~m[:, j]].max() <= observed.max() + 1e-6


def test_observed_cells_are_predicted_from_the_others(fitted):
    imputer, table, _ = fitted
    own = with_weight(imputer.mixture_mean_, 1.0)
    x, m = imputer._encode(table)
    whole = own.average({0: np.zeros(len(x))}, x, m, [0], observed=True)[0]
    hidden = m.copy()
    hidden[:, 0] = False
    found = own.average({0: np.zeros(len(x))}, x, hidden, [0])[0]
    np.testing.assert_allclose(whole, found, atol=1e-3)


def test_a_table_without_rows_is_left(fitted):
    own = fitted[0].mixture_mean_
    nothing = np.empty((0, 7))
    assert own.average({0: nothing[:, 0]}, nothing, nothing > 0, [0])[0].shape == (0,)


def test_single_rows_have_the_values_of_the_table(fitted):
    imputer, table, _ = fitted
    whole = imputer.transform(table)
    for row in np.flatnonzero(np.isnan(table).any(1))[:3]:
        np.testing.assert_allclose(imputer.transform(table[[row]])[0], whole[row], atol=1e-4)


def test_files_keep_them(fitted, tmp_path):
    imputer, table, _ = fitted
    imputer.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(table), imputer.transform(table))
    np.testing.assert_array_equal(again.mixture_mean_.weight, imputer.mixture_mean_.weight)


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
def test_when_there_are_none(monkeypatch, settings):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    imputer = PSMVAEImputer(max_epochs=1, random_state=0, **settings).fit(curved_table()[0])
    assert imputer.config_.mixture is False
    assert imputer.mixture_mean_ is None


def test_what_decides_before_a_mixture_is_fitted(monkeypatch):
    """Few or many rows, little time, and few incomplete columns."""
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    table, complete = curved_table()
    one_column = complete.copy()
    one_column[:100, 0] = np.nan

    def gain_of(table, max_seconds=np.inf):
        columns, _, m = read(table)
        mask = resolve.LatentMask()
        return resolve.resolve_mixture_gain(mask, columns, m, max_seconds, lambda: 0.5)

    assert gain_of(table) == 0.5
    assert gain_of(table, max_seconds=0.1) == 0.0
    assert gain_of(table[:400]) == 0.0
    assert gain_of(one_column) == 0.0
    monkeypatch.setattr(resolve, "MAX_MIXTURE_TABLE", 900)
    assert gain_of(table) == 0.0


def test_a_mixture_that_predicts_worse_is_left_out(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    monkeypatch.setattr(mixture_mean, "MIN_GAIN", 2.0)
    imputer = PSMVAEImputer(max_epochs=1, random_state=0).fit(curved_table()[0])
    assert imputer.config_.mixture is True
    assert imputer.mixture_mean_ is None


def test_training_is_shorter_where_mixtures_predict_well():
    imputer = PSMVAEImputer(random_state=0, device="cpu")
    sizes = (5000, 10)
    configs = [
        resolve.latent_config(imputer, *sizes, regression="auto", mixture_gain=gain, pi=0.5)
        for gain in (0.0, resolve.MIN_MIXTURE_GAIN, resolve.PRETRAIN_MIXTURE_GAIN)
    ]
    steps = [config.pretrain_steps for config in configs]
    assert steps[0] == steps[1] > 2 * steps[2]
    rows = [config.factor_analysis_rows for config in configs]
    assert rows[0] == rows[1] > rows[2]


def test_the_number_of_components_is_limited_by_cells_columns_and_time():
    columns, _, m = read(curved_table()[0])
    n_parameters = 7 * 10 / 2
    assert n_components(columns, m) == int(m.sum() / (CELLS_PER_PARAMETER * n_parameters))
    many = np.ones((200_000, 7), dtype=bool)
    assert n_components(columns, many) == MAX_COMPONENTS
    assert n_components(columns * 5, np.ones((5000, 35), dtype=bool)) == 0
    enough = n_components(columns, many, fit_seconds(columns, many) + 0.01)
    assert enough == MAX_COMPONENTS
    half = n_components(columns, many, fit_seconds(columns, many) / 2)
    assert 0 < half < 0.6 * MAX_COMPONENTS


def test_mixtures_begin_around_the_same_normal(monkeypatch):
    """Its iterations of EM are the same for all of them."""
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    found, normal = [], GaussianMixture.normal
    monkeypatch.setattr(
        GaussianMixture, "normal", lambda *args: found.append(normal(*args)) or found[-1]
    )
    settings = {"mask_model": "latent", "device": "cpu", "random_state": 0, "max_epochs": 1}
    imputer = PSMVAEImputer(**settings).fit(curved_table()[0])
    assert len(imputer.mixture_mean_.mixtures) == N_MIXTURES["cpu"]
    # of the gain before training, and of the mixtures after it
    assert len(found) == 2


def test_more_missing_cells_take_more_cycles():
    cycles = [n_cycles(np.arange(100)[:, None] < 100 * share) for share in (1.0, 0.5, 0.2, 0.01)]
    assert cycles == sorted(cycles)
    assert cycles[2] > 3 * cycles[0]


def test_the_gain_of_a_column_is_that_of_the_weight_of_the_others():
    """Two columns: the second prediction is exact in one, and as wrong in the other."""
    rng = np.random.default_rng(0)
    value, noise = rng.normal(size=(2, 1000))
    better, worse = (value, value + noise, value), (value, value, value + noise)
    assert relative_gain([better] * 3) == pytest.approx(2.0)
    assert relative_gain([worse] * 3) == 0.0
    assert relative_gain([better, worse]) < 0
    assert relative_gain([better]) == 0.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mean", np.zeros((2, 3, 5)), "not those of its columns"),
        ("log_weight", np.zeros(3), "not those of its columns"),
        ("log_weight", np.zeros((2, 0)), "not those of its columns"),
        ("covariance", np.zeros((2, 3, 7, 7)), "damaged"),
        ("covariance", np.zeros((6, 5)), "damaged"),
        ("weight", np.full(7, 1.5), "from 0 to 1"),
        ("weight", np.full(7, np.nan), "from 0 to 1"),
        ("weight", np.zeros(6), "from 0 to 1"),
        ("scale", np.zeros(7), "must be positive"),
        ("mean", None, "damaged"),
    ],
)
def test_damaged_arrays_are_refused(fitted, name, value, message):
    own = fitted[0].mixture_mean_
    arrays = own.arrays() | {name: value}
    if value is None:
        del arrays[name]
    with pytest.raises(ValueError, match=message):
        MixtureMean.restore(own.predictors.columns, arrays, own.predictors.levels)


def test_columns_of_several_levels_keep_the_predictions_of_the_model(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    table, complete = curved_table()
    frame = pd.DataFrame(table).add_prefix("x")
    names = np.array(["low", "middle", "high"])
    level = names[np.digitize(complete[:, 0], [-0.3, 0.3])]
    frame["g"] = pd.Series(level).where(np.arange(1000) % 5 > 0)
    imputer = PSMVAEImputer(max_epochs=1, random_state=0).fit(frame)
    assert imputer.mixture_mean_.weight[7] == 0
    assert (imputer.mixture_mean_.weight[:7] > 0).all()
    assert set(imputer.transform(frame)["g"]) == set(names)


def test_batches_have_the_bits_of_the_whole_table(fitted):
    imputer, table, _ = fitted
    frame = pd.DataFrame(table).add_prefix("x")
    whole = imputer.transform(table)
    parts = (frame.iloc[at : at + 130].to_numpy() for at in range(0, len(frame), 130))
    np.testing.assert_array_equal(np.concatenate(list(imputer.transform_batches(parts))), whole)


def test_columns_without_an_observed_cell_in_the_rows_that_are_used(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    monkeypatch.setattr(mixture_mean, "MAX_ROWS", 600)
    monkeypatch.setattr(mixture_mean, "FEW_CELLS", 2000)
    monkeypatch.setattr(mixture_mean, "CELLS_PER_PARAMETER", 2)
    table, _ = curved_table()
    rare = np.full((len(table), 2), np.nan)
    rare[:3] = np.random.default_rng(0).normal(size=(3, 2))
    both = np.column_stack([table, np.random.default_rng(0).permutation(rare)])
    imputer = PSMVAEImputer(max_epochs=1, random_state=0, device="cpu").fit(both)
    assert imputer.mixture_mean_ is not None
    filled = imputer.transform(both)
    assert not np.isnan(filled).any()


def test_max_time_leaves_time_for_mixtures_and_for_the_comparison_of_masks(monkeypatch):
    monkeypatch.setattr(resolve, "FEW_ROWS", FEW_ROWS)
    table, _ = curved_table()
    reserved, n_rows = {}, {}
    for max_time in (None, 20.0, 1000.0):
        imputer = PSMVAEImputer(random_state=0, device="cpu", max_time=max_time)
        encoded = imputer._read(table)
        assert imputer.config_.mixture is True
        reserved[max_time] = imputer._reserved_seconds(encoded)
        n_rows[max_time] = imputer._n_mask_rows(7)
    columns = tuple(imputer.schema_.modelled)
    assert reserved[None] == 0
    assert reserved[1000.0] > fit_seconds(columns, encoded.m)
    assert 0 < reserved[20.0] < 0.75 * 20
    assert n_rows[None] == n_rows[1000.0] == 5000
    assert n_rows[20.0] >= 1000
    assert imputer.set_params(max_time=0.1)._n_mask_rows(7) == 1000
