"""Importance sampling in a linear-Gaussian model, whose posterior is known in closed form."""

import itertools

import pytest
import torch
from torch.distributions import MultivariateNormal

from numeric.helpers import linear_gaussian
from psmvae.inference import importance
from psmvae.inference.posterior import Posterior
from psmvae.models.batch import Batch

LOADING = torch.tensor([[1.0, 0.2], [0.5, -0.4], [0.0, 0.9], [0.7, 0.6]]).double()
MEAN = torch.tensor([0.1, -0.2, 0.3, 0.0]).double()
PSI = torch.tensor([0.2, 0.3, 0.4, 0.25]).double()
X = torch.tensor([[0.8, 0.0, -1.0, 0.4], [1.5, -0.6, 0.2, 0.0], [0.0, 0.0, 0.0, 0.0]]).double()
M = torch.tensor([[1, 0, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]]).double()


def truth():
    """Exact conditional means of the missing cells and log-likelihoods of the observed ones."""
    total = LOADING @ LOADING.T + torch.diag(PSI)
    means, likelihoods = MEAN.repeat(3, 1), torch.zeros(3).double()
    for i in range(3):
        o = M[i].bool()
        if bool(o.any()):
            gain = total[:, o] @ torch.linalg.inv(total[o][:, o])
            means[i] = MEAN + gain @ (X[i, o] - MEAN[o])
            likelihoods[i] = MultivariateNormal(MEAN[o], total[o][:, o]).log_prob(X[i, o])
    return means, likelihoods


def wrong_q(n_sets=1):
    """The exact model with a shifted and too wide q(z)."""
    model = linear_gaussian(LOADING, MEAN, PSI, n_sets=n_sets)
    with torch.no_grad():
        model.q_z.net.last.bias += torch.tensor([0.4, -0.3, 0.3, 0.3]).double()
    return model


def posterior(model, n_draws, seed=0):
    return Posterior(model, n_draws, seed)


def noise_double(monkeypatch):
    """Draw in float64, so that precision is limited by the draws only."""
    original = torch.randn

    def randn(*args, **kwargs):
        return original(*args, **{**kwargs, "dtype": torch.float64})

    monkeypatch.setattr(torch, "randn", randn)


@torch.no_grad()
def test_one_draw_from_the_exact_posterior_gives_the_exact_log_likelihood(monkeypatch):
    noise_double(monkeypatch)
    bound, size = posterior(linear_gaussian(LOADING, MEAN, PSI), 1).diagnostics(X, M)
    torch.testing.assert_close(bound, truth()[1])
    torch.testing.assert_close(size, torch.ones(3).double())


@torch.no_grad()
@pytest.mark.parametrize("n_sets", [1, 3])
def test_imputation_converges_to_the_conditional_mean(monkeypatch, n_sets):
    noise_double(monkeypatch)
    model = wrong_q(n_sets)
    means, _ = truth()
    errors = []
    for n_draws in (10, 1000, 100_000):
        found = posterior(model, n_draws).expected(X, M)
        errors.append(float(((found - means) * (1 - M)).abs().max()))
    assert errors[2] < 0.01
    assert errors[2] < errors[0]


@torch.no_grad()
@pytest.mark.slow
def test_bound_increases_with_draws_and_stays_below_the_log_likelihood(monkeypatch):
    noise_double(monkeypatch)
    model = wrong_q()
    _, likelihood = truth()
    means = []
    for n_draws in (1, 4, 16, 256):
        runs = [posterior(model, n_draws, seed).diagnostics(X, M)[0] for seed in range(300)]
        means.append(torch.stack(runs).mean(0))
    for looser, tighter in itertools.pairwise(means):
        assert bool((looser < tighter + 1e-3).all())
    assert bool((means[-1] < likelihood + 0.01).all())
    torch.testing.assert_close(means[-1], likelihood, atol=0.02, rtol=0)
    assert bool((means[0] < likelihood - 0.1).all())


@torch.no_grad()
def test_posterior_draws_have_the_conditional_mean_and_covariance(monkeypatch):
    noise_double(monkeypatch)
    rows = 4000
    draws = posterior(wrong_q(), 200).sample(X[2:].expand(rows, -1), M[2:].expand(rows, -1), 2)
    flat = draws.reshape(-1, 4)
    total = LOADING @ LOADING.T + torch.diag(PSI)
    torch.testing.assert_close(flat.mean(0), MEAN, atol=0.06, rtol=0)
    torch.testing.assert_close(torch.cov(flat.T), total, atol=0.1, rtol=0)


def one_row(log_w):
    """Log weights ``(draw, set)`` of one member and row."""
    return log_w.double().reshape(1, 1, *log_w.shape)


