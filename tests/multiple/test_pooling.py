"""Rubin's rules against R's mice and mitml, and against their closed forms."""

import contextlib
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from psmvae.multiple import Analyses, Estimates, MissingInformationWarning, read_estimates
from psmvae.multiple.rubin import degrees_of_freedom, li_df, pool_scalars, reiter_df

# written by benchmarks/r_pool.R
R = json.loads((Path(__file__).parent / "r_pool.json").read_text())
MODELS = ["lm", "glm", "coxph"]


def fits_of(model: str) -> Analyses:
    r = R[model]
    freedom = r["pooled"]["dfcom"][0]
    results = []
    for estimate, covariance in zip(r["estimates"], r["covariances"], strict=True):
        matrix = np.array(covariance, dtype=float)
        values = np.array(estimate, dtype=float)
        results.append(Estimates(tuple(r["terms"]), values, matrix.diagonal(), matrix, freedom))
    return Analyses(results)


@pytest.mark.parametrize("model", MODELS)
def test_pooled_values_equal_those_of_r(model):
    with contextlib.nullcontext() if model != "lm" else pytest.warns(MissingInformationWarning):
        summary = fits_of(model).pool().summary()
    for name, expected in R[model]["pooled"].items():
        np.testing.assert_allclose(summary[name], expected, rtol=1e-8)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["D1", "D1_dfcom", "D2"])
def test_multivariate_tests_equal_those_of_r(model, method):
    r = R[model]
    hypothesis = ", ".join(f"{term} = 0" for term in r["terms"][1:])
    dfcom = r["pooled"]["dfcom"][0] if method == "D1_dfcom" else np.inf
    found = fits_of(model).test(hypothesis, method=method[:2], dfcom=dfcom)
    expected = dict(r[method])
    if model == "glm" and method == "D1_dfcom":
        # mitml divides by k (m - 1) - 4 = 0; R's pool() has the degrees of freedom of one term
        expected["df2"] = r["pooled"]["df"][1]
        expected["P(>F)"] = stats.f.sf(expected["F.value"], 1, expected["df2"])
    np.testing.assert_allclose(list(found), list(expected.values()), rtol=1e-8)


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("dfcom", [4.0, 20.0, 200.0])
def test_d1_of_one_term_and_few_imputations_is_the_pooled_t_test(m, dfcom):
    estimates = np.array([1.0, 1.05, 0.95, 1.02, 0.9])[:m]
    one = [Estimates(("a",), np.array([q]), np.array([0.2]), np.array([[0.2]])) for q in estimates]
    fits = Analyses(one)
    row, found = fits.pool(dfcom=dfcom).summary().iloc[0], fits.test("a = 0", dfcom=dfcom)
    assert found.df2 == pytest.approx(row["df"])
    assert found.p_value == pytest.approx(row["p_value"])
    assert found.statistic == pytest.approx(row["statistic"] ** 2)


@pytest.mark.parametrize("method", ["D1", "D2"])
def test_tests_without_between_variance_are_chi_squared_tests(method):
    same = [Estimates(("a", "b"), np.ones(2), np.full(2, 0.2), 0.2 * np.eye(2))] * 5
    found = Analyses(same).test("a = 0, b = 0", method=method)
    assert (found.statistic, found.df1, found.df2) == (pytest.approx(5.0), 2, np.inf)
    assert found.p_value == pytest.approx(stats.chi2.sf(10, 2))


@pytest.mark.parametrize("model", MODELS)
def test_pooled_covariances(model):
    r, fits = R[model], fits_of(model)
    pooled = fits._pool("barnard-rubin", None, "identity")
    for name in ("ubar", "b", "t"):
        matrix = getattr(pooled.covariance, name)
        np.testing.assert_allclose(matrix.diagonal(), r["pooled"][name], rtol=1e-8)
    estimates, covariances = np.array(r["estimates"]), np.array(r["covariances"])
    t = covariances.mean(0) + 1.2 * np.cov(estimates.T).reshape(covariances[0].shape)
    np.testing.assert_allclose(pooled.cov_params(), t)


