"""Model files: a loaded imputer gives the same results, and files are written completely."""

import json
import os
import stat
import struct
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

import psmvae
from contract.registry import FAMILIES, IMPUTERS, VARIANTS, methods_of
from psmvae import Advanced, JointMask, LogisticMask, Network, PSMVAEImputer
from psmvae.nn.mask import MaskModule


@pytest.fixture(scope="module")
def table(mixed):
    return pa.table(mixed)


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    """Every imputer fitted to the table, and the folder with the file of each."""
    folder = tmp_path_factory.mktemp("models")
    made = {name: make().fit(table) for name, make in VARIANTS.items()}
    for name, imputer in made.items():
        imputer.save(folder / f"{name}.safetensors")
    return made, folder


@pytest.fixture(scope="module")
def fitted(saved):
    return saved[0]["PSMVAE"]


def scores(imputer, table):
    """Results of the methods that return arrays."""
    names = set(methods_of(imputer)) - {"transform", "sample"}
    return {name: np.asarray(getattr(imputer, name)(table)) for name in sorted(names)}


SETTINGS = {
    "PSMVAE": [
        {"mask_model": LogisticMask(["weight", "arm"], ceiling=False, integrate="draw")},
        {"mask_model": "none", "pi": "rate", "scale": 0.5},
        {"regression": Network(width=8, residual=False, smooth=True), "n_members": 2},
        {
            "n_latent": np.int64(3),
            "kinds": {"visits": "real"},
            "handle_unknown": "missing",
            "network": Network.paper(),
            "validation_fraction": 0.0,
            "advanced": Advanced(weight_observed=np.True_, target_ess=None),
            "random_state": np.random.RandomState(0),
        },
    ],
    "GMVAE": [{"mask_model": "latent", "n_members": 2}],
    "NotMIWAE": [{"mask_model": JointMask(hidden=3)}],
    "GAIN": [{"network": "columns", "n_members": 2}],
    "MICE": [
        {"standardise": False, "tol": np.float32(0.5), "kinds": {"visits": "count"}},
        {"method": "pmm", "predictors": {"visits": ["weight"], "arm": []}},
    ],
    "MissForest": [{"n_jobs": None, "max_iter": np.int64(1)}],
}
CASES = [(name, {}) for name in IMPUTERS]
CASES += [(name, setting) for name, settings in SETTINGS.items() for setting in settings]


@pytest.mark.parametrize(("name", "setting"), CASES, ids=lambda each: str(each)[:40])
def test_a_loaded_imputer_gives_the_same_results(saved, table, tmp_path, name, setting):
    imputer = IMPUTERS[name](**setting).fit(table) if setting else saved[0][name]
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors")
    assert type(again) is type(imputer)
    assert again.transform(table).equals(imputer.transform(table))
    one, other = imputer.sample(table, n=3), again.sample(table, n=3)
    assert all(a.equals(b) for a, b in zip(one, other, strict=True))
    before, after = scores(imputer, table), scores(again, table)
    assert {each for each in before if before[each].tobytes() != after[each].tobytes()} == set()
    assert again.describe() == imputer.describe()
    assert again.feature_names_in_.tolist() == imputer.feature_names_in_.tolist()
    assert again.n_features_in_ == imputer.n_features_in_
    for scalar in ("n_epochs_", "best_validation_error_", "n_iter_"):
        assert getattr(again, scalar, None) == getattr(imputer, scalar, None)
    if hasattr(imputer, "set_sizes_"):
        assert again.set_sizes_.tobytes() == imputer.set_sizes_.tobytes()
    ours, theirs = clone(imputer).get_params(), clone(again).get_params()
    assert {each for each in ours if ours[each] != theirs[each]} <= {"random_state"}


LOADER = """
import numpy as np, psmvae, pyarrow.parquet as pq
from pathlib import Path
folder = Path({folder!r})
table = pq.read_table(folder / "in.parquet")
for name, methods in {methods}.items():
    imputer = psmvae.load(folder / (name + ".safetensors"))
    pq.write_table(imputer.transform(table), folder / (name + " filled.parquet"))
    pq.write_table(imputer.sample(table, n=3)[2], folder / (name + " drawn.parquet"))
    found = {{method: getattr(imputer, method)(table) for method in methods}}
    np.savez(folder / (name + ".npz"), **found)
"""


def test_a_new_process_gives_the_same_results(saved, table, python):
    made, folder = saved
    pq.write_table(table, folder / "in.parquet")
    python(
        LOADER.format(
            folder=str(folder), methods={name: list(scores(made[name], table)) for name in made}
        )
    )
    for name, imputer in made.items():
        filled = pq.read_table(folder / f"{name} filled.parquet")
        assert filled.equals(imputer.transform(table)), name
        drawn = pq.read_table(folder / f"{name} drawn.parquet")
        assert drawn.equals(imputer.sample(table, n=3)[2]), name
        found = np.load(folder / f"{name}.npz")
        for method, value in scores(imputer, table).items():
            assert found[method].tobytes() == value.tobytes(), (name, method)


def test_an_imputer_of_an_array_with_an_empty_column(family, numbers, tmp_path):
    table = numbers.copy()
    table[:, 2] = np.nan
    with pytest.warns(UserWarning, match="nothing observed"):
        imputer = family().fit(table)
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors")
    assert not hasattr(again, "feature_names_in_")
    assert again.transform(table).tobytes() == imputer.transform(table).tobytes()
    assert again.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_loaded_imputer_can_be_saved_and_fitted_again(saved, table, tmp_path, name):
    again = psmvae.load(str(saved[1] / f"{name}.safetensors"))
    again.save(str(tmp_path / "second.safetensors"))
    second = psmvae.load(tmp_path / "second.safetensors")
    assert second.transform(table).equals(again.transform(table))
    assert again.fit(table).transform(table).num_rows == table.num_rows


