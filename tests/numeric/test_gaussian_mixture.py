"""The mixture of Normal distributions against formulas written out row by row."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from psmvae.models import gaussian_mixture
from psmvae.models.gaussian_mixture import MIN_VARIANCE, GaussianMixture, sweep

N_COLUMNS, N_COMPONENTS, PRIOR_ROWS = 5, 3, 4.0


def random_mixture(seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N_COMPONENTS, N_COLUMNS, N_COLUMNS))
    covariance = root @ root.transpose(0, 2, 1) / N_COLUMNS + 0.2 * np.eye(N_COLUMNS)
    weight = rng.dirichlet(np.ones(N_COMPONENTS))
    mean = 1.5 * rng.normal(size=(N_COMPONENTS, N_COLUMNS))
    return GaussianMixture(*map(torch.tensor, (np.log(weight), mean, covariance)))


def random_rows(n=60, seed=1):
    """Rows with all numbers of missing cells, none and all included."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, N_COLUMNS))
    m = rng.random(x.shape) < rng.random((n, 1))
    m[0], m[1] = True, False
    return np.where(m, x, 0.0), m


def arrays(mixture):
    return mixture.log_weight.numpy(), mixture.mean.numpy(), mixture.covariance.numpy()


def posterior(mixture, row, seen):
    """Weights of the components, and conditional means and covariances of the whole row."""
    log_weight, mean, covariance = arrays(mixture)
    log_p, expected = log_weight.copy(), np.tile(row, (N_COMPONENTS, 1))
    spread = np.zeros_like(covariance)
    for k in range(N_COMPONENTS):
        oo, mo = covariance[k][np.ix_(seen, seen)], covariance[k][np.ix_(~seen, seen)]
        if seen.any():
            log_p[k] += multivariate_normal(mean[k, seen], oo).logpdf(row[seen])
        coef = mo @ np.linalg.inv(oo)
        expected[k, ~seen] = mean[k, ~seen] + coef @ (row[seen] - mean[k, seen])
        left = covariance[k][np.ix_(~seen, ~seen)] - coef @ mo.T
        spread[k][np.ix_(~seen, ~seen)] = left
    return np.exp(log_p - logsumexp(log_p)), expected, spread, logsumexp(log_p)


def log_likelihood(mixture, x, m):
    return sum(posterior(mixture, *row)[3] for row in zip(x, m, strict=True))


def tensors(x, m):
    return torch.tensor(x), torch.tensor(m, dtype=torch.float64)


@pytest.fixture(params=[2**19, 40], ids=["one chunk", "small chunks"])
def chunks(request, monkeypatch):
    monkeypatch.setattr(gaussian_mixture, "CHUNK_SIZE", {"cpu": request.param})


@pytest.mark.usefixtures("chunks")
def test_missing_cells_have_conditional_means():
    mixture, (x, m) = random_mixture(), random_rows()
    found = mixture.predict(*tensors(x, m)).numpy()
    for i, (row, seen) in enumerate(zip(x, m, strict=True)):
        weight, expected, *_ = posterior(mixture, row, seen)
        np.testing.assert_allclose(found[i], weight @ expected, atol=1e-10)
    np.testing.assert_array_equal(found[m], x[m])


@pytest.mark.usefixtures("chunks")
def test_observed_cells_are_predicted_from_the_others():
    mixture, (x, m) = random_mixture(), random_rows()
    found = mixture.predict(*tensors(x, m), observed=True).numpy()
    for i, j in zip(*np.nonzero(m), strict=True):
        seen = m[i].copy()
        seen[j] = False
        weight, expected, *_ = posterior(mixture, x[i], seen)
        assert found[i, j] == pytest.approx(weight @ expected[:, j], abs=1e-8)
    np.testing.assert_allclose(found[~m], mixture.predict(*tensors(x, m)).numpy()[~m], atol=1e-12)


@pytest.mark.usefixtures("chunks")
def test_a_step_is_that_of_em_with_a_prior():
    mixture, (x, m) = random_mixture(), random_rows(200)
    common = torch.eye(N_COLUMNS, dtype=torch.float64) * 0.7
    rows = list(gaussian_mixture._groups(tensors(x, m)[1], N_COMPONENTS))
    found = mixture._step(tensors(x, m)[0], rows, common, PRIOR_ROWS)
    parts = [posterior(mixture, *row) for row in zip(x, m, strict=True)]
    weight = np.stack([part[0] for part in parts])
    size = weight.sum(0)
    np.testing.assert_allclose(found.log_weight.exp(), (size + 1) / (size + 1).sum(), atol=1e-12)
    for k in range(N_COMPONENTS):
        filled = np.stack([part[1][k] for part in parts])
        mean = weight[:, k] @ filled / size[k]
        np.testing.assert_allclose(found.mean[k], mean, atol=1e-10)
        away = filled - mean
        scatter = (weight[:, k, None] * away).T @ away
        scatter += sum(w * part[2][k] for w, part in zip(weight[:, k], parts, strict=True))
        expected = (scatter + PRIOR_ROWS * common.numpy()) / (size[k] + PRIOR_ROWS)
        expected += MIN_VARIANCE * np.eye(N_COLUMNS)
        np.testing.assert_allclose(found.covariance[k], expected, atol=1e-10)


