"""Fits within `max_time`, and pre-training of the regression network."""

import numpy as np
import pandas as pd
import pytest
import torch

import psmvae
from psmvae import Network, PSMVAEImputer
from psmvae.imputers import resolve

CPU = {"device": "cpu", "random_state": 0}


def linear_table(n=2000):
    """Columns with one common factor, which a factor analysis models exactly."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    return np.where(rng.random(x.shape) < 0.2, np.nan, x)


def curved_table(n=2000):
    """Functions of one variable that are nearly uncorrelated."""
    rng = np.random.default_rng(0)
    a = rng.uniform(-2, 2, size=(n, 1))
    x = np.hstack([a, np.cos(3 * a), np.abs(a), a**2]) + 0.05 * rng.normal(size=(n, 4))
    return np.where(rng.random(x.shape) < 0.2, np.nan, x)


@pytest.fixture
def few_steps(monkeypatch):
    """Shorten pre-training and the training that follows it."""
    monkeypatch.setitem(resolve.PRETRAIN_LIMITS, "cpu", (20, 8000))
    monkeypatch.setitem(resolve.POST_PRETRAIN_STEPS, "cpu", 24)
    # mixtures shorten pre-training too
    monkeypatch.setattr(resolve, "MAX_MIXTURE_TABLE", 0)


@pytest.mark.filterwarnings("ignore:max_time")
def test_a_fast_fit_is_saved_whatever_max_time_is_later(tmp_path, monkeypatch):
    x = linear_table()
    imputer = PSMVAEImputer(max_time=0.5, **CPU).fit(x)
    assert imputer.fast_preset_
    filled = imputer.transform(x)
    assert not np.isnan(filled).any()
    imputer.set_params(max_time=None).save(tmp_path / "m.safetensors")
    # as on a machine that would take the standard preset
    monkeypatch.setattr("psmvae.imputers.resolve.SECONDS_PER_ROW", 0.0)
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    assert again.fast_preset_
    np.testing.assert_array_equal(again.transform(x), filled)


@pytest.mark.filterwarnings("ignore:max_time")
@pytest.mark.slow
def test_a_fast_fit_of_every_kind_of_column(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    complete = pd.DataFrame(
        {
            "price": np.exp(z + 0.2 * rng.normal(size=2000)),
            "visits": rng.poisson(np.exp(0.5 * z + 1)),
            "grade": pd.Categorical(np.digitize(z, [-1, 0, 1]).astype(str), ordered=True),
            "group": np.where(z > 0, "a", "b"),
            "age": np.rint(50 + 5 * z),
        }
    )
    frame = complete.mask(rng.random(complete.shape) < 0.2)
    kinds = {"price": "positive", "visits": "count"}
    members = {"n_members": 2, "n_sets": 3}
    imputer = PSMVAEImputer(kinds=kinds, max_time=1.5, **members, **CPU).fit(frame)
    assert imputer.model_.regression is not None
    filled = imputer.transform(frame)
    assert not filled.isna().any().any()
    right = (filled["group"] == complete["group"])[frame["group"].isna()]
    assert right.mean() > 0.7
    assert len(imputer.sample(frame.head(50), n=2)) == 2
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    pd.testing.assert_frame_equal(again.transform(frame), filled)


def test_pretraining_lowers_the_error_of_a_curved_table(few_steps):
    seen = []
    imputer = PSMVAEImputer(**CPU).fit(curved_table(), callback=seen.append)
    assert not imputer.fast_preset_
    assert imputer.model_.regression_weight.mean() > 0.8
    # reports after a hundred steps, of nine an epoch, and at the end, then of three epochs
    reported = [(progress.phase, progress.epoch) for progress in seen]
    assert reported == [
        *(("pre-training", epoch) for epoch in (12, 20)),
        *(("training", epoch) for epoch in (21, 22, 23)),
    ]
    assert imputer.history_ == seen
    assert imputer.n_epochs_ == 23
    assert {progress.max_epochs for progress in seen} == {23}
    assert all(progress.seconds_left >= 0 for progress in imputer.history_)
    assert imputer.history_[-1].seconds_left == 0.0
    assert imputer.best_validation_error_ < 0.6


def test_training_continues_where_the_regression_does_not_lower_the_error(few_steps):
    imputer = PSMVAEImputer(patience=2, **CPU).fit(linear_table())
    assert not imputer.model_.regression_weight.any()
    assert imputer.n_epochs_ >= 20 + imputer.patience
    assert not np.isnan(imputer.transform(linear_table())).any()


@pytest.mark.parametrize("validation_fraction", [0.1, 0.0])
def test_a_regression_of_the_users_own_size(validation_fraction):
    small = curved_table(500)
    own = Network(width=16, depth=2, residual=False, linear=False)
    setting = {"validation_fraction": validation_fraction, "max_epochs": 3}
    imputer = PSMVAEImputer(regression=own, **setting, **CPU).fit(small)
    assert imputer.n_epochs_ == 3 + 3
    assert not np.isnan(imputer.transform(small)).any()


def test_every_member_has_its_own_regression(tmp_path):
    small = curved_table(500)
    own = Network(width=16, depth=2, residual=False, linear=False)
    setting = {"n_members": 2, "regression": own, "max_epochs": 2}
    imputer = PSMVAEImputer(**setting, **CPU).fit(small)
    weight = imputer.model_.regression.net.first.weight
    assert weight.shape[0] == 2
    assert not torch.equal(weight[0], weight[1])
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    np.testing.assert_array_equal(again.transform(small), imputer.transform(small))
