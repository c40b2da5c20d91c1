"""Users' own mask models: subclasses of `psmvae.nn.mask.MaskModule`."""

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from torch.nn.functional import logsigmoid

from contract.registry import IMPUTERS
from psmvae.nn.mask import MaskModule


class Recorder(MaskModule):
    """A mask module that records the shapes of its arguments."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def forward(self, x, z, at):
        self.calls.append((None if x is None else tuple(x.shape), tuple(z.shape), at))
        score = self.score(x, z, at)
        return logsigmoid(score), logsigmoid(-score)


class FromLatents(Recorder):
    """Logits linear in z, the same in all sets."""

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
    """Logits linear in x_j (or in its code): large values are missing more often."""

    depends_on_x = True

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
    return {
        "z": Latents(as_input=True),
        "z without mask input": Latents(as_input=False),
        "x": Values(),
    }


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("which", models())
def test_imputer_fits_and_imputes_with_own_mask_model(quick, mixed, which, n_members):
    table = pl.DataFrame(mixed)
    mask = models()[which]
    imputer = quick(mask, n_members=n_members).fit(table)
    for filled in [imputer.transform(table), *imputer.sample(table, n=3)]:
        assert filled.null_count().sum_horizontal().item() == 0
        assert filled.schema == table.schema
    assert np.isfinite(imputer.score_samples(table)).all()
    np.testing.assert_allclose(imputer.predict_set_proba(table).sum(1), 1.0, atol=1e-9)
    # the shape that build receives, and the arguments of forward
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
def test_not_miwae_accepts_own_mask_model(mixed, which):
    table = pl.DataFrame(mixed)
    mask = models()[which]
    imputer = IMPUTERS["NotMIWAE"](mask_model=mask).fit(table)
    for filled in [imputer.transform(table), *imputer.sample(table, n=3)]:
        assert filled.null_count().sum_horizontal().item() == 0
        assert filled.schema == table.schema
    assert np.isfinite(imputer.score_samples(table)).all()
    assert mask.shape.n_sets == 1


@pytest.mark.parametrize("which", models())
def test_parameters_of_own_mask_model_are_trained(quick, mixed, which):
    mask = models()[which]
    imputer = quick(mask, validation_fraction=0.0, max_epochs=3).fit(pl.DataFrame(mixed))
    weight = imputer.model_.p_m.weight
    fresh = mask.build(mask.shape, _Zeros()).weight
    assert bool((weight - fresh).abs().max() > 1e-4)


class _Zeros:
    def normal(self, *shape):
        return torch.zeros(shape)


def test_mask_of_x_changes_the_imputed_values(quick):
    """If large values are missing more often, imputations are larger than without a mask model."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(80, 2))
    table[rng.random(80) < 1 / (1 + np.exp(-3 * table[:, 0])), 0] = np.nan

    class Fixed(Values):
        def build(self, shape, noise):
            module = super().build(shape, noise)
            with torch.no_grad():
                module.weight.fill_(3.0)
            return module.requires_grad_(requires_grad=False)

    missing = np.isnan(table[:, 0])
    # without validation cells importance weights are not tempered
    plain, moved = (
        quick(mask, n_draws=50, validation_fraction=0.0)
        .fit(table)
        .transform(table)[missing, 0]
        .mean()
        for mask in ("none", Fixed())
    )
    assert moved > plain + 0.3


def test_parameter_without_member_axis_is_an_error(quick, numbers):
    class Shared(MaskModule):
        def __init__(self, shape):
            super().__init__()
            self.net = nn.Linear(shape.n_latent, len(shape.names))

        def forward(self, x, z, at):
            logits = self.net(z)[..., at]
            return logsigmoid(logits), logsigmoid(-logits)

    class Mask:
        def build(self, shape, noise):
            return Shared(shape)

    with pytest.raises(ValueError, match=r"mask_model.*net\.weight.*member"):
        quick(Mask(), n_members=2).fit(numbers)
    with pytest.raises(ValueError, match=r"mask_model.*net\.weight.*member"):
        quick(Mask()).fit(numbers)


@pytest.mark.parametrize("other", [nn.Module, object])
def test_build_must_return_a_mask_module(quick, numbers, other):
    class Mask:
        def build(self, shape, noise):
            return other()

    message = rf"mask_model must build a psmvae\.nn\.mask\.MaskModule, got {other.__name__}"
    with pytest.raises(TypeError, match=message):
        quick(Mask()).fit(numbers)


def test_default_log_prob_is_that_of_forward():
    z = torch.randn(1, 5, 2, 3, 4)
    m = (torch.rand(1, 5, 1, 1, 6) < 0.5).float()

    class Logits(MaskModule):
        def forward(self, x, z, at):
            logits = z.sum(-1, keepdim=True).expand(*z.shape[:-1], 6)[..., at]
            return logsigmoid(logits), logsigmoid(-logits)

    logits = z.sum(-1, keepdim=True)
    expected = torch.distributions.Bernoulli(logits=-logits).log_prob(m.expand(1, 5, 2, 3, 6))
    torch.testing.assert_close(Logits().log_prob(m, z), expected)
    with pytest.raises(NotImplementedError, match="takes_sets"):
        Logits().log_prob(m, z, torch.zeros(5, dtype=torch.long))
