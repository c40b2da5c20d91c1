"""GAIN: the hint, the gradients of both losses, and simulated data."""

import numpy as np
import pandas as pd
import pytest
import torch

from numeric.helpers import PLAIN, TRAINING, mixed_columns, real_columns
from psmvae import GAINImputer
from psmvae.models.batch import Batch
from psmvae.models.config import GAINConfig
from psmvae.models.gain import GAIN
from psmvae.nn.columns import Layout
from psmvae.nn.noise import Noise


def gain(columns, *, hint_rate=0.9, alpha=10.0, n_members=2):
    config = GAINConfig(
        n_members=n_members, network=PLAIN, hint_rate=hint_rate, alpha=alpha, **TRAINING
    )
    return GAIN(Layout.of(columns), config, Noise(0)).double()


@pytest.mark.parametrize("hint_rate", [0.0, 0.5, 0.9, 1.0])
def test_hint_reveals_the_mask_where_b_is_one(hint_rate):
    model = gain(real_columns(5), hint_rate=hint_rate)
    m = (torch.rand(2, 4000, 5, generator=torch.Generator().manual_seed(0)) < 0.6).double()
    hint, b = model.hint(m, Noise(1))
    assert bool((hint[b == 1] == m[b == 1]).all())
    assert bool((hint[b == 0] == 0.5).all())
    # at least one cell of every row is not revealed
    assert bool(((b == 0).sum(-1) >= 1).all())
    share = 1 - hint_rate + hint_rate / 5
    torch.testing.assert_close(
        (b == 0).double().mean((0, 1)), torch.full((5,), share).double(), atol=0.02, rtol=0
    )
    if hint_rate == 1.0:
        assert bool(((b == 0).sum(-1) == 1).all())


def batch(n_members, n=6):
    rng = np.random.default_rng(0)
    x = np.stack(
        [rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, n), rng.integers(0, 3, n)], 1
    )
    m = torch.tensor(rng.random((n, 4)) < 0.6, dtype=torch.float64)
    return Batch.of(torch.tensor(x).expand(n_members, -1, -1), m.expand(n_members, -1, -1))


def gradients(model, loss):
    model.zero_grad()
    loss.sum().backward()
    return {k: None if p.grad is None else p.grad.clone() for k, p in model.named_parameters()}


def test_each_network_has_the_gradient_of_its_own_loss():
    """The discriminator that of L_D, the generator that of L_G + α MSE."""
    model, data = gain(mixed_columns()), batch(2)
    together = gradients(model, model.loss(data, Noise(3)))
    noise = Noise(3)
    columns = model.inputs
    filler = 0.01 * noise.uniform(2, 6, columns.n_features)
    made = model.generate(data, filler)
    seen = data.visible[..., model.statistic_column]
    completed = torch.where(seen > 0, columns.statistics(data.x), made)
    hint, b = model.hint(data.visible, noise)
    p = torch.sigmoid(model.discriminator(torch.cat([completed, hint], -1)))
    m = data.visible
    d_loss = -((1 - b) * (m * p.log() + (1 - m) * (1 - p).log())).sum(-1) / 4
    for name, grad in gradients(model, d_loss).items():
        if name.startswith("discriminator"):
            torch.testing.assert_close(together[name], grad)
    made = model.generate(data, filler)
    completed = torch.where(seen > 0, columns.statistics(data.x), made)
    p = torch.sigmoid(model.discriminator(torch.cat([completed, hint], -1)))
    error = (data.m * columns.error(made, data.x)).sum(-1) / data.m.sum(-1).clamp(min=1)
    g_loss = -((1 - b) * (1 - m) * p.log()).sum(-1) / 4 + 10.0 * error
    for name, grad in gradients(model, g_loss).items():
        if name.startswith("generator"):
            torch.testing.assert_close(together[name], grad)


def test_copied_columns_are_imputed_from_each_other():
    rng = np.random.default_rng(0)
    complete = np.repeat(rng.normal(size=(500, 1)), 4, axis=1)
    table = complete.copy()
    table[rng.random(table.shape) < 0.2] = np.nan
    imputer = GAINImputer(max_epochs=60, random_state=0).fit(table)
    missing = np.isnan(table)
    known = missing & ~missing.all(1, keepdims=True)
    error = np.sqrt(((imputer.transform(table) - complete)[known] ** 2).mean())
    assert error < 0.25
    # transform of new rows does not change the model
    state = {k: v.clone() for k, v in imputer.model_.state_dict().items()}
    fresh = np.repeat(rng.normal(size=(200, 1)), 4, axis=1)
    incomplete = fresh.copy()
    incomplete[:, 2] = np.nan
    error = np.sqrt(((imputer.transform(incomplete) - fresh)[:, 2] ** 2).mean())
    assert error < 0.3
    assert all(bool((state[k] == v).all()) for k, v in imputer.model_.state_dict().items())


def test_every_kind_of_column_is_imputed():
    rng = np.random.default_rng(0)
    z = rng.normal(size=120)
    frame = pd.DataFrame(
        {
            "real": z,
            "positive": np.exp(z),
            "count": rng.poisson(np.exp(0.5 * z)),
            "grade": pd.Categorical.from_codes(
                np.digitize(z, [-0.5, 0.5]), ["low", "mid", "high"], ordered=True
            ),
            "colour": rng.choice(["red", "green", "blue"], 120),
        }
    ).astype({"count": "Int64"})
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    kinds = {"positive": "positive", "count": "count"}
    imputer = GAINImputer(kinds=kinds, max_epochs=2, random_state=0).fit(frame)
    filled = imputer.transform(frame)
    assert not filled.isna().any().any()
    assert (filled["positive"] > 0).all()
    assert (filled["count"] >= 0).all()
