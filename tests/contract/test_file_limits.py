"""Every field of a model file is checked against its limits before anything is built."""

import json
import struct

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import psmvae
from contract.registry import CLASSES, VARIANTS
from psmvae.imputers.deep import DeepImputer
from psmvae.nn.size_limit import SizeLimit


@pytest.fixture(scope="module")
def contents(mixed, tmp_path_factory):
    """The content of a model file of each family, as header and data."""
    pd = pytest.importorskip("pandas")
    folder, known = tmp_path_factory.mktemp("models"), {}

    def get(name="PSMVAE"):
        if name not in known:
            path = folder / f"{name}.safetensors"
            VARIANTS[name](derived=None).fit(pd.DataFrame(mixed)).save(path)
            content = path.read_bytes()
            size = struct.unpack("<Q", content[:8])[0]
            known[name] = content[8 : 8 + size], content[8 + size :]
        return known[name]

    return get


@pytest.fixture
def refused(contents, tmp_path, monkeypatch):
    """Load a file with a changed document; it must be refused before a model is built.

    With ``started``, the construction of a model may begin, but not end.
    """

    def check(change, name="PSMVAE", match="", *, started=False):
        head, data = contents(name)
        header = json.loads(head)
        document = json.loads(header["__metadata__"]["document"])
        text = change(document)
        header["__metadata__"]["document"] = text or json.dumps(document)
        head = json.dumps(header).encode()
        path = tmp_path / "odd.safetensors"
        path.write_bytes(struct.pack("<Q", len(head)) + head + data)
        build = DeepImputer._build if started else lambda imputer: None

        def must_not_build(imputer):
            build(imputer)
            # loading reports most errors as a damaged file, but not this one
            raise AssertionError("a model was built")

        monkeypatch.setattr(DeepImputer, "_build", must_not_build)
        with pytest.raises(ValueError, match=rf"odd\.safetensors.*psmvae model.*{match}"):
            psmvae.load(path)

    return check


def setting(path, value):
    def change(document):
        place = document
        *keys, last = path.split("/")
        for key in keys:
            place = place[int(key) if isinstance(place, list) else key]
        place[int(last) if isinstance(place, list) else last] = value

    return change


CONFIG, COLUMN = "plain/config", "schema/columns/0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{CONFIG}/network/width", 10**6),
        (f"{CONFIG}/network/width", 2**40),
        (f"{CONFIG}/network/depth", 20_000),
        (f"{CONFIG}/n_sets", 10**6),
        (f"{CONFIG}/n_latent", 10**6),
        (f"{CONFIG}/n_members", 10**6),
        (f"{CONFIG}/mask_model", {"part": "JointMask", "hidden": 10**9}),
        (f"{CONFIG}/regression", {"part": "Network", "width": 10**6, "depth": 3}),
    ],
)
def test_sizes_that_are_not_those_of_the_tensors(refused, path, value):
    # an allocation that fails is reported in other words
    match = "(need .* numbers or more|not that|set_order|must be <=)"
    refused(setting(path, value), match=match, started=True)


def test_a_limit_of_sizes():
    with SizeLimit(100) as limit:
        torch.zeros(10, 5)
        torch.full((2, 3), 1.0)
        torch.ones(size=(4,))
        row = torch.rand(10)
        # a view takes no memory, and its copy does
        wide = row.expand(1000, -1)
        assert limit.n_allocated == 70
        with pytest.raises(ValueError, match="10,070 numbers or more"):
            wide.clone()
    with SizeLimit(100), pytest.raises(ValueError, match="numbers or more"):
        torch.empty(2**50)


