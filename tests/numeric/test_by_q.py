"""Imputation from q(z, r | ·): importance sampling with weights raised to the power 0."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kstest

from psmvae import Advanced, GMVAEImputer, JointMask, Network, PSMVAEImputer, VAEImputer
from psmvae.inference.blocks import block_sizes, estimate, row_block, shared_blocks
from psmvae.inference.noise import row_normal
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise, hash_uniform

FAST = {"max_epochs": 3, "random_state": 0}


def table(n=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["level"] = pd.cut(x[:, 0], 3, labels=["low", "middle", "high"]).astype(str)
    return frame.mask(rng.random(frame.shape) < 0.3)


def batch_of(imputer, frame):
    """A table as one batch for all members, and as tensors ``(row, column)``."""
    x, m = imputer._tensors(*imputer._encode(frame))
    n_members = imputer.model_.config.n_members
    return Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1)), x, m


def both_ways(imputer, n_draws, target_ess):
    """Expected statistics and effective sample sizes: under q, and with weights to the power 0."""
    imputer.set_params(n_draws=n_draws, advanced=Advanced(target_ess=target_ess))
    model = imputer.model_
    model.weight_power.zero_()
    model.use_posterior_mean.zero_()
    batch, x, m = batch_of(imputer, table())
    scale, power = torch.ones_like(model.proposal_scale), torch.zeros_like(model.weight_power)
    with torch.no_grad():
        under_q, ess = imputer._posterior(3).impute(x, m)
        blocks = shared_blocks(model, block_sizes(n_draws, target_ess), 3, scale)
        if n_draws == 1:
            blocks = [row_block(model, batch, 3, scale)]
        run = estimate(model, batch, blocks, scale, power, target_ess=target_ess, with_values=True)
    return under_q, ess, run.expected.mean(0), run.effective_sample_size.mean(0)


@pytest.mark.parametrize(
    ("n_draws", "target_ess"), [(1, None), (30, 10.0), (300, None), (300, 50.0)]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: PSMVAEImputer(**FAST),
        lambda: PSMVAEImputer(n_members=2, **FAST),
        lambda: PSMVAEImputer.paper("b", **FAST),
        lambda: PSMVAEImputer(regression=Network(width=8), n_sets=2, **FAST),
        lambda: GMVAEImputer(**FAST),
        lambda: VAEImputer(**FAST),
    ],
    ids=["default", "members", "paper", "regression", "gmvae", "vae"],
)
def test_estimate_under_q_is_importance_sampling_with_power_zero(make, n_draws, target_ess):
    under_q, ess, weighted, weighted_ess = both_ways(make().fit(table()), n_draws, target_ess)
    torch.testing.assert_close(under_q, weighted, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ess, weighted_ess, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("model", ["a", "b"])
def test_one_draw_is_averaged_over_sets_by_q_r(model, n_members):
    """The paper's K = 1: a draw of z in each set, with sets weighted by q(r | ·)."""
    imputer = PSMVAEImputer.paper(model, n_members=n_members, n_draws=1, **FAST).fit(table())
    inner = imputer.model_
    batch, x, m = batch_of(imputer, table())
    with torch.no_grad():
        densities = inner.log_densities(batch, row_normal(inner, batch, 3))
        by_set = densities.log_q_r.exp().unsqueeze(-1) * inner.expected(densities).squeeze(2)
        found, ess = imputer._posterior(3).impute(x, m)
    torch.testing.assert_close(found, by_set.sum(2).mean(0), atol=1e-4, rtol=1e-4)
    assert bool(inner.weight_power.all())
    assert ess.tolist() == pytest.approx([1.0] * len(x))


# a decoder head is set to a constant
@pytest.mark.filterwarnings("ignore:imputed values outside the observed range")
@pytest.mark.parametrize("n_draws", [1, 30])
@pytest.mark.parametrize("mask", ["latent", "none"])
def test_imputations_come_from_the_decoder_head_of_impute_from(mask, n_draws):
    """If p(x_mis | z, r) is constant, so are imputations from it, but not from p(x_obs | z, r)."""
    settings = {"n_draws": n_draws, "mask_model": mask, **FAST}
    numbers = table()[list("abcd")]
    fitted = PSMVAEImputer.paper("b", **settings).fit(numbers)
    model = fitted.model_
    assert model.imputes_from_x_mis
    with torch.no_grad():
        size = model.p_x.n_outputs[0]
        model.p_x.net.last.weight[..., size:] = 0.0
        model.p_x.net.last.bias[..., size:] = 7.0
    missing = numbers.isna().to_numpy()
    imputed = fitted.transform(numbers).to_numpy()
    seen = numbers.to_numpy()
    expected = np.nanmean(seen, 0) + 7 * np.nanstd(seen, 0)
    np.testing.assert_allclose(
        imputed[missing], np.broadcast_to(expected, seen.shape)[missing], 1e-4
    )
    drawn = fitted.sample(numbers, n=20, random_state=0)
    mean = np.mean([d.to_numpy()[missing] for d in drawn])
    assert mean == pytest.approx(np.broadcast_to(expected, seen.shape)[missing].mean(), rel=0.02)
    model.config = dataclasses.replace(model.config, impute_from="x_obs")
    assert np.abs(fitted.transform(numbers).to_numpy()[missing]).max() < 5


