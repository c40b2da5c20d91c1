"""On a GPU: stacked fits are captured as CUDA graphs, and a compiled fit equals a plain one."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from psmvae import PSMVAEImputer
from psmvae.training import step
from psmvae_paper import compiled
from psmvae_paper.stacked_fit import fit_stacked

pytestmark = pytest.mark.gpu

QUICK = {"max_epochs": 4, "batch_size": 32, "device": "cuda"}


def make_table(n_rows=300):
    rng = np.random.default_rng(0)
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


def stacked(mask_model="latent", **parameters):
    """Two imputers fitted to a table and to its negative."""
    tables = [make_table(), -make_table()]
    imputers = [
        PSMVAEImputer(mask_model, random_state=seed, **(QUICK | parameters)) for seed in (0, 1)
    ]
    return fit_stacked(imputers, tables), tables


def test_stacked_steps_are_captured(steppers):
    imputers, tables = stacked()
    for imputer, x in zip(imputers, tables, strict=True):
        assert not np.isnan(imputer.transform(x)).any()
    assert all(one.graph is not None for one in steppers)


@pytest.mark.parametrize("mask_model", ["latent", "logistic-ceiling"])
def test_compiled_and_plain_fits_have_the_same_weights(mask_model, steppers, monkeypatch):
    # without TF32, so that the compiled program is the only difference
    monkeypatch.setattr("psmvae.training.loop.allow_tf32", lambda _: nullcontext())
    plain, _ = stacked(mask_model, n_sets=2)
    steppers.clear()
    monkeypatch.setattr(compiled, "MIN_STEPS", 0)
    fast, _ = stacked(mask_model, n_sets=2)
    assert all(one.graph is not None for one in steppers)
    for one, other in zip(fast, plain, strict=True):
        for (name, value), (_, expected) in zip(
            one.model_.state_dict().items(), other.model_.state_dict().items(), strict=True
        ):
            torch.testing.assert_close(value, expected, rtol=5e-3, atol=5e-3, msg=name)
