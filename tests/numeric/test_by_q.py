"""Imputation by q(z, r | ·) alone is what importance sampling comes to where it is not trusted."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kstest

from psmvae import GMVAEImputer, JointMask, Network, PSMVAEImputer, VAEImputer
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise, told_by_row

FAST = {"max_epochs": 3, "random_state": 0}


def table(n=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["level"] = pd.cut(x[:, 0], 3, labels=["low", "middle", "high"]).astype(str)
    return frame.mask(rng.random(frame.shape) < 0.3)


def both_ways(imputer, n_draws, enough):
    """The statistics by q alone, and by weights raised to the power 0."""
    imputer.set_params(n_draws=n_draws, target_ess=enough)
    model = imputer.model_
    model.weight_power.zero_()
    model.use_posterior_mean.zero_()
    x, m = imputer._tensors(*imputer._encode(table()))
    posterior = imputer._posterior(3)
    with torch.no_grad():
        fast, size = posterior.impute(x, m)
        runs = list(posterior._run(x, m, model.inputs.n_statistics, point=True))
    slow = torch.cat([run.expected.mean(0) for run in runs])
    sizes = torch.cat([run.effective_sample_size.mean(0) for run in runs])
    return fast, size, slow, sizes


@pytest.mark.parametrize(("n_draws", "enough"), [(1, None), (30, 10.0), (300, None), (300, 50.0)])
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
def test_it_is_importance_sampling_at_no_trust(make, n_draws, enough):
    fast, size, slow, sizes = both_ways(make().fit(table()), n_draws, enough)
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(size, sizes, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("n_members", [1, 2])
@pytest.mark.parametrize("model", ["a", "b"])
def test_one_draw_is_not_weighed(model, n_members):
    """The paper's K = 1: a draw of z in each set, and sets as q(r | ·) says."""
    imputer = PSMVAEImputer.paper(model, n_members=n_members, n_draws=1, **FAST).fit(table())
    inner, posterior = imputer.model_, imputer._posterior(3)
    x, m = imputer._tensors(*imputer._encode(table()))
    with torch.no_grad():
        batch = Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1))
        answer = inner.log_densities(batch, posterior._one_draw(batch))
        by_set = answer.log_q_r.exp().unsqueeze(-1) * inner.expected(answer).squeeze(2)
        found, size = posterior.impute(x, m)
    torch.testing.assert_close(found, by_set.sum(2).mean(0), atol=1e-4, rtol=1e-4)
    assert bool(inner.weight_power.all())
    assert size.tolist() == pytest.approx([1.0] * len(x))


@pytest.mark.parametrize("n_draws", [1, 30])
@pytest.mark.parametrize("mask", ["latent", "none"])
def test_missing_cells_are_imputed_from_the_head_asked_for(mask, n_draws):
    """Where p(x_mis|z,r) is a constant, so is what is imputed; x_obs knows nothing of it."""
    settings = {"n_draws": n_draws, "mask_model": mask, **FAST}
    numbers = table()[list("abcd")]
    fitted = PSMVAEImputer.paper("b", **settings).fit(numbers)
    model = fitted.model_
    assert model.from_second
    with torch.no_grad():
        size = model.p_x.n_outputs[0]
        model.p_x.net.last.weight[..., size:] = 0.0
        model.p_x.net.last.bias[..., size:] = 7.0
    holes = numbers.isna().to_numpy()
    imputed = fitted.transform(numbers).to_numpy()
    seen = numbers.to_numpy()
    expected = np.nanmean(seen, 0) + 7 * np.nanstd(seen, 0)
    np.testing.assert_allclose(imputed[holes], np.broadcast_to(expected, seen.shape)[holes], 1e-4)
    drawn = fitted.sample(numbers, n=20, random_state=0)
    mean = np.mean([d.to_numpy()[holes] for d in drawn])
    assert mean == pytest.approx(np.broadcast_to(expected, seen.shape)[holes].mean(), rel=0.02)
    model.settings = dataclasses.replace(model.settings, impute_from="x_obs")
    assert np.abs(fitted.transform(numbers).to_numpy()[holes]).max() < 5


@pytest.mark.parametrize("levels", [False, True], ids=["numbers", "levels"])
def test_one_draw_of_each_row_is_its_own_and_told_by_the_row(levels):
    imputer = PSMVAEImputer.paper("b", n_draws=1, n_sets=3, n_latent=4, **FAST).fit(table())
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(1, 4000, 8, generator=rng)
    # 2^8 rows at most differ
    x = (x > 0).float() if levels else x
    m = torch.ones_like(x)
    posterior = imputer._posterior(3)
    drawn = posterior._one_draw(Batch.of(x, m))[0, :, 0].flatten(1)
    again = posterior._one_draw(Batch.of(x[:, 50:60], m[:, 50:60]))[0, :, 0].flatten(1)
    torch.testing.assert_close(again, drawn[50:60])
    other = imputer._posterior(4)._one_draw(Batch.of(x, m))[0, :, 0].flatten(1)
    assert not torch.isclose(other, drawn).any(0).all()
    some = drawn.unique(dim=0) if levels else drawn
    assert len(some) > (200 if levels else 3999)
    sure = 5 / len(some) ** 0.5
    assert some.mean(0).abs().max() < sure
    assert (some.std(0) - 1).abs().max() < sure
    across = torch.corrcoef(some.T) - torch.eye(12)
    assert across.abs().max() < sure
    assert kstest(some[:, 0].double().numpy(), "norm").pvalue > 1e-4