@pytest.mark.parametrize("levels", [False, True], ids=["numbers", "levels"])
def test_row_noise_is_standard_normal_and_a_function_of_the_row(levels):
    imputer = PSMVAEImputer.paper("b", n_draws=1, n_sets=3, n_latent=4, **FAST).fit(table())
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(1, 4000, 8, generator=rng)
    # at most 2^8 different rows
    x = (x > 0).float() if levels else x
    m = torch.ones_like(x)
    model = imputer.model_
    drawn = row_normal(model, Batch.of(x, m), 3)[0, :, 0].flatten(1)
    again = row_normal(model, Batch.of(x[:, 50:60], m[:, 50:60]), 3)[0, :, 0].flatten(1)
    torch.testing.assert_close(again, drawn[50:60])
    other = row_normal(model, Batch.of(x, m), 4)[0, :, 0].flatten(1)
    assert not torch.isclose(other, drawn).any(0).all()
    some = drawn.unique(dim=0) if levels else drawn
    assert len(some) > (200 if levels else 3999)
    tolerance = 5 / len(some) ** 0.5
    assert some.mean(0).abs().max() < tolerance
    assert (some.std(0) - 1).abs().max() < tolerance
    correlation = torch.corrcoef(some.T) - torch.eye(12)
    assert correlation.abs().max() < tolerance
    assert kstest(some[:, 0].double().numpy(), "norm").pvalue > 1e-4


def test_hash_uniform_of_similar_rows_is_independent():
    noise = Noise(0)
    keys = noise.keys(1, 1, 50)
    steps = torch.arange(2000.0).view(1, -1, 1)
    # rows differ in the last bit of one number, or in one level
    same = torch.ones(1, 2000, 3)
    near = torch.cat([same, (1 + steps * 2.0**-23)], -1)
    for cells in (near, near.flip(-1), torch.cat([-near, steps % 10 + 10 * (steps > 50)], -1)):
        drawn = hash_uniform(cells, keys, noise)[0]
        assert kstest(drawn.flatten().numpy(), "uniform").pvalue > 1e-4
        correlation = torch.corrcoef(torch.cat([drawn[1:], drawn[:-1]], 1).T)
        assert (correlation - torch.eye(100)).abs().max() < 5 / len(drawn) ** 0.5
    zero = torch.zeros(1, 1, 2)
    again = [hash_uniform(one, keys, Noise(1)) for one in (zero, -zero)]
    torch.testing.assert_close(*again)


@pytest.mark.parametrize(
    "mask", ["latent", "logistic-ceiling", JointMask()], ids=["latent", "logistic-ceiling", "joint"]
)
@pytest.mark.parametrize("skewed", [False, True], ids=["even", "skewed"])
def test_errors_of_one_draw_are_independent_across_rows(mask, skewed):
    """The variance of the mean over rows falls with the number of rows."""
    rng = np.random.default_rng(0)
    filled = pd.DataFrame(rng.normal(size=(500, 3)), columns=list("abc"))
    if skewed:
        filled["c"] = np.exp(4 * filled["c"])
    # without column c, rows with nothing observed would be equal
    frame = filled.mask(rng.random(filled.shape) < [0.5, 0.5, 0.0])
    settings = {"mask_model": mask, "max_epochs": 10, "n_draws": 1, "random_state": 0}
    imputer = PSMVAEImputer.paper("b", **settings).fit(frame)
    x, m = imputer._tensors(*imputer._encode(frame))
    with torch.no_grad():
        many = [imputer._posterior(seed).impute(x, m)[0] for seed in range(30)]
    each = torch.stack(many)
    means = each.mean(1)
    assert float(means.var(0).mean()) < 5 * float(each.var(0).mean()) / len(x)


