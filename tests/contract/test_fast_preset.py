"""What "auto" stands for where a user gives a CPU little time."""

import numpy as np
import pandas as pd
import pytest
import torch
from psmvae_paper.stacked_fit import fit_stacked

import psmvae
from psmvae import GAINImputer, MIWAEImputer, Network, PSMVAEImputer
from psmvae.imputers.sizing import FAST, FAST_PRETRAINED, REGRESSION, STANDARD, pace


def table(n=2000):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    return np.where(rng.random(x.shape) < 0.2, np.nan, x)


@pytest.mark.parametrize(
    ("n_rows", "n_members", "max_time", "device", "expected"),
    [
        (16_000, 1, None, "cpu", STANDARD),
        (16_000, 1, 159, "cpu", FAST),
        (16_000, 1, 160, "cpu", STANDARD),
        (16_000, 5, 160, "cpu", FAST),
        (16_000, 1, 1, "cuda", STANDARD),
        (1999, 5, 1, "cpu", STANDARD),
        (2000, 1, 19.9, "cpu", FAST),
    ],
)
def test_the_pace_is_that_of_rows_time_and_device(n_rows, n_members, max_time, device, expected):
    assert pace(n_rows, n_members, max_time, device) is expected


def trained(imputer):
    training = imputer._training(imputer.n_rows_)
    network = imputer.model_.settings.network
    return network, training.learning_rate, training.input_mask_rate, training.linear_rows


def test_little_time_is_spent_on_what_learns_fastest():
    hurried = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0).fit(table())
    assert hurried.fast_preset_
    assert trained(hurried) == (Network(width=64, depth=1), 3e-3, 0.5, 1000)
    assert hurried.model_.settings.regression == FAST_PRETRAINED.regression
    assert not np.isnan(hurried.transform(table())).any()
    usual = PSMVAEImputer(max_epochs=1, device="cpu", random_state=0).fit(table())
    assert not usual.fast_preset_
    assert trained(usual) == (Network(width=128, depth=2, dropout=0.05), 1e-3, 0.25, 3000)


@pytest.mark.parametrize(
    "without",
    [
        {"regression": None},
        {"scale": "student"},
        {"mask_model": "self"},
        {"validation_fraction": 0.0},
    ],
    ids=str,
)
def test_where_no_regression_is_wanted_a_larger_network_is_in_a_hurry(without):
    imputer = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0, **without).fit(table())
    assert trained(imputer) == (Network(width=128, depth=2), 3e-3, 0.5, 1000)
    assert imputer.model_.regression is None


def test_what_a_user_chose_is_kept_in_a_hurry():
    own = {"network": Network(width=16, depth=1), "learning_rate": 2e-3, "input_mask_rate": 0.1}
    imputer = MIWAEImputer(max_time=0.5, device="cpu", random_state=0, **own).fit(table())
    assert imputer.fast_preset_
    assert trained(imputer)[:3] == tuple(own.values())


def test_together_in_a_hurry_and_saved_when_it_is_over(tmp_path):
    made = [PSMVAEImputer(max_time=1, device="cpu", random_state=k) for k in (0, 1)]
    for imputer in fit_stacked(made, [table(), -table()]):
        assert trained(imputer) == (Network(width=64, depth=1), 3e-3, 0.5, 1000)
    imputer.set_params(max_time=None).save(tmp_path / "m.safetensors")
    assert psmvae.load(tmp_path / "m.safetensors", device="cpu").fast_preset_


def test_the_paper_is_in_no_hurry():
    for imputer in (PSMVAEImputer.paper("b"), MIWAEImputer.paper(), GAINImputer.paper()):
        assert (imputer.learning_rate, imputer.input_mask_rate) == (1e-3, 0.0)
        assert imputer.network != "auto"


