"""Blocks of columns of every kind."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import logsigmoid

from psmvae.kinds import Column
from psmvae.nn.columns import Columns, Layout
from psmvae.nn.noise import Noise
from psmvae.table.codec import Codec

KIND = ["ordinal", "real", "count", "categorical", "positive", "integer", "ordinal", "binary"]


def table(n=300):
    """A column of each kind, two ordinal ones of different sizes. The last row is missing."""
    rng = np.random.default_rng(0)
    cells = np.column_stack(
        [
            rng.integers(0, 5, n),
            rng.normal(size=n),
            rng.poisson(4.0, n),
            rng.integers(0, 3, n),
            rng.lognormal(3.0, 0.7, n),
            rng.integers(-50, 50, n),
            rng.integers(0, 7, n),
            rng.integers(0, 2, n),
        ]
    ).astype(float)
    cells[-1] = np.nan
    return cells


def encoded():
    cells = table()
    codec = Codec.fit(cells, kinds={f"x{j}": kind for j, kind in enumerate(KIND)})
    layout = Layout.of(codec.schema.modelled)
    got = codec.encode(cells)
    order = list(layout.order)
    return layout, torch.tensor(got.x[:, order]).float(), torch.tensor(got.m[:, order])


def cells_of(layout, scale, n_rows=4, spread=1.0, n_members=2):
    columns = Columns(layout, n_members, scale)
    outputs = spread * Noise(1).normal(n_members, n_rows, 3, 2, columns.n_outputs)
    return columns, columns(outputs), outputs


def test_columns_are_grouped_by_likelihood():
    layout, _, _ = encoded()
    assert [(kind, len(group)) for kind, group in layout.groups] == [
        ("count", 1),
        ("positive", 1),
        ("real", 2),
        ("ordinal", 2),
        ("binary", 1),
        ("categorical", 1),
    ]


@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
def test_point_estimate_from_own_statistics_is_the_value(scale):
    layout, x, _ = encoded()
    columns = Columns(layout, 2, scale)
    assert columns.statistics(x).shape == (300, columns.n_statistics)
    assert columns.features(x).shape == (300, columns.n_features)
    exact = columns.point(columns.statistics(x))
    torch.testing.assert_close(exact, x, rtol=1e-4, atol=1e-5)
    assert float(columns.error(columns.statistics(x), x).max()) < 1e-8


def test_error_of_the_mean_is_one_except_for_unordered_levels():
    layout, x, m = encoded()
    columns = Columns(layout, 1, 1.0)
    seen = x[m.all(1)]
    error = columns.error(columns.statistics(seen).mean(0), seen).mean(0)
    torch.testing.assert_close(error[:6], torch.ones(6), rtol=1e-3, atol=0)
    assert bool((error[6:] < 0.5).all())


@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
def test_constant_tilt_does_not_change_expectations(scale):
    layout, _, _ = encoded()
    columns, cells, _ = cells_of(layout, scale)
    flat = cells.tilted(lambda x, _: torch.zeros_like(x))
    assert flat.shape == (2, 4, 3, 2, columns.n_statistics)
    torch.testing.assert_close(flat, cells.expected(), rtol=5e-3, atol=5e-3)
    log_mass = cells.log_expectation(lambda x, _: torch.zeros_like(x))
    torch.testing.assert_close(log_mass, torch.zeros_like(log_mass), rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", ["learned", "student", 0.5])
def test_kl_of_q_x_mis_is_finite_for_every_likelihood(scale):
    layout, _, _ = encoded()
    _, p, outputs = cells_of(layout, scale)
    _, q, q_outputs = cells_of(layout, "network", spread=0.5)
    outputs.requires_grad_()
    q_outputs.requires_grad_()
    kl = q.columns(q_outputs).kl(p.columns(outputs))
    assert kl.shape == (2, 4, 3, 2, 8)
    assert bool((kl > -1e-4).all())
    kl.sum().backward()
    assert bool(outputs.grad.isfinite().all())
    assert bool(q_outputs.grad.isfinite().all())


@pytest.mark.parametrize("scale", ["learned", "network", "student", 0.5])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_missing_cells_have_finite_densities_and_gradients(scale, spread):
    layout, x, _ = encoded()
    columns, _, outputs = cells_of(layout, scale, spread=spread)
    outputs.requires_grad_()
    log_p = columns(outputs).log_prob(x[-4:].view(1, 4, 1, 1, 8))
    assert bool(log_p.isfinite().all())
    log_p.sum().backward()
    assert bool(outputs.grad.isfinite().all())
    for parameter in columns.parameters():
        assert parameter.shape[0] == 2
        assert bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("scale", ["learned", "student", 0.5])
def test_tilted_draws_without_tilt_are_plain_draws(scale):
    layout, _, _ = encoded()
    _, cells, _ = cells_of(layout, scale)
    uniform = Noise(2).uniform(2, 4, 3, 2, 8)
    plain = cells.sample(uniform).detach()
    tilted = cells.tilted_sample(lambda x, _: torch.zeros_like(x), uniform).detach()
    torch.testing.assert_close(plain, tilted, rtol=0.02, atol=0.1)
    # uniform numbers broadcast over sets
    shared = cells.sample(uniform[:, :, :, :1])
    assert shared.shape == plain.shape


def one_cell(column, scale, outputs):
    columns = Columns(Layout.of([column]), 1, scale).double()
    return columns(torch.tensor(outputs, dtype=torch.float64).view(1, 1, 1, 1, -1))


def test_tilted_count_follows_bayes_rule():
    column = Column("n", "count", "Int64", 99, center=1.5, scale=0.6, mean=4.0, deviation=3.0)
    cells = one_cell(column, 0.5, [0.3])
    mean = float(cells.expected())
    x = np.arange(60)
    weight = stats.poisson(mean).pmf(x) / (1 + np.exp(-(0.8 * x - 3)))
    weight /= weight.sum()

    def log_tilt(x, at):
        return logsigmoid(0.8 * x - 3)

    assert float(cells.tilted(log_tilt)) == pytest.approx((weight * x).sum(), rel=1e-6)
    uniform = torch.linspace(0.0005, 0.9995, 1000).double().view(1, 1000, 1, 1, 1)
    drawn = cells.tilted_sample(log_tilt, uniform).flatten().numpy()
    assert (drawn == np.searchsorted(np.cumsum(weight), uniform.flatten().numpy())).all()


def test_tilted_positive_value_is_averaged_in_units_of_the_table():
    column = Column("p", "positive", "Float64", 99, center=2.0, scale=0.5, deviation=3.0)
    cells = one_cell(column, 0.6, [0.2])

    def log_tilt(x, at):
        return logsigmoid(1.5 * x)

    x = np.linspace(-6, 6, 20_001)
    weight = stats.norm(0.2, 0.6).pdf(x) / (1 + np.exp(-1.5 * x))
    weight /= weight.sum()
    found = float(cells.columns.point(cells.tilted(log_tilt)))
    exact = np.log((weight * np.exp(2.0 + 0.5 * x)).sum())
    assert 2.0 + 0.5 * found == pytest.approx(exact, abs=1e-5)


def test_tilted_student_draws_are_quantiles_of_the_tilted_density():
    cells = one_cell(Column("x", "real", "Float64", 99), "student", [0.5, -0.7, 0.0])
    part = cells.parts[0]
    location, scale, df = (
        float(v.detach()) for v in (part.location, part.log_scale.exp(), part.df)
    )
    x = np.linspace(-60, 60, 400_001)
    weight = stats.t(df, location, scale).pdf(x) / (1 + np.exp(2 * x))
    cumulative = np.cumsum(weight) / weight.sum()
    uniform = torch.linspace(0.005, 0.995, 199).double().view(1, 199, 1, 1, 1)
    drawn = cells.tilted_sample(lambda x, _: logsigmoid(-2 * x), uniform).detach()
    exact = np.interp(uniform.flatten().numpy(), cumulative, x)
    np.testing.assert_allclose(drawn.flatten().numpy(), exact, atol=0.02, rtol=0.01)