@pytest.mark.parametrize("name", ["PSMVAE", "GAIN"])
def test_a_model_is_built_once_and_within_its_limit(contents, tmp_path, monkeypatch, name):
    """Without the allowance for what is not part of a file, which small tables need not."""
    head, data = contents(name)
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    monkeypatch.setattr("psmvae.imputers.file_schema.MAX_EXTRA", 0)
    monkeypatch.setattr(DeepImputer, "_shapes", None)
    built, make = [], CLASSES[name]._make_model
    monkeypatch.setattr(CLASSES[name], "_make_model", lambda *a: built.append(1) or make(*a))
    psmvae.load(path)
    assert built == [1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{COLUMN}/scale", float("inf")),
        (f"{COLUMN}/scale", 0.0),
        (f"{COLUMN}/scale", True),
        (f"{COLUMN}/center", "self"),
        (f"{COLUMN}/center", float("nan")),
        (f"{COLUMN}/center", 10**400),
        (f"{COLUMN}/deviation", -1.0),
        (f"{COLUMN}/n_observed", 2**65),
        (f"{COLUMN}/low", "none"),
        (f"{COLUMN}/observed", [3.0, 1.0]),
        (f"{COLUMN}/name", 3),
        (f"{COLUMN}/name", "visits"),
        (f"{COLUMN}/formula", "__import__('os')"),
        (f"{COLUMN}/levels", ["a", "b"]),
        ("schema/columns/2/levels", ["low", "low", "high"]),
        ("schema/columns/2/levels", ["low", 1, "high"]),
        ("schema/columns/2/levels", [["low"], "mid", "high"]),
        ("schema/columns/2/shares", [0.5]),
        ("parameters/n_draws", 2**64),
        ("parameters/n_draws", 10.5),
        ("parameters/max_epochs", 2**40),
        ("parameters/scale", float("inf")),
        ("parameters/kinds", [1]),
        ("parameters/verbose", "yes"),
        (f"{CONFIG}/scale", float("inf")),
        (f"{CONFIG}/scale", "wide"),
        (f"{CONFIG}/beta", float("nan")),
        (f"{CONFIG}/objective", "least squares"),
        (f"{CONFIG}/fast_preset", 1),
        (f"{CONFIG}/network/residual", "yes"),
        (f"{CONFIG}/network/dropout", True),
        ("plain/progress/epoch", "three"),
        ("seed", 2**40),
        ("n_rows", 2**60),
        ("feature_names", [1]),
        ("ignored_columns", "all"),
    ],
)
def test_values_out_of_range(refused, path, value):
    refused(setting(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("plain/chains/settings/n_chains", "many"),
        ("plain/chains/settings/n_kept", 0),
        ("plain/chains/settings/numeric_draws", "odd"),
        ("plain/chains/levels/2", [99]),
        ("plain/chains/dropped/0", [99]),
        ("plain/chains/bounds/0", ["low", None]),
        ("plain/chains/pmm/0", "no"),
        # normal draws have no donors
        ("plain/chains/pmm/0", True),
        ("plain/chains/settings/numeric_draws", "residuals"),
    ],
)
def test_chains_out_of_range(refused, path, value):
    refused(setting(path, value), "MICE")


def test_deep_nesting(refused):
    deep = "[" * 100_000 + "]" * 100_000
    refused(lambda _: deep, match="nested too deeply")
    refused(lambda document: json.dumps(document).replace("null", deep, 1), match="nested")
    part = {"part": "Network"}
    for _ in range(100):
        part = {"part": "Network", "width": part}
    refused(setting("parameters/network", part), match="nested too deeply")


def test_a_long_document(refused, monkeypatch):
    monkeypatch.setattr("psmvae.imputers.file_schema.MAX_DOCUMENT", 1000)
    refused(lambda _: None, match="characters")


@pytest.mark.parametrize(
    ("name", "tensor", "change"),
    [
        ("PSMVAE", "draw_scale", lambda t: torch.full_like(t, torch.nan)),
        ("PSMVAE", "draw_scale", lambda t: t.double()),
        ("PSMVAE", "missing_rate", lambda t: t + 2),
        ("MICE", "chains.0.linear", lambda t: t + 99),
        ("MICE", "chains.0.linear", lambda t: t.double()),
        ("MICE", "chains.predictors.scale", torch.zeros_like),
        ("MICE", "chains.predictors.group", lambda t: t.flip(0)),
        ("MICE", "chains.2.order", lambda t: t - 5),
        ("Mean", "matrix.scale", torch.zeros_like),
        ("Mean", "matrix.scale", lambda t: t.bool()),
    ],
)
def test_tensors_out_of_range(contents, tmp_path, name, tensor, change):
    head, data = contents(name)
    path = tmp_path / "odd.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    with safe_open(str(path), framework="pt") as file:
        metadata = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    tensors[tensor] = change(tensors[tensor])
    save_file(tensors, str(path), metadata=metadata)
    with pytest.raises(ValueError, match=r"odd\.safetensors.*inconsistent contents"):
        psmvae.load(path)
