"""Candidates for γ and their weights."""

import numpy as np
import pytest
from scipy import special, stats

from psmvae.mechanism.bins import Bins
from psmvae.mechanism.families import (
    candidates,
    fit_collapsed,
    fit_families,
    refit_straight,
)
from psmvae.mechanism.observed import Observed
from psmvae.mechanism.odds import Family, fit_odds
from psmvae.mechanism.question import Slope

SD = 0.5


def simulate(gamma, n=1200, seed=0):
    """Return p_obs, masks and bins where the odds of going missing are exp γ of the value."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n)
    bins = Bins.of(np.sort(mean + SD * rng.normal(size=n)))
    edges = np.concatenate([[-np.inf], bins.edges, [np.inf]])
    p_obs = np.diff(stats.norm.cdf(edges, mean[:, None], SD), axis=1)
    odds = p_obs @ np.exp(gamma(bins.value))
    return p_obs, rng.random(n) < odds / (1 + odds), bins


def step(x):
    return np.where(x > 0.5, 0.7, -2.5)


def tails(x):
    return np.where(np.abs(x) > 1, 0.7, -3.0)


def line(x):
    return -1.5 + 1.2 * x


@pytest.fixture(scope="module")
def of_line():
    return simulate(line, n=1000)


@pytest.fixture(scope="module")
def of_tails():
    return simulate(tails, n=800, seed=1)


def test_a_step_is_found_where_it_is():
    p_obs, missing, bins = simulate(step, seed=2)
    posterior = fit_families(p_obs, missing, bins)
    assert posterior.weight.sum() == pytest.approx(1)
    # a region that ends in the last bin but one is nearly a step
    assert posterior.best.family.name in ("ceiling", "region")
    gamma = posterior.weight @ posterior.gamma
    rise = bins.value[np.abs(np.diff(gamma)).argmax()]
    assert rise == pytest.approx(0.5, abs=0.3)
    assert np.median(gamma[bins.value > 1]) == pytest.approx(0.7, abs=0.7)
    assert np.median(gamma[bins.value < 0]) == pytest.approx(-2.5, abs=0.7)


def test_a_line_is_found_with_its_slope(of_line):
    p_obs, missing, bins = of_line
    posterior = fit_families(p_obs, missing, bins, "straight")
    assert {fit.family.name for fit in posterior.fits} == {"straight"}
    slope, constant = np.polyfit(bins.value, posterior.best.gamma, 1)
    assert slope == pytest.approx(1.2, abs=0.25)
    assert constant == pytest.approx(-1.5, abs=0.3)


def test_tails_are_a_region_or_smooth(of_tails):
    p_obs, missing, bins = of_tails
    posterior = fit_families(p_obs, missing, bins)
    assert {fit.family.name for fit in posterior.fits} <= {"region", "smooth"}
    gamma = posterior.weight @ posterior.gamma
    middle = np.abs(bins.value) < 0.7
    for tail in (bins.value > 1.3, bins.value < -1.3):
        assert gamma[tail].mean() > gamma[middle].mean() + 1.5


@pytest.mark.parametrize("seed", range(4))
def test_the_constant_wins_where_masks_are_completely_at_random(seed):
    p_obs, missing, bins = simulate(lambda x: np.full_like(x, -0.8), seed=10 + seed)
    posterior = fit_families(p_obs, missing, bins)
    assert posterior.best.family.name == "constant"
    assert posterior.best.gamma[0] == pytest.approx(special.logit(missing.mean()), abs=0.02)


def test_each_shape_has_its_candidates(of_line):
    bins = of_line[2]

    def names(shape, **options):
        return {
            f.name
            for f, _ in candidates(bins, shape, **({"ordered": True, "slope": None} | options))
        }

    assert names("auto") == {"constant", "straight", "ceiling", "region", "smooth"}
    assert names("straight") == {"constant", "straight"}
    assert names("ceiling") == {"constant", "ceiling"}
    assert names("smooth") == {"constant", "smooth"}
    assert names("auto", ordered=False) == {"constant", "levels"}
    assert names("auto", slope=Slope(1.0, 0.0)) == {"straight"}
    total = sum(prior for _, prior in candidates(bins, "auto", ordered=True, slope=None))
    assert total == pytest.approx(1)


@pytest.mark.parametrize(("sign", "direction"), [("high", 1), ("low", -1)])
@pytest.mark.parametrize("shape", ["auto", "smooth"])
def test_a_sign_makes_gamma_monotone(of_tails, sign, direction, shape):
    p_obs, missing, bins = of_tails
    posterior = fit_families(p_obs, missing, bins, shape, sign=sign)
    assert (direction * np.diff(posterior.gamma, axis=1) >= -1e-9).all()
    drawn, _ = posterior.draw(50, np.random.default_rng(0))
    assert (direction * np.diff(drawn, axis=1) >= -1e-9).all()


def test_the_wrong_sign_leaves_the_constant(of_line):
    p_obs, missing, bins = of_line
    posterior = fit_families(p_obs, missing, bins, sign="low")
    assert np.ptp(posterior.weight @ posterior.gamma) < 0.1


@pytest.mark.parametrize("sign", ["high", "low"])
def test_a_sign_applies_to_two_values(sign):
    rng = np.random.default_rng(3)
    share = rng.beta(1, 1, 800)
    p_obs = np.column_stack([1 - share, share])
    odds = p_obs @ np.exp([-2.0, 0.5])
    missing = rng.random(800) < odds / (1 + odds)
    bins = Bins.of(np.repeat([0.0, 1.0], 20))
    free = fit_families(p_obs, missing, bins)
    posterior = fit_families(p_obs, missing, bins, sign=sign)
    if sign == "high":
        np.testing.assert_allclose(posterior.best.gamma, free.best.gamma, atol=0.02)
        assert posterior.best.gamma == pytest.approx([-2.0, 0.5], abs=0.5)
    else:
        assert np.ptp(posterior.best.gamma) == 0


def test_a_given_slope_is_kept(of_line):
    p_obs, missing, bins = of_line
    posterior = fit_families(p_obs, missing, bins, slope=Slope(0.4, 0.0))
    np.testing.assert_allclose(np.polyfit(bins.value, posterior.best.gamma, 1)[0], 0.4)
    drawn, is_straight = posterior.draw(20, np.random.default_rng(0))
    assert is_straight.all()
    np.testing.assert_allclose(
        np.diff(drawn, axis=1), 0.4 * np.diff(bins.value)[None].repeat(20, 0)
    )


def test_a_prior_of_the_slope_gives_a_slope_between_prior_and_data(of_line):
    p_obs, missing, bins = of_line

    def slope(sd):
        best = fit_families(p_obs, missing, bins, slope=Slope(0.2, sd)).best
        return np.polyfit(bins.value, best.gamma, 1)[0]

    free = slope(100.0)
    assert free == pytest.approx(1.2, abs=0.25)
    assert slope(1e-3) == pytest.approx(0.2, abs=0.01)
    # the mean of two Normal estimates, weighted by their precision
    variance = fit_families(p_obs, missing, bins, slope=Slope(0.2, 100.0)).best.covariance[1, 1]
    expected = (free / variance + 0.2 / 0.1**2) / (1 / variance + 1 / 0.1**2)
    assert slope(0.1) == pytest.approx(expected, abs=0.06)


def test_draws_have_mean_and_covariance_of_the_fit(of_line):
    p_obs, missing, bins = of_line
    posterior = fit_families(p_obs, missing, bins, "straight")
    drawn, _ = posterior.draw(4000, np.random.default_rng(1))
    slopes = np.polyfit(bins.value, drawn.T, 1)[0]
    fit = posterior.best
    design = np.polyfit(bins.value, fit.family.design, 1)[0]
    assert slopes.mean() == pytest.approx(design @ fit.theta, abs=0.01)
    assert slopes.std() == pytest.approx(np.sqrt(design @ fit.covariance @ design), rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_draws_do_not_depend_on_rounding(seed):
    p_obs, missing, bins = simulate(tails, n=400, seed=seed)
    forward = fit_families(p_obs, missing, bins, "smooth")
    # sums of the same rows in another order
    backward = fit_families(p_obs[::-1], missing[::-1], bins, "smooth")
    drawn = [each.draw(20, np.random.default_rng(3))[0] for each in (forward, backward)]
    np.testing.assert_allclose(*drawn, atol=1e-4)


def test_candidates_are_drawn_by_their_weights(of_tails):
    p_obs, missing, bins = of_tails
    posterior = fit_families(p_obs, missing, bins, "straight")
    drawn, is_straight = posterior.draw(100, np.random.default_rng(2))
    of_straight = sum(
        w for w, fit in zip(posterior.weight, posterior.fits, strict=True)
        if fit.family.name == "straight"
    )  # fmt: skip
    assert is_straight.mean() == pytest.approx(of_straight, abs=0.011)
    constant = np.ptp(drawn, axis=1) < 1e-12
    np.testing.assert_array_equal(constant, ~is_straight)


def test_joining_bins_gives_the_same_fit(of_line):
    p_obs, missing, bins = of_line
    design = np.column_stack([np.ones(len(bins)), bins.value > 0.3])
    family = Family("ceiling", design, np.diag([0.04, 0.1]))
    joined, all_bins = (f(p_obs, missing, family, None) for f in (fit_collapsed, fit_odds))
    np.testing.assert_allclose(joined.theta, all_bins.theta, atol=1e-6)
    assert joined.evidence == pytest.approx(all_bins.evidence, abs=1e-6)
    np.testing.assert_allclose(joined.gamma, all_bins.gamma, atol=1e-6)


def test_levels_have_odds_of_their_own():
    rng = np.random.default_rng(4)
    p_obs = rng.dirichlet(np.full(4, 0.3), 2000)
    gamma = np.array([-2.0, 0.5, -2.0, -0.5])
    odds = p_obs @ np.exp(gamma)
    missing = rng.random(2000) < odds / (1 + odds)
    bins = Bins.of_levels(p_obs.argmax(1).astype(float), 4)
    # a sign has no meaning for levels without an order
    for sign in (None, "high"):
        posterior = fit_families(p_obs, missing, bins, ordered=False, sign=sign)
        assert posterior.best.family.name == "levels"
        np.testing.assert_allclose(np.exp(posterior.best.gamma), np.exp(gamma), atol=0.25)


def test_others_take_up_what_is_at_random():
    p_obs, _, bins = simulate(line, seed=5)
    rng = np.random.default_rng(6)
    others = rng.normal(size=(len(p_obs), 2))
    log_odds = np.log(p_obs @ np.exp(line(bins.value))) + 1.5 * others[:, 0]
    missing = rng.random(len(p_obs)) < special.expit(log_odds)
    best = fit_families(p_obs, missing, bins, "straight", others=others).best
    assert np.polyfit(bins.value, best.gamma, 1)[0] == pytest.approx(1.2, abs=0.35)
    np.testing.assert_allclose(best.offset_coef, [1.5, 0], atol=0.25)


def test_straight_log_odds_are_a_logistic_regression_on_the_prediction():
    # with x = f + r and r independent of f, E exp(a + b x) is exp(a + b f) times a constant
    rng = np.random.default_rng(5)
    prediction, noise = 1.2 * rng.normal(size=4000), rng.normal(size=4000)
    values = prediction + noise
    missing = rng.random(4000) < special.expit(prediction - 1)
    bins = Bins.of(values[~missing])
    observed, p_obs = Observed.fit(
        bins, prediction[:, None], prediction, values[~missing], ~missing, forest=False, seed=0
    )
    posterior = fit_families(p_obs, missing, bins, slope=Slope(0.0, 10.0))
    spread = observed.spread(p_obs, prediction)
    refitted = refit_straight(posterior, missing, bins, *spread)
    design, theta = np.column_stack([np.ones(4000), prediction]), np.zeros(2)
    for _ in range(20):
        p = special.expit(design @ theta)
        information = (design * (p * (1 - p))[:, None]).T @ design
        theta = theta + np.linalg.solve(information, design.T @ (missing - p))
    assert refitted.best.theta[1] == pytest.approx(theta[1], rel=0.015)
    assert posterior.best.theta[1] > 1.03 * theta[1]


def test_slopes_of_refitted_odds_keep_their_prior():
    p_obs, missing, bins = simulate(line)
    posterior = fit_families(p_obs, missing, bins, slope=Slope(0.4, 1e-4))
    values = np.tile(bins.value, (len(p_obs), 1))
    refitted = refit_straight(posterior, missing, bins, values, p_obs)
    np.testing.assert_allclose(refitted.gamma, posterior.gamma, atol=1e-3)
    given = fit_families(p_obs, missing, bins, slope=Slope(0.4, 0.0))
    assert refit_straight(given, missing, bins, values, p_obs).fits == given.fits