@pytest.mark.parametrize("regression", [None, Network(width=8)], ids=["of z", "regression"])
@pytest.mark.parametrize("n_members", [1, 2])
def test_use_posterior_mean_imputes_from_the_mean_of_q_z(n_members, regression):
    imputer = PSMVAEImputer(n_members=n_members, regression=regression, **FAST).fit(table())
    model = imputer.model_
    model.weight_power.zero_()
    model.use_posterior_mean.fill_(1.0)
    batch, x, m = batch_of(imputer, table())
    with torch.no_grad():
        found, size = imputer._posterior(3).impute(x, m)
        torch.testing.assert_close(found, model.predict(batch).mean(0), atol=1e-3, rtol=1e-3)
    assert size.tolist() == [float(imputer.n_draws)] * len(x)
    before = imputer.transform(table())
    pd.testing.assert_frame_equal(before, imputer.set_params(n_draws=7).transform(table()))


def test_posterior_mean_uses_the_decoder_head_of_impute_from():
    """The mean agrees with draws for every weight of the regression."""
    numbers = table()[list("abcd")]
    advanced = Advanced(impute_from="x_mis", target_ess=None)
    settings = {"regression": Network(width=8), "advanced": advanced, "n_sets": 2}
    fitted = PSMVAEImputer(**settings, **FAST).fit(numbers)
    model = fitted.model_
    x, m = fitted._tensors(*fitted._encode(numbers))
    model.weight_power.zero_()
    for weight in (0.0, 0.5, 1.0):
        model.regression_weight.fill_(weight)
        with torch.no_grad():
            start = model.p_x.n_outputs[0]
            model.p_x.net.output_bias[..., start:] += 3.0
            model.use_posterior_mean.fill_(1.0)
            at_mean = fitted._posterior(3).impute(x, m)[0]
            model.use_posterior_mean.zero_()
            drawn = fitted.set_params(n_draws=500)._posterior(3).impute(x, m)[0]
            of_obs = model.predict(Batch.of(x.unsqueeze(0), m.unsqueeze(0)))[0]
            model.p_x.net.output_bias[..., start:] -= 3.0
        torch.testing.assert_close(at_mean[m == 0], drawn[m == 0], atol=0.3, rtol=0)
        moved = (at_mean - of_obs)[m == 0].mean()
        assert float(moved) == pytest.approx(3 * (1 - weight), abs=0.3)


@pytest.mark.parametrize("width", [1.0, 1.75])
def test_weight_of_one_draw_is_unbiased_for_the_likelihood(width):
    """The mean over seeds of exp(bound) is the likelihood, for every proposal scale."""
    fitted = PSMVAEImputer.paper("b", n_draws=1, n_sets=2, n_latent=2, **FAST).fit(table())
    fitted.model_.proposal_scale.fill_(width)
    x, m = fitted._tensors(*fitted._encode(table()))
    with torch.no_grad():
        bounds = torch.stack([fitted._posterior(seed).diagnostics(x, m)[0] for seed in range(400)])
        fitted.set_params(n_draws=4000, advanced=Advanced(target_ess=None))
        likelihood = fitted._posterior(0).diagnostics(x, m)[0]
    of_one = torch.logsumexp(bounds, 0) - np.log(len(bounds))
    assert float((of_one - likelihood).mean()) == pytest.approx(0.0, abs=0.1)
    assert float((bounds.mean(0) - likelihood).max()) < 0


def test_sets_with_negligible_q_r_are_not_decoded():
    imputer = PSMVAEImputer(n_sets=4, **FAST).fit(table())
    model = imputer.model_
    with torch.no_grad():
        model.q_r.net.output_bias[..., 2] += 50.0
    seen = []
    original = model.p_x.forward

    def watched(z, noise, *, both, sets=None, shift=None):
        seen.append(sets)
        return original(z, noise, both=both, sets=sets, shift=shift)

    model.p_x.forward = watched
    fast, _, slow, _ = both_ways(imputer, 20, 10.0)
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-4)
    assert seen[0].unique().tolist() == [2]
    assert len(seen[0]) == len(table())


def test_mask_of_x_tilts_imputations_at_power_zero():
    """p(m | x) changes imputations even if importance weights are not used."""
    imputer = PSMVAEImputer("logistic-ceiling", **FAST).fit(table())
    imputer.model_.weight_power.zero_()
    with torch.no_grad():
        imputer.model_.p_m.weight += 3.0
    high = imputer.transform(table())
    with torch.no_grad():
        imputer.model_.p_m.weight -= 6.0
    low = imputer.transform(table())
    missing = table()[["a", "b", "c", "d"]].isna().to_numpy()
    difference = (high[list("abcd")] - low[list("abcd")]).to_numpy()[missing]
    assert difference.min() > 0
