"""Chained Bayesian regressions: posteriors against closed forms, and properties of draws."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from threadpoolctl import threadpool_limits

from psmvae import PSMVAEImputer, load
from psmvae.chained.basis import Basis
from psmvae.chained.chains import Chains, Learned, Settings, settings_for
from psmvae.chained.levels import fit_levels
from psmvae.chained.numeric import NumericParameters, fit_numeric
from psmvae.chained.regression import LEFT_OUT, Design, Draws, dependent, regress
from psmvae.chained.tilt import LogOdds
from psmvae.imputers.fit_warnings import ImproperDrawsWarning
from psmvae.kinds import Column

OPEN = (-np.inf, np.inf)


def numbers(seed=0, n=200):
    """A table with a linear relation, and 30 % of the cells missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 0] = 0.7 * x[:, 1] + 0.5 * rng.normal(size=n)
    return x, rng.random(x.shape) > 0.3


def columns(n):
    return [Column(f"x{j}", "real", "Float64", 9) for j in range(n)]


def fit(x, m, **settings):
    n = x.shape[1]
    return Chains.fit(
        columns(n), np.where(m, x, 0), m, bounds=[OPEN] * n, seed=1, settings=Settings(**settings)
    )


class TestRegress:
    def test_draws_follow_the_posterior_under_a_flat_prior(self):
        rng = np.random.default_rng(0)
        x, n_chains = rng.normal(size=(40, 2)), 4000
        y = 1 + x @ [1.0, -0.5] + 0.3 * rng.normal(size=40)
        terms, target = np.tile(x, (n_chains, 1, 1)), np.tile(y, (n_chains, 1))
        found = regress(Design.of(terms.copy()), target, Draws.seeded(0, range(n_chains)), n_flat=2)
        design = np.column_stack([np.ones(40), x])
        coef, squares, *_ = np.linalg.lstsq(design, y, rcond=None)
        np.testing.assert_allclose(found.mean[0], coef[1:], rtol=1e-6)
        # sigma² is scaled inverse χ² with 37 degrees of freedom
        assert stats.kstest(squares / found.sigma**2, stats.chi2(37).cdf).pvalue > 1e-3
        # a coefficient is Student-t around the least squares estimate
        scale = np.sqrt(squares / 37 * np.linalg.inv(design.T @ design).diagonal()[1])
        drawn, _ = found.draw(Design.of(terms.copy()), Draws.seeded(1, range(n_chains)))
        assert stats.kstest((drawn[:, 0] - coef[1]) / scale, stats.t(37).cdf).pvalue > 1e-3

    @pytest.mark.parametrize("n_flat", [2, 0])
    def test_draws_for_unequal_noise_have_the_variance_of_the_estimates(self, n_flat):
        rng = np.random.default_rng(4)
        x, n_chains = rng.normal(size=(60, 2)), 20_000
        noise = np.exp(0.8 * x[:, 0])
        noise /= np.sqrt(np.mean(noise**2))
        target = np.tile(1 + x @ [1.0, -0.5] + noise * rng.normal(size=60), (n_chains, 1))
        design = Design.of(np.tile(x, (n_chains, 1, 1)))
        found = regress(design, target, Draws.seeded(0, range(n_chains)), n_flat=n_flat)
        # the same penalty in all chains, and the noise relative to the drawn sigma
        found = found._replace(
            precision=found.precision[:1], root=found.root[:1], mean=found.mean[:1]
        )
        coef, intercept = found.draw(design, Draws.seeded(1, range(n_chains)), noise)
        errors = np.column_stack([intercept - found.level, coef - found.mean])
        errors /= found.sigma[:, None]
        away = x - x.mean(0)
        penalty = np.diag(found.precision[0])
        bread = np.linalg.inv(away.T @ away + penalty)
        rows = np.vstack([np.full(60, 1 / 60), bread @ away.T])
        expected = rows @ np.diag(noise**2) @ rows.T
        expected[1:, 1:] += bread @ penalty @ bread
        scale = np.sqrt(expected.diagonal())
        np.testing.assert_allclose(np.cov(errors.T) / np.outer(scale, scale),
                                   expected / np.outer(scale, scale), atol=0.04)  # fmt: skip

    def test_equal_noise_is_a_special_case(self):
        rng = np.random.default_rng(5)
        x, n_chains = rng.normal(size=(30, 3)), 20_000
        target = np.tile(x[:, 0] + rng.normal(size=30), (n_chains, 1))
        design = Design.of(np.tile(x, (n_chains, 1, 1)))
        found = regress(design, target, Draws.seeded(0, range(n_chains)), n_flat=1)
        each = [found.draw(design, Draws.seeded(1, range(n_chains)), noise)[0]
                for noise in (None, np.ones(30))]  # fmt: skip
        some = found.precision[:, 1] == np.median(found.precision[:, 1])
        one, other = (np.cov(coef[some].T) for coef in each)
        size = np.sqrt(one.diagonal())
        np.testing.assert_allclose(other / np.outer(size, size), one / np.outer(size, size),
                                   atol=0.06)  # fmt: skip

    def test_leverage(self):
        x = np.random.default_rng(4).normal(size=(60, 2))
        design = Design.of(x[None].copy())
        found = regress(design, x[None, :, 0] + 1, Draws.seeded(0, [0]), n_flat=2)
        away = sm.add_constant(x)
        hat = (away @ np.linalg.inv(away.T @ away) * away).sum(1)
        np.testing.assert_allclose(design.leverage(found.covariance)[0], hat, rtol=1e-6)
        some = np.arange(60) % 3 == 0
        np.testing.assert_allclose(design.leverage(found.covariance, some)[0], hat[some], rtol=1e-6)

    def test_penalised_terms_are_left_out_of_linear_data_and_used_in_curved_data(self):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(300, 1))
        terms = np.tile(np.column_stack([x, x**2, x**3]), (50, 1, 1))
        noise = 0.5 * rng.normal(size=300)
        design, draws = Design.of(terms), Draws.seeded(0, range(50))
        linear, curved = (
            regress(design, np.tile(y, (50, 1)), draws, n_flat=1).draw(design, draws)[0]
            for y in (x[:, 0] + noise, x[:, 0] ** 2 + noise)
        )
        assert np.mean(np.abs(linear[:, 1]) < 1e-3) > 0.5
        assert np.abs(curved[:, 1].mean() - 1) < 0.1

    def test_a_set_without_terms_does_not_add_to_the_prior_of_none(self):
        x = np.random.default_rng(6).normal(size=(20, 8))
        design, target = Design.of(np.tile(x, (4000, 1, 1))), np.zeros((4000, 20))
        target += np.random.default_rng(7).normal(size=20)
        shares = []
        for groups in (np.ones((1, 8)), np.stack([np.zeros(8), np.ones(8), np.ones(8)])):
            found = regress(
                design, target, Draws.seeded(0, range(4000)), n_flat=0, groups=groups.astype(bool)
            )
            shares.append(np.mean(found.precision[:, 0] == LEFT_OUT))
        assert shares[0] == shares[1]

    def test_constant_and_collinear_terms_are_found(self):
        x = np.random.default_rng(0).normal(size=(50, 2))
        terms = np.column_stack([x, np.zeros(50), x.sum(1)])
        dropped = dependent(terms.T @ terms, 50)
        assert dropped[2]
        assert dropped.sum() == 2