@pytest.mark.parametrize("name", FAMILIES)
def test_the_file_is_safetensors_with_json(saved, name):
    content = (saved[1] / f"{name}.safetensors").read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    assert metadata["format"] == "psmvae-model"
    document = json.loads(metadata["document"])
    assert document["class"] == f"{name}Imputer"
    assert document["schema"]["columns"][0]["name"] == "weight"
    assert document["facts"] == json.loads(json.dumps(saved[0][name].describe()))


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permissions_of_a_model_file_follow_the_umask(fitted, tmp_path, mask):
    before = os.umask(mask)
    try:
        fitted.save(tmp_path / "m.safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "m.safetensors").stat().st_mode) == 0o666 & ~mask


def test_every_method_needs_a_fitted_imputer(make, numbers, tmp_path):
    imputer = make()
    for method in methods_of(imputer):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(imputer, method)(numbers)
    with pytest.raises(NotFittedError):
        imputer.save(tmp_path / "m.safetensors")
    with pytest.raises(NotFittedError):
        imputer.describe()
    with pytest.raises(NotFittedError):
        imputer.get_feature_names_out()
    assert list(tmp_path.iterdir()) == []


class OwnMask:
    """Settings of a mask model written by a user."""

    def build(self, shape, noise):
        return OwnModule(shape)


class OwnModule(MaskModule):
    """One probability for all columns."""

    def __init__(self, shape):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(shape.n_members, 1, 1, shape.n_sets, 1))

    def forward(self, x, z, at):
        score = self.score.expand(*z.shape[:-1], at.stop - at.start)
        return nn.functional.logsigmoid(score), nn.functional.logsigmoid(-score)


class TestSave:
    def test_a_mask_model_of_the_users_own_cannot_be_saved(self, quick, table, tmp_path):
        imputer = quick(OwnMask()).fit(table)
        path = tmp_path / "m.safetensors"
        with pytest.raises(TypeError, match=r"mask_model=.*OwnMask.* cannot be saved"):
            imputer.save(path)
        assert list(tmp_path.iterdir()) == []

    def test_an_existing_file_is_replaced(self, fitted, table, tmp_path):
        path = tmp_path / "m.safetensors"
        path.write_bytes(b"old")
        fitted.save(path)
        assert psmvae.load(path).transform(table).equals(fitted.transform(table))
        assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]

    @pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
    def test_a_failure_keeps_the_old_file(self, fitted, tmp_path, monkeypatch, failure):
        path = tmp_path / "m.safetensors"
        path.write_bytes(b"old")

        def write_half(path, tensors, metadata):
            path.write_bytes(b"half")
            raise failure

        monkeypatch.setattr("psmvae.imputers.model_file.write_tensors", write_half)
        with pytest.raises(type(failure)):
            fitted.save(path)
        assert path.read_bytes() == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]

    def test_weights_are_not_copied(self, fitted, tmp_path, monkeypatch):
        size = 2**23
        weights = {"weights": np.zeros(size // 8)}
        monkeypatch.setattr(type(fitted), "_state", lambda self: (weights, {}))
        tracemalloc.start()
        try:
            fitted.save(tmp_path / "m.safetensors")
            assert tracemalloc.get_traced_memory()[1] < size / 4
        finally:
            tracemalloc.stop()
        assert (tmp_path / "m.safetensors").stat().st_size > size

    def test_a_missing_folder_is_named(self, fitted, tmp_path):
        path = tmp_path / "nowhere" / "m.safetensors"
        with pytest.raises(FileNotFoundError) as caught:
            fitted.save(path)
        assert str(caught.value).endswith(f"{str(path)!r}")

    def test_parameters_changed_after_fit_do_not_change_the_model(self, quick, table, tmp_path):
        imputer = quick().fit(table)
        before = imputer.transform(table)
        imputer.set_params(
            n_sets=5, n_members=2, mask_model="logistic-ceiling", network=Network(width=4)
        )
        path = tmp_path / "m.safetensors"
        imputer.save(path)
        again = psmvae.load(path)
        assert again.n_sets == 5
        assert again.config_ == imputer.config_
        assert again.transform(table).equals(before)
        assert again.sample(table, n=2)[1].equals(imputer.sample(table, n=2)[1])
        assert again.fit(table).n_sets_ == 5

    def test_parameters_used_after_fit_are_saved(self, quick, table, tmp_path):
        imputer = quick().fit(table).set_params(n_draws=7, handle_unknown="missing")
        imputer.save(tmp_path / "m.safetensors")
        again = psmvae.load(tmp_path / "m.safetensors")
        assert (again.n_draws, again.handle_unknown) == (7, "missing")
        assert again.transform(table).equals(imputer.transform(table))

    def test_parameters_out_of_range_are_refused(self, quick, table, tmp_path):
        imputer = quick().fit(table).set_params(n_draws=0)
        with pytest.raises(ValueError, match="n_draws"):
            imputer.save(tmp_path / "m.safetensors")
        assert list(tmp_path.iterdir()) == []


def test_a_mask_model_that_shares_a_buffer_with_the_encoder(tmp_path):
    """Both have the values of ordered levels, which safetensors does not store as one."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=60)
    grade = pd.Categorical(np.digitize(z, [-1, 0, 1]).astype(str), ordered=True)
    frame = pd.DataFrame({"r": z, "grade": grade}).mask(rng.random((60, 2)) < 0.2)
    imputer = PSMVAEImputer("logistic-ceiling", max_epochs=1, random_state=0, device="cpu").fit(
        frame
    )
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    pd.testing.assert_frame_equal(again.transform(frame), imputer.transform(frame))