def ess_of(log_w):
    running = importance.RunningEstimate(1, 1, 0, like=log_w.double())
    running.add(slice(None), one_row(log_w), None)
    return float(running.effective_sample_size)


def test_effective_sample_size_of_equal_and_of_one_weight():
    one = torch.full((8, 3), -1e3)
    one[2] = 0.0
    assert ess_of(torch.zeros(8, 3)) == pytest.approx(8)
    assert ess_of(one) == pytest.approx(1)


def test_running_estimate_does_not_depend_on_block_sizes():
    generator = torch.Generator().manual_seed(0)
    log_w = 30 * torch.randn(2, 3, 40, 2, generator=generator).double()
    values = torch.randn(2, 3, 40, 2, 5, generator=generator).double()
    weight = importance.normalised(log_w)
    running = importance.RunningEstimate(2, 3, 5, like=log_w)
    for start in range(0, 40, 7):
        block = slice(start, start + 7)
        running.add(slice(None), log_w[:, :, block], values[:, :, block])
    torch.testing.assert_close(running.expected, torch.einsum("eils,eilsf->eif", weight, values))
    torch.testing.assert_close(running.bound, importance.bound(log_w))
    torch.testing.assert_close(running.effective_sample_size, 1 / weight.sum(-1).square().sum(-1))


@torch.no_grad()
def test_rows_at_the_target_ess_get_no_more_draws():
    """The estimate of a row does not depend on the other rows."""
    model = wrong_q().float()
    x, m = X.float(), M.float()
    every = Posterior(model, 2000, 0)
    first, sizes = Posterior(model, 20, 0).impute(x, m)
    target = float(sizes.sort().values[1]) + 1.0
    found, size = Posterior(model, 2000, 0, target_ess=target).impute(x, m)
    done = sizes >= target
    assert bool(done.any())
    torch.testing.assert_close(found[done], first[done])
    assert bool((size >= target).all())
    alone = Posterior(model, 2000, 0, target_ess=target).impute(x[:1], m[:1])[0]
    torch.testing.assert_close(alone, found[:1])
    # the Monte Carlo error of about ten draws
    torch.testing.assert_close(found, every.expected(x, m), atol=0.6, rtol=0)


def test_resampled_frequencies_are_the_weights():
    log_w = one_row(torch.log(torch.tensor([[0.1, 0.2], [0.3, 0.4]])))
    uniform = torch.rand(1, 1, 40_000, generator=torch.Generator().manual_seed(0)).double()
    draw, set_ = importance.resample(log_w, uniform)
    share = torch.bincount((2 * draw + set_).flatten(), minlength=4) / 40_000
    torch.testing.assert_close(share, torch.tensor([0.1, 0.2, 0.3, 0.4]), atol=0.01, rtol=0)


def test_weights_are_the_joint_density_over_q_z():
    """w = p(x_obs | z, r) p(m) p(z | r) p(r) / q(z | r)."""
    model = wrong_q(n_sets=2)
    batch = Batch.of(X[None], M[None])
    epsilon = torch.randn(1, 3, 4, 2, 2, generator=torch.Generator().manual_seed(0)).double()
    densities = model.log_densities(batch, epsilon)
    expected = (
        densities.log_p_x_obs
        + densities.log_p_m
        + densities.log_p_z
        + torch.log_softmax(model.p_r.logits, -1)[:, :, None]
        - densities.log_q_z
    )
    torch.testing.assert_close(importance.log_weights(densities), expected)


@torch.no_grad()
def test_wider_proposal_has_the_same_target(monkeypatch):
    """Draws from a proposal twice as wide as q(z) give the conditional mean and the bound."""
    noise_double(monkeypatch)
    model = wrong_q()
    model.proposal_scale.fill_(2.0)
    means, likelihood = truth()
    found = posterior(model, 100_000)
    assert float(((found.expected(X, M) - means) * (1 - M)).abs().max()) < 0.01
    torch.testing.assert_close(found.diagnostics(X, M)[0], likelihood, atol=0.02, rtol=0)


@torch.no_grad()
def test_weight_power_zero_gives_the_mean_under_q(monkeypatch):
    noise_double(monkeypatch)
    model = wrong_q(n_sets=2)
    model.weight_power.zero_()
    q_mean = model.predict(Batch.of(X[None], M[None]))[0]
    torch.testing.assert_close(posterior(model, 10).expected(X, M), q_mean)
    # the bound is not tempered
    _, likelihood = truth()
    torch.testing.assert_close(
        posterior(model, 100_000).diagnostics(X, M)[0], likelihood, atol=0.01, rtol=0
    )
