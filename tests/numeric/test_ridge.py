"""Bayesian linear regression in a chain: draws agree with closed forms."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import BayesianRidge

from numeric.helpers import same
from psmvae.imputers.chain import Chain
from psmvae.imputers.ridge import Ridge


class TestRidge:
    def setup_method(self):
        rng = np.random.default_rng(0)
        self.x = rng.normal(3.0, [1.0, 2.0, 0.5], (40, 3))
        self.y = self.x @ [1.0, -1.0, 2.0] + rng.normal(size=40)
        self.new = rng.normal(0.0, 3.0, (7, 3))
        self.fitted = BayesianRidge().fit(self.x, self.y)
        n = len(self.fitted.coef_)
        self.ridge = Ridge.of(self.fitted, np.arange(n), n, len(self.y))

    def test_the_posterior_predictive_distribution(self):
        """The closed form for known precisions: Σ⁻¹ = λ I + α XᵀX of the centred rows."""
        alpha, center = self.fitted.alpha_, self.x.mean(0)
        away = self.x - center
        sigma = np.linalg.inv(self.fitted.lambda_ * np.eye(3) + alpha * away.T @ away)
        coef = alpha * sigma @ away.T @ (self.y - self.y.mean())
        new = self.new - center
        same(self.ridge.predict(self.new), self.y.mean() + new @ coef)
        variance = 1 / alpha + np.einsum("ij,jk,ik->i", new, sigma, new)
        same(self.ridge.deviation(self.new), np.sqrt(variance))

    def test_independent_draws_of_cells(self):
        twins = np.repeat(self.new[:1], 4000, axis=0)
        mean, deviation = self.ridge.predict(twins)[0], self.ridge.deviation(twins)[0]
        drawn = self.ridge.draw_cells(twins, np.random.default_rng(0))
        assert stats.kstest(drawn, stats.norm(mean, deviation).cdf).pvalue > 0.01

    def test_joint_draws_are_student_t(self):
        """Closed form: Student-t with shared (x − x̄)ᵀ Σ (x − x̄) + σ²/n and σ² for each cell."""
        away = self.x - self.x.mean(0)
        alpha, prior = self.fitted.alpha_, self.fitted.lambda_
        sigma = np.linalg.inv(prior * np.eye(3) + alpha * away.T @ away)
        effective = np.trace(alpha * sigma @ away.T @ away)
        freedom = 40 - effective - 1
        squares = ((self.y - self.fitted.predict(self.x)) ** 2).sum()
        new = self.new - self.x.mean(0)
        scale = alpha * (new @ sigma @ new.T) + 1 / 40 + np.eye(7)
        scale *= squares / freedom
        rng, mean = np.random.default_rng(0), self.fitted.predict(self.new)
        drawn = np.stack([self.ridge.draw(self.new, rng) for _ in range(3000)])
        for side in (*np.eye(7)[:2], np.full(7, 1 / 7)):
            exact = stats.t(freedom, side @ mean, np.sqrt(side @ scale @ side))
            assert stats.kstest(drawn @ side, exact.cdf).pvalue > 0.01

    def test_singular_covariance_of_coefficients(self):
        """Σ with a zero, and Σ that is indefinite by rounding."""
        for inner in (np.diag([4.0, 0.0, 9.0]), np.full((3, 3), 2.0) - 1e-12 * np.eye(3)):
            changed = self.ridge._replace(
                sigma=inner[np.tril_indices(3)],
                noise=np.float64(0.0),
                n_rows=np.float64(10**9),
            )
            rng, at = np.random.default_rng(0), self.ridge.center + np.eye(3)
            away = [changed.draw(at, rng) - changed.predict(at) for _ in range(1500)]
            np.testing.assert_allclose(np.cov(np.array(away).T), inner, atol=0.8)


def one_predictor(seed, n=40):
    """y depends strongly on x and is missing more often where x is high."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    table = np.column_stack([x, 2.0 * x + rng.normal(size=n)])
    table[rng.random(n) < 1 / (1 + np.exp(-2 * x)), 1] = np.nan
    return table