def test_covariances_on_a_transformed_scale():
    u, values = np.array([[0.2, 0.1], [0.1, 0.3]]), ([1, 2], [1.1, 2.2])
    fits = Analyses([Estimates(("a", "b"), np.array(q), u.diagonal(), u) for q in values])
    pooled = fits.pool(scale="log")
    within = [u / np.outer(q, q) for q in values]
    np.testing.assert_allclose(pooled.covariance.ubar, np.mean(within, 0))
    np.testing.assert_allclose(pooled.covariance.b, np.full((2, 2), np.log(1.1) ** 2 / 2))
    np.testing.assert_allclose(pooled.cov_params().diagonal(), pooled.pooled.t)


TERMS = (
    "I(b ** 2)",
    "b:c",
    "C(g, Treatment('x y'))[T.1:2]:b:c",
    "Q('a b')",
    "Q('ab')",
    "bs(x, df=4)[0]",
)


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("I(b**2)", "I(b ** 2)"),
        ("c:b", "b:c"),
        (" c : b ", "b:c"),
        ("b:c:C(g,Treatment('x y'))[T.1:2]", "C(g, Treatment('x y'))[T.1:2]:b:c"),
        ("Q('ab')", "Q('ab')"),
        ("Q('a b')", "Q('a b')"),
        ("bs(x,df=4)[0]", "bs(x, df=4)[0]"),
    ],
)
def test_terms_of_a_hypothesis_are_known_by_other_spellings(written, term):
    rng = np.random.default_rng(0)
    k = len(TERMS)
    fits = Analyses([Estimates(TERMS, rng.normal(size=k), np.ones(k), np.eye(k)) for _ in range(6)])
    expected = fits.test(f"{term} = 0.5")
    assert fits.test(f"{written} == .5") == fits.test(f"{written}=0.5") == expected
    others = [fits.test(f"{other} = 0.5") for other in TERMS if other != term]
    assert all(other != expected for other in others)


def test_degrees_of_freedom_without_between_variance_are_those_of_complete_data():
    # Barnard and Rubin (1999): lambda = 0 leaves (v + 1) / (v + 3) v
    assert degrees_of_freedom(5, np.array([0.0]), 20.0)[0] == pytest.approx(21 / 23 * 20)
    assert np.isinf(degrees_of_freedom(5, np.array([0.0]))[0])
    assert degrees_of_freedom(5, np.array([0.5]), df="rubin")[0] == pytest.approx(4 / 0.25)


def test_estimates_without_within_variance_have_the_degrees_of_freedom_of_their_spread():
    """The mean of m values has a t distribution with m - 1 degrees of freedom."""
    assert degrees_of_freedom(5, np.array([1.0]))[0] == 4
    values = [1.0, 2.0, 4.0, 5.0]
    with pytest.warns(MissingInformationWarning):
        row = Analyses([{"a": (value, 0.0)} for value in values]).pool().summary().iloc[0]
    error = np.sqrt((1 + 1 / 4) * np.var(values, ddof=1))
    assert (row["df"], row["lambda"], row["fmi"]) == (3, 1, 1)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(3 / error, 3))
    assert row["conf_high"] == pytest.approx(3 + stats.t.ppf(0.975, 3) * error)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("m", [2, 3, 6, 20, 100])
@pytest.mark.parametrize("riv", [1e-9, 0.1, 1.0, 20.0])
def test_degrees_of_freedom_of_d1_with_few_of_complete_data(k, m, riv):
    """Reiter's are above 4 where t > 4 and c2 > 0; otherwise both sources are combined."""
    t = k * (m - 1)
    a = riv * t / (t - 2) if t > 4 else riv
    for dfcom in (1.0, 3.0, 5.0, 10.0, 40.0, 200.0):
        v = dfcom * (dfcom + 1) / (dfcom + 3)
        found = reiter_df(k, m, riv, dfcom)
        if t > 4 and v > 4 * (1 + a):
            assert found > 4
        else:
            assert 1 / found == pytest.approx(1 / li_df(k, m, riv) + (1 + a) / v)
            assert 0 < found < min(v, li_df(k, m, riv))
            assert found <= 4 or t <= 4
    # without missing data those of complete data are left, on both sides of the boundary
    for dfcom in (2.0, 50.0):
        whole = dfcom * (dfcom + 1) / (dfcom + 3)
        assert reiter_df(k, m, 0.0, dfcom) == pytest.approx(whole)


