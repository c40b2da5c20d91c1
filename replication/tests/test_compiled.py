"""A compiled loss has the same random numbers, values and gradients as the plain one."""

import numpy as np
import pytest
import torch

import psmvae
from psmvae.nn.noise import Noise
from psmvae.training.data import TrainingData
from psmvae_paper.compiled import Compiled, compile_long_trainings


def prepared(imputer):
    """A recipe for a small table, and a function that makes the same batch every time."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) + 0.4 * rng.normal(size=(60, 3))
    x[rng.random(x.shape) < 0.2] = np.nan
    encoded = imputer._read(x)
    imputer._build()
    tensors = imputer._tensors(encoded.x, encoded.m)
    table = TrainingData(*tensors, imputer.n_members, 0.1, Noise(0))
    rows = torch.arange(32).expand(imputer.n_members, -1)
    return imputer._recipe(), lambda: table.batch(rows, 0.25, Noise(3))


def outcome(model, loss, batch, noise):
    """The loss and all gradients."""
    model.zero_grad()
    value = loss(batch, noise)
    value.sum().backward()
    return [value.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize(
    "imputer",
    [
        psmvae.PSMVAEImputer.paper("a", n_members=2, n_sets=2, random_state=0),
        psmvae.PSMVAEImputer("logistic-ceiling", n_sets=2, random_state=0),
        psmvae.MIWAEImputer.paper(n_train_draws=3, random_state=0),
    ],
    ids=["a", "logistic-ceiling", "miwae"],
)
def test_compiled_loss_equals_plain_loss(imputer):
    recipe, batch = prepared(imputer)
    model = imputer.model_
    # traces and differentiates as on a GPU, without compiling kernels
    compiled, noise = Compiled(recipe.loss, list(model.parameters()), backend="aot_eager"), Noise(1)
    for _ in range(3):
        plain = Noise(0)
        plain.restart(noise.generator.get_state())
        expected = outcome(model, recipe.loss, batch(), plain)
        found = outcome(model, compiled, batch(), noise)
        for one, other in zip(expected, found, strict=True):
            torch.testing.assert_close(one, other)
        assert bool((plain.generator.get_state() == noise.generator.get_state()).all())
    assert compiled.program is not None


def test_uncompilable_loss_is_called_directly():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))

    def loss(batch, noise):
        value = recipe.loss(batch, noise)
        # data-dependent control flow
        return value if bool(value.mean() > 0) else 2 * value

    compiled = Compiled(loss, [], backend="aot_eager")
    for _ in range(3):
        found = compiled(batch(), Noise(1))
        torch.testing.assert_close(found, loss(batch(), Noise(1)))
    assert compiled.program is None


def test_failed_compilation_frees_its_gradient_graph():
    """On a GPU, gradient accumulators of another stream must not be reused."""
    imputer = psmvae.VAEImputer.paper(random_state=0)
    recipe, batch = prepared(imputer)
    parameters = list(imputer.model_.parameters())

    def loss(batch, noise):
        value = recipe.loss(batch, noise)
        return value if bool(value.mean() > 0) else 2 * value

    def nodes():
        return [p.view_as(p).grad_fn.next_functions[0][0].metadata for p in parameters]

    compiled = Compiled(loss, parameters, backend="aot_eager")
    value = compiled(batch(), Noise(1))
    assert compiled.program is None
    for metadata in nodes():
        metadata["old"] = True
    value.sum().backward()
    del value
    assert not any("old" in metadata for metadata in nodes())


def test_loss_that_needs_recompilation_is_called_directly():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))
    state = {"calls": 0}

    def loss(batch, noise):
        state["calls"] += 1
        return recipe.loss(batch, noise) * state["calls"]

    compiled = Compiled(loss, [], backend="eager")
    compiled(batch(), Noise(0))
    assert compiled.program is None


def test_fallback_after_failure_uses_same_random_numbers():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))
    compiled = Compiled(recipe.loss, [], backend="eager")
    compiled(batch(), Noise(0))

    def fails(*_):
        raise RuntimeError("no")

    compiled.program = fails
    found = compiled(batch(), Noise(1))
    torch.testing.assert_close(found, recipe.loss(batch(), Noise(1)))
    assert compiled.program is None


def test_each_training_compiles_its_own_program():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))

    def one():
        # PyTorch recompiles one code object at most eight times
        compiled = Compiled(lambda b, noise: recipe.loss(b, noise), [], backend="eager")
        compiled(batch(), Noise(0))
        return compiled.program is not None

    assert all(one() for _ in range(10))


@pytest.mark.parametrize(
    ("device", "max_time", "n_steps", "expected"),
    [
        ("cuda", None, 80_000, True),
        ("cuda", 600.0, 80_000, True),
        ("cuda", None, 8_000, False),
        ("cuda", 10.0, 80_000, False),
        ("cpu", None, 80_000, False),
    ],
)
def test_only_long_trainings_on_cuda_are_compiled(device, max_time, n_steps, expected):
    def loss(batch, noise):
        return batch.x

    wrapped = compile_long_trainings(torch.device(device), max_time)(loss, [], n_steps)
    assert isinstance(wrapped, Compiled) is expected
    assert expected or wrapped is loss