def made_rows(n=400, seed=3, rate=0.5):
    """Rows of two groups that have different correlations, with missing cells."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.5
    x = rng.normal(size=(n, 4))
    x[:, 1] = np.where(group, 1.0, -1.0) * x[:, 0] + 0.3 * x[:, 1]
    x[:, 2] = 3.0 * group + 0.5 * x[:, 2]
    m = rng.random(x.shape) >= rate
    x = (x - x.mean(0)) / x.std(0)
    return np.where(m, x, 0.0), m, x


def fit(x, m, n_components=4, n_cycles=8, seed=0, **settings):
    return GaussianMixture.fit(
        *tensors(x, m),
        n_components,
        prior_rows=5.0,
        n_cycles=n_cycles,
        generator=torch.Generator().manual_seed(seed),
        **settings,
    )


def test_extrapolated_cycles_reach_what_more_iterations_reach(monkeypatch):
    x, m, _ = made_rows(600, rate=0.7)
    extrapolated = log_likelihood_of(fit(x, m, n_cycles=15), x, m)
    monkeypatch.setattr(gaussian_mixture, "MAX_ALPHA", 1.0)
    as_many = log_likelihood_of(fit(x, m, n_cycles=15), x, m)
    three_times = log_likelihood_of(fit(x, m, n_cycles=45), x, m)
    assert extrapolated > as_many + 0.5 * (three_times - as_many)


def log_likelihood_of(mixture, x, m):
    x, m = tensors(x, m)
    rows = gaussian_mixture._groups(m, len(mixture.mean))
    precision = gaussian_mixture.Precision.of(mixture)
    parts = [each.evaluate(mixture, precision, x).log_p for each in rows]
    return sum(float(torch.logsumexp(part, 0).sum()) for part in parts)


@pytest.mark.usefixtures("chunks")
def test_the_log_density_is_that_of_the_observed_cells():
    mixture, (x, m) = random_mixture(), random_rows()
    found = log_likelihood_of(mixture, x, m)
    assert found == pytest.approx(log_likelihood(mixture, x, m), abs=1e-8)


def test_one_component_of_complete_rows_has_their_moments():
    _, _, x = made_rows()
    one = fit(x, np.ones_like(x, dtype=bool), n_components=1)
    np.testing.assert_allclose(one.mean[0], x.mean(0), atol=1e-10)
    np.testing.assert_allclose(one.covariance[0], np.cov(x.T, bias=True), atol=2e-3)


def test_a_given_normal_is_what_a_fit_begins_with():
    x, m, _ = made_rows()
    normal = GaussianMixture.normal(*tensors(x, m))
    found = fit(x, m, normal=normal)
    for name in ("log_weight", "mean", "covariance"):
        assert torch.equal(getattr(found, name), getattr(fit(x, m), name))
    moved = GaussianMixture(normal.log_weight, normal.mean + 1.0, normal.covariance)
    assert not torch.equal(fit(x, m, normal=moved).mean, found.mean)


def test_a_mixture_predicts_better_than_one_normal():
    x, m, complete = made_rows(3000, rate=0.3)
    errors = [
        np.square((fit(x, m, n, 15).predict(*tensors(x, m)).numpy() - complete)[~m]).mean()
        for n in (1, 4)
    ]
    assert errors[1] < 0.9 * errors[0]


def test_an_update_starts_from_the_mixture():
    x, m, _ = made_rows()
    short = fit(x, m, n_cycles=2)
    longer = short.update(*tensors(x, m), prior_rows=5.0, n_iterations=10)
    assert log_likelihood_of(longer, x, m) > log_likelihood_of(short, x, m)
    same = short.update(*tensors(x, m), prior_rows=5.0, n_iterations=0)
    assert torch.equal(same.mean, short.mean)


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_single_precision_gives_nearly_the_same_predictions(rate):
    """Also where two columns are nearly the same."""
    x, m, complete = made_rows(rate=rate)
    complete[:, 3] = complete[:, 0] + 1e-3 * complete[:, 3]
    x = np.where(m, complete, 0.0)
    mixture = fit(x, m)
    single = GaussianMixture(
        mixture.log_weight.float(), mixture.mean.float(), mixture.covariance.float()
    )
    z, seen = tensors(x, m)
    found = single.predict(z.float(), seen.float()).numpy()
    np.testing.assert_allclose(found, mixture.predict(z, seen).numpy(), atol=0.01)


def test_rows_are_added_alike_on_every_device():
    rng = np.random.default_rng(0)
    at, values = torch.tensor(rng.integers(0, 6, 50)), torch.tensor(rng.normal(size=(50, 3)))
    total = torch.ones(7, 3, dtype=torch.float64)
    gaussian_mixture.add_rows(total, at, values)
    expected = np.ones((7, 3))
    np.add.at(expected, at.numpy(), values.numpy())
    np.testing.assert_allclose(total, expected, atol=1e-12)
    found = gaussian_mixture.one_hot_sum(at, values, 7)
    np.testing.assert_allclose(found, expected - 1, atol=1e-12)


def test_sweeping_inverts():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(7, 4, 4))
    matrix = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(4)
    inverse, log_det = sweep(torch.tensor(matrix).permute(1, 2, 0))
    np.testing.assert_allclose(inverse.permute(2, 0, 1), np.linalg.inv(matrix), atol=1e-8)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(matrix)[1], atol=1e-10)
