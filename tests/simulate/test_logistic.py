"""MAR, logistic self-masking and label-dependent patterns: rates, slopes and sets."""

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from psmvae.simulate import label_patterns, mar, mnar_self
from psmvae.simulate.table import calibrated

N = 20_000


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(N, 4))


def close(share: float, rate: float, n: int) -> bool:
    """Within four standard errors of a binomial share, an upper bound here."""
    return abs(share - rate) <= 4 * np.sqrt(rate * (1 - rate) / n)


def mean_probability(b: float, slope: float) -> float:
    """The mean of sigmoid(b + slope · x) over a standard normal x."""

    def density(x: float) -> float:
        return special.expit(b + slope * x) * stats.norm.pdf(x)

    return integrate.quad(density, -12, 12, points=[0.0], limit=200)[0]


def fitted(x: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Intercept and slope of a logistic regression, by maximum likelihood."""

    def loss(beta: np.ndarray) -> float:
        eta = beta[0] + beta[1] * x
        return float(np.mean(np.logaddexp(0, eta) - gone * eta))

    return optimize.minimize(loss, np.zeros(2)).x


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("slope", [-8.0, 0.5, 3.0])
def test_calibrated_intercept_agrees_with_numerical_integration(rate, slope):
    # quantiles of the standard normal
    x = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    found = calibrated(slope * x, rate)
    assert found.mean() == pytest.approx(rate, abs=1e-9)
    b = optimize.brentq(lambda b: mean_probability(b, slope) - rate, -40, 40)
    assert special.logit(found[100_000]) == pytest.approx(b + slope * x[100_000], abs=1e-3)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_0_and_1_remove_nothing_and_everything(rate, values):
    rng = np.random.default_rng(0)
    assert (mnar_self(values, rate, rng).m == (rate == 0)).all()
    assert (mar(values, rate, rng, given=[0]).m[:, 1:] == (rate == 0)).all()
    values[:, 0] = values[:, 0] > 0
    assert (label_patterns(values, rate, rng, label=0).m[:, 1:] == (rate == 0)).all()


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("slope", [-1.5, 2.5])
def test_self_masking_has_the_given_rate_and_slope_in_each_column(values, rate, slope):
    # location and scale have no effect
    simulated = mnar_self(100 + 7 * values, rate, np.random.default_rng(1), slope=slope)
    assert simulated.columns == (0, 1, 2, 3)
    for j in range(4):
        gone = ~simulated.m[:, j]
        assert close(gone.mean(), rate, N)
        _, found = fitted(stats.zscore(values[:, j]), gone)
        assert found == pytest.approx(slope, rel=0.15)


@pytest.mark.parametrize("slope", [-2.0, 2.0])
def test_sets_of_self_masking_are_the_sides_of_the_mean(values, slope):
    one = mnar_self(values, 0.3, np.random.default_rng(1), columns=[2], slope=slope)
    side = slope * (values[:, 2] - values[:, 2].mean()) > 0
    assert np.array_equal(one.sets, side)
    assert (~one.m[side, 2]).mean() > 2 * (~one.m[~side, 2]).mean()
    assert np.delete(one.m, 2, axis=1).all()
    two = mnar_self(values, 0.3, np.random.default_rng(1), columns=[0, 2], slope=slope)
    other = slope * (values[:, 0] - values[:, 0].mean()) > 0
    assert np.array_equal(two.sets, 2 * other + side)


def test_rate_is_a_share_of_the_observed_cells(values):
    values[np.random.default_rng(2).random(values.shape) < 0.5] = np.nan
    values[:, 0] = np.arange(N)
    for simulated in (
        mnar_self(values, 0.3, np.random.default_rng(1)),
        mar(values, 0.3, np.random.default_rng(1), given=[0]),
    ):
        observed = ~np.isnan(values[:, 1])
        assert close((~simulated.m[observed, 1]).mean(), 0.3, int(observed.sum()))
        assert not simulated.m[~observed, 1].any()


def test_levels_are_self_masked_by_their_order():
    # with three levels, the mean probability is a sum
    codes = np.repeat([0.0, 1.0, 2.0], [2 * N, N, N]).reshape(-1, 1)
    simulated = mnar_self(codes, 0.25, np.random.default_rng(0), slope=1.0)
    z = (np.arange(3) - 0.75) / np.sqrt(0.5 * 0.75**2 + 0.25 * (0.25**2 + 1.25**2))
    shares = np.array([0.5, 0.25, 0.25])
    b = optimize.brentq(lambda b: shares @ special.expit(b + z) - 0.25, -20, 20)
    lost = [(~simulated.m[codes[:, 0] == k, 0]).mean() for k in range(3)]
    assert np.allclose(lost, special.expit(b + z), atol=0.015)


@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("slope", [-1.0, 3.0])
def test_mar_depends_on_the_given_column_only(values, rate, slope):
    simulated = mar(values, rate, np.random.default_rng(1), given=[3], columns=[0, 1], slope=slope)
    assert simulated.columns == ()
    assert simulated.m[:, 2:].all()
    for j in (0, 1):
        gone = ~simulated.m[:, j]
        assert close(gone.mean(), rate, N)
        _, found = fitted(stats.zscore(values[:, 3]), gone)
        assert found == pytest.approx(slope, rel=0.15)
        # the columns are independent: missing and observed cells have the same distribution
        assert stats.ks_2samp(values[gone, j], values[~gone, j]).pvalue > 1e-4
    assert np.array_equal(simulated.sets, slope * (values[:, 3] - values[:, 3].mean()) > 0)


def test_mar_draws_predictors_among_fully_observed_columns_that_vary(values):
    values[0, 0] = np.nan
    values[:, 1] = 5.0
    for seed in range(5):
        simulated = mar(values, 0.4, np.random.default_rng(seed))
        kept = simulated.m.all(axis=0)
        assert kept[[2, 3]].sum() == 1
        assert not kept[[0, 1]].any()
    # columns that get missing cells are not predictors
    simulated = mar(values, 0.4, np.random.default_rng(0), columns=[2])
    assert simulated.m[:, [1, 3]].all()
    assert close((~simulated.m[:, 2]).mean(), 0.4, N)


def test_labels_have_different_rates_and_columns_meet_the_rate(values):
    label = np.random.default_rng(3).choice([3.0, 5.0, 11.0], N, p=[0.6, 0.3, 0.1])
    table = np.column_stack([values, label])
    simulated = label_patterns(table, 0.3, np.random.default_rng(0), label="x4", spread=1.5)
    assert np.array_equal(simulated.sets, np.searchsorted([3.0, 5.0, 11.0], label))
    assert simulated.m[:, 4].all()
    lost = np.array([(~simulated.m[label == v, :4]).mean(axis=0) for v in (3.0, 5.0, 11.0)])
    assert all(close((~simulated.m[:, j]).mean(), 0.3, N) for j in range(4))
    # no two labels have similar rates
    assert min(np.abs(lost[a] - lost[b]).max() for a, b in ((0, 1), (0, 2), (1, 2))) > 0.1
    # within a label, missingness is independent of the values
    gone = ~simulated.m[label == 3.0, 0]
    assert (
        stats.ks_2samp(values[label == 3.0, 0][gone], values[label == 3.0, 0][~gone]).pvalue > 1e-4
    )


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (mnar_self, {"slope": 0.0}, "slope must be a number other than 0"),
        (mnar_self, {"slope": float("nan")}, "slope must be"),
        (mnar_self, {"slope": 1e17}, "too steep"),
        (mnar_self, {"slope": 1.7e308}, "too steep"),
        (mnar_self, {"columns": [3]}, "'x3' does not vary"),
        (mnar_self, {"columns": [2]}, "'x2' contains infinity"),
        (mnar_self, {"columns": []}, "at least one column"),
        (mnar_self, {"columns": [0, 0]}, "none twice"),
        (mnar_self, {"columns": "height"}, "columns: no column 'height'"),
        (mnar_self, {"columns": [4]}, "columns: no column 4"),
        (mar, {"given": [1]}, "'x1' must be fully observed: 1 cells"),
        (mar, {"given": [3]}, "'x3' does not vary"),
        (mar, {"given": [0], "columns": [0, 1]}, "given and cannot get missing cells as well"),
        (mar, {"columns": [0, 2]}, "no column can be a predictor"),
        (mar, {"given": [0], "slope": 0.0}, "slope must be"),
        (label_patterns, {"label": 1}, "the label 'x1' must be fully observed"),
        (label_patterns, {"label": 3}, "the label 'x3' does not vary"),
        (label_patterns, {"label": 0, "columns": [0, 1]}, "the label 'x0' stays"),
        (label_patterns, {"label": 0, "spread": 0.0}, "spread must be"),
    ],
)
def test_invalid_parameters_are_refused(mechanism, options, message):
    values = np.random.default_rng(0).normal(size=(50, 4))
    values[0, 1], values[0, 2], values[:, 3] = np.nan, np.inf, 1.0
    options = {"columns": [0]} | options if mechanism is mnar_self else options
    with pytest.raises(ValueError, match=message):
        mechanism(values, 0.313, np.random.default_rng(0), **options)


def test_table_without_a_usable_column_is_refused():
    with pytest.raises(ValueError, match="no column varies"):
        mnar_self(np.ones((5, 2)), 0.3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no column is left"):
        mar(np.arange(5.0).reshape(-1, 1), 0.3, np.random.default_rng(0), given=[0])
