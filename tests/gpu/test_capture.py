"""On a GPU: a captured training step gives the result of an eager one, and every imputer works."""

import numpy as np
import pytest
import torch

import psmvae
from psmvae import LogisticMask, Network, PSMVAEImputer
from psmvae.imputers.fit_warnings import MaxTimeWarning
from psmvae.training import step

pytestmark = pytest.mark.gpu

QUICK = {"max_epochs": 4, "batch_size": 32, "random_state": 0, "device": "cuda"}
REGRESSION = Network(width=32, depth=2, residual=False, linear=False, smooth=True)
IMPUTERS = {
    "default": lambda **k: PSMVAEImputer(**k),
    "regression": lambda **k: PSMVAEImputer(regression=REGRESSION, **k),
    "logistic-ceiling": lambda **k: PSMVAEImputer("logistic-ceiling", **k),
    "paper b": lambda **k: PSMVAEImputer.paper("b", **k),
    "paper a": lambda **k: PSMVAEImputer.paper("a", **k),
    "miwae": lambda **k: psmvae.MIWAEImputer(**k),
    "student": lambda **k: psmvae.MIWAEImputer(scale="student", **k),
    "not-miwae": lambda **k: psmvae.NotMIWAEImputer("network", **k),
    "gmvae": lambda **k: psmvae.GMVAEImputer(mask_model="latent", **k),
    "dlgm": lambda **k: psmvae.DLGMImputer(**k),
    "gain": lambda **k: psmvae.GAINImputer(**k),
}


def make_table(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 1)) + 0.4 * rng.normal(size=(n_rows, 5))
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


@pytest.fixture
def steppers(monkeypatch):
    """All steppers that were made; the ``graph`` of a captured one is not None."""
    made = []
    original = step.Stepper.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(step.Stepper, "__init__", remember)
    return made


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("make", IMPUTERS.values(), ids=IMPUTERS)
def test_captured_and_eager_fits_have_the_same_weights(make, n_members, steppers, monkeypatch):
    x = make_table()
    monkeypatch.setattr("psmvae.training.loop.WARM_UP_STEPS", 6)
    settings = QUICK | {"n_members": n_members}
    captured = make(**settings).fit(x)
    assert steppers
    assert all(one.graph is not None for one in steppers)
    monkeypatch.setattr(step, "EAGER_STEPS", 10**9)
    eager = make(**settings).fit(x)
    for (name, one), (_, other) in zip(
        captured.model_.state_dict().items(), eager.model_.state_dict().items(), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3, msg=name)


def test_the_same_seed_gives_identical_results():
    x = make_table()
    one, other = (PSMVAEImputer(**QUICK).fit(x) for _ in range(2))
    assert one.transform(x).tobytes() == other.transform(x).tobytes()
    assert one.transform(x).tobytes() == one.transform(x).tobytes()


def test_a_mask_model_that_cannot_be_captured_is_trained_without_a_graph(steppers):
    class ReadsOnHost(LogisticMask):
        def build(self, shape, noise):
            module = super().build(shape, noise)
            forward = module.forward

            def read(x, z, at):
                # waits for the GPU, which is not allowed during capture
                assert float(z.sum().detach()) == float(z.sum().detach())
                return forward(x, z, at)

            module.forward = read
            return module

    x = make_table()
    imputer = PSMVAEImputer(ReadsOnHost(), **QUICK).fit(x)
    assert all(one.graph is None for one in steppers)
    assert not np.isnan(imputer.transform(x)).any()


def test_max_time_stops_training():
    imputer = PSMVAEImputer(**(QUICK | {"max_epochs": 10**9, "patience": 10**9, "max_time": 5}))
    with pytest.warns(MaxTimeWarning):
        imputer.fit(make_table(2000))
    assert imputer.n_epochs_ > 5


def test_a_model_trained_on_a_gpu_can_be_loaded_on_a_cpu(tmp_path):
    x = make_table()
    imputer = PSMVAEImputer(**QUICK).fit(x)
    imputer.save(tmp_path / "m.safetensors")
    loaded = psmvae.load(tmp_path / "m.safetensors", device="cpu")
    np.testing.assert_allclose(loaded.transform(x), imputer.transform(x), atol=0.3)
    assert len(loaded.sample(x, n=2)) == 2
