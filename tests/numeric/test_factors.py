"""Gaussian factors against torch.distributions, and the factor analysis against linear algebra."""

import pytest
import torch

from numeric.helpers import RESIDUAL, linear_gaussian, make, mixed_columns
from psmvae.models.batch import Batch
from psmvae.nn.linear_gaussian import FactorAnalysis, fit_factor_analysis, posterior


def batch(n_members, n_rows, n_columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 2, (1, n_rows, n_columns), generator=generator).double()
    m = (torch.rand(1, n_rows, n_columns, generator=generator) < 0.6).double()
    return Batch.of(x.expand(n_members, -1, -1), m.expand(n_members, -1, -1))


@pytest.mark.parametrize("network", [None, RESIDUAL], ids=["diagonal", "full covariance"])
def test_q_z_density_and_kl_are_torch_distributions(network):
    kwargs = {} if network is None else {"network": network}
    model = make(mixed_columns(), **kwargs)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(
                parameter.shape, generator=torch.Generator().manual_seed(3), dtype=parameter.dtype
            )
        if network is not None:
            model.q_z.linear.loading.normal_(generator=torch.Generator().manual_seed(4))
    rows = batch(2, 4, 4)
    q_z = model.encode(rows).q_z
    epsilon = torch.randn(2, 4, 5, 3, 2, generator=torch.Generator().manual_seed(1)).double()
    z = q_z.at(epsilon)
    log_q, kl = q_z.log_prob_at(epsilon), q_z.kl(model.p_z)
    log_p = model.p_z.log_prob(z)
    for e in range(2):
        for i in range(4):
            for r in range(3):
                spread = torch.diag(q_z.log_s[e, i, 0, r].exp())
                a = torch.eye(2).double() if q_z.a is None else q_z.a[e, i]
                q = torch.distributions.MultivariateNormal(
                    q_z.mean[e, i, 0, r], covariance_matrix=a @ spread @ spread @ a.T
                )
                scale = (5 * torch.tanh(model.p_z.log_scale[e, 0, 0, r] / 5)).exp()
                p = torch.distributions.MultivariateNormal(
                    model.p_z.mean[e, 0, 0, r], covariance_matrix=torch.diag(scale**2)
                )
                torch.testing.assert_close(log_q[e, i, :, r], q.log_prob(z[e, i, :, r]))
                torch.testing.assert_close(log_p[e, i, :, r], p.log_prob(z[e, i, :, r]))
                torch.testing.assert_close(kl[e, i, r], torch.distributions.kl_divergence(q, p))


def test_linear_posterior_is_gaussian_conditioning():
    generator = torch.Generator().manual_seed(0)
    loading = torch.randn(1, 5, 2, generator=generator).double()
    mean = torch.randn(1, 5, generator=generator).double()
    psi = 0.1 + torch.rand(1, 5, generator=generator).double()
    f = torch.randn(1, 3, 5, generator=generator).double()
    seen = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]]).double()[None]
    found, a = posterior(FactorAnalysis(mean, loading, psi), f, seen)
    for i in range(3):
        o = seen[0, i].bool()
        w = loading[0, o]
        total = w @ w.T + torch.diag(psi[0, o])
        gain = w.T @ torch.linalg.inv(total) if bool(o.any()) else torch.zeros(2, 0).double()
        torch.testing.assert_close(found[0, i], gain @ (f[0, i, o] - mean[0, o]))
        torch.testing.assert_close(a[0, i] @ a[0, i].T, torch.eye(2).double() - gain @ w)


def test_factor_analysis_recovers_parameters_from_incomplete_data():
    generator = torch.Generator().manual_seed(0)
    rows = [[1.0, 0.0], [0.8, 0.3], [0.0, 1.0], [0.5, -0.7], [0.9, 0.1], [0.1, 0.8]]
    loading = torch.tensor(rows).double()
    psi = torch.tensor([0.1, 0.2, 0.1, 0.3, 0.2, 0.2]).double()
    z = torch.randn(4000, 2, generator=generator).double()
    f = z @ loading.T + psi.sqrt() * torch.randn(4000, 6, generator=generator).double()
    seen = (torch.rand(4000, 6, generator=generator) < 0.7).double()
    fa = fit_factor_analysis(f[None], seen[None], 2)
    found = fa.loading[0] @ fa.loading[0].T
    torch.testing.assert_close(found, loading @ loading.T, atol=0.06, rtol=0)
    torch.testing.assert_close(fa.psi[0], psi, atol=0.04, rtol=0)


def test_initial_decoder_is_the_factor_analysis():
    loading = [[1.0, 0.2], [0.5, -0.4], [0.0, 0.9]]
    model = linear_gaussian(loading, [0.1, -0.2, 0.3], [0.2, 0.3, 0.4])
    z = torch.randn(1, 4, 2, 1, 2, generator=torch.Generator().manual_seed(0)).double()
    p_x_obs, p_x_mis = model.p_x(z, None, both=True)
    expected = z @ torch.tensor(loading).double().T + torch.tensor([0.1, -0.2, 0.3]).double()
    for p_x in (p_x_obs, p_x_mis):
        torch.testing.assert_close(p_x.expected(), expected)
        scale = p_x.parts[0].log_scale.exp().flatten()
        torch.testing.assert_close(scale, torch.tensor([0.2, 0.3, 0.4]).double().sqrt())