class TestNumeric:
    def parameters(self, **options):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(400, 1))
        y = x[:, 0] + 0.5 * rng.normal(size=400)
        terms = np.tile(x, (5, 1, 1))
        none = np.zeros(400, dtype=bool)
        return y, fit_numeric(
            terms, y, None, none, Draws.seeded(0, range(5)), n_flat=1,
            groups=np.ones((1, 0), dtype=bool), **options,
        )  # fmt: skip

    def test_residuals_have_the_standard_deviation_of_the_noise(self):
        _, found = self.parameters(pmm=False)
        terms = np.random.default_rng(1).normal(size=(5, 4000, 1))
        rng = Draws.seeded(1, range(5))
        drawn = found.draw(terms, np.zeros(4000), rng, pmm=False, low=-np.inf, high=np.inf)
        assert np.abs((drawn - terms[..., 0]).std() - 0.5) < 0.05

    def test_coefficients_have_the_variance_that_unequal_noise_gives(self):
        n, n_chains = 600, 400
        rng = np.random.default_rng(5)
        x = rng.normal(size=n)
        deviation = 0.5 * np.exp(0.5 * x)
        y = x + deviation * rng.normal(size=n)
        terms, none = np.tile(x[:, None], (n_chains, 1, 1)), np.zeros(n, dtype=bool)
        found = fit_numeric(
            terms, y, None, none, Draws.seeded(0, range(n_chains)), n_flat=1,
            groups=np.ones((1, 0), dtype=bool), pmm=False,
        )  # fmt: skip
        equal = sm.OLS(y, sm.add_constant(x)).fit()
        robust = equal.get_robustcov_results("HC3")
        # the standard errors for equal noise are far from these
        assert robust.bse[1] > 1.3 * equal.bse[1]
        assert abs(found.coef.mean() - equal.params[1]) < 0.2 * robust.bse[1]
        assert found.coef.std() == pytest.approx(robust.bse[1], rel=0.15)
        at_zero = found.mean(np.zeros((n_chains, 1, 1)), np.zeros(1))[:, 0]
        assert at_zero.std() == pytest.approx(robust.bse[0], rel=0.15)
        # and the noise grows with x
        rng, terms = Draws.seeded(1, range(n_chains)), np.full((n_chains, 50, 1), 1.0)
        drawn = found.draw(terms, np.zeros(50), rng, pmm=False, low=-np.inf, high=np.inf)
        assert drawn.std() == pytest.approx(0.5 * np.exp(0.5), rel=0.15)

    def test_a_mean_that_is_only_approximate_is_not_biased_by_its_noise(self):
        """y is exp(.7 x) times a Gamma variable, and its mean is fitted by a line."""
        n, n_chains = 1000, 40
        rng = np.random.default_rng(6)
        x = rng.normal(size=n)
        y = np.exp(0.7 * x) * rng.gamma(1.0, size=n)
        terms, none = np.tile(x[:, None], (n_chains, 1, 1)), np.zeros(n, dtype=bool)
        rng = Draws.seeded(0, range(n_chains))
        found = fit_numeric(
            terms.copy(), y, None, none, rng, n_flat=1, groups=np.ones((1, 0), bool), pmm=False
        )
        assert found.log_scale.mean() > 0.2
        line = sm.OLS(y, sm.add_constant(x)).fit().params
        assert found.coef.mean() == pytest.approx(line[1], abs=0.05)
        rng = Draws.seeded(1, range(n_chains))
        drawn = found.draw(terms, np.zeros(n), rng, pmm=False, low=-np.inf, high=np.inf)
        assert drawn.mean() == pytest.approx(y.mean(), abs=0.05 * y.std())

    def test_a_row_that_determines_its_own_fit_says_nothing_about_the_noise(self):
        n, n_levels, n_chains = 100, 4, 200
        rng = np.random.default_rng(3)
        level = np.zeros((n, n_levels))
        # each level has one row
        level[range(n_levels), range(n_levels)] = 1
        x = np.column_stack([rng.normal(size=n), level])
        y = x[:, 0] + rng.normal(size=n)
        terms, none = np.tile(x, (n_chains, 1, 1)), np.zeros(n, dtype=bool)
        found = fit_numeric(
            terms, y, None, none, Draws.seeded(0, range(n_chains)), n_flat=1 + n_levels,
            groups=np.ones((1, 0), dtype=bool), pmm=False,
        )  # fmt: skip
        expected = sm.OLS(y, sm.add_constant(x)).fit()
        assert found.coef.std(0) == pytest.approx(expected.bse[1:], rel=0.25)

    def test_noise_that_depends_on_another_predictor_than_the_mean(self):
        n, n_chains, squares = 300, 40, []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            x = rng.normal(size=(n, 2))
            y = 2 * x[:, 0] + np.exp(0.5 * x[:, 1]) * rng.normal(size=n)
            terms, none = np.tile(x, (n_chains, 1, 1)), np.zeros(n, dtype=bool)
            found = fit_numeric(
                terms, y, None, none, Draws.seeded(seed, range(n_chains)), n_flat=2,
                groups=np.ones((1, 0), dtype=bool), pmm=False,
            )  # fmt: skip
            cells = np.zeros((n_chains, 100, 2))
            cells[..., 1] = 2
            rng = Draws.seeded(1, range(n_chains))
            drawn = found.draw(cells, np.zeros(100), rng, pmm=False, low=-np.inf, high=np.inf)
            squares.append((drawn - drawn.mean(1, keepdims=True)).var())
        assert np.sqrt(np.mean(squares)) == pytest.approx(np.exp(1), rel=0.12)

    def test_draws_are_truncated_and_not_put_on_the_bound(self):
        _, found = self.parameters(pmm=False)
        rng, terms = Draws.seeded(1, range(5)), np.zeros((5, 4000, 1))
        drawn = found.draw(terms, np.zeros(4000), rng, pmm=False, low=0.0, high=np.inf)
        assert drawn.min() >= 0
        assert np.mean(drawn == 0) < 1e-3

    @pytest.mark.parametrize(
        ("low", "high"), [(6.0, np.inf), (-np.inf, -8.0), (0.5, 0.7), (-9.0, 1.0)]
    )
    def test_normal_draws_are_of_the_truncated_distribution(self, low, high):
        one, none = np.ones((1, 1)), np.zeros((1, 0))
        found = NumericParameters(one, one, one[0], one[0], 2 * one[0], one, none, none)
        rng, terms = Draws.seeded(0, [0]), np.ones((1, 3000, 1))
        drawn = found.draw(
            terms, np.zeros(3000), rng, pmm=False, low=low, high=high, normal=True
        )  # fmt: skip
        exact = stats.truncnorm((low - 1) / 2, (high - 1) / 2, loc=1, scale=2)
        assert stats.kstest(drawn[0], exact.cdf).pvalue > 0.001

    def test_pmm_takes_one_of_the_five_nearest_values(self):
        values = np.arange(20.0)[None]
        one = np.zeros((1, 1))
        found = NumericParameters(one, one + 1, one[0], one[0], one[0], one, values, values)
        rng, terms = Draws.seeded(0, [0]), np.full((1, 2000, 1), 7.1)
        drawn = found.draw(terms, np.zeros(2000), rng, pmm=True, low=-np.inf, high=np.inf)
        assert set(drawn[0]) == {5.0, 6.0, 7.0, 8.0, 9.0}

    @pytest.mark.parametrize("useful", [True, False])
    def test_a_learned_prediction_is_used_if_it_predicts_held_out_cells(self, useful):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(400, 1))
        signal = np.sin(3 * x[:, 0])
        noise = 0.3 * rng.normal(size=400)
        y, held_out = signal + noise, np.arange(400) % 5 == 0
        # outside the held-out cells the useless prediction has seen the noise
        learned = signal if useful else np.where(held_out, rng.normal(size=400), noise)
        found = fit_numeric(
            np.tile(x, (20, 1, 1)), y, learned, held_out, Draws.seeded(0, range(20)), n_flat=1,
            groups=np.ones((1, 0), dtype=bool), pmm=False,
        )  # fmt: skip
        assert bool(found.learned_coef.mean() > 0.8) is useful


