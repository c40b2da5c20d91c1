"""A compiled loss is the loss: same random numbers, same values, same gradients."""

import dataclasses

import numpy as np
import pytest
import torch
from psmvae_paper.compiled import Compiled

import psmvae
from numeric.helpers import TRAINING
from psmvae.nn.matmul_backend import allow_tf32
from psmvae.nn.noise import Noise
from psmvae.training import loop
from psmvae.training.validation import Table


def prepared(imputer):
    """A recipe for a small table, and a function that makes the same batch every time."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) + 0.4 * rng.normal(size=(60, 3))
    x[rng.random(x.shape) < 0.2] = np.nan
    encoded = imputer._read(x)
    imputer._build()
    tensors = imputer._tensors(encoded.x, encoded.m)
    table = Table(*tensors, imputer.n_members, 0.1, Noise(0))
    rows = torch.arange(32).expand(imputer.n_members, -1)
    return imputer._recipe(imputer._training(60)), lambda: table.batch(rows, 0.25, Noise(3))


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
        psmvae.PSMVAEImputer("self", n_sets=2, random_state=0),
        psmvae.MIWAEImputer.paper(n_train_draws=3, random_state=0),
    ],
    ids=["a", "self", "miwae"],
)
def test_nothing_changes(imputer):
    recipe, batch = prepared(imputer)
    model = imputer.model_
    # PyTorch's tracing without the kernels, which take a minute on a CPU
    compiled, noise = Compiled(recipe.loss, list(model.parameters()), backend="aot_eager"), Noise(1)
    for _ in range(3):
        # of the first call, which listens, and of the program
        plain = Noise(0)
        plain.restart(noise.generator.get_state())
        expected = outcome(model, recipe.loss, batch(), plain)
        found = outcome(model, compiled, batch(), noise)
        for one, other in zip(expected, found, strict=True):
            torch.testing.assert_close(one, other)
        assert bool((plain.generator.get_state() == noise.generator.get_state()).all())
    assert compiled.program is not None


def test_what_cannot_be_compiled_is_called():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))

    def loss(batch, noise):
        value = recipe.loss(batch, noise)
        # no program knows before it runs which way it goes
        return value if bool(value.mean() > 0) else 2 * value

    compiled = Compiled(loss, [], backend="aot_eager")
    for _ in range(3):
        found = compiled(batch(), Noise(1))
        torch.testing.assert_close(found, loss(batch(), Noise(1)))
    assert compiled.program is None


def test_what_could_not_be_compiled_leaves_nothing_behind():
    """The nodes that add up gradients belong to a stream: on a GPU old ones would be foreign."""
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


def test_what_would_be_compiled_at_every_step_is_called():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))
    state = {"calls": 0}

    def loss(batch, noise):
        state["calls"] += 1
        return recipe.loss(batch, noise) * state["calls"]

    compiled = Compiled(loss, [], backend="eager")
    compiled(batch(), Noise(0))
    assert compiled.program is None


def test_a_program_that_fails_later_is_called_with_the_same_numbers():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))
    compiled = Compiled(recipe.loss, [], backend="eager")
    compiled(batch(), Noise(0))

    def fails(*_):
        raise RuntimeError("no")

    compiled.program = fails
    found = compiled(batch(), Noise(1))
    torch.testing.assert_close(found, recipe.loss(batch(), Noise(1)))
    assert compiled.program is None


def test_every_training_has_a_program_of_its_own():
    recipe, batch = prepared(psmvae.VAEImputer.paper(random_state=0))

    def one():
        # PyTorch gives up on code that it has compiled eight times
        compiled = Compiled(lambda b, noise: recipe.loss(b, noise), [], backend="eager")
        compiled(batch(), Noise(0))
        return compiled.program is not None

    assert all(one() for _ in range(10))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"max_epochs": 100}, False),
        ({"max_time": 10.0}, False),
        ({"max_time": 600.0}, True),
    ],
)
def test_only_long_trainings_are_compiled(change, expected):
    settings = dataclasses.replace(TRAINING, **{"max_epochs": 1000} | change)
    assert loop.pays_to_compile(settings, settings.max_epochs * 80) is expected


def test_the_last_to_leave_restores_the_setting():
    before, device = torch.get_float32_matmul_precision(), torch.device("cuda")
    one, other = allow_tf32(device), allow_tf32(device)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == "high"
    other.__exit__(None, None, None)
    assert torch.get_float32_matmul_precision() == before


def test_the_setting_of_products_is_left_as_it_was():
    before = torch.get_float32_matmul_precision()
    for device in ("cpu", "cuda"):
        with allow_tf32(torch.device(device)):
            inside = torch.get_float32_matmul_precision()
        assert inside == (before if device == "cpu" else "high")
        assert torch.get_float32_matmul_precision() == before
