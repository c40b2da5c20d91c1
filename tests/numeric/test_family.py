"""Identities between the models: VAE, GMVAE, DLGM, PSMVAE, MIWAE and not-MIWAE."""

import numpy as np
import pytest
import torch

from numeric.helpers import linear_gaussian, make, mixed_columns, real_columns
from numeric.test_importance import LOADING, MEAN, PSI, M, X, truth
from psmvae import (
    GMVAEImputer,
    JointMask,
    LogisticMask,
    MIWAEImputer,
    NotMIWAEImputer,
    VAEImputer,
)
from psmvae.inference.objective import elbo, iwae
from psmvae.inference.posterior import Posterior
from psmvae.models.batch import Batch
from psmvae.nn.noise import Noise


def epsilon(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def wrong_q(mask="none"):
    """The exact linear-Gaussian model with a shifted and too wide q(z)."""
    model = linear_gaussian(LOADING, MEAN, PSI, model="gmvae", mask=mask)
    with torch.no_grad():
        model.q_z.net.last.bias += torch.tensor([0.4, -0.3, 0.3, 0.3]).double()
    return model


def rows(n_members, n, seed=0):
    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.normal(size=(n, 4)))
    m = torch.tensor(rng.random((n, 4)) < 0.6, dtype=torch.float64)
    return Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1))


