"""Pooled estimates, complete cases and sensitivity analyses as data."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import psmvae
from psmvae.multiple import Analyses
from psmvae.reporting import Report
from psmvae.reporting.data.collect import collect
from psmvae.reporting.data.results import imputations_needed, results_data
from psmvae.reporting.markdown import to_markdown


def mean_of_y(table):
    return {"mean of y": (table["y"].mean(), table["y"].var() / len(table))}


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=120)})
    df["y"] = df["x"] + rng.normal(size=120) + 1
    df["arm"] = np.where(rng.random(120) < 0.5, "control", "treated")
    df.loc[rng.random(120) < np.where(df["x"] > 0, 0.4, 0.1), "y"] = np.nan
    mi = psmvae.MICEImputer(random_state=0).fit(df).impute_multiple(df, m=5)
    return df, mi


def test_estimates_are_those_of_the_summary(study):
    _, mi = study
    fits = mi.analyse(mean_of_y)
    data = results_data(fits)
    (row,), expected = data["estimates"], fits.pool().summary().iloc[0]
    for name in ("estimate", "std_error", "df", "p_value", "conf_low", "conf_high", "fmi"):
        assert row[name] == expected[name]
    assert data["m"] == 5
    json.dumps(data, allow_nan=False)


def test_the_number_of_imputations_needed_is_that_of_how_many(study):
    _, mi = study
    fits = mi.analyse(mean_of_y)
    n, fmi = imputations_needed(results_data(fits))
    assert n == mi.how_many(fits).m
    assert fmi == fits.pool().pooled.fmi.max()
    assert imputations_needed(results_data()) is None


def test_complete_cases_are_those_of_a_t_interval(study):
    df, mi = study
    seen = df["y"].dropna()
    (row,) = results_data(mi.analyse(mean_of_y))["estimates"]
    width = 1.959964 * seen.std() / np.sqrt(len(seen))
    assert row["complete_cases"] == pytest.approx(
        [seen.mean(), seen.mean() - width, seen.mean() + width]
    )


def test_complete_cases_of_statsmodels(study):
    import statsmodels.formula.api as smf

    df, mi = study
    fits = mi.analyse(lambda table: smf.ols("y ~ x", table).fit())
    rows = results_data(fits)["estimates"]
    direct = smf.ols("y ~ x", df).fit()
    for row in rows:
        low, high = direct.conf_int().loc[row["term"]]
        assert row["complete_cases"] == pytest.approx([direct.params[row["term"]], low, high])


def test_complete_cases_with_bootstrap_and_polars(study):
    df, _ = study
    table = pl.from_pandas(df)
    mi = psmvae.MICEImputer(random_state=0).fit(table).impute_multiple(table, m=3)
    fits = mi.analyse(lambda d: {"mean": d["y"].mean()}, bootstrap=30, random_state=0)
    (row,) = results_data(fits)["estimates"]
    assert row["complete_cases"][0] == pytest.approx(df["y"].mean())
    assert row["complete_cases"][1] < row["complete_cases"][0] < row["complete_cases"][2]


def test_pooled_results_have_no_complete_cases(study):
    _, mi = study
    pooled = mi.analyse(mean_of_y).pool(dfcom=118)
    (row,) = results_data(pooled)["estimates"]
    assert row["complete_cases"] is None
    assert row["df"] == pooled.summary()["df"].iloc[0]


def test_an_analysis_that_fails_on_complete_rows(study):
    df, mi = study

    def analysis(table):
        if len(table) < len(df):
            raise KeyError("too few")
        return mean_of_y(table)

    assert results_data(mi.analyse(analysis))["estimates"][0]["complete_cases"] is None


def test_estimates_without_standard_errors_are_none(study):
    _, mi = study
    (row,) = results_data(mi.analyse(lambda d: d["y"].mean()))["estimates"]
    assert row["std_error"] is row["conf_low"] is row["p_value"] is None
    assert row["complete_cases"] is None


def test_pickled_analyses_pool_and_have_no_source(study):
    _, mi = study
    fits = mi.analyse(lambda d: mean_of_y(d))
    again = pickle.loads(pickle.dumps(fits))
    assert again.pool().summary().equals(fits.pool().summary())
    with pytest.raises(ValueError, match="analysis is not known"):
        again.complete_cases()


def test_complete_cases_need_the_same_terms(study):
    _, mi = study
    fits = mi.analyse(lambda d: {f"n{len(d)}": (1.0, 1.0)})
    with pytest.raises(ValueError, match="different terms"):
        fits.complete_cases()


@pytest.mark.parametrize("by", [None, "arm"])
def test_tipping_point(study, by):
    _, mi = study
    tp = psmvae.tipping_point(mi, mean_of_y, "y", [-3, -1, 0, 1], by=by)
    data = results_data(None, tp)["tipping"]
    grid = np.asarray(tp.results["estimate"]).reshape(4, -1)
    np.testing.assert_array_equal(data["estimate"], grid)
    np.testing.assert_array_equal(data["holds"], tp.holds.reshape(4, -1))
    assert data["axes"] == [[-3, -1, 0, 1]] * (2 if by else 1)
    assert data["groups"] == (["control", "treated"] if by else [])
    assert data["sentence"] == tp.sentence()
    json.dumps(data, allow_nan=False)


def test_level_and_null_of_sensitivity_analyses_are_kept(study):
    df, mi = study
    given = {"null": 0.5, "alpha": 0.2}
    tp = psmvae.tipping_point(mi, mean_of_y, "y", [0.5, 1, 1.5], operation="multiply", **given)
    data = results_data(None, tp)["tipping"]
    assert (data["null"], data["alpha"], data["neutral"]) == (0.5, 0.2, 1.0)
    assert data["operation"] == "multiply"
    np.testing.assert_array_equal(np.ravel(data["margin"]), tp.margin)
    compared = psmvae.compare_assumptions(
        df,
        mean_of_y,
        ["complete cases", "mar"],
        imputer=psmvae.MICEImputer(),
        random_state=0,
        m=3,
        **given,
    )
    data = collect(df, mi=mi, sensitivity=[tp, compared])
    assert {(one["null"], one["alpha"]) for one in data["results"]["assumptions"]} == {(0.5, 0.2)}
    page, text = Report(data).html(), to_markdown(data)
    section = page.partition('id="psm-follows"')[2].partition('id="psm-write"')[0]
    assert "with 80 % intervals; the null hypothesis is 0.5" in section
    assert "95 % interval" not in section
    assert text.count("80 % interval") == 2


def test_assumptions_and_tipping_point_together(study):
    df, mi = study
    tp = psmvae.tipping_point(mi, mean_of_y, "y", [0, 1])
    compared = psmvae.compare_assumptions(
        df, mean_of_y, ["complete cases", "mar"], imputer=psmvae.MICEImputer(), m=3, random_state=0
    )
    data = results_data(None, [tp, compared])
    expected = compared.summary()
    assert [one["assumption"] for one in data["assumptions"]] == ["complete cases", "mar"]
    for name in ("estimate", "conf_low", "conf_high", "p_value"):
        assert [one[name] for one in data["assumptions"]] == expected[name].tolist()
    assert data["assumptions_sentence"] == compared.sentence()
    assert data["m"] is None
    assert data["estimates"] == []
    json.dumps(data, allow_nan=False)


def test_wrong_objects(study):
    _, mi = study
    tp = psmvae.tipping_point(mi, mean_of_y, "y", [0, 1])
    with pytest.raises(TypeError, match="sensitivity must be"):
        results_data(None, 3)
    with pytest.raises(ValueError, match="at most, got 2 and 0"):
        results_data(None, [tp, tp])
    with pytest.raises(TypeError, match="analyses must be"):
        results_data([1, 2])


def test_analyses_made_by_hand_have_no_complete_cases():
    fits = Analyses([{"a": (1.0, 1.0)}, {"a": (2.0, 1.0)}])
    assert results_data(fits)["estimates"][0]["complete_cases"] is None
