"""A user's own mask model, by the protocol that psmvae/nn/mask.py documents."""

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from torch.nn.functional import logsigmoid

from contract.registry import IMPUTERS


class Recorder(nn.Module):
    """Keeps what it was called with."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x, z, at):
        self.calls.append((None if x is None else tuple(x.shape), tuple(z.shape), at))
        score = self.score(x, z, at)
        return logsigmoid(score), logsigmoid(-score)


class FromLatents(Recorder):
    """Log odds linear in z, alike in all sets."""

    depends_on_x = False

    def __init__(self, shape, noise, as_input):
        super().__init__()
        self.as_input = as_input
        n_columns = len(shape.names)
        self.weight = nn.Parameter(0.1 * noise.normal(shape.n_members, shape.n_latent, n_columns))
        self.bias = nn.Parameter(torch.zeros(shape.n_members, 1, 1, 1, n_columns))

    def score(self, x, z, at):
        assert x is None
        weight = self.weight[:, None, None]
        return (z @ weight + self.bias)[..., at]


class FromValues(Recorder):
    """Large values go missing: log odds linear in x_j itself (or in its code)."""

    depends_on_x = True
    as_input = True

    def __init__(self, shape, noise):
        super().__init__()
        sizes = (shape.n_members, 1, 1, shape.n_sets, len(shape.names), 1)
        self.weight = nn.Parameter(torch.ones(sizes))
        self.bias = nn.Parameter(0.1 * noise.normal(*sizes))

    def score(self, x, z, at):
        return x * self.weight[..., at, :] + self.bias[..., at, :]


class Latents:
    def __init__(self, as_input):
        self.as_input = as_input

    def build(self, shape, noise):
        self.shape = shape
        return FromLatents(shape, noise, self.as_input)


class Values:
    def build(self, shape, noise):
        self.shape = shape
        return FromValues(shape, noise)


def models():
    return {"z": Latents(as_input=True), "z handle_unknown": Latents(as_input=False), "x": Values()}


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("which", models())
def test_it_fits_and_imputes(quick, mixed, which, n_members):
    table = pl.DataFrame(mixed)
    mask = models()[which]
    imputer = quick(mask, n_members=n_members).fit(table)
    for filled in [imputer.transform(table), *imputer.sample(table, n=3)]:
        assert filled.null_count().sum_horizontal().item() == 0
        assert filled.schema == table.schema
    assert np.isfinite(imputer.score_samples(table)).all()
    np.testing.assert_allclose(imputer.predict_set_proba(table).sum(1), 1.0, atol=1e-9)
    # what it was told, and what it was asked
    assert sorted(mask.shape.names) == sorted(mixed)
    assert mask.shape.n_members == n_members
    rate = dict(zip(mask.shape.names, mask.shape.missing_rate.tolist(), strict=True))
    for name, cells in mixed.items():
        assert rate[name] == pytest.approx(np.mean([cell is None for cell in cells]))
    for x, z, at in imputer.model_.p_m.calls:
        assert len(z) == 5
        assert z[0] == n_members
        assert isinstance(at, slice)
        assert (x is None) == (which != "x")
        assert x is None or (len(x) == 6 and x[4] == at.stop - at.start)


@pytest.mark.parametrize("which", models())
def test_not_miwae_takes_one_too(mixed, which):
    table = pl.DataFrame(mixed)
    mask = models()[which]
    imputer = IMPUTERS["NotMIWAE"](mask_model=mask).fit(table)
    for filled in [imputer.transform(table), *imputer.sample(table, n=3)]:
        assert filled.null_count().sum_horizontal().item() == 0
        assert filled.schema == table.schema
    assert np.isfinite(imputer.score_samples(table)).all()
    assert mask.shape.n_sets == 1


@pytest.mark.parametrize("which", models())
def test_it_is_trained(quick, mixed, which):
    mask = models()[which]
    imputer = quick(mask, validation_fraction=0.0, max_epochs=3).fit(pl.DataFrame(mixed))
    weight = imputer.model_.p_m.weight
    fresh = mask.build(mask.shape, _Zeros()).weight
    assert bool((weight - fresh).abs().max() > 1e-4)


class _Zeros:
    def normal(self, *shape):
        return torch.zeros(shape)


def test_a_mask_by_value_moves_the_imputed_values(quick):
    """Where large values go missing, holes are filled higher than where that is ignored."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(80, 2))
    table[rng.random(80) < 1 / (1 + np.exp(-3 * table[:, 0])), 0] = np.nan

    class Fixed(Values):
        def build(self, shape, noise):
            module = super().build(shape, noise)
            with torch.no_grad():
                module.weight.fill_(3.0)
            return module.requires_grad_(requires_grad=False)

    holes = np.isnan(table[:, 0])
    # no cells held out: the few there are would decide how far to trust the weights
    plain, moved = (
        quick(mask, n_draws=50, validation_fraction=0.0)
        .fit(table)
        .transform(table)[holes, 0]
        .mean()
        for mask in ("none", Fixed())
    )
    assert moved > plain + 0.3


def test_a_parameter_without_members_is_told_of(quick, numbers):
    class Shared(nn.Module):
        depends_on_x = False
        as_input = True

        def __init__(self, shape):
            super().__init__()
            self.net = nn.Linear(shape.n_latent, len(shape.names))

        def forward(self, x, z, at):
            score = self.net(z)[..., at]
            return logsigmoid(score), logsigmoid(-score)

    class Mask:
        def build(self, shape, noise):
            return Shared(shape)

    with pytest.raises(ValueError, match=r"mask_model.*net\.weight.*member"):
        quick(Mask(), n_members=2).fit(numbers)
    with pytest.raises(ValueError, match=r"mask_model.*net\.weight.*member"):
        quick(Mask()).fit(numbers)


def test_what_is_built_must_be_a_module(quick, numbers):
    class Plain:
        depends_on_x = False
        as_input = True

        def build(self, shape, noise):
            return self

    with pytest.raises(TypeError, match=r"mask_model must build a torch\.nn\.Module, got Plain"):
        quick(Plain()).fit(numbers)