@torch.no_grad()
def test_importance_weighted_bound_converges_to_the_log_likelihood():
    model = wrong_q()
    _, likelihood = truth()
    gaps = []
    for k in (1, 16, 20_000):
        times = max(1, 2000 // k)
        batch = Batch.of(X.repeat(times, 1)[None], M.repeat(times, 1)[None])
        bounds = iwae(model.log_densities(batch, epsilon(1, 3 * times, k, 1, 2)))
        gaps.append(float((likelihood - bounds.reshape(times, 3).mean(0)).max()))
    assert gaps[0] > gaps[1] > gaps[2]
    assert abs(gaps[2]) < 0.01


@torch.no_grad()
def test_expected_importance_weighted_bound_of_one_draw_is_the_elbo():
    """The expectation over ε by Gauss–Hermite quadrature, which is exact here."""
    model, batch = wrong_q(), Batch.of(X[None], M[None])
    t, w = np.polynomial.hermite_e.hermegauss(5)
    w = w / w.sum()
    total = torch.zeros(1, 3).double()
    likelihood = torch.zeros(1, 3).double()
    for i in range(5):
        for j in range(5):
            at = torch.tensor([t[i], t[j]]).reshape(1, 1, 1, 1, 2)
            densities = model.log_densities(batch, at.expand(1, 3, 1, 1, 2))
            total += w[i] * w[j] * iwae(densities)
            likelihood += w[i] * w[j] * densities.log_p_x_obs[:, :, 0, 0]
    torch.testing.assert_close(total, likelihood - densities.kl_z[..., 0])
    # the ELBO of one draw
    torch.testing.assert_close(
        elbo(densities), densities.log_p_x_obs[:, :, 0, 0] - densities.kl_z[..., 0]
    )


@torch.no_grad()
@pytest.mark.parametrize("mask", [LogisticMask(ceiling=False), JointMask(), JointMask(hidden=4)])
def test_mask_model_with_weights_zero_imputes_like_miwae(mask):
    plain, masked = wrong_q(), wrong_q(mask)
    if isinstance(mask, LogisticMask):
        masked.p_m.weight.zero_()
    else:
        for parameter in masked.p_m.net.parameters():
            parameter.zero_()
    one = Posterior(plain, 4000, 0).impute(X.float(), M.float())
    other = Posterior(masked, 4000, 0).impute(X.float(), M.float())
    torch.testing.assert_close(one[1], other[1])
    # with a joint mask draws of x are averaged, otherwise conditional means
    tolerance = 0.05 if isinstance(mask, JointMask) else 1e-6
    torch.testing.assert_close(
        one[0] * (1 - M), other[0] * (1 - M), atol=tolerance, rtol=0, check_dtype=False
    )


@torch.no_grad()
def test_joint_mask_imputes_the_mean_of_the_selected_values():
    """x ~ N(0.5, 1) is missing with probability sigmoid(3x − 1.5)."""
    from scipy import integrate, stats

    model = linear_gaussian([[0.8]], [0.5], [0.36], model="gmvae", mask=JointMask())
    model.p_m.net.weight.fill_(3.0)
    model.p_m.net.bias.fill_(-1.5)
    model.p_m.logits.zero_()

    def moment(power):
        return integrate.quad(
            lambda x: x**power * stats.norm.pdf(x, 0.5) / (1 + np.exp(-(3 * x - 1.5))), -10, 10
        )[0]

    missing = torch.zeros(1, 1)
    found = Posterior(model, 40_000, 0).expected(missing, missing)
    assert float(found) == pytest.approx(moment(1) / moment(0), abs=0.02)
    many = torch.zeros(3000, 1)
    drawn = Posterior(model, 200, 0).sample(many, many, 2)
    assert float(drawn.mean()) == pytest.approx(moment(1) / moment(0), abs=0.05)


# Large values are missing more often, the plain logistic model of not-MIWAE.
HIGH = LogisticMask(ceiling=False, integrate="draw", train_jointly=True, sign="high")


def self_masked(n=800, seed=0):
    """Two columns with correlation 0.8. Large values of the first are missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    table = 0.9 * z + 0.45 * rng.normal(size=(n, 2))
    complete = table.copy()
    table[(table[:, 0] > 0.3) & (rng.random(n) < 0.9), 0] = np.nan
    return complete, table


@pytest.mark.slow
def test_not_miwae_has_less_bias_than_miwae_under_self_masking():
    complete, table = self_masked()
    missing = np.isnan(table[:, 0])
    bias = {}
    settings = {"n_latent": 1, "n_train_draws": 5, "max_epochs": 15, "random_state": 0}
    for imputer in (MIWAEImputer(**settings), NotMIWAEImputer(HIGH, **settings)):
        filled = imputer.fit_transform(table)
        bias[type(imputer).__name__] = (filled - complete)[missing, 0].mean()
    assert bias["MIWAEImputer"] < -0.25
    assert abs(bias["NotMIWAEImputer"]) < 0.6 * abs(bias["MIWAEImputer"])


def test_gmvae_with_one_set_is_the_vae():
    _, table = self_masked(200)
    quick = {"max_epochs": 3, "n_draws": 10, "random_state": 0}
    vae, gmvae = VAEImputer(**quick).fit(table), GMVAEImputer(n_sets=1, **quick).fit(table)
    assert vae.transform(table).tobytes() == gmvae.transform(table).tobytes()
    np.testing.assert_array_equal(vae.score_samples(table), gmvae.score_samples(table))


def test_untrained_miwae_is_the_untrained_vae():
    """The initial weights are the same."""
    _, table = self_masked(200)
    quick = {"max_epochs": 1, "learning_rate": 1e-12, "n_draws": 10, "random_state": 0}
    vae, miwae = VAEImputer(**quick), MIWAEImputer(n_train_draws=1, **quick)
    np.testing.assert_allclose(vae.fit_transform(table), miwae.fit_transform(table), atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("mask", ["none", "latent"])
def test_dlgm_without_w_is_the_gmvae(mask):
    dlgm = make(mixed_columns(), model="dlgm", mask=mask)
    gmvae = make(mixed_columns(), model="gmvae", mask=mask)
    kept = {k: v for k, v in dlgm.state_dict().items() if not k.startswith(("q_w", "p_x.second"))}
    # the outputs of p(x | z, r) without those of p(w | z, r)
    n = gmvae.p_x.n_outputs[0]
    for name in ("p_x.net.last.weight", "p_x.net.last.bias"):
        kept[name] = kept[name][..., :n]
    gmvae.load_state_dict(kept)
    batch = rows(2, 5)
    codes = torch.tensor([1.0, 1.0, 0.0, 0.0]) * batch.x + torch.tensor([0, 0, 1.0, 2.0])
    batch = Batch.of(codes, batch.m)
    e = epsilon(2, 5, 2, 3, 2)
    torch.testing.assert_close(
        elbo(dlgm.log_densities(batch, e)), elbo(gmvae.log_densities(batch, e))
    )
    full = elbo(dlgm.log_densities(batch, e, Noise(0), auxiliary=True))
    assert bool((full < elbo(gmvae.log_densities(batch, e))).all())


@torch.no_grad()
def test_psmvae_without_mask_model_at_pi_one_is_the_dlgm():
    """With w in place of x_mis the two ELBOs are equal for all weights."""
    psmvae = make(real_columns(4), mask="none", pi=1.0, scale=0.5)
    dlgm = make(real_columns(4), model="dlgm", mask="none", scale=0.5)
    state = psmvae.state_dict()
    dlgm.load_state_dict({k.replace("q_x_mis", "q_w"): v for k, v in state.items()})
    batch, e = rows(2, 6), epsilon(2, 6, 2, 3, 2)
    one = elbo(psmvae.log_densities(batch, e, Noise(0), auxiliary=True), weight_observed=1.4)
    other = elbo(dlgm.log_densities(batch, e, Noise(0), auxiliary=True), weight_observed=1.4)
    torch.testing.assert_close(one, other)
    # not for π' = 0, which the paper's text names
    tied = make(real_columns(4), mask="none", pi=0.0, scale=0.5)
    tied.load_state_dict(state)
    assert not torch.allclose(elbo(tied.log_densities(batch, e, Noise(0), auxiliary=True)), other)


def test_self_mask_keeps_a_known_sign():
    high, low = LogisticMask(sign="high"), LogisticMask(sign="low")
    x = torch.tensor([-2.0, 0.0, 2.0]).double().reshape(1, 1, 1, 1, 1, 3)
    for mask, direction in ((high, 1), (low, -1)):
        model = make(real_columns(1), model="gmvae", mask=mask, n_members=1, n_sets=1)
        with torch.no_grad():
            model.p_m.weight.fill_(-4.0)
        missing = model.p_m(x, torch.zeros(1, 1, 1, 1, 1), slice(0, 1))[0].flatten()
        assert bool((direction * missing.diff() > 0).all())
