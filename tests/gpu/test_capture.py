"""On a GPU: captured steps do what steps do one operation at a time, and every imputer works."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from psmvae_paper.stacked_fit import fit_stacked

import psmvae
from psmvae import Network, PSMVAEImputer, SelfMask
from psmvae.training import step

pytestmark = pytest.mark.gpu

QUICK = {"max_epochs": 4, "batch_size": 32, "random_state": 0, "device": "cuda"}


REGRESSION = Network(width=32, depth=2, residual=False, linear=False, smooth=True)


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


@pytest.fixture
def graphs(monkeypatch):
    """The steppers that were made, and whether each was captured."""
    made = []
    original = step.Stepper.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(step.Stepper, "__init__", remember)
    return made


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize(
    "make",
    [
        lambda **k: PSMVAEImputer(**k),
        lambda **k: PSMVAEImputer(bootstrap=True, **k),
        lambda **k: PSMVAEImputer(regression=REGRESSION, **k),
        lambda **k: PSMVAEImputer("self", **k),
        lambda **k: PSMVAEImputer.paper("b", **k),
        lambda **k: PSMVAEImputer.paper("a", **k),
        lambda **k: psmvae.MIWAEImputer(**k),
        lambda **k: psmvae.MIWAEImputer(scale="student", **k),
        lambda **k: psmvae.NotMIWAEImputer("network", **k),
        lambda **k: psmvae.GMVAEImputer(mask=True, **k),
        lambda **k: psmvae.DLGMImputer(**k),
        lambda **k: psmvae.GAINImputer(**k),
    ],
    ids=[
        "default",
        "bootstrap",
        "regression",
        "self",
        "b",
        "a",
        "miwae",
        "student",
        "not-miwae",
        "gmvae",
        "dlgm",
        "gain",
    ],
)
def test_a_captured_fit_is_the_same_fit(make, n_members, graphs, monkeypatch):
    x = table()
    monkeypatch.setattr("psmvae.training.loop.WARM_STEPS", 6)
    settings = QUICK | {"n_members": n_members}
    captured = make(**settings).fit(x)
    assert graphs
    assert all(one.graph is not None for one in graphs)
    monkeypatch.setattr(step, "EAGER_STEPS", 10**9)
    eager = make(**settings).fit(x)
    for (name, one), (_, other) in zip(
        captured.model_.state_dict().items(), eager.model_.state_dict().items(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3, msg=name)


def test_the_same_seed_gives_the_same_bits():
    x = table()
    one, other = (PSMVAEImputer(**QUICK).fit(x) for _ in range(2))
    assert one.transform(x).tobytes() == other.transform(x).tobytes()
    assert one.transform(x).tobytes() == one.transform(x).tobytes()


def test_a_mask_model_that_cannot_be_captured_is_trained_all_the_same(graphs):
    class Looks(SelfMask):
        def build(self, shape, noise):
            module = super().build(shape, noise)
            forward = module.forward

            def look(x, z, at):
                # waits for the GPU, which a capture forbids
                assert float(z.sum().detach()) == float(z.sum().detach())
                return forward(x, z, at)

            module.forward = look
            return module

    x = table()
    imputer = PSMVAEImputer(Looks(), **QUICK).fit(x)
    assert all(one.graph is None for one in graphs)
    assert not np.isnan(imputer.transform(x)).any()


def test_max_time_ends_what_would_not_end():
    imputer = PSMVAEImputer(**(QUICK | {"max_epochs": 10**9, "patience": 10**9, "max_time": 5}))
    imputer.fit(table(2000))
    assert imputer.n_epochs_ > 5


def test_stacked_imputers_are_captured_and_learn_each_its_own_table(graphs):
    tables = [table(300), -table(300)]
    made = [PSMVAEImputer(**(QUICK | {"random_state": k})) for k in (0, 1)]
    for imputer, x in zip(fit_stacked(made, tables), tables, strict=True):
        assert not np.isnan(imputer.transform(x)).any()
    assert all(one.graph is not None for one in graphs)


def test_a_model_of_the_gpu_works_on_the_cpu(tmp_path):
    x = table()
    imputer = PSMVAEImputer(**QUICK).fit(x)
    imputer.save(tmp_path / "m.safetensors")
    again = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    np.testing.assert_allclose(again.transform(x), imputer.transform(x), atol=0.3)
    assert len(again.sample(x, n=2)) == 2


@pytest.mark.parametrize("mask_model", ["latent", "self"])
def test_a_compiled_fit_is_the_same_fit(mask_model, graphs, monkeypatch):
    x = table()
    # products as without tensor cores, so that what is compared is the program alone
    monkeypatch.setattr("psmvae.training.loop.allow_tf32", lambda _: nullcontext())
    usual = PSMVAEImputer(mask_model, n_sets=2, **QUICK).fit(x)
    graphs.clear()
    monkeypatch.setattr("psmvae.training.loop.COMPILED_FROM", 0)
    compiled = PSMVAEImputer(mask_model, n_sets=2, **QUICK).fit(x)
    assert all(one.graph is not None for one in graphs)
    for (name, one), (_, other) in zip(
        compiled.model_.state_dict().items(), usual.model_.state_dict().items(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=5e-3, atol=5e-3, msg=name)
