"""Pooled fits of statsmodels against R's lm and glm on the same imputations."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

pytest.importorskip("statsmodels")
import statsmodels.api as sm
import statsmodels.formula.api as smf

from psmvae import MultipleImputation
from psmvae.multiple import Analyses, read_estimates

# written by benchmarks/r_pool.R
R = json.loads((Path(__file__).parent / "r_pool.json").read_text())["statsmodels"]
MI = MultipleImputation.from_long(pd.DataFrame(R["data"]))


def glm(formula, family):
    return lambda table: smf.glm(formula, table, family=family).fit(tol=1e-12)


FITS = {
    "ols": MI.analyse(lambda table: smf.ols("y ~ x1 + x2 + g", table).fit()),
    "binomial": MI.analyse(glm("z ~ x1 + x2 + y", sm.families.Binomial())),
    "poisson": MI.analyse(glm("count ~ x1 + x2 + y", sm.families.Poisson())),
}
# R's name of each term, in R's order
TERMS = {"(Intercept)": "Intercept", "gb": "g[T.b]", "gc": "g[T.c]"}
NULL = {
    "ols": "x2 = 0, g[T.b] = 0, g[T.c] = 0",
    "binomial": "x2 = 0, y = 0",
    "poisson": "x1 = 0, x2 = 0, y = 0",
}


@pytest.mark.parametrize("model", FITS)
def test_pooled_fits_equal_those_of_r(model):
    found = FITS[model].pool().summary().set_index("term")
    terms = [TERMS.get(term, term) for term in R[model]["terms"]]
    for name, expected in R[model]["pooled"].items():
        np.testing.assert_allclose(found.loc[terms, name], expected, rtol=1e-8)


@pytest.mark.parametrize("model", FITS)
@pytest.mark.parametrize("method", ["D1_dfcom", "D2", "D3"])
def test_tests_of_fits_equal_those_of_r(model, method):
    found = FITS[model].test(NULL[model], method=method[:2])
    np.testing.assert_allclose(list(found), list(R[model][method].values()), rtol=1e-8)


def test_d3_of_logit_is_that_of_the_binomial_glm():
    fits = MI.analyse(lambda table: smf.logit("z ~ x1 + x2 + y", table).fit(disp=False))
    np.testing.assert_allclose(
        fits.test(NULL["binomial"], method="D3"), list(R["binomial"]["D3"].values()), rtol=1e-6
    )


@pytest.mark.parametrize("name", ["logit", "probit", "poisson"])
def test_d3_of_discrete_models_is_that_of_their_glm(name, capfd):
    links = sm.families.links
    family = {
        "logit": sm.families.Binomial(),
        "probit": sm.families.Binomial(links.Probit()),
        "poisson": sm.families.Poisson(),
    }[name]
    response = "count" if name == "poisson" else "z"

    def discrete(table):
        more = {"offset": table["y"], "exposure": table["x2"] ** 2 + 1} if name == "poisson" else {}
        return smf.__dict__[name](f"{response} ~ x1 + x2", table, **more).fit(disp=False)

    def glm(table):
        more = {"offset": table["y"], "exposure": table["x2"] ** 2 + 1} if name == "poisson" else {}
        return smf.glm(f"{response} ~ x1 + x2", table, family=family, **more).fit(tol=1e-12)

    for null in ("x1 = 0", "x2 = 0.3", "x1 = 0.1, x2 = 0, Intercept = 0.2"):
        found, expected = (MI.analyse(fit).test(null, method="D3") for fit in (discrete, glm))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert capfd.readouterr() == ("", "")


def test_d3_of_equal_tables_is_the_likelihood_ratio_test():
    table = MI[0]
    full, null = smf.ols("y ~ x1 + x2", table).fit(), smf.ols("y ~ x1", table).fit()
    found = Analyses([full] * 3).test("x2 = 0", method="D3")
    assert found.statistic == pytest.approx(2 * (full.llf - null.llf))
    assert (found.df1, found.df2, found.riv) == (1, np.inf, 0)
    # a hypothesis about all coefficients leaves nothing to estimate
    every = Analyses([full] * 3).test("Intercept = 1, x1 = 0, x2 = 0", method="D3")
    at = [2 * (full.llf - full.model.loglike([1, 0, 0])) / 3]
    assert [every.statistic] == pytest.approx(at)


def test_d3_of_values_other_than_zero_is_a_fit_with_an_offset():
    fits = FITS["binomial"]
    null = [
        smf.glm("z ~ x1 + y", table, offset=0.5 * table["x2"], family=sm.families.Binomial()).fit(
            tol=1e-12
        )
        for table in MI
    ]
    own = np.mean([2 * (a.llf - b.llf) for a, b in zip(fits, null, strict=True)])
    b1, b0 = (np.mean([fit.params for fit in each], 0) for each in (fits, null))
    pooled = np.mean(
        [2 * (a.model.loglike(b1) - b.model.loglike(b0)) for a, b in zip(fits, null, strict=True)]
    )
    found = fits.test("x2 = 0.5", method="D3")
    riv = 6 / 4 * (own - pooled)
    assert found.riv == pytest.approx(riv)
    assert found.statistic == pytest.approx(pooled / (1 + riv))


@pytest.mark.parametrize(
    "fit",
    [
        lambda table: smf.wls("y ~ x1", table).fit(),
        lambda table: smf.glm("I(count + 1) ~ x1", table, family=sm.families.Gamma(LOG)).fit(),
        lambda table: {"x1": (table["x1"].mean(), 0.1)},
    ],
    ids=["wls", "gamma", "mapping"],
)
def test_d3_without_a_likelihood_names_the_other_tests(fit):
    with pytest.raises(TypeError, match="use method 'D1' or 'D2'"):
        MI.analyse(fit).test("x1 = 0", method="D3")


LOG = sm.families.links.Log()


def test_terms_with_commas_and_equals_signs_can_be_tested():
    formula = "y ~ x1 + C(g, Treatment(reference='b'))"
    fits = MI.analyse(lambda table: smf.ols(formula, table).fit())
    found = fits.test(
        "x1 = 0, C(g, Treatment(reference='b'))[T.a] = 0, C(g, Treatment(reference='b'))[T.c]=0"
    )
    other = MI.analyse(lambda table: smf.ols("y ~ x1 + g", table).fit())
    np.testing.assert_allclose(found, other.test("x1 = 0, g[T.b] = 0, g[T.c] = 0"))


def test_terms_with_numbers_inside_can_be_tested():
    formula = "y ~ x2 + bs(x1, df=4, degree=3)"
    fits = MI.analyse(lambda table: smf.ols(formula, table).fit())
    terms = [f"bs(x1, df=4, degree=3)[{k}]" for k in range(4)]
    assert list(fits[0].params.index[2:]) == terms
    found = fits.test(f"{terms[0]} = 0, x2=0, {terms[3]}=0.5")
    names = ("Intercept", "x2", "b0", "b1", "b2", "b3")
    renamed = [replace(read_estimates(fit), terms=names) for fit in fits]
    np.testing.assert_allclose(found, Analyses(renamed).test("b0 = 0, x2 = 0, b3 = 0.5"))


OUTCOMES = ["first", "second", "third"]


def multinomial_tables():
    """Tables that differ in some values of x."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "z"])
    score = table["x"] + 2 * rng.normal(size=300)
    table["g"] = np.array(OUTCOMES)[np.digitize(score, [-1, 1])]
    some = rng.random(300) < 0.05
    return [table.assign(x=table["x"].mask(some, rng.normal(size=300))) for _ in range(4)]