def test_unknown_degrees_of_freedom_of_a_term():
    frame = pd.DataFrame({"term": ["a", "b"], "estimate": [1.0, 2.0], "variance": [1.0, 1.0]})
    for df, expected in (([np.nan, 7.0], 7.0), ([9, 7], 7.0), ([np.nan, np.nan], None)):
        assert read_estimates(frame.assign(df=df)).dfcom == expected
    null = pl.DataFrame({"estimate": [1.0], "variance": [1.0]}).with_columns(df=pl.lit(None))
    assert read_estimates(null).dfcom is None
    nullable = frame.assign(df=pd.array([None, 7.0], dtype="Float64"))
    assert read_estimates(nullable).dfcom == 7
    fits = Analyses([frame.assign(df=[np.nan, 7.0], estimate=[q, q]) for q in (1.0, 1.2, 1.5)])
    assert np.isfinite(fits.pool().summary()[["df", "p_value", "conf_low"]].to_numpy()).all()


def test_terms_estimates_and_variances_of_different_length():
    message = "got 2 terms, 3 estimates and 3 variances"
    with pytest.raises(ValueError, match=message):
        Estimates(("a", "b"), np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match="2 terms, 2 estimates and 1 variances"):
        read_estimates({"estimate": [1.0, 2.0], "variance": [1.0]})


def test_estimates_without_any_variance_pool_to_themselves():
    pooled = pool_scalars(np.ones((3, 1)), np.zeros((3, 1)), 10.0)
    assert (pooled.estimate[0], pooled.t[0], pooled.lambda_[0]) == (1.0, 0.0, 0.0)


def test_intervals_cover_at_their_level():
    # complete data with noise added as imputations: Q_l ~ N(Q, B), U constant
    rng = np.random.default_rng(0)
    m, b, u, n = 10, 1.0, 1.0, 4000
    true = rng.normal(0, np.sqrt(u), n) + rng.normal(0, np.sqrt(b), n)
    each = true + rng.normal(0, np.sqrt(b), (m, n))
    pooled = pool_scalars(each, np.full((m, n), u))
    width = stats.t.ppf(0.975, pooled.df) * np.sqrt(pooled.t)
    assert np.mean(np.abs(pooled.estimate) < width) == pytest.approx(0.95, abs=0.01)


def test_pooling_on_a_scale_is_pooling_of_transformed_estimates():
    rho, n = np.array([0.36, 0.44, 0.4]), 50
    fits = Analyses([{"rho": (r, (1 - r**2) ** 2 / (n - 3))} for r in rho])
    result = fits.pool(scale="fisher_z")
    by_hand = pool_scalars(np.arctanh(rho)[:, None], np.full((3, 1), 1 / (n - 3)))
    np.testing.assert_allclose(result.pooled, by_hand)
    assert result.summary()["estimate"][0] == pytest.approx(np.tanh(np.arctanh(rho).mean()))


def test_exponentiated_estimates():
    fits = Analyses([{"a": (0.0, 1.0)}, {"a": (0.2, 1.0)}])
    plain, ratio = (fits.pool().summary(exponentiate=e) for e in (False, True))
    for name in ("estimate", "conf_low", "conf_high"):
        assert ratio[name][0] == pytest.approx(np.exp(plain[name][0]))
    assert ratio["std_error"][0] == plain["std_error"][0]


def test_estimates_on_a_transformed_scale_are_not_exponentiated_again():
    results = Analyses([{"a": (1.0, 0.1)}, {"a": (1.2, 0.1)}]).pool(scale="log")
    with pytest.raises(ValueError, match=r"scale='log'.*leave exponentiate out"):
        results.summary(exponentiate=True)


def test_numbers_without_variance_have_a_mean_and_a_between_variance():
    summary = Analyses([1.0, 2.0, 3.0]).pool().summary()
    assert (summary["estimate"][0], summary["b"][0]) == (2.0, 1.0)
    assert np.isnan(summary["std_error"][0])


