"""Model files: the same bits in a new process, clear errors for all that is no model file."""

import json
import os
import pickle
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

import psmvae
from psmvae import Network, PSMVAEImputer, SelfMask
from psmvae.imputers import persist


def answers(imputer, table):
    return {
        "proba": imputer.predict_set_proba(table),
        "score": imputer.score_samples(table),
        "size": imputer.effective_sample_size(table),
    }


@pytest.fixture(scope="module")
def table(mixed):
    return pa.table(mixed)


@pytest.fixture(scope="module")
def fitted(quick, table):
    return quick().fit(table)


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    fitted.save(path)
    return path


VARIANTS = {
    "latent": {},
    "self": {"mask_model": SelfMask(["weight", "arm"], ceiling=False, integrate="draw")},
    "none": {"mask_model": "none", "pi": "rate", "scale": 0.5},
    "members": {"mask_model": "self", "n_members": 3, "network": Network(width=8, depth=1)},
    "settings": {
        "n_latent": np.int64(3),
        "kinds": {"visits": "real"},
        "unseen": "missing",
        "network": Network.paper(),
        "held_out": 0.0,
        "weight_observed": np.True_,
        "random_state": np.random.RandomState(0),
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_loaded_imputer_gives_the_same_bits(quick, table, tmp_path, variant):
    imputer = quick(**VARIANTS[variant]).fit(table)
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors")
    assert type(again) is PSMVAEImputer
    assert again.transform(table).equals(imputer.transform(table))
    one, other = imputer.sample(table, n=3), again.sample(table, n=3)
    assert all(a.equals(b) for a, b in zip(one, other, strict=True))
    before, after = answers(imputer, table), answers(again, table)
    assert {name for name in before if before[name].tobytes() != after[name].tobytes()} == set()
    assert again.describe() == imputer.describe()
    assert again.feature_names_in_.tolist() == imputer.feature_names_in_.tolist()
    assert again.n_features_in_ == imputer.n_features_in_
    assert again.n_epochs_ == imputer.n_epochs_
    assert again.best_error_ == imputer.best_error_
    assert again.set_sizes_.tobytes() == imputer.set_sizes_.tobytes()
    ours, theirs = clone(imputer).get_params(), clone(again).get_params()
    assert {name for name in ours if ours[name] != theirs[name]} <= {"random_state"}


def test_a_new_process_gives_the_same_bits(python, fitted, saved, table, tmp_path):
    pq.write_table(table, tmp_path / "in.parquet")
    python(
        f"""
import numpy as np, psmvae, pyarrow.parquet as pq
folder = {str(tmp_path)!r}
table = pq.read_table(folder + "/in.parquet")
imputer = psmvae.load({str(saved)!r})
pq.write_table(imputer.transform(table), folder + "/filled.parquet")
for k, drawn in enumerate(imputer.sample(table, n=3)):
    pq.write_table(drawn, folder + f"/drawn{{k}}.parquet")
np.savez(
    folder + "/answers.npz",
    proba=imputer.predict_set_proba(table),
    score=imputer.score_samples(table),
    size=imputer.effective_sample_size(table),
)
"""
    )
    assert pq.read_table(tmp_path / "filled.parquet").equals(fitted.transform(table))
    for k, drawn in enumerate(fitted.sample(table, n=3)):
        assert pq.read_table(tmp_path / f"drawn{k}.parquet").equals(drawn)
    found = np.load(tmp_path / "answers.npz")
    for name, value in answers(fitted, table).items():
        assert found[name].tobytes() == value.tobytes(), name


def test_an_imputer_of_an_array_and_an_empty_column(quick, numbers, tmp_path):
    table = numbers.copy()
    table[:, 2] = np.nan
    with pytest.warns(UserWarning, match="nothing observed"):
        imputer = quick().fit(table)
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors")
    assert not hasattr(again, "feature_names_in_")
    assert again.transform(table).tobytes() == imputer.transform(table).tobytes()
    assert again.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]


def test_a_loaded_imputer_can_be_saved_and_fitted_again(saved, table, tmp_path):
    again = psmvae.load(str(saved))
    again.save(str(tmp_path / "second.safetensors"))
    assert (
        psmvae.load(tmp_path / "second.safetensors").transform(table).equals(again.transform(table))
    )
    assert again.fit(table).transform(table).num_rows == table.num_rows


def test_the_file_is_safetensors_with_json(saved):
    content = saved.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    assert metadata["format"] == "psmvae-model"
    document = json.loads(metadata["document"])
    assert document["schema"]["columns"][0]["name"] == "weight"


class TestNotFitted:
    @pytest.mark.parametrize(
        "method",
        [
            "transform",
            "sample",
            "predict_set",
            "predict_set_proba",
            "score_samples",
            "score",
            "effective_sample_size",
        ],
    )
    def test_a_question_before_fit(self, quick, numbers, method):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(quick(), method)(numbers)

    def test_save_describe_and_names_before_fit(self, quick, tmp_path):
        with pytest.raises(NotFittedError):
            quick().save(tmp_path / "m.safetensors")
        with pytest.raises(NotFittedError):
            quick().describe()
        with pytest.raises(NotFittedError):
            quick().get_feature_names_out()
        assert list(tmp_path.iterdir()) == []


def with_document(content, change):
    """The model file with another document."""
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


class TestNoModelFile:
    @pytest.fixture
    def load(self, tmp_path):
        """Load a file of this content."""

        def load(content):
            path = tmp_path / "odd.safetensors"
            path.write_bytes(content)
            return psmvae.load(path)

        return load

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_damaged(self, load, saved, damage):
        with pytest.raises(ValueError, match=r"odd\.safetensors.* not a psmvae model"):
            load(DAMAGE[damage](saved.read_bytes()))

    def test_foreign_safetensors(self, tmp_path):
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

    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
            psmvae.load(tmp_path / "nowhere.safetensors")
        with pytest.raises(FileNotFoundError, match="no model file"):
            psmvae.load(tmp_path)

    @pytest.mark.parametrize("version", ["2", "99", "1.5", "", "new"])
    def test_another_version(self, load, saved, version):
        def change(metadata, document):
            metadata.update(format_version=version, psmvae="9.9.9")

        with pytest.raises(ValueError, match=r"written by psmvae 9\.9\.9.*newer"):
            load(with_document(saved.read_bytes(), change))

    def test_device_is_checked_as_such(self, saved):
        with pytest.raises(ValueError, match=r"^device must be"):
            psmvae.load(saved, device="abacus")


def setting(*keys, value):
    """Put a value deep into the document."""

    def change(metadata, document):
        place = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


def dropping(*keys):
    def change(metadata, document):
        place = document
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return change


TAMPERED = {
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
    "more sets": setting("parameters", "n_sets", value=3),
    "more members": setting("parameters", "n_members", value=2),
    "another mask model": setting("parameters", "mask_model", value="self"),
    "no schema": dropping("schema"),
    "an odd schema": setting("schema", value={"columns": [{"title": "weight"}]}),
    "a column less": setting("schema", "columns", value=[]),
    "an unknown kind": setting("schema", "columns", 0, "kind", value="colour"),
    "fewer levels": setting("schema", "columns", 2, "levels", value=["low"]),
    "levels are a number": setting("schema", "columns", 2, "levels", value=3),
    "no seed": dropping("seed"),
    "seed is text": setting("seed", value="zero"),
    "n_rows is text": setting("n_rows", value="many"),
    "other progress": setting("last", value={"when": "now"}),
    "progress is text": setting("last", value="done"),
    "no document": lambda metadata, document: metadata.pop("document"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampered_metadata(saved, tmp_path, what):
    path = tmp_path / "odd.safetensors"
    path.write_bytes(with_document(saved.read_bytes(), TAMPERED[what]))
    with pytest.raises(ValueError, match=r"odd\.safetensors.*psmvae model"):
        psmvae.load(path)


@pytest.mark.parametrize("text", ["{", "[]", "null", '"model"', ""])
def test_a_document_that_is_none(saved, tmp_path, text):
    content = saved.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"]["document"] = text
    head = json.dumps(header).encode()
    path = tmp_path / "odd.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + content[8 + size :])
    with pytest.raises(ValueError, match=r"odd\.safetensors.*damaged psmvae model"):
        psmvae.load(path)


class OwnMask:
    """A mask model a user wrote: all columns go missing alike."""

    def build(self, shape, noise):
        return OwnModule(shape)


class OwnModule(nn.Module):
    depends_on_x = False
    as_input = False

    def __init__(self, shape):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(shape.n_members, 1, 1, shape.n_sets, 1))

    def forward(self, x, z, at):
        score = self.score.expand(*z.shape[:-1], at.stop - at.start)
        return nn.functional.logsigmoid(score), nn.functional.logsigmoid(-score)


class TestSave:
    def test_an_own_mask_model_cannot_be_saved(self, quick, table, tmp_path):
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
    def test_a_failure_leaves_the_old_file(self, fitted, tmp_path, monkeypatch, failure):
        path = tmp_path / "m.safetensors"
        path.write_bytes(b"old")

        def write_half(tensors, name, metadata):
            with open(name, "wb") as file:  # noqa: PTH123
                file.write(b"half")
            raise failure

        monkeypatch.setattr(persist, "save_file", write_half)
        with pytest.raises(type(failure)):
            fitted.save(path)
        assert path.read_bytes() == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]

    def test_a_folder_that_is_not_there(self, fitted, tmp_path):
        with pytest.raises(FileNotFoundError):
            fitted.save(tmp_path / "nowhere" / "m.safetensors")

    def test_parameters_changed_after_fit(self, quick, table, tmp_path):
        imputer = quick().fit(table)
        path = tmp_path / "m.safetensors"
        imputer.set_params(n_sets=5)
        with pytest.raises(ValueError, match=r"changed after fit.*n_sets from 2 to 5"):
            imputer.save(path)
        imputer.set_params(n_sets=2, n_draws=0)
        with pytest.raises(ValueError, match="n_draws"):
            imputer.save(path)
        assert list(tmp_path.iterdir()) == []
        # these only say how to ask the fitted model, or how to train another
        imputer.set_params(n_draws=7, unseen="missing", max_epochs=9)
        imputer.save(path)
        assert psmvae.load(path).transform(table).equals(imputer.transform(table))


def test_nothing_is_unpickled(root):
    banned = re.compile(
        r"\b(pickle|cloudpickle|dill|joblib|marshal|shelve)\b|torch\.(load|save)\b|allow_pickle"
        r"|\b(eval|exec)\("
    )
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted((root / "src").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if banned.search(line)
    ]
    assert found == []