@pytest.mark.parametrize("as_arrays", [False, True])
def test_multinomial_logit(as_arrays):
    """Each outcome against the standard errors and the Wald test of statsmodels."""
    fits = []
    for table in multinomial_tables():
        y, x = table["g"], sm.add_constant(table[["x", "z"]])
        y, x = (y.to_numpy(), x.to_numpy()) if as_arrays else (y, x)
        fits.append(sm.MNLogit(y, x).fit(disp=False))
    names = ["const", "x1", "x2"] if as_arrays else ["const", "x", "z"]
    found = read_estimates(fits[0])
    assert found.terms == tuple(f"{outcome}:{name}" for outcome in OUTCOMES[1:] for name in names)
    coefficients, errors = np.asarray(fits[0].params), np.asarray(fits[0].bse)
    for k in range(2):
        np.testing.assert_allclose(found.estimate[3 * k : 3 * k + 3], coefficients[:, k])
        np.testing.assert_allclose(found.variance[3 * k : 3 * k + 3], errors[:, k] ** 2)
    # of equal tables the pooled test is the Wald test
    restricted = np.eye(6)[[1, 4]]
    wald = fits[0].wald_test(restricted, scalar=True, use_f=True)
    hypothesis = f"second:{names[1]} = 0, third:{names[1]} = 0"
    same = Analyses([fits[0]] * 3).test(hypothesis, dfcom=np.inf)
    assert same.statistic == pytest.approx(wald.statistic)
    pooled = Analyses(fits).pool().summary()
    by_hand = np.mean([np.asarray(fit.params)[1, 0] for fit in fits])
    assert pooled["estimate"][1] == pytest.approx(by_hand)