@pytest.mark.parametrize(
    "result",
    [
        {"a": (1.0, 0.25), "b": (2.0, 0.5)},
        {"a": (1.0, 0.25, 30), "b": np.array([2.0, 0.5])},
        {"term": ["a", "b"], "estimate": [1.0, 2.0], "variance": [0.25, 0.5]},
        pd.DataFrame({"estimate": [1.0, 2.0], "variance": [0.25, 0.5]}, index=["a", "b"]),
        pl.DataFrame({"term": ["a", "b"], "estimate": [1.0, 2.0], "std_error": [0.5, 0.5**0.5]}),
        {"term": ["a", "b"], "estimate": [1.0, 2.0], "se": [0.5, 0.5**0.5]},
        pd.DataFrame(
            {"estimate": [1.0, 2.0], "std.error": [0.5, 0.5**0.5], "p.value": 0.1}, index=["a", "b"]
        ),
    ],
    ids=["pairs", "triples", "columns", "pandas", "polars", "se", "broom"],
)
def test_estimates_are_read_from(result):
    found = read_estimates(result)
    assert found.terms == ("a", "b")
    np.testing.assert_allclose(found.estimate, [1, 2])
    np.testing.assert_allclose(found.variance, [0.25, 0.5])


def test_estimates_of_scikit_learn_have_no_variance():
    x = pd.DataFrame({"u": [0.0, 1.0, 2.0], "v": [1.0, 0.0, 1.0]})
    found = read_estimates(LinearRegression().fit(x, 1 + 2 * x["u"] + 3 * x["v"]))
    assert found.terms == ("intercept", "u", "v")
    np.testing.assert_allclose(found.estimate, [1, 2, 3])
    assert np.isnan(found.variance).all()


def test_results_with_parameters_and_their_covariance_need_no_model():
    class Fit:
        params = pd.Series([1.0], index=["a"])

        def cov_params(self):
            return pd.DataFrame([[0.2]])

    found = read_estimates(Fit())
    assert (found.terms, found.variance.tolist(), found.dfcom) == (("a",), [0.2], None)


def test_degrees_of_freedom_of_triples():
    found = read_estimates({"a": (1.0, 0.5, 30), "b": (1.0, 0.5, 20), "c": (1.0, 0.5), "d": 1.0})
    assert found.dfcom == 20
    np.testing.assert_array_equal(found.variance, [0.5, 0.5, 0.5, np.nan])


def test_a_series_has_numbers_by_label():
    found = read_estimates(pd.DataFrame({"bmi": [1.0, 3.0], "age": [5.0, 5.0]}).mean())
    assert found.terms == ("bmi", "age")
    assert found.estimate.tolist() == [2, 5]
    several = pd.Series([1.0], index=pd.MultiIndex.from_tuples([("a", 1)]))
    assert read_estimates(several).terms == ("a:1",)


X = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=["u", "v"])


def test_classes_of_scikit_learn_name_the_terms():
    y = np.repeat(["low", "mid", "top"], 30)
    found = read_estimates(LogisticRegression().fit(X, y))
    names = ["intercept", "u", "v"]
    expected = [f"{c}:intercept" for c in ("low", "mid", "top")]
    expected += [f"{c}:{name}" for c in ("low", "mid", "top") for name in names[1:]]
    assert list(found.terms) == expected
    # a support vector classifier compares pairs of classes
    assert read_estimates(SVC(kernel="linear").fit(X, y)).terms[3] == "0:u"


def test_without_an_intercept_there_is_no_term():
    model = LinearRegression(fit_intercept=False)
    assert read_estimates(model.fit(X, X["u"])).terms == ("u", "v")
    assert read_estimates(model.fit(X, X)).terms == ("0:u", "0:v", "1:u", "1:v")


def test_different_terms_are_named():
    with pytest.raises(ValueError, match=r"imputation 1 of 2 and imputation 2 of 2 .*'b'"):
        Analyses([{"a": 1.0}, {"b": 1.0}]).pool()