def test_sequential_logits_draw_the_conditional_probabilities():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    odds = np.exp(np.column_stack([0 * x, x, -x]))
    share = odds / odds.sum(1, keepdims=True)
    codes = (share.cumsum(1) < rng.random((3000, 1))).sum(1)
    none = np.zeros(3000, dtype=bool)
    found = fit_levels(
        x[None, :, None], codes, None, none, Draws.seeded(0, [0]), n_levels=4, ordered=False
    )
    at = np.full((1, 20_000, 1), 0.8)
    drawn = found.draw(at, None, None, Draws.seeded(1, [0]))[0]
    expected = np.exp([0, 0.8, -0.8]) / np.exp([0, 0.8, -0.8]).sum()
    counts = np.bincount(drawn.astype(int), minlength=4) / 20_000
    np.testing.assert_allclose(counts[:3], expected, atol=0.04)
    # a level that was never observed is never drawn
    assert counts[3] == 0
    shifted = found.draw(at, None, np.tile([0, 5.0, 0, 0], (20_000, 1)), Draws.seeded(1, [0]))
    assert np.mean(shifted == 1) > 0.98


class TestChains:
    def test_a_draw_does_not_depend_on_how_many_there_are_or_on_blocks(self, monkeypatch):
        x, m = numbers()
        chains = fit(x, m)
        many = chains.draw(x, m, 7, seed=3)
        np.testing.assert_array_equal(chains.draw(x, m, 2, seed=3), many[:, :2])
        monkeypatch.setattr("psmvae.chained.chains.MAX_NUMBERS", 1)
        # the matrix products of NumPy 2.0 depend on the number of rows, by rounding
        tolerance = 0 if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else 1e-12
        np.testing.assert_allclose(chains.draw(x, m, 7, seed=3), many, rtol=0, atol=tolerance)

    def test_draws_within_bounds_do_not_depend_on_other_draws(self):
        """A cell outside its bounds is drawn again, and the cells of other draws are not.

        So tilts of some draws leave the others as they are.
        """
        x, m = numbers()
        bounds = [(-0.5, 0.5), OPEN, (-1.0, np.inf)]
        chains = Chains.fit(
            columns(3), np.where(m, x, 0), m, bounds=bounds, seed=1, settings=Settings(n_chains=4)
        )
        many = chains.draw(x, m, 7, seed=3)
        missing = np.repeat(~m[:, None], 7, 1)
        assert np.abs(many[..., 0][missing[..., 0]]).max() <= 0.5
        np.testing.assert_array_equal(chains.draw(x, m, 2, seed=3), many[:, :2])
        gamma = np.where(np.arange(8)[:, None] % 2, [-2.0, 2.0], 0.0)
        tilt = LogOdds(np.zeros(1), np.array([-0.3, 0.3]), gamma, np.zeros(8, dtype=bool))
        tilted = chains.draw(x, m, 7, seed=3, tilts={0: tilt})
        np.testing.assert_array_equal(tilted[:, ::2], many[:, ::2])
        rows = ~m[:, 0]
        assert tilted[rows, 1::2, 0].mean() > many[rows, 1::2, 0].mean() + 0.1

    def test_observed_cells_are_kept_and_associations_are_not_attenuated(self):
        x, m = numbers(n=400)
        drawn = fit(x, m).draw(np.where(m, x, 0), m, 10, seed=0)
        np.testing.assert_array_equal(drawn[m[:, 0], :, 0], np.repeat(x[m[:, 0], :1], 10, 1))
        slopes = [np.polyfit(drawn[:, k, 1], drawn[:, k, 0], 1)[0] for k in range(10)]
        assert np.abs(np.mean(slopes) - 0.7) < 0.12

    def test_values_stay_bounded_where_columns_are_squares_of_one_another(self):
        rng = np.random.default_rng(0)
        a = rng.normal(size=300)
        x = np.column_stack([a, a**2 + 0.1 * rng.normal(size=300), rng.normal(size=300)])
        m = rng.random(x.shape) > 0.3
        assert np.abs(fit(x, m).draw(np.where(m, x, 0), m, 5, seed=0)).max() < 30

    def test_a_column_without_missing_cells_in_the_fit_can_be_drawn(self):
        x, m = numbers()
        m[:, 2] = True
        chains = fit(x, m)
        m[:50, 2] = False
        assert np.isfinite(chains.draw(np.where(m, x, 0), m, 2, seed=0)).all()

    def test_a_shift_is_added_to_missing_cells(self):
        x, m = numbers()
        m[:, 1:] = True
        chains = fit(x, m)
        zero = Learned(np.zeros(len(x)))
        moved = Learned(np.zeros(len(x)), shift=np.full(len(x), 2.0))
        plain, shifted = (chains.draw(x, m, 2, 0, {0: one}) for one in (zero, moved))
        np.testing.assert_allclose((shifted - plain)[~m[:, 0], :, 0], 2.0)

    def test_large_tables_get_fewer_chains(self):
        assert settings_for(300, 4).n_chains == 20
        assert settings_for(10**6, 50).n_chains == 5