def test_vector_autoregressions():
    """Their covariances are ordered by regressor."""
    from statsmodels.tsa.api import VAR

    fit = VAR(multinomial_tables()[0][["x", "z"]]).fit(1)
    found = read_estimates(fit)
    assert found.terms[:3] == ("x:const", "z:const", "x:L1.x")
    for term, estimate, variance in zip(*(getattr(found, f) for f in FIELDS), strict=True):
        outcome, name = term.split(":")
        assert estimate == fit.params.loc[name, outcome]
        assert variance == pytest.approx(fit.stderr.loc[name, outcome] ** 2)


FIELDS = ("terms", "estimate", "variance")


def test_d1_of_small_tables_has_positive_degrees_of_freedom():
    """Reiter's series is negative here."""
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame(rng.normal(size=(8, 3)), columns=list("xyz")) for _ in range(20)]
    found = Analyses([smf.ols("y ~ x + z", table).fit() for table in tables]).test("x = 0, z = 0")
    assert 0 < found.df2 < 5
    assert found.p_value == pytest.approx(stats.f.sf(found.statistic, 2, found.df2))
    assert 0 < found.p_value < 1


def test_fixed_effects_of_mixed_models_are_pooled():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "y"])
    table["site"] = rng.integers(0, 10, 200)
    table["y"] += 0.5 * table["site"]
    fit = smf.mixedlm("y ~ x", table, groups=table["site"]).fit()
    found = read_estimates(fit)
    assert found.terms == ("Intercept", "x")
    np.testing.assert_allclose(found.estimate, fit.fe_params)
    np.testing.assert_allclose(found.variance, fit.bse_fe**2)
    exog = sm.add_constant(table[["x"]]).to_numpy()
    arrays = sm.MixedLM(table["y"].to_numpy(), exog, table["site"].to_numpy()).fit()
    np.testing.assert_allclose(read_estimates(arrays).covariance, found.covariance)


def test_degrees_of_freedom_of_cox_models_are_those_of_r(monkeypatch):
    """Events less coefficients, at least 1: 162 in R for 165 events of 228 patients."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(228, 3)), columns=list("xyz"))
    table["time"], status = rng.exponential(size=228), np.arange(228) < 165
    dfcom = json.loads((Path(__file__).parent / "r_pool.json").read_text())["coxph"]["pooled"]
    fit = smf.phreg("time ~ x + y + z", table, status=status).fit()
    assert read_estimates(fit).dfcom == dfcom["dfcom"][0] == 162
    few = smf.phreg("time ~ x + y + z", table, status=np.arange(228) < 3).fit()
    assert read_estimates(few).dfcom == 1

    class CoxPHFitter:
        params_ = pd.Series([0.5, 1.0], index=["x", "y"])
        variance_matrix_ = pd.DataFrame(np.eye(2))
        event_observed = pd.Series(status)

    assert read_estimates(CoxPHFitter()).dfcom is None
    monkeypatch.setitem(sys.modules, "lifelines", SimpleNamespace(CoxPHFitter=CoxPHFitter))
    assert read_estimates(CoxPHFitter()).dfcom == 163
