"""Mechanisms in model files, and damaged files."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import psmvae
from mechanism.tables import masked, numbers
from psmvae import MICEImputer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The arrays and metadata of a model with a tilted number and a tilted column of levels."""
    full, rng = numbers(220, 80, noise=0.4)
    full["level"] = np.where(full["b"] > 0, "yes", "no")
    table = masked(
        full,
        a=(full["a"] > 0.3) & (rng.random(220) < 0.6),
        level=(full["level"] == "yes") & (rng.random(220) < 0.5),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name in ("leaves", "rivals", "correction"):
            patch.setattr(f"psmvae.mechanism.{name}.N_TREES", 30)
        imputer = MICEImputer(mask_model="self", random_state=0).fit(table)
    assert len(imputer.mechanism_.tilts) == 2
    path = tmp_path_factory.mktemp("files") / "model.safetensors"
    imputer.save(path)
    with safe_open(str(path), framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    return arrays, metadata, table, path.parent


def load(saved, change=None, change_document=None):
    arrays, metadata, _, folder = saved
    arrays, metadata = dict(arrays), dict(metadata)
    if change is not None:
        change(arrays)
    if change_document is not None:
        document = json.loads(metadata["document"])
        change_document(document)
        metadata["document"] = json.dumps(document)
    save_file(arrays, folder / "changed.safetensors", metadata=metadata)
    return psmvae.load(folder / "changed.safetensors")


def own(saved):
    return [name for name in saved[0] if name.startswith("mechanism.")]


def test_an_unchanged_file_is_read(saved):
    assert not load(saved).transform(saved[2]).isna().any().any()
    assert len(own(saved)) > 40


def test_a_file_without_an_array_is_refused(saved):
    for name in own(saved):
        if "trees" in name:
            continue
        with pytest.raises(ValueError, match="inconsistent contents"):
            load(saved, lambda arrays, name=name: arrays.pop(name))


def test_an_array_that_is_too_short_is_refused(saved):
    for name in own(saved):
        # the number of nodes of a single forest is not needed
        if not saved[0][name].size or name.endswith(("n_nodes", "n_values", "n_similar")):
            continue

        def shorten(arrays, name=name):
            arrays[name] = np.ascontiguousarray(arrays[name][:-1])

        with pytest.raises(ValueError, match="inconsistent contents"):
            load(saved, shorten)


@pytest.mark.parametrize(
    "name", ["has_mask", "0.part2.feature", "0.part2.child", "0.part1.n_similar"]
)
def test_an_index_out_of_range_is_refused(saved, name):
    def spoil(arrays):
        spoilt = arrays[f"mechanism.{name}"].copy()
        spoilt[...] = np.iinfo(spoilt.dtype).max
        arrays[f"mechanism.{name}"] = spoilt

    with pytest.raises(ValueError, match="inconsistent contents"):
        load(saved, spoil)


@pytest.mark.parametrize("key", ["levels", "findings"])
def test_a_document_without_a_part_is_refused(saved, key):
    with pytest.raises(ValueError, match="inconsistent contents"):
        load(saved, None, lambda document: document["plain"]["mechanism"].pop(key))


def test_a_finding_of_an_unknown_column_is_refused(saved):
    def rename(document):
        findings = document["plain"]["mechanism"]["findings"]
        findings["unknown"] = findings.pop("a")

    with pytest.raises(ValueError, match="inconsistent contents"):
        load(saved, None, rename)
