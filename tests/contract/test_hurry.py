"""What "auto" stands for where a user gives a CPU little time."""

import numpy as np
import pandas as pd
import pytest
import torch

import psmvae
from psmvae import GAINImputer, MIWAEImputer, Network, PSMVAEImputer
from psmvae.imputers.sizing import HURRIED, HURRIED_FIRST, USUAL, pace
from psmvae.imputers.together import fit_together


def table(n=2000):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    return np.where(rng.random(x.shape) < 0.2, np.nan, x)


@pytest.mark.parametrize(
    ("n_rows", "n_members", "max_time", "device", "expected"),
    [
        (16_000, 1, None, "cpu", USUAL),
        (16_000, 1, 159, "cpu", HURRIED),
        (16_000, 1, 160, "cpu", USUAL),
        (16_000, 5, 160, "cpu", HURRIED),
        (16_000, 1, 1, "cuda", USUAL),
        (1999, 5, 1, "cpu", USUAL),
        (2000, 1, 19.9, "cpu", HURRIED),
    ],
)
def test_the_pace_is_that_of_rows_time_and_device(n_rows, n_members, max_time, device, expected):
    assert pace(n_rows, n_members, max_time, device) is expected


def trained(imputer):
    training = imputer._training(imputer.n_rows_)
    network = imputer.model_.settings.network
    return network, training.learning_rate, training.hide, training.linear_rows


def test_little_time_is_spent_on_what_learns_fastest():
    hurried = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0).fit(table())
    assert hurried.in_a_hurry_
    assert trained(hurried) == (Network(width=64, depth=1), 3e-3, 0.5, 1000)
    assert hurried.model_.settings.regression == HURRIED_FIRST.regression
    assert not np.isnan(hurried.transform(table())).any()
    usual = PSMVAEImputer(max_epochs=1, device="cpu", random_state=0).fit(table())
    assert not usual.in_a_hurry_
    assert trained(usual) == (Network(width=128, depth=2, dropout=0.05), 1e-3, 0.25, 3000)


@pytest.mark.parametrize(
    "without", [{"regression": None}, {"scale": "student"}, {"mask_model": "self"}], ids=str
)
def test_where_no_regression_is_wanted_a_larger_network_is_in_a_hurry(without):
    imputer = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0, **without).fit(table())
    assert trained(imputer) == (Network(width=128, depth=2), 3e-3, 0.5, 1000)
    assert imputer.model_.regression is None


def test_what_a_user_chose_is_kept_in_a_hurry():
    own = {"network": Network(width=16, depth=1), "learning_rate": 2e-3, "hide": 0.1}
    imputer = MIWAEImputer(max_time=0.5, device="cpu", random_state=0, **own).fit(table())
    assert imputer.in_a_hurry_
    assert trained(imputer)[:3] == tuple(own.values())


def test_together_in_a_hurry_and_saved_when_it_is_over(tmp_path):
    made = [PSMVAEImputer(max_time=1, device="cpu", random_state=k) for k in (0, 1)]
    for imputer in fit_together(made, [table(), -table()]):
        assert trained(imputer) == (Network(width=64, depth=1), 3e-3, 0.5, 1000)
    imputer.set_params(max_time=None).save(tmp_path / "m.safetensors")
    assert psmvae.load(tmp_path / "m.safetensors", device="cpu").in_a_hurry_


def test_the_paper_is_in_no_hurry():
    for imputer in (PSMVAEImputer.paper("b"), MIWAEImputer.paper(), GAINImputer.paper()):
        assert (imputer.learning_rate, imputer.hide) == (1e-3, 0.0)
        assert imputer.network != "auto"


def test_another_device_loads_what_was_learned_in_a_hurry(tmp_path, monkeypatch):
    x = table()
    imputer = PSMVAEImputer(max_time=0.5, device="cpu", random_state=0).fit(x)
    imputer.save(tmp_path / "m.safetensors")
    # as on a machine where no time would be short
    monkeypatch.setattr("psmvae.imputers.sizing.SECONDS_A_ROW", 0.0)
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    assert again.in_a_hurry_
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