def exact_mean(table):
    """Posterior mean and variance of the mean of y, flat priors of coefficients and log σ."""
    x, y, seen = table[:, 0], table[:, 1], ~np.isnan(table[:, 1])
    design = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.inv(design[seen].T @ design[seen])
    line = inverse @ design[seen].T @ y[seen]
    squares = ((y[seen] - design[seen] @ line) ** 2).sum()
    lost = design[~seen].sum(0) / len(x)
    uncertain = lost @ inverse @ lost + (~seen).sum() / len(x) ** 2
    # of σ² χ²: squares / (freedom − 2) on average
    return y[seen].sum() / len(x) + lost @ line, squares / (seen.sum() - 4) * uncertain


def test_variance_between_imputations_equals_the_closed_form():
    """Independent draws of cells with fixed coefficients have less than half of this variance."""
    ratios, independent = [], []
    for seed in range(2):
        table, rng = one_predictor(seed), np.random.default_rng(seed)
        chain = Chain.fit(table, estimator="ridge", max_iter=1, sample=True, seed=0)
        means = np.array([chain.draw(table, rng)[:, 1].mean() for _ in range(1500)])
        mean, variance = exact_mean(table)
        assert means.mean() == pytest.approx(mean, abs=0.1 * np.sqrt(variance) + 0.02)
        ratios.append(means.var() / variance)
        means = np.array([chain.draw_cells(table, rng)[:, 1].mean() for _ in range(300)])
        independent.append(means.var() / variance)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)
    assert np.mean(independent) < 0.5


def test_intervals_by_rubins_rules_have_their_coverage():
    """Coverage of 95 %, within the 99.9 % range of a binomial distribution."""
    n_draws, covered, n_tables = 10, 0, 100
    for seed in range(n_tables):
        table, rng = one_predictor(seed), np.random.default_rng(seed)
        chain = Chain.fit(table, estimator="ridge", max_iter=1, sample=True, seed=0)
        drawn = np.stack([chain.draw(table, rng)[:, 1] for _ in range(n_draws)])
        within = drawn.var(axis=1, ddof=1).mean() / drawn.shape[1]
        between = (1 + 1 / n_draws) * drawn.mean(1).var(ddof=1)
        share = between / (within + between)
        freedom = (n_draws - 1) / share**2
        half = stats.t.ppf(0.975, freedom) * np.sqrt(within + between)
        covered += abs(drawn.mean()) < half
    low, high = stats.binom.ppf([0.0005, 0.9995], n_tables, 0.95)
    assert low <= covered <= high


@pytest.mark.parametrize("sample", [True, False])
def test_draws_of_two_cells_are_jointly_normal(sample):
    """Rounds of draws are a Gibbs sampler of p(x_0, x_1 | x_2)."""
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.6, 0.5], [0.6, 1.0, 0.3], [0.5, 0.3, 1.0]])
    x = rng.multivariate_normal(np.zeros(3), covariance, 4000)
    if sample:
        # only a fit with draws recovers the covariance from incomplete rows
        x[:400, 0] = x[400:800, 1] = np.nan
    chain = Chain.fit(x, estimator="ridge", max_iter=8, tol=0.0, sample=sample, seed=0)
    # the rows of one draw share their coefficients
    rows = np.tile([np.nan, np.nan, 1.5], (100, 1))
    drawn = np.concatenate([chain.draw(rows, rng)[:, :2] for _ in range(60)])
    gain = covariance[:2, 2] / covariance[2, 2]
    np.testing.assert_allclose(drawn.mean(0), 1.5 * gain, atol=0.08)
    expected = covariance[:2, :2] - np.outer(gain, covariance[2, :2])
    np.testing.assert_allclose(np.cov(drawn.T), expected, atol=0.06)