def test_another_device_loads_what_was_learned_in_a_hurry(tmp_path, monkeypatch):
    x = table()
    imputer = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0).fit(x)
    imputer.save(tmp_path / "m.safetensors")
    # as on a machine where no time would be short
    monkeypatch.setattr("psmvae.imputers.sizing.SECONDS_A_ROW", 0.0)
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    assert again.fast_preset_
    np.testing.assert_array_equal(again.transform(x), imputer.transform(x))
    for one, two in zip(again.model_.parameters(), imputer.model_.parameters(), strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("more", [{}, {"n_members": 2, "bootstrap": True}, {"n_sets": 3}], ids=str)
def test_all_kinds_of_columns_in_a_hurry(tmp_path, more):
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    frame = pd.DataFrame(
        {
            "price": np.exp(z + 0.2 * rng.normal(size=2000)),
            "visits": rng.poisson(np.exp(0.5 * z + 1)),
            "grade": pd.Categorical(np.digitize(z, [-1, 0, 1]).astype(str), ordered=True),
            "group": np.where(z > 0, "a", "b"),
            "age": np.rint(50 + 5 * z),
        }
    )
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    kinds = {"price": "positive", "visits": "count"}
    made = PSMVAEImputer(kinds=kinds, max_time=1, device="cpu", random_state=0, **more)
    imputer = made.fit(holes)
    assert imputer.model_.regression is not None
    filled = imputer.transform(holes)
    assert not filled.isna().any().any()
    right = (filled["group"] == frame["group"])[holes["group"].isna()]
    assert right.mean() > 0.7
    assert len(imputer.sample(holes.head(50), n=2)) == 2
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    pd.testing.assert_frame_equal(again.transform(holes), filled)


def bent(n=2000, seed=0):
    """A table that no factor analysis can tell the half of."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-2, 2, size=(n, 1))
    x = np.hstack([a, np.cos(3 * a), np.abs(a), a**2]) + 0.05 * rng.normal(size=(n, 4))
    return np.where(rng.random(x.shape) < 0.2, np.nan, x)


@pytest.fixture
def brief(monkeypatch):
    """Few steps of all that is trained."""
    monkeypatch.setattr("psmvae.imputers.sizing.FIRST_EPOCHS", 20)
    monkeypatch.setattr("psmvae.imputers.sizing.SETTLE_STEPS_ON_CPU", 24)


def test_a_table_that_can_teach_a_regression_has_one_learned_first(brief):
    seen = []
    imputer = PSMVAEImputer(device="cpu", random_state=0).fit(bent(), callback=seen.append)
    assert not imputer.fast_preset_
    assert imputer.model_.settings.regression == REGRESSION
    assert imputer.model_.regression_weight.mean() > 0.8
    # ten reports of twenty passes, then three epochs of eight steps
    assert [progress.epoch for progress in seen] == [*range(2, 22, 2), 21, 22, 23]
    assert imputer.history_ == seen
    assert imputer.n_epochs_ == 23
    assert {progress.max_epochs for progress in seen} == {23}
    assert [progress.seconds_left is None for progress in seen] == 10 * [True] + 3 * [False]
    assert seen[-1].seconds_left == 0.0
    assert imputer.best_validation_error_ < 0.6


def test_where_the_regression_is_not_believed_training_goes_on_as_without(brief):
    # linear: factor analysis knows all there is to know from the start
    imputer = PSMVAEImputer(device="cpu", patience=2, random_state=0).fit(table())
    assert not imputer.model_.regression_weight.any()
    assert imputer.n_epochs_ >= 20 + imputer.patience
    assert not np.isnan(imputer.transform(table())).any()


@pytest.mark.parametrize(
    "given",
    [
        {"regression": None},
        {"scale": "student"},
        {"mask_model": "self"},
        {"validation_fraction": 0.0},
    ],
    ids=str,
)
def test_no_regression_is_learned_where_it_does_not_pay(given):
    imputer = PSMVAEImputer(max_epochs=1, device="cpu", random_state=0, **given).fit(table())
    assert imputer.model_.regression is None
    assert imputer.n_epochs_ == 1


def test_a_small_table_has_a_regression_only_where_one_is_asked_for(brief):
    small = bent(500)
    assert PSMVAEImputer(max_epochs=1, device="cpu").fit(small).model_.regression is None
    own = {"regression": Network(width=16, depth=2, residual=False, linear=False)}
    for validation_fraction, passes in ((0.1, 3), (0.0, 3)):
        more = {
            "validation_fraction": validation_fraction,
            "max_epochs": 3,
            "device": "cpu",
            "random_state": 0,
        }
        imputer = PSMVAEImputer(**own, **more).fit(small)
        assert imputer.n_epochs_ == passes + 3
        assert not np.isnan(imputer.transform(small)).any()


def test_members_and_resampled_rows_have_a_regression_each(brief, tmp_path):
    more = {"n_members": 2, "bootstrap": True, "device": "cpu", "random_state": 0}
    imputer = PSMVAEImputer(max_epochs=2, **more).fit(bent())
    weight = imputer.model_.regression.net.first.weight
    assert weight.shape[0] == 2
    assert not torch.equal(weight[0], weight[1])
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    np.testing.assert_array_equal(again.transform(bent()), imputer.transform(bent()))