def test_noise_told_by_rows_that_hardly_differ_is_independent():
    noise = Noise(0)
    keys = noise.keys(1, 1, 50)
    steps = torch.arange(2000.0).view(1, -1, 1)
    # the last bit of a number, and one level of ten; the other cells are the same in all rows
    same = torch.ones(1, 2000, 3)
    near = torch.cat([same, (1 + steps * 2.0**-23)], -1)
    for cells in (near, near.flip(-1), torch.cat([-near, steps % 10 + 10 * (steps > 50)], -1)):
        drawn = told_by_row(cells, keys, noise)[0]
        assert kstest(drawn.flatten().numpy(), "uniform").pvalue > 1e-4
        sure = 5 / len(drawn) ** 0.5
        after = torch.corrcoef(torch.cat([drawn[1:], drawn[:-1]], 1).T)
        assert (after - torch.eye(100)).abs().max() < sure
    zero = torch.zeros(1, 1, 2)
    again = [told_by_row(one, keys, Noise(1)) for one in (zero, -zero)]
    torch.testing.assert_close(*again)


@pytest.mark.parametrize("mask", ["latent", "self", JointMask()], ids=["latent", "self", "joint"])
@pytest.mark.parametrize("skewed", [False, True], ids=["even", "skewed"])
def test_rows_do_not_err_together_by_one_draw(mask, skewed):
    """The mean of imputations is as sure as that of so many draws, not as that of one."""
    rng = np.random.default_rng(0)
    filled = pd.DataFrame(rng.normal(size=(500, 3)), columns=list("abc"))
    if skewed:
        filled["c"] = np.exp(4 * filled["c"])
    # rows with nothing observed are one and the same
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
def test_the_middle_stands_for_all_draws_where_it_does_as_well(n_members, regression):
    imputer = PSMVAEImputer(n_members=n_members, regression=regression, **FAST).fit(table())
    model = imputer.model_
    model.weight_power.zero_()
    model.use_posterior_mean.fill_(1.0)
    x, m = imputer._tensors(*imputer._encode(table()))
    with torch.no_grad():
        found, size = imputer._posterior(3).impute(x, m)
        batch = Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1))
        torch.testing.assert_close(found, model.predict(batch).mean(0), atol=1e-3, rtol=1e-3)
    assert size.tolist() == [float(imputer.n_draws)] * len(x)
    before = imputer.transform(table())
    pd.testing.assert_frame_equal(before, imputer.set_params(n_draws=7).transform(table()))


def test_the_middle_is_of_the_head_asked_for():
    """Also beside a regression that is not fully believed, and as draws are."""
    numbers = table()[list("abcd")]
    settings = {"regression": Network(width=8), "impute_from": "x_mis", "n_sets": 2}
    fitted = PSMVAEImputer(**settings, **FAST).fit(numbers)
    model = fitted.model_
    x, m = fitted._tensors(*fitted._encode(numbers))
    model.weight_power.zero_()
    for belief in (0.0, 0.5, 1.0):
        model.regression_weight.fill_(belief)
        with torch.no_grad():
            start = model.p_x.n_outputs[0]
            model.p_x.net.output_bias[..., start:] += 3.0
            model.use_posterior_mean.fill_(1.0)
            middle = fitted._posterior(3).impute(x, m)[0]
            model.use_posterior_mean.zero_()
            drawn = fitted.set_params(n_draws=500, target_ess=None)._posterior(3).impute(x, m)[0]
            of_obs = model.predict(Batch.of(x.unsqueeze(0), m.unsqueeze(0)))[0]
            model.p_x.net.output_bias[..., start:] -= 3.0
        torch.testing.assert_close(middle[m == 0], drawn[m == 0], atol=0.3, rtol=0)
        moved = (middle - of_obs)[m == 0].mean()
        assert float(moved) == pytest.approx(3 * (1 - belief), abs=0.3)


@pytest.mark.parametrize("width", [1.0, 1.75])
def test_the_bound_of_one_draw_is_one_of_the_likelihood(width):
    """Its exponential is, on average over seeds, the likelihood, whatever the proposal."""
    fitted = PSMVAEImputer.paper("b", n_draws=1, n_sets=2, n_latent=2, **FAST).fit(table())
    fitted.model_.proposal_scale.fill_(width)
    x, m = fitted._tensors(*fitted._encode(table()))
    with torch.no_grad():
        bounds = torch.stack([fitted._posterior(seed).diagnostics(x, m)[0] for seed in range(400)])
        fitted.set_params(n_draws=4000, target_ess=None)
        likelihood = fitted._posterior(0).diagnostics(x, m)[0]
    of_one = torch.logsumexp(bounds, 0) - np.log(len(bounds))
    assert float((of_one - likelihood).mean()) == pytest.approx(0.0, abs=0.1)
    assert float((bounds.mean(0) - likelihood).max()) < 0


def test_sets_a_row_is_not_in_are_not_decoded():
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


def test_a_mask_of_x_still_tilts():
    """Without trust in the weights, what is missing by its value is still imputed as such."""
    imputer = PSMVAEImputer("self", **FAST).fit(table())
    imputer.model_.weight_power.zero_()
    with torch.no_grad():
        imputer.model_.p_m.weight += 3.0
    high = imputer.transform(table())
    with torch.no_grad():
        imputer.model_.p_m.weight -= 6.0
    low = imputer.transform(table())
    holes = table()[["a", "b", "c", "d"]].isna().to_numpy()
    difference = (high[list("abcd")] - low[list("abcd")]).to_numpy()[holes]
    assert difference.min() > 0
