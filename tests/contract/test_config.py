"""The resolved configuration `config_`, and the values that "auto" stands for."""

import dataclasses
import json

import numpy as np
import pytest

import psmvae
from contract.registry import DEEP, VARIANTS
from psmvae import Advanced, GAINImputer, MIWAEImputer, Network, PSMVAEImputer
from psmvae.table.codec import Encoded


def complete(n_rows):
    return Encoded(np.zeros((n_rows, 5)), np.ones((n_rows, 5), dtype=bool))


ALL_OBSERVED = complete(2000)


@pytest.mark.parametrize("name", [*DEEP, "PSMVAE self", "NotMIWAE network"])
def test_config_is_frozen_and_resolved(fitted, name):
    config = fitted(name).config_
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    assert "auto" not in json.dumps(values, default=repr)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.n_members = 3


@pytest.mark.parametrize("name", [*DEEP, "PSMVAE self", "NotMIWAE network"])
def test_config_is_stored_in_the_model_file(fitted, tmp_path, name):
    imputer = fitted(name)
    imputer.save(tmp_path / "m.safetensors")
    assert psmvae.load(tmp_path / "m.safetensors").config_ == imputer.config_
    described = imputer.describe()["config"]
    assert json.loads(json.dumps(described)) == described
    assert described["max_epochs"] == 2


def test_config_does_not_follow_parameters_set_after_fit(numbers):
    imputer = VARIANTS["PSMVAE"]().fit(numbers)
    before = imputer.config_
    imputer.set_params(n_sets=5, max_epochs=7, network=Network(width=4))
    assert imputer.config_ is before
    assert imputer.fit(numbers).config_.n_sets == 5


def test_parameters_are_copied_into_the_config():
    advanced = Advanced(weight_observed=True, impute_from="x_mis")
    given = {
        "n_members": 2,
        "network": Network(width=16),
        "max_epochs": 7,
        "batch_size": 9,
        "learning_rate": 0.25,
        "validation_fraction": 0.25,
        "patience": 3,
        "input_mask_rate": 0.125,
        "max_time": 1.5,
        "n_sets": 3,
        "n_latent": 4,
        "scale": 0.5,
        "beta": 0.75,
        "pi": 0.25,
        "regression": None,
    }
    config = PSMVAEImputer(**given, advanced=advanced)._resolve(ALL_OBSERVED)
    assert {name: getattr(config, name) for name in given} == given
    assert config.weight_observed
    assert config.impute_from == "x_mis"


def preset(n_rows=2000, cls=PSMVAEImputer, x=None, **parameters):
    """Resolve the configuration for a table of this many rows; nothing is trained."""
    if cls is PSMVAEImputer:
        parameters = {"n_sets": 1} | parameters
    imputer = cls(**{"device": "cpu"} | parameters)
    table = np.random.default_rng(0).normal(size=(n_rows, 5)) if x is None else x
    return imputer._resolve(imputer._read(table))


@pytest.mark.parametrize(
    ("n_rows", "n_members", "max_time", "fast"),
    [
        (16_000, 1, None, False),
        (16_000, 1, 159, True),
        (16_000, 1, 160, False),
        (16_000, 5, 160, True),
        (499, 5, 1, False),
        (2000, 1, 19.9, True),
    ],
)
def test_fast_preset_is_for_less_than_10_ms_per_row_and_member(n_rows, n_members, max_time, fast):
    assert preset(n_rows, n_members=n_members, max_time=max_time).fast_preset is fast


def test_fast_preset_is_not_for_a_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    imputer = PSMVAEImputer(device="cuda", n_sets=1, max_time=1)
    assert not imputer._resolve(ALL_OBSERVED).fast_preset


def test_fast_preset_takes_larger_steps():
    standard, fast = preset(), preset(max_time=1)
    assert fast.learning_rate > standard.learning_rate
    assert fast.factor_analysis_rows < standard.factor_analysis_rows


def test_fast_preset_keeps_given_values():
    given = {"network": Network(width=16), "learning_rate": 2e-3, "input_mask_rate": 0.1}
    config = preset(cls=MIWAEImputer, max_time=0.5, **given)
    assert config.fast_preset
    assert {name: getattr(config, name) for name in given} == given


@pytest.mark.parametrize("max_time", [None, 1])
@pytest.mark.parametrize(
    "given",
    [
        {"regression": None},
        {"scale": "student"},
        {"mask_model": "logistic-ceiling"},
        {"validation_fraction": 0.0},
    ],
    ids=str,
)
def test_regression_is_left_out_where_it_cannot_be_used(given, max_time):
    config = preset(max_time=max_time, **given)
    assert config.regression is None
    assert config.pretrain_steps == 0
    assert config.pretrain_time_fraction == 1.0


def test_regression_is_used_in_large_tables_or_where_given():
    assert preset(499).regression is None
    assert preset(2000).regression is not None
    own = Network(width=16, depth=2, residual=False, linear=False)
    assert preset(500, regression=own).regression == own
    assert preset(500, regression=own, validation_fraction=0.0).pretrain_steps > 0


def test_networks_grow_with_the_table():
    for given in ({"regression": None}, {"cls": MIWAEImputer}):
        widths = [preset(n, **given).network.width for n in (500, 5000, 50_000)]
        assert widths == sorted(set(widths))


def test_networks_beside_a_regression_are_small():
    assert preset(50_000).network.width == 64
    assert preset(5000).regression.width < preset(50_000).regression.width


def linear_and_curved(n_rows):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n_rows, 1))
    curved = np.hstack([z, np.abs(z), np.sin(3 * z), z**2]) + 0.1 * rng.normal(size=(n_rows, 4))
    return z + 0.5 * rng.normal(size=(n_rows, 4)), curved


@pytest.mark.parametrize(
    ("n_rows", "on_cpu", "on_gpu"),
    [(3000, [128, 192], [192, 192]), (10_000, [192, 232], [256, 256])],
)
def test_a_regression_is_narrower_on_a_cpu_and_for_linear_columns(
    n_rows, on_cpu, on_gpu, monkeypatch
):
    tables = linear_and_curved(n_rows)
    assert [preset(x=x).regression.width for x in tables] == on_cpu
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert [preset(x=x, device="cuda").regression.width for x in tables] == on_gpu


def test_pretraining_has_larger_batches_on_a_cpu(monkeypatch):
    n_rows = (2000, 4500, 9999, 10_000)
    assert [preset(n).pretrain_batch_size for n in n_rows] == [222, 500, 600, 500]
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    on_gpu = [preset(n, device="cuda").pretrain_batch_size for n in n_rows]
    assert on_gpu == [200, 346, 400, 400]


def test_paper_settings_leave_no_auto_to_a_preset():
    for imputer in (PSMVAEImputer.paper("b"), MIWAEImputer.paper(), GAINImputer.paper()):
        assert (imputer.learning_rate, imputer.input_mask_rate) == (1e-3, 0.0)
        assert imputer.network != "auto"


def test_gain_network_as_wide_as_the_table():
    config = preset(cls=GAINImputer, network="columns")
    assert config.network == Network(width=5, depth=2, residual=False, linear=False)