class TestBasis:
    def make(self):
        z = np.random.default_rng(0).normal(size=(200, 2))
        return z, Basis.make(z, z[:, 0], z.min(0), z.max(0), np.random.default_rng(0))

    def terms(self, basis, z):
        terms = np.full((*z.shape[:-1], basis.n_terms), np.nan)
        basis.write(z, terms)
        return terms

    def test_terms_are_squares_products_and_cosines(self):
        z, basis = self.make()
        products = np.column_stack([z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
        cosines = np.cos(z @ basis.frequency + basis.phase)
        found = self.terms(basis, z)
        np.testing.assert_allclose(found[:, :3], products, rtol=1e-12)
        np.testing.assert_allclose(found[:, 3:], cosines, atol=1e-5)

    def test_terms_are_bounded_outside_the_observed_range(self):
        z, basis = self.make()
        far = np.full((1, 2), 1e6)
        found = self.terms(basis, far)
        np.testing.assert_array_equal(found, self.terms(basis, np.clip(far, z.min(0), z.max(0))))

    def test_terms_of_a_row_do_not_depend_on_other_rows(self):
        z, basis = self.make()
        alone = [self.terms(basis, row[None])[0] for row in z]
        np.testing.assert_array_equal(self.terms(basis, z), alone)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_chains_do_not_depend_on_the_number_of_threads(n_threads, monkeypatch):
    x, m = numbers(n=120)
    # blocks of one chain
    monkeypatch.setattr("psmvae.chained.chains.MAX_BLOCK", 1)
    with threadpool_limits(2, "blas"):
        expected = fit(x, m, n_chains=4)
    with threadpool_limits(n_threads, "blas"):
        chains = fit(x, m, n_chains=4)
        drawn = chains.draw(x, m, 6, 3)
    np.testing.assert_array_equal(chains.trace_mean, expected.trace_mean)
    np.testing.assert_array_equal(drawn, expected.draw(x, m, 6, 3))


def test_draws_of_a_loaded_imputer_are_the_same(tmp_path):
    x, m = numbers(n=120)
    table = np.where(m, x, np.nan)
    imputer = PSMVAEImputer(max_epochs=5, random_state=0, device="cpu").fit(table)
    tables = imputer.sample(table, n=5)
    imputer.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").sample(table, n=5), tables)


def test_draws_of_one_parameter_set_warn_in_impute_multiple():
    x, m = numbers(n=60)
    table = np.where(m, x, np.nan)
    imputer = PSMVAEImputer(draws="model", max_epochs=2, random_state=0, device="cpu").fit(table)
    with pytest.warns(ImproperDrawsWarning, match="too narrow"):
        imputer.impute_multiple(table, m=2)


def test_draws_follow_a_curve_where_values_are_rarely_observed():
    """y is a sine of x1, and missing by x1 where the sine falls."""
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(300, 5))
        y = 2 * np.sin(1.5 * x[:, 0])
        table = np.column_stack([y + 0.5 * rng.normal(size=300), x])
        m = np.ones(table.shape, dtype=bool)
        m[:, 0] = rng.random(300) > 1 / (1 + np.exp(0.5 - 1.5 * x[:, 0]))
        drawn = fit(table, m).draw(np.where(m, table, 0), m, 10, 1)
        error = (drawn[:, :, 0].mean(1) - y)[~m[:, 0]]
        errors.append(np.sqrt(np.mean(error**2)))
    assert np.mean(errors) < 0.7
