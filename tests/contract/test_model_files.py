"""Damaged, foreign and altered model files: clear errors, and no code in a file is run."""

import json
import os
import pickle
import struct

import pyarrow as pa
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import psmvae
from contract.registry import FAMILIES, VARIANTS
from psmvae.imputers.model_file import FORMAT_VERSION


@pytest.fixture(scope="module")
def files(mixed, tmp_path_factory):
    """The path of a model file for each imputer; the model is fitted once."""
    folder = tmp_path_factory.mktemp("models")

    def file(name="PSMVAE"):
        path = folder / f"{name}.safetensors"
        if not path.exists():
            VARIANTS[name]().fit(pa.table(mixed)).save(path)
        return path

    return file


@pytest.fixture(scope="module")
def saved(files):
    return files()


def with_document(content, change):
    """Return a model file whose metadata were changed."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    metadata = header["__metadata__"]
    document = json.loads(metadata["document"])
    change(metadata, document)
    if "document" in metadata:
        metadata["document"] = json.dumps(document)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


DAMAGE = {
    "truncated": lambda content: content[: len(content) * 3 // 4],
    "stub": lambda content: content[:6],
    "empty": lambda content: b"",
    "text": lambda content: b"weight,visits\n70.5,3\n",
    "zip": lambda content: b"PK\x03\x04" + content,
    "longer": lambda content: content + b"x",
    "no metadata": lambda content: struct.pack("<Q", 2) + b"{}",
}


class TestNotAModelFile:
    @pytest.fixture
    def load(self, tmp_path):
        """Load a file with this content."""

        def load(content):
            path = tmp_path / "odd.safetensors"
            path.write_bytes(content)
            return psmvae.load(path)

        return load

    @pytest.mark.parametrize("damage", DAMAGE)
    @pytest.mark.parametrize("name", FAMILIES)
    def test_damaged(self, load, files, name, damage):
        with pytest.raises(ValueError, match=r"odd\.safetensors.* not a psmvae model"):
            load(DAMAGE[damage](files(name).read_bytes()))

    def test_safetensors_of_another_program(self, tmp_path):
        path = tmp_path / "weights.safetensors"
        save_file({"layer": torch.zeros(3)}, str(path), metadata={"format": "pt"})
        with pytest.raises(ValueError, match=r"weights\.safetensors.*not a psmvae model"):
            psmvae.load(path)

    def test_a_pickle_is_not_run(self, tmp_path):
        path, trace = tmp_path / "model.pt", tmp_path / "trace"

        class Payload:
            def __reduce__(self):
                return os.mkdir, (str(trace),)

        path.write_bytes(pickle.dumps(Payload()))
        with pytest.raises(ValueError, match="not a psmvae model"):
            psmvae.load(path)
        torch.save({"layer": torch.zeros(3)}, path)
        with pytest.raises(ValueError, match="not a psmvae model"):
            psmvae.load(path)
        assert not trace.exists()

    def test_a_missing_file_and_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
            psmvae.load(tmp_path / "nowhere.safetensors")
        with pytest.raises(FileNotFoundError, match="no model file"):
            psmvae.load(tmp_path)

    @pytest.mark.parametrize("version", ["1", str(FORMAT_VERSION - 1)])
    def test_an_older_format(self, load, saved, version):
        def change(metadata, document):
            metadata.update(format_version=version, psmvae="0.0.9")

        message = rf"format {version}, written by psmvae 0\.0\.9.*Fit the model again"
        with pytest.raises(ValueError, match=message):
            load(with_document(saved.read_bytes(), change))

    @pytest.mark.parametrize(
        "version", [str(FORMAT_VERSION + 1), "99", "1.5", "", "new", "²", "1" * 5000]
    )
    def test_a_newer_or_unknown_format(self, load, saved, version):
        def change(metadata, document):
            metadata.update(format_version=version, psmvae="9.9.9")

        with pytest.raises(ValueError, match=r"written by psmvae 9\.9\.9.*newer"):
            load(with_document(saved.read_bytes(), change))

    def test_an_unknown_device(self, saved):
        with pytest.raises(ValueError, match=r"^device must be"):
            psmvae.load(saved, device="abacus")

    def test_a_wrong_file_is_reported_before_a_wrong_device(self, saved, tmp_path):
        path = tmp_path / "odd.safetensors"
        path.write_bytes(with_document(saved.read_bytes(), setting("class", value="Forest")))
        with pytest.raises(ValueError, match=r"odd\.safetensors.*unknown imputer class 'Forest'"):
            psmvae.load(path, device="abacus")


def setting(*keys, value):
    """Set an entry of the document."""

    def change(metadata, document):
        place = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


def dropping(*keys):
    """Remove an entry of the document."""

    def change(metadata, document):
        place = document
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return change


ALTERED = {
    "another class": setting("class", value="RandomForest"),
    "class is a list": setting("class", value=[]),
    "no parameters": dropping("parameters"),
    "parameters are a list": setting("parameters", value=[1]),
    "an unknown parameter": setting("parameters", "colour", value="red"),
    "a parameter out of range": setting("parameters", "n_draws", value=0),
    "a parameter of another type": setting("parameters", "n_draws", value="many"),
    "an unknown part": setting("parameters", "network", value={"part": "System"}),
    "a part without a name": setting("parameters", "network", value={"width": 3}),
    "a part out of range": setting("parameters", "network", value={"part": "Network", "width": 0}),
    "no configuration": dropping("plain", "config"),
    "an unknown field": setting("plain", "config", "colour", value="red"),
    "more sets": setting("plain", "config", "n_sets", value=3),
    "more members": setting("plain", "config", "n_members", value=2),
    "more latents": setting("plain", "config", "n_latent", value=7),
    "another mask model": setting("plain", "config", "mask_model", value={"part": "LogisticMask"}),
    "another network": setting("plain", "config", "network", "width", value=3),
    "no schema": dropping("schema"),
    "an odd schema": setting("schema", value={"columns": [{"title": "weight"}]}),
    "a column less": setting("schema", "columns", value=[]),
    "an unknown kind": setting("schema", "columns", 0, "kind", value="colour"),
    "fewer levels": setting("schema", "columns", 2, "levels", value=["low"]),
    "levels are a number": setting("schema", "columns", 2, "levels", value=3),
    "no seed": dropping("seed"),
    "seed is text": setting("seed", value="zero"),
    "n_rows is text": setting("n_rows", value="many"),
    "other progress": setting("plain", "progress", value={"when": "now"}),
    "progress is text": setting("plain", "progress", value="done"),
    "no document": lambda metadata, document: metadata.pop("document"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_altered_metadata(saved, tmp_path, what):
    path = tmp_path / "odd.safetensors"
    path.write_bytes(with_document(saved.read_bytes(), ALTERED[what]))
    with pytest.raises(ValueError, match=r"odd\.safetensors.*psmvae model"):
        psmvae.load(path)


@pytest.mark.parametrize("text", ["{", "[]", "null", '"model"', ""])
def test_a_document_that_is_not_an_object(saved, tmp_path, text):
    content = saved.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"]["document"] = text
    head = json.dumps(header).encode()
    path = tmp_path / "odd.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + content[8 + size :])
    with pytest.raises(ValueError, match=r"odd\.safetensors.*damaged psmvae model"):
        psmvae.load(path)


# Arrays of other shapes must be noticed when the file is loaded.
ARRAYS = {
    "Mean": ["mean", "deviation", "matrix.center", "matrix.scale", "matrix.lowest"],
    "MICE": [
        *("chain.fill", "chain.column", "chain.coef", "chain.intercept", "matrix.scale"),
        *("chain.predictors", "chain.n_predictors"),
        *("chains.trace_mean", "chains.predictors.center", "chains.0.sigma", "chains.0.linear"),
    ],
    "MICE pmm": ["chains.0.donor", "chains.2.coef", "chains.2.order", "chains.2.mode"],
    "MissForest": [
        *("chain.feature", "chain.threshold", "chain.child", "chain.root"),
        *("chain.predictors", "chain.n_predictors"),
    ],
    "PSMVAE": ["missing_rate", "set_order", "set_sizes", "draw_scale"],
    "GAIN": ["missing_rate"],
}
CHANGES = {
    "gone": lambda array: None,
    "shorter": lambda array: array[:-1],
    "longer": lambda array: torch.cat([array, array[:1]]),
    "another axis": lambda array: array[None],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("name", "array"), [(n, a) for n, each in ARRAYS.items() for a in each])
def test_altered_arrays(files, tmp_path, name, array, change):
    with safe_open(str(files(name)), framework="pt") as file:
        metadata = file.metadata()
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    changed = CHANGES[change](arrays.pop(array))
    if changed is not None:
        arrays[array] = changed.contiguous()
    path = tmp_path / "odd.safetensors"
    save_file(arrays, str(path), metadata=metadata)
    with pytest.raises(ValueError, match=r"odd\.safetensors.*inconsistent contents"):
        psmvae.load(path)


def as_forest(metadata, document):
    """Make a document that says MissForestImputer of one that says MICEImputer."""
    document["class"] = "MissForestImputer"
    for name in ("method", "predictors"):
        document["parameters"].pop(name)


ALTERED_CLASSICAL = {
    "no chains": ("MICE", setting("plain", "chains", value={})),
    "chains are a number": ("MICE", setting("plain", "chains", value=3)),
    "one chain less": ("MICE", setting("plain", "chains", "settings", "n_chains", value=19)),
    "no bounds": ("MICE", setting("plain", "chains", "bounds", value=[])),
    "an unknown estimator": ("MICE", setting("plain", "chain", "estimator", value="lasso")),
    "another estimator": ("MICE", setting("plain", "chain", "estimator", value="trees")),
    "rounds are text": ("MICE", setting("plain", "chain", "n_rounds", value="two")),
    "no facts": ("MissForest", setting("plain", "chain", value={})),
    "no plain values": ("MissForest", dropping("plain")),
    "another class": ("MICE", setting("class", value="MeanImputer")),
    "a chain of regressions as one of forests": ("MICE", as_forest),
    "a parameter out of range": ("MissForest", setting("parameters", "n_estimators", value=0)),
    "fewer levels": ("Mean", setting("schema", "columns", 2, "levels", value=["low", "mid"])),
    "a column less": ("Mean", lambda metadata, document: document["schema"]["columns"].pop()),
}


@pytest.mark.parametrize("what", ALTERED_CLASSICAL)
def test_altered_metadata_of_a_classical_imputer(files, tmp_path, what):
    name, change = ALTERED_CLASSICAL[what]
    path = tmp_path / "odd.safetensors"
    path.write_bytes(with_document(files(name).read_bytes(), change))
    with pytest.raises(ValueError, match=r"odd\.safetensors.*psmvae model"):
        psmvae.load(path)


def test_a_tree_with_a_cycle_is_refused(files, tmp_path):
    """Prediction with such a tree would not end."""
    with safe_open(str(files("MissForest")), framework="pt") as file:
        metadata = file.metadata()
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    arrays["chain.child"] = torch.zeros_like(arrays["chain.child"])
    path = tmp_path / "odd.safetensors"
    save_file(arrays, str(path), metadata=metadata)
    with pytest.raises(ValueError, match="nodes of a tree are inconsistent"):
        psmvae.load(path)