def test_terms_with_much_missing_information_have_one_warning():
    each = [{"a": (q, 0.01), "b": (q, 0.01), "c": (q / 100, 1.0)} for q in (1.0, 2.0, 3.0)]
    with pytest.warns(MissingInformationWarning, match=r"about a \(.*\), b \(.*more imp") as caught:
        Analyses(each).pool()
    assert len(caught) == 1
    assert "c (" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_representation_does_not_warn_and_leaves_the_filters_of_warnings(filters_in_pool):
    fits = Analyses([{"a": (q, 0.01)} for q in (1.0, 2.0, 3.0)])
    assert "pooled by Rubin's rules" in repr(fits)
    assert filters_in_pool == [warnings.filters]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Analyses([1.0]).pool(), "at least 2"),
        (lambda: Analyses([-1.0, 1.0]).pool(scale="log"), "domain"),
        (lambda: Analyses([1.0, 1.0]).pool(scale="cube"), "scale must be"),
        (lambda: Analyses([1.0, 2.0]).test("estimate = 0"), "covariance"),
        (lambda: Analyses([1.0, 2.0]).pool().cov_params(), "covariance.*bootstrap"),
        (lambda: fits_of("lm").test("bmi"), "form"),
        (lambda: fits_of("lm").test(""), "empty"),
        (lambda: fits_of("lm").test("bmi = 0, bmi = 1"), "two values"),
        (lambda: fits_of("lm").test("weight = 0"), "unknown term 'weight'"),
        (lambda: fits_of("lm").test("bmi = 0", method="D9"), "method"),
        (lambda: fits_of("lm").pool(df="many"), "df must be"),
        (lambda: fits_of("lm").pool(dfcom=np.nan), "dfcom must be above 0"),
        (lambda: fits_of("lm").test("bmi = 0", dfcom=0), "dfcom must be above 0"),
        (lambda: fits_of("glm").pool().summary(conf_level=95), "conf_level"),
    ],
)
def test_wrong_requests_are_errors(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda fits: fits.test(["age", "bmi"]), "'age = 0, chl = 0', got list"),
        (lambda fits: fits.test({"age": 0}), "got dict"),
        (lambda fits: fits.pool(dfcom="10"), "dfcom must be a number, got '10'"),
    ],
)
def test_arguments_of_wrong_types_are_type_errors(call, match):
    with pytest.raises(TypeError, match=match):
        call(fits_of("lm"))


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (object(), "object"),
        (make_pipeline(StandardScaler(), LinearRegression()).fit(X, X["u"]), r"pipeline\[-1\]"),
        (np.ones(2), "ndarray; return a mapping"),
        ({"a": "x"}, "'x' for 'a'"),
        ({"a": None}, "None for 'a'"),
        ({"b": 1.0, "a": (1.0, 1.0, 1.0, 1.0)}, "triple .* for 'a'"),
        (pd.DataFrame({"estimate": [1.0], "stderr": [2.0]}), "'stderr'.*'std_error'"),
    ],
)
def test_other_objects_are_type_errors(result, match):
    with pytest.raises(TypeError, match=match):
        read_estimates(result)
    with pytest.raises(TypeError) as caught:
        Analyses([1.0, result]).pool()
    assert caught.value.__notes__ == ["result of imputation 2 of 2"]


def test_a_term_that_occurs_twice():
    with pytest.raises(ValueError, match="several of 'a'"):
        read_estimates(pd.DataFrame({"term": ["a", "b", "a"], "estimate": [1.0, 2.0, 3.0]}))


@pytest.mark.parametrize(
    ("result", "match"),
    [
        ({"b": (1.0, 1.0), "a": (1.0, -0.5)}, "variance of 'a' is -0.5"),
        ({"b": (1.0, 1.0), "a": 1.0}, "variance of 'a' is nan"),
        ({"b": (1.0, np.inf), "a": (1.0, 0.5)}, "variance of 'b' is inf"),
        ({"b": (1.0, 1.0), "a": (np.nan, 0.5)}, "estimate of 'a' is nan"),
        ({"term": ["b", "a"], "estimate": [1, 1], "se": [1, -1]}, "variance of 'a' is -1"),
        (Estimates(("b", "a"), np.ones(2), np.ones(2) * np.nan, np.eye(2)), "variance of 'b' is n"),
    ],
)
def test_numbers_that_cannot_be_pooled_name_imputation_and_term(result, match):
    good = {"b": (1.0, 1.0), "a": (1.2, 0.5)}
    fits = Analyses([good, result, good])
    for call in (fits.pool, fits.arrays, lambda: fits.test("a = 0")):
        with pytest.raises(ValueError, match=rf"imputation 2 of 3: the {match}"):
            call()


def test_variances_of_zero_are_pooled():
    row = Analyses([{"a": (1.0, 0.0)}, {"a": (1.2, 0.5)}]).pool().pooled
    assert row.ubar[0] == 0.25
