"""Adaptive importance sampling of (row, set) pairs against sampling of all pairs."""

import pytest
import torch

from numeric.helpers import PLAIN, RESIDUAL, make, mixed_columns
from numeric.test_importance import M, X, truth, wrong_q
from psmvae.inference.adaptive_draws import AdaptiveSampler, required_ess
from psmvae.inference.importance import log_weights, normalised, tempered
from psmvae.inference.memory import rows_per_chunk
from psmvae.inference.posterior import Posterior
from psmvae.models.batch import Batch
from psmvae.nn.columns import Layout
from psmvae.nn.mask import MaskModule
from psmvae.nn.settings import MASK_MODELS


def rows(n=7):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 4, generator=generator).double()
    places = [Layout.of(mixed_columns()).order.index(level) for level in (0, 2)]
    x[:, places] = (x[:, places] > 0).double()
    return x, (torch.rand(n, 4, generator=generator) < 0.6).double()


@pytest.mark.parametrize("network", [PLAIN, RESIDUAL], ids=["plain", "residual"])
@pytest.mark.parametrize("mask", ["latent", "none"])
@pytest.mark.parametrize("kind", ["psmvae", "gmvae", "dlgm"])
@pytest.mark.parametrize("regression", [None, PLAIN], ids=["of z", "regression"])
@torch.no_grad()
def test_densities_of_pairs_are_those_of_all_rows_and_sets(kind, mask, network, regression):
    settings = {"model": kind, "mask": mask, "network": network, "regression": regression}
    model = make(mixed_columns(), n_members=1, **settings)
    x, m = rows()
    batch = Batch.of(x.unsqueeze(0), m.unsqueeze(0))
    epsilon = torch.randn(1, 1, 6, 1, 2, generator=torch.Generator().manual_seed(1)).double()
    row, set_ = torch.tensor([0, 0, 3, 6, 5]), torch.tensor([2, 0, 1, 2, 0])
    proposal = torch.tensor([1.5]).double()
    every = model.log_densities(batch, epsilon)
    pairs = model.log_densities_of_pairs(batch, model.encode(batch), row, set_, epsilon)
    of_pairs = log_weights(pairs, proposal)[0, :, :, 0]
    torch.testing.assert_close(of_pairs, log_weights(every, proposal)[0, row, :, set_])
    expected = model.expected(pairs)[0, :, :, 0]
    torch.testing.assert_close(expected, model.expected(every)[0, row, :, set_])
    torch.testing.assert_close(pairs.log_q_r[0, :, 0], every.log_q_r[0, row, set_])


@pytest.mark.parametrize("weight_power", [1.0, 0.25])
@torch.no_grad()
def test_with_an_unreachable_target_it_is_plain_importance_sampling(weight_power):
    model = make(mixed_columns(), network=RESIDUAL, n_members=1).float()
    model.weight_power.fill_(weight_power)
    x, m = (part.float() for part in rows())
    batch = Batch.of(x.unsqueeze(0), m.unsqueeze(0))
    noise = torch.randn(3, 90, 2, generator=torch.Generator().manual_seed(1))
    every = model.log_densities(batch, noise.transpose(0, 1)[None, None])
    weight = normalised(tempered(log_weights(every), every.log_q_r, model.weight_power))
    expected = torch.einsum("eils,eilsf->if", weight, model.expected(every))
    # no row reaches the target, so every set gets all draws
    blocks = [noise[:, :20], noise[:, 20:]]
    found, _ = AdaptiveSampler(model, blocks, torch.ones(1), model.weight_power, 1e9, 5)(batch)
    torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_draws_of_different_sets_are_independent():
    """Ten copies of one set have ten times the draws, so a tenth of the variance."""
    found, sizes = {}, {}
    for n_sets in (2, 10):
        model = wrong_q(n_sets=n_sets).float()
        runs = [
            Posterior(model, 20, seed, target_ess=1e9).impute(X.float()[:1], M.float()[:1])
            for seed in range(80)
        ]
        found[n_sets] = torch.stack([expected[0, 1] for expected, _ in runs]).var()
        sizes[n_sets] = torch.stack([size[0] for _, size in runs]).mean()
    assert float(sizes[10] / sizes[2]) == pytest.approx(5, rel=0.3)
    assert float(found[2] / found[10]) == pytest.approx(5, rel=0.5)


@torch.no_grad()
def test_set_with_prior_probability_zero_is_ignored():
    model = make(mixed_columns(), n_members=1).float()
    x, m = (part.float() for part in rows())
    model.p_r.logits.copy_(torch.tensor([0.0, -1e4, 0.0]))
    low, low_size = Posterior(model, 300, 0, target_ess=50.0).impute(x, m)
    model.p_r.logits.copy_(torch.tensor([0.0, -torch.inf, 0.0]))
    none, size = Posterior(model, 300, 0, target_ess=50.0).impute(x, m)
    torch.testing.assert_close(none, low)
    torch.testing.assert_close(size, low_size)


@torch.no_grad()
def test_estimates_do_not_depend_on_the_chunk_size():
    model = make(mixed_columns(), n_members=1).float()
    x, m = (part.float() for part in rows(40))
    whole, sizes = Posterior(model, 500, 0, target_ess=40.0).impute(x, m)
    tight = Posterior(model, 500, 0, memory=1, target_ess=40.0)
    assert rows_per_chunk(model, 250, memory=1) == 1
    cut, cut_sizes = tight.impute(x, m)
    torch.testing.assert_close(cut, whole)
    torch.testing.assert_close(cut_sizes, sizes, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_estimates_converge_to_the_conditional_mean():
    """Three copies of the exact model with probabilities of a half, a third and a sixth."""
    model = wrong_q(n_sets=3).float()
    model.p_r.logits.copy_(torch.log(torch.tensor([3.0, 2.0, 1.0])).view(1, 1, 3))
    found, size = Posterior(model, 20_000, 0, target_ess=4000.0).impute(X.float(), M.float())
    assert bool((size >= 4000).all())
    missing = M == 0
    torch.testing.assert_close(found.double()[missing], truth()[0][missing], atol=0.05, rtol=0)


@torch.no_grad()
def test_improbable_sets_get_one_block_of_draws(monkeypatch):
    model = wrong_q(n_sets=3).float()
    model.p_r.logits.copy_(torch.tensor([0.0, -30.0, -30.0]).view(1, 1, 3))
    sets_of_calls, original = [], model.log_densities_of_pairs

    def spy(batch, encoded, row, set_, epsilon):
        sets_of_calls.append(sorted(set_.unique().tolist()))
        return original(batch, encoded, row, set_, epsilon)

    monkeypatch.setattr(model, "log_densities_of_pairs", spy)
    Posterior(model, 1000, 0, target_ess=500.0).impute(X.float(), M.float())
    assert sets_of_calls[0] == [0, 1, 2]
    assert len(sets_of_calls) > 1
    assert all(sets == [0] for sets in sets_of_calls[1:])


def test_required_ess_of_sets_reaches_the_target_of_the_row():
    share = torch.softmax(3 * torch.randn(50, 6, generator=torch.Generator().manual_seed(0)), -1)
    size = 1 / (share.square() / required_ess(share, 70.0)).sum(1)
    assert bool((size >= 70).all())


def test_pairs_are_supported_by_masks_of_z_that_take_sets():
    supported = {name for name in MASK_MODELS if make(mixed_columns(), mask=name).supports_pairs}
    assert supported == {"latent", "none"}
    model = make(mixed_columns())
    model.p_m = MaskModule()
    assert not model.supports_pairs
