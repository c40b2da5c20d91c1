"""The initial factor analysis, and its prior chosen on validation cells."""

import torch

from psmvae.nn.linear_gaussian import (
    MIN_REACH,
    LinearPosterior,
    fit_factor_analysis,
    fit_with_validated_prior,
    r_squared,
)


def heavy(seed=0, n_rows=300, n_columns=40, tail=1.2):
    """Independent heavy-tailed columns: 18 % of the cells visible, 2 % validation cells."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(1, n_rows, n_columns, generator=generator, dtype=torch.float64)
    f = normal.sign() * (tail * normal.abs()).exp()
    f = (f - f.mean(1, keepdim=True)) / f.std(1, keepdim=True)
    chance = torch.rand(f.shape, generator=generator)
    visible, validation = (chance < 0.18).double(), ((chance >= 0.18) & (chance < 0.2)).double()
    return f, visible, validation


def test_r_squared_of_one_prediction():
    # one factor, two columns: E[x2 | x1] = x1 w1 w2 / (w1² + ψ1)
    f = torch.tensor([[[2.0, 1.0]]], dtype=torch.float64)
    visible = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    loading = torch.tensor([[[0.8], [0.5]]], dtype=torch.float64)
    psi = torch.tensor([[0.36, 0.75]], dtype=torch.float64)
    fa = fit_factor_analysis(f, visible, 1, max_iter=1)._replace(
        mean=torch.zeros(1, 2, dtype=torch.float64), loading=loading, psi=psi
    )
    residual = (1.0 - 2.0 * 0.4) ** 2
    found = r_squared(fa, f, visible, 1 - visible)
    torch.testing.assert_close(found, torch.tensor([1 - residual], dtype=torch.float64))


def test_stronger_prior_replaces_a_fit_worse_than_the_mean():
    f, visible, validation = heavy()
    weak = r_squared(fit_factor_analysis(f, visible, 20), f, visible, validation)
    taken = r_squared(fit_with_validated_prior(f, visible, validation, 20), f, visible, validation)
    assert float(weak) < -0.3
    assert float(taken) > -0.02


def test_prior_is_chosen_for_each_member():
    f, visible, validation = heavy()
    generator = torch.Generator().manual_seed(1)
    factor = torch.randn(1, f.shape[1], 1, generator=generator, dtype=torch.float64)
    good = factor + 0.3 * torch.randn(f.shape, generator=generator, dtype=torch.float64)
    both = torch.cat([good, f])
    seen, out = visible.expand(both.shape), validation.expand(both.shape)
    plain = fit_factor_analysis(both, seen, 20, validation=out)
    taken = fit_with_validated_prior(both, seen, out, 20)
    for one, two in zip(plain, taken, strict=True):
        torch.testing.assert_close(one[0], two[0])
    assert not torch.allclose(plain.loading[1], taken.loading[1])


def test_em_stops_where_more_steps_do_not_lower_the_validation_error():
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(1, 400, 2, generator=generator, dtype=torch.float64)
    loading = torch.randn(2, 8, generator=generator, dtype=torch.float64)
    f = z @ loading + 0.5 * torch.randn(1, 400, 8, generator=generator, dtype=torch.float64)
    chance = torch.rand(f.shape, generator=generator)
    visible, validation = (chance < 0.7).double(), (chance > 0.9).double()
    stopped = fit_factor_analysis(f, visible, 2, validation=validation)
    steps_20 = fit_factor_analysis(f, visible, 2, max_iter=20)
    torch.testing.assert_close(stopped.loading, steps_20.loading)
    long = r_squared(fit_factor_analysis(f, visible, 2, max_iter=400), f, visible, validation)
    assert float(long - r_squared(stopped, f, visible, validation)) < 0.005
    # cells that are not visible and not validation cells have no influence
    other = torch.where((visible + validation).bool(), f, 100.0)
    again = fit_factor_analysis(other, visible, 2, validation=validation)
    torch.testing.assert_close(stopped.loading, again.loading)


def test_signs_of_loadings_do_not_depend_on_rounding():
    generator = torch.Generator().manual_seed(4)
    for _ in range(10):
        f = torch.randn(1, 60, 5, generator=generator, dtype=torch.float64)
        f[..., 1:] += f[..., :1]
        # the two features of a binary column
        f[..., 4] = -f[..., 3] * (1 + 1e-15)
        forward = fit_factor_analysis(f, torch.ones_like(f), 3)
        # singular vectors of the same columns; LAPACK gives others of them the opposite sign
        backward = fit_factor_analysis(f.flip(1), torch.ones_like(f), 3)
        torch.testing.assert_close(forward.loading, backward.loading)


def test_without_validation_cells_the_first_prior_is_used():
    f, visible, validation = heavy()
    plain = fit_factor_analysis(f, visible, 5)
    taken = fit_with_validated_prior(f, visible, torch.zeros_like(validation), 5)
    torch.testing.assert_close(plain.loading, taken.loading)


def test_features_are_clipped_to_the_range_of_the_fit():
    generator = torch.Generator().manual_seed(2)
    factor = torch.randn(1, 200, 1, generator=generator)
    f = factor + 0.3 * torch.randn(1, 200, 4, generator=generator)
    f[..., 0] *= 1e-3
    visible, validation = torch.ones_like(f), torch.zeros_like(f)
    posterior = LinearPosterior(1, 4, 1)
    posterior.start(f, visible, validation)
    assert bool((posterior.reach >= MIN_REACH).all())
    row = torch.zeros(1, 3, 4)
    edge = posterior.center[0, 0] + posterior.reach[0, 0] * posterior.spread[0, 0]
    row[0, :, 0] = torch.stack([edge, 10 * edge, 1e4 * edge])
    mean, *_ = posterior(row, torch.ones_like(row))
    torch.testing.assert_close(mean[0, 1:], mean[0, :1].expand(2, -1))
    # features of the fit are not clipped
    standard = (f - posterior.center) / posterior.spread
    assert bool((standard.abs() <= posterior.reach * (1 + 1e-5)).all())
