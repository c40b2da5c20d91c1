"""One analysis under several assumptions."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from psmvae import MeanImputer, MICEImputer, PSMVAEImputer, SelfMask, compare_assumptions
from psmvae.multiple import MissingInformationWarning
from psmvae.sensitivity import wording

N = 150


def incomplete():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=N) + 1})
    frame["y"] = frame["y"].mask(rng.random(N) < 0.5 * (frame["y"] > 1))
    return frame


def mean(table):
    y = np.asarray(table["y"], dtype=float)
    return {"mean of y": (y.mean(), y.var(ddof=1) / len(y))}


def slope(table):
    smf = pytest.importorskip("statsmodels.formula.api")
    return smf.ols("y ~ x", table).fit()


def compare(assumptions, analyse=mean, **options):
    options = {"imputer": MICEImputer(), "m": 5, "random_state": 0, "dfcom": N - 1} | options
    return compare_assumptions(incomplete(), analyse, assumptions, **options)


def test_each_row_is_the_analysis_under_its_assumption():
    result = compare(["complete cases", "mar", {"shift": {"y": 2}}])
    found = result.summary().set_index("assumption")
    frame = incomplete()
    mi = MICEImputer(random_state=0).fit(frame).impute_multiple(frame, m=5)
    for name, one in (("mar", mi), ("mar, shift {'y': 2}", mi.shift({"y": 2}))):
        expected = one.analyse(mean).pool(dfcom=N - 1).summary().iloc[0]
        for column in ("estimate", "std_error", "conf_low", "conf_high", "p_value"):
            assert found.loc[name, column] == pytest.approx(expected[column])
    y = frame["y"].dropna()
    half = stats.t.ppf(0.975, N - 1) * np.sqrt(y.var() / len(y))
    row = found.loc["complete cases"]
    limits = (y.mean(), y.mean() - half, y.mean() + half)
    np.testing.assert_allclose(row[["estimate", "conf_low", "conf_high"]].astype(float), limits)
    change = 2 * frame["y"].isna().mean()
    assert found.loc["mar, shift {'y': 2}", "change"] == pytest.approx(change)
    assert found.loc["mar", "change"] == 0
    assert result.imputations[0] is None
    assert result.imputations[2].info["shift"] == [{"delta": {"y": 2}}]


def test_the_imputation_at_random_is_fitted_once(monkeypatch):
    fits = []
    fit = MICEImputer.fit
    monkeypatch.setattr(MICEImputer, "fit", lambda self, X: fits.append(1) or fit(self, X))
    shifts = [{"shift": {"y": delta}, "label": f"δ = {delta}"} for delta in (1, 2)]
    result = compare(["self", "none", "mar", *shifts, {"base": "none", "label": "again"}])
    assert result.assumptions == ("self", "none", "mar", "δ = 1", "δ = 2", "again")
    assert result.reference == 1
    assert result.imputations[1] is result.imputations[2] is result.imputations[5]
    assert len(fits) == 2


def test_mask_models(monkeypatch):
    """The imputer is fitted once for each mask model; training is replaced here."""
    fitted = []

    def fit(self, X):
        fitted.append(self)
        return MICEImputer(random_state=len(fitted)).fit(X)

    monkeypatch.setattr(PSMVAEImputer, "fit", fit)
    imputer = PSMVAEImputer(max_epochs=1)
    named = SelfMask(columns=["y"])
    shift = {"shift": {"y": 1}, "base": "latent"}
    own = {"base": "network", "label": "all values"}
    result = compare(["mar", "latent", "self", named, shift, own], imputer=imputer)
    assert [one.mask_model for one in fitted] == ["none", "latent", "self", named, "network"]
    assert {(one.max_epochs, one.random_state) for one in fitted} == {(1, 0)}
    assert result.assumptions[5] == "all values"
    assert result.assumptions[3:5] == ("SelfMask(columns=('y',))", "latent, shift {'y': 1}")
    estimates = [one["mean of y"].estimate for one in result.results]
    assert len(set(estimates)) == 6
    assert estimates[4] - estimates[1] == pytest.approx(incomplete()["y"].isna().mean())
    assert imputer.random_state is None
    assert imputer.mask_model == PSMVAEImputer().mask_model


def test_the_default_imputer_is_psmvae(monkeypatch):
    made = []
    monkeypatch.setattr(PSMVAEImputer, "_check_parameters", lambda self: made.append(self) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compare_assumptions(incomplete(), mean)
    assert made[0].mask_model == "none"


def test_sentence():
    text = compare(["complete cases", "mar", {"shift": {"y": -3}, "label": "δ = -3"}]).sentence(
        estimand="the mean score"
    )
    assert text.startswith("With the same estimand and analysis, the mean score is 0.")
    assert "p < 0.001) in complete cases, " in text
    assert "p < 0.001) if missing at random, " in text
    assert text.endswith(
        " from that if missing at random; the conclusion there, a value above 0 at the 5 % level, "
        "does not hold under 'δ = -3'."
    )
    same = compare(["mar", {"shift": {"y": 3}}]).sentence()
    assert same.endswith("holds under all assumptions.")


def test_several_terms_and_one_of_them():
    result = compare(["complete cases", "mar"], slope, dfcom=None)
    assert result.summary()["term"].tolist() == ["Intercept", "x"] * 2
    assert "the estimate of x is" in result.sentence()
    one = compare(["complete cases", "mar"], slope, term="x", dfcom=None)
    assert one.terms == ("x",)
    fitted = slope(incomplete().dropna())
    assert one.results[0]["x"].p_value == pytest.approx(fitted.pvalues["x"])
    assert one.results[0]["x"].conf_low == pytest.approx(fitted.conf_int().loc["x", 0])


def test_complete_cases_of_other_tables():
    frame = incomplete().assign(z=np.where(np.arange(N) < 100, np.nan, 1.0))
    n = int(frame["y"].notna().sum())

    def count(table):
        return {"n": (float(len(table)), 1.0)}

    for table in (frame, pl.from_pandas(frame)):
        for columns in (["x", "y"], "y"):
            result = compare_assumptions(table, count, ["complete cases"], complete_on=columns)
            assert result.results[0]["n"].estimate == n
        assert type(result.summary()) is type(table)
    array = compare_assumptions(frame.to_numpy(), count, ["complete cases"])
    assert array.results[0]["n"].estimate == frame.dropna().shape[0]


def test_bootstrap():
    with pytest.raises(ValueError, match=r"no standard error of 'mean of y'.*bootstrap=200"):
        compare(["complete cases"], lambda t: {"mean of y": t["y"].mean()})
    result = compare(
        ["complete cases", "mar"], lambda t: {"mean of y": t["y"].mean()}, bootstrap=30
    )
    expected = compare(["complete cases", "mar"])
    for one, other in zip(result.results, expected.results, strict=True):
        assert one["mean of y"].std_error == pytest.approx(other["mean of y"].std_error, rel=0.4)


def test_the_seed_is_that_of_the_imputer():
    def estimate(table):
        return {"mean of y": table["y"].mean()}

    assumptions = ["complete cases", "mar", {"shift": {"y": 1}}]
    seeds = (7, 7, 8, np.random.RandomState(7), np.random.RandomState(7))
    found = [
        compare(
            assumptions, estimate, bootstrap=5, imputer=MICEImputer(random_state=seed),
            random_state=None,
        ).results
        for seed in seeds
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert found[3] == found[4]
    given = compare(assumptions, estimate, bootstrap=5, random_state=7)
    assert given.results == found[0]


def test_filters_of_warnings_stay_as_they_are(filters_in_pool):
    compare(["mar", {"shift": {"y": 2}}])
    assert filters_in_pool == [warnings.filters] * 2


def test_one_warning_of_missing_information():
    def precise(table):
        return {"mean of y": (table["y"].mean(), 1e-6)}

    with pytest.warns(MissingInformationWarning) as caught:
        compare(["mar", {"shift": {"y": 2}}], precise)
    assert len(caught) == 1


def test_forest_plot():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    result = compare(["complete cases", "mar"], slope, dfcom=None)
    axes = result.plot(figure.subplots(1, 2))
    assert [label.get_text() for label in axes[0].get_yticklabels()] == list(result.assumptions)
    assert axes[1].get_xlabel() == "x with 95 % interval"
    with pytest.raises(ValueError, match="2 panels, got 1 axes"):
        result.plot(figure.subplots())


@pytest.mark.parametrize(
    ("assumptions", "options", "error", "match"),
    [
        ("mar", {}, TypeError, "sequence of assumptions"),
        ([], {}, TypeError, "sequence of assumptions"),
        (["mar", "mar"], {}, ValueError, "more than once: 'mar'"),
        (["latent"], {}, ValueError, "mask_model must be 'auto', 'self', 'none'"),
        (["mar", "selv"], {"imputer": PSMVAEImputer()}, ValueError, "selv"),
        (["mra"], {}, ValueError, "'mra' is not 'complete cases' or 'mar', and .*'auto', 'self'"),
        (["complete_cases"], {}, ValueError, "'complete_cases' is not 'complete cases' or"),
        (["Mar"], {"imputer": MeanImputer()}, ValueError, "'Mar' is not .* has no mask_model"),
        ([{"shift": 5}], {}, TypeError, "'shift' of an assumption must map .*{'score': 5}, got 5"),
        (["mar", {"shift": None}], {}, TypeError, "must map .* got None"),
        ([{"shift": {}}], {}, TypeError, "must map .* got {}"),
        (["mar", {"shift": {"yy": 1}}], {}, ValueError, "no column 'yy'; the columns are 'x', 'y'"),
        (["mar", {"shift": {"x": 1}}], {}, ValueError, "'x' has no missing cells"),
        (["mar", {"shift": {"y": "5"}}], {}, ValueError, "'y': a shift must be a number"),
        ([{"shift": {"y": {"z > 1": 1}}}], {}, ValueError, "no column 'z'"),
        (["mar", "complete cases"], {"complete_on": "q"}, ValueError, "complete_on: there is no"),
        ([{"shfit": {"y": 1}}], {}, ValueError, "has 'shift' or 'base'"),
        ([{"shift": {"y": 1}, "base": "complete cases"}], {}, ValueError, "no imputed cells"),
        (["complete cases"], {"complete_on": ["q"]}, ValueError, "complete_on: there is no"),
        (["mar"], {"alpha": 0}, ValueError, "alpha"),
    ],
)
def test_bad_arguments_are_named_before_imputers_are_fitted(
    assumptions, options, error, match, monkeypatch
):
    monkeypatch.setattr(MICEImputer, "fit", lambda self, X: 1 / 0)
    with pytest.raises(error, match=match):
        compare(assumptions, **options)


def test_no_complete_row():
    frame = incomplete().assign(z=np.nan)
    with pytest.raises(ValueError, match="no complete row"):
        compare_assumptions(frame, mean, ["complete cases"])


def test_terms_must_agree():
    def uneven(table):
        return {"a" if len(table) == N else "b": (1.0, 1.0)}

    with pytest.raises(ValueError, match=r"\['b'\] under 'complete cases' and \['a'\] under 'mar'"):
        compare(["complete cases", "mar"], uneven)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize(
    ("result", "match"),
    [((np.nan, 1.0), "estimate of 'a' is nan"), ((1.0, np.nan), "no standard error of 'a'")],
)
def test_every_assumption_needs_an_estimate(result, match, complete):
    def failing(table):
        return {"a": result if (len(table) < N) == complete else (1.0, 1.0)}

    label = "complete cases" if complete else "mar"
    with pytest.raises(ValueError, match=f"(?s){match}.*under '{label}'"):
        compare(["complete cases", "mar"], failing)


def test_an_unknown_term_is_reported_before_imputers_are_fitted(monkeypatch):
    monkeypatch.setattr(MICEImputer, "fit", lambda self, X: 1 / 0)
    with pytest.raises(ValueError, match="unknown term 'x'"):
        compare(["mar", "complete cases"], term="x")


def test_the_odds_of_declared_levels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "edu": rng.choice(["Low", "Mid", "Top"], N)})
    frame["edu"] = frame["edu"].mask(rng.random(N) < 0.3)

    def high(table):
        return {"high": ((table["edu"] == "Top").mean(), 0.01)}

    imputer = MICEImputer(kinds={"edu": "ordinal:Low,Mid,Top"})
    assumptions = ["mar", {"shift": {"edu": "odds × 4"}}]
    found = compare_assumptions(frame, high, assumptions, imputer=imputer, m=3, random_state=0)
    assert found.summary()["change"][1] > 0.05


@pytest.mark.parametrize(
    ("assumption", "phrase"),
    [
        ("latent", "if latent variables determine what is missing"),
        ("network", "with the mask model network"),
        (SelfMask(columns=["y"], sign="low"), "if y is missing by its own value (low values more"),
        (SelfMask(columns=["y", "x"]), "if y and x are missing by their own values"),
        (SelfMask(slope=(0.5, 0.1)), "own missingness (slope 0.5 with standard deviation 0.1)"),
        (SelfMask(slope=0.5, shadow=["x"]), "own missingness (slope 0.5, shadow variables x)"),
        ({"shift": {"y": -5}}, "if missing at random and then y shifted by -5"),
        ({"base": "self", "shift": {"y": "× 0.9"}}, "own missingness and then y multiplied by 0.9"),
        (
            {"shift": {"y": {"x > 0": -5, "x <= 0": 5}}},
            "and then y shifted by -5 where x > 0 and y shifted by 5 where x <= 0",
        ),
        ({"base": "self", "label": "all values"}, "under 'all values'"),
    ],
)
def test_assumptions_in_words(assumption, phrase, monkeypatch):
    monkeypatch.setattr(PSMVAEImputer, "fit", lambda self, X: MICEImputer(random_state=0).fit(X))
    found = compare(["mar", assumption], imputer=PSMVAEImputer())
    assert phrase in found.sentence()
    assert "from that if missing at random" in found.sentence()


def test_identical_estimates_do_not_move():
    text = compare(["mar", {"base": "mar", "label": "again"}]).sentence()
    assert "; it does not move from that if missing at random; " in text
    close = compare(["mar", {"shift": {"y": 1e-4}}])
    change = close.summary()["change"][1]
    assert f"it moves by at most {change:.3g} from" in close.sentence()


def test_odds_in_words():
    shift = {"a": "odds × 2", "b": "odds of yes × 0.5"}
    assert wording.assumption("mar", shift) == (
        "if missing at random and then the odds of a multiplied by 2 and the odds of yes in b "
        "multiplied by 0.5"
    )
