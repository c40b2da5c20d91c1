"""The likelihood of masks, against closed forms, integrals and scikit-learn."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.linear_model import LogisticRegression

from psmvae.mechanism.odds import MAX_LOG_ODDS, Family, OddsFit, fit_odds, probability_missing

GRID = np.linspace(-8, 8, 641)
# p_obs(x | rest) is Normal with this standard deviation
SD = 0.7


def normal(mean, sd=SD):
    """Return the distribution ``(row, bin)`` of a Normal over a fine grid."""
    density = stats.norm.pdf(GRID, np.asarray(mean)[:, None], sd)
    return density / density.sum(1, keepdims=True)


def straight(precision=1e-8):
    return Family(
        "straight", np.column_stack([np.ones_like(GRID), GRID]), np.diag([precision, precision])
    )


def masks(log_odds, seed):
    return np.random.default_rng(seed).random(len(log_odds)) < special.expit(log_odds)


@pytest.fixture(scope="module")
def data():
    mean = np.random.default_rng(0).normal(size=1500)
    return mean, masks(-1 + 0.8 * mean, 1)


def test_a_straight_gamma_of_a_normal_is_a_logistic_regression_on_its_mean(data):
    mean, missing = data
    fit = fit_odds(normal(mean), missing, straight())
    # log E exp(a + b x) = a + b mean + b² sd² / 2
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(mean[:, None], missing)
    slope = reference.coef_[0, 0]
    assert fit.theta[1] == pytest.approx(slope, abs=0.005)
    constant = reference.intercept_[0] - 0.5 * (slope * SD) ** 2
    assert fit.theta[0] == pytest.approx(constant, abs=0.005)
    proba = reference.predict_proba(mean[:, None])[:, 1]
    np.testing.assert_allclose(probability_missing(fit, normal(mean)), proba, atol=2e-3)
    likelihood = np.log(np.where(missing, proba, 1 - proba)).sum()
    assert fit.log_likelihood == pytest.approx(likelihood, abs=2e-3)


def test_the_tilted_mean_of_a_normal_is_moved_by_slope_times_variance(data):
    mean, missing = data
    p_obs = normal(mean)
    fit = fit_odds(p_obs, missing, straight())
    tilted = p_obs * np.exp(fit.gamma)
    tilted /= tilted.sum(1, keepdims=True)
    np.testing.assert_allclose(tilted @ GRID, mean + fit.theta[1] * SD**2, atol=1e-6)


def test_the_covariance_is_that_of_the_logistic_regression(data):
    mean, missing = data
    fit = fit_odds(normal(mean), missing, straight())
    p = probability_missing(fit, normal(mean))
    # the slope of the log odds in (a, b) is (1, mean + b sd²)
    design = np.column_stack([np.ones_like(mean), mean + fit.theta[1] * SD**2])
    information = design.T @ (design * (p * (1 - p))[:, None])
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(information), rtol=1e-3)


@pytest.mark.parametrize("precision", [0.5, 10.0, 200.0])
def test_with_one_bin_the_others_are_a_penalised_logistic_regression(precision):
    rng = np.random.default_rng(2)
    others = rng.normal(size=(400, 3))
    missing = masks(others @ [1.0, -0.5, 0.0] - 1, 3)
    constant = Family("constant", np.ones((1, 1)), np.full((1, 1), 1e-10))
    fit = fit_odds(np.ones((400, 1)), missing, constant, others, precision)
    reference = LogisticRegression(C=1 / precision, tol=1e-10, max_iter=1000).fit(others, missing)
    np.testing.assert_allclose(fit.offset_coef, reference.coef_[0], atol=3e-3)
    assert fit.theta[0] == pytest.approx(reference.intercept_[0], abs=3e-3)
    found = probability_missing(fit, np.ones((400, 1)), others)
    np.testing.assert_allclose(found, reference.predict_proba(others)[:, 1], atol=1e-3)


def any_family(n_bins, n_parameters, seed):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n_bins), rng.normal(size=(n_bins, n_parameters - 1))])
    return Family("any", design, np.diag(rng.uniform(0.2, 2, n_parameters)))


def log_posterior(theta, p_obs, missing, family, others=None, precision=1.0):
    """Return the log-likelihood and log prior of all parameters, without its constant."""
    n = family.design.shape[1]
    log_odds = special.logsumexp(np.log(p_obs) + family.design @ theta[:n] + family.base, axis=1)
    if others is not None:
        log_odds = log_odds + others @ theta[n:]
    own = theta[:n] @ family.precision @ theta[:n] + precision * (theta[n:] ** 2).sum()
    return float((missing * log_odds - np.logaddexp(0, log_odds)).sum() - 0.5 * own)


def test_the_fit_is_the_mode_found_by_another_optimiser():
    rng = np.random.default_rng(4)
    p_obs, others = rng.dirichlet(np.ones(6), 300), rng.normal(size=(300, 2))
    family = any_family(6, 3, 5)
    missing = masks(np.log(p_obs @ np.exp(family.design @ [-1, 1, 0.5])) + others[:, 0], 6)
    fit = fit_odds(p_obs, missing, family, others, 2.0)

    def negative(theta):
        return -log_posterior(theta, p_obs, missing, family, others, 2.0)

    best = optimize.minimize(negative, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose([*fit.theta, *fit.offset_coef], best.x, atol=0.02)
    gradient = optimize.approx_fprime(np.array([*fit.theta, *fit.offset_coef]), negative, 1e-6)
    deviation = np.sqrt(np.diag(fit.covariance))
    assert np.abs(gradient[:3] * deviation).max() < 0.05


def test_the_covariance_is_near_the_inverse_of_the_numerical_hessian():
    # at the expected answer the Fisher information is the Hessian: many rows make them close
    rng = np.random.default_rng(7)
    p_obs = rng.dirichlet(np.ones(5), 20_000)
    family = any_family(5, 2, 8)
    missing = masks(np.log(p_obs @ np.exp(family.design @ [-1, 0.7])), 9)
    fit = fit_odds(p_obs, missing, family)
    steps = 1e-3 * np.eye(2)
    hessian = np.empty((2, 2))
    for i in range(2):
        for j in range(2):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            hessian[i, j] = sum(
                a * b * log_posterior(fit.theta + a * steps[i] + b * steps[j], p_obs, missing,
                                      family)
                for a, b in signs
            ) / (4 * 1e-6)  # fmt: skip
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(-hessian), rtol=0.1)


@pytest.mark.parametrize("n_parameters", [1, 2])
def test_the_evidence_is_the_integral_over_the_parameters(n_parameters):
    rng = np.random.default_rng(10)
    p_obs = rng.dirichlet(np.ones(4), 600)
    family = any_family(4, n_parameters, 11)
    missing = masks(np.full(600, -0.7), 12)
    fit = fit_odds(p_obs, missing, family)
    peak = log_posterior(fit.theta, p_obs, missing, family)
    prior = 0.5 * np.linalg.slogdet(family.precision / (2 * np.pi))[1]
    # the sum over a grid is the integral of a smooth density
    steps = 0.3 * np.sqrt(np.diag(fit.covariance))
    points = product(np.arange(-20, 21), repeat=n_parameters)
    logs = [log_posterior(fit.theta + steps * at, p_obs, missing, family) - peak for at in points]
    mass = np.exp(logs).sum() * steps.prod()
    assert fit.evidence == pytest.approx(peak + prior + np.log(mass), abs=0.05)


def test_gamma_of_the_fit_is_limited_around_its_median():
    family = Family("straight", np.column_stack([np.ones(5), np.arange(5.0)]), np.eye(2))
    fit = OddsFit(family, np.array([1.0, 50.0]), np.eye(2), 0.0, 0.0, np.zeros(0))
    np.testing.assert_array_equal(fit.gamma, 101 + MAX_LOG_ODDS * np.array([-1, -1, 0, 1, 1]))
    drawn = fit.gamma_of(np.array([[0.0, 1.0], [0.0, -50.0]]))
    np.testing.assert_array_equal(drawn[0], np.arange(5.0))
    assert drawn[1, 0] - drawn[1, -1] == 2 * MAX_LOG_ODDS


def test_separated_masks_give_finite_numbers():
    p_obs = np.repeat(np.eye(2), 50, axis=0) * 0.99 + 0.005
    missing = np.repeat([False, True], 50)
    family = Family("levels", np.eye(2), 0.1 * np.eye(2))
    fit = fit_odds(p_obs, missing, family)
    assert np.isfinite(fit.theta).all()
    assert np.isfinite(fit.evidence)
    assert fit.gamma[1] > fit.gamma[0] + 3
    all_missing = fit_odds(p_obs, np.ones(100, dtype=bool), family)
    assert (probability_missing(all_missing, p_obs) > 0.9).all()


def test_a_base_is_added_to_gamma_and_a_start_does_not_change_the_answer():
    rng = np.random.default_rng(13)
    p_obs = rng.dirichlet(np.ones(4), 300)
    plain = any_family(4, 2, 14)
    missing = masks(np.log(p_obs @ np.exp(plain.design @ [-1, 1.0])), 15)
    fit = fit_odds(p_obs, missing, plain)
    far = fit_odds(p_obs, missing, plain, start=np.array([3.0, -4.0]))
    np.testing.assert_allclose(far.theta, fit.theta, atol=0.05)
    # a base in the span of a flat prior moves the parameters by as much
    flat = Family("flat", plain.design, 1e-8 * np.eye(2))
    based = Family("based", plain.design, 1e-8 * np.eye(2), plain.design @ [0.3, -0.2])
    moved = fit_odds(p_obs, missing, flat).theta - fit_odds(p_obs, missing, based).theta
    np.testing.assert_allclose(moved, [0.3, -0.2], atol=0.02)


def test_a_weight_is_a_number_of_rows(data):
    missing, group = data[1][:60], np.arange(60) % 4
    known = np.eye(4)[group]
    family = Family("levels", np.eye(4), np.eye(4))
    others = (group == 3)[:, None].astype(float)
    each = fit_odds(known, missing, family, others)
    weight = np.bincount(group).astype(float)
    share = np.bincount(group, missing) / weight
    joined = fit_odds(np.eye(4), share, family, others[:4], weight=weight)
    for name in ("theta", "covariance", "log_likelihood", "evidence", "offset_coef"):
        np.testing.assert_allclose(getattr(joined, name), getattr(each, name), atol=1e-6)
