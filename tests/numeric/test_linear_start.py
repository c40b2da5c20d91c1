"""Where training starts: a factor analysis, held to what held-out cells say of it."""

import torch

from psmvae.nn.linear_gaussian import (
    MIN_REACH,
    LinearPosterior,
    explained,
    fit_factor_analysis,
    fit_where_it_holds,
)


def heavy(seed=0, n_rows=300, n_columns=40, tail=1.2):
    """Independent columns with heavy tails, a fifth seen, a tenth of that held out."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(1, n_rows, n_columns, generator=generator, dtype=torch.float64)
    f = normal.sign() * (tail * normal.abs()).exp()
    f = (f - f.mean(1, keepdim=True)) / f.std(1, keepdim=True)
    chance = torch.rand(f.shape, generator=generator)
    visible, held = (chance < 0.18).double(), ((chance >= 0.18) & (chance < 0.2)).double()
    return f, visible, held


def test_what_is_explained_is_one_less_the_share_that_is_left():
    # one factor, two columns: E[x2 | x1] = x1 w1 w2 / (w1² + ψ1)
    f = torch.tensor([[[2.0, 1.0]]], dtype=torch.float64)
    visible = torch.tensor([[[1.0, 0.0]]], dtype=torch.float64)
    loading = torch.tensor([[[0.8], [0.5]]], dtype=torch.float64)
    psi = torch.tensor([[0.36, 0.75]], dtype=torch.float64)
    fa = fit_factor_analysis(f, visible, 1, max_iter=1)._replace(
        mean=torch.zeros(1, 2, dtype=torch.float64), loading=loading, psi=psi
    )
    left = (1.0 - 2.0 * 0.4) ** 2
    found = explained(fa, f, visible, 1 - visible)
    torch.testing.assert_close(found, torch.tensor([1 - left], dtype=torch.float64))


def test_a_start_worse_than_the_mean_is_not_taken():
    f, visible, held = heavy()
    weak = explained(fit_factor_analysis(f, visible, 20), f, visible, held)
    taken = explained(fit_where_it_holds(f, visible, held, 20), f, visible, held)
    assert float(weak) < -0.3
    assert float(taken) > -0.02


def test_each_member_is_judged_by_itself_and_a_good_start_is_left_alone():
    f, visible, held = heavy()
    generator = torch.Generator().manual_seed(1)
    factor = torch.randn(1, f.shape[1], 1, generator=generator, dtype=torch.float64)
    good = factor + 0.3 * torch.randn(f.shape, generator=generator, dtype=torch.float64)
    both = torch.cat([good, f])
    seen, out = visible.expand(both.shape), held.expand(both.shape)
    plain = fit_factor_analysis(both, seen, 20)
    taken = fit_where_it_holds(both, seen, out, 20)
    for one, two in zip(plain, taken, strict=True):
        torch.testing.assert_close(one[0], two[0])
    assert not torch.allclose(plain.loading[1], taken.loading[1])


def test_without_held_out_cells_the_first_is_taken():
    f, visible, held = heavy()
    plain = fit_factor_analysis(f, visible, 5)
    taken = fit_where_it_holds(f, visible, torch.zeros_like(held), 5)
    torch.testing.assert_close(plain.loading, taken.loading)


def test_a_value_counts_for_no_more_than_the_largest_that_was_seen():
    generator = torch.Generator().manual_seed(2)
    factor = torch.randn(1, 200, 1, generator=generator)
    f = factor + 0.3 * torch.randn(1, 200, 4, generator=generator)
    f[..., 0] *= 1e-3
    visible, held = torch.ones_like(f), torch.zeros_like(f)
    posterior = LinearPosterior(1, 4, 1)
    posterior.start(f, visible, held)
    assert bool((posterior.reach >= MIN_REACH).all())
    row = torch.zeros(1, 3, 4)
    edge = posterior.center[0, 0] + posterior.reach[0, 0] * posterior.spread[0, 0]
    row[0, :, 0] = torch.stack([edge, 10 * edge, 1e4 * edge])
    mean, *_ = posterior(row, torch.ones_like(row))
    torch.testing.assert_close(mean[0, 1:], mean[0, :1].expand(2, -1))
    # what was fitted to is not cut
    standard = (f - posterior.center) / posterior.spread
    assert bool((standard.abs() <= posterior.reach * (1 + 1e-5)).all())
