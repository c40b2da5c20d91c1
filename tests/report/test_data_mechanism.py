"""What an imputer found about masks, what is not known without it, and histograms."""

import json

import numpy as np
import pandas as pd
import pytest

import psmvae
from psmvae import MICEImputer, PSMVAEImputer
from psmvae.reporting import schema
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.histogram import histogram
from psmvae.reporting.data.mechanism import mechanism_data
from psmvae.reporting.data.relations import mask_relations
from report.example import (
    check_type,
    dates_table,
    fitted_mice,
    hostile_table,
    in_library,
    mixed_table,
)


@pytest.fixture(scope="module")
def self_masked():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=600), "w": rng.normal(size=600)})
    frame.loc[(frame["y"] > 1) & (rng.random(600) < 0.6), "y"] = np.nan
    frame.loc[rng.random(600) < 0.1, "w"] = np.nan
    return frame


@pytest.fixture(scope="module")
def imputer(self_masked):
    return fitted_mice(self_masked)


@pytest.fixture(scope="module")
def relations(self_masked):
    return mask_relations(self_masked)


def is_plain(data):
    check_type(data, schema.MechanismData)
    return json.loads(json.dumps(data, allow_nan=False)) == data


def by_name(data):
    return {column["name"]: column for column in data["columns"]}


def test_columns_missing_by_their_value_are_named_though_not_shown(self_masked, imputer, relations):
    made = mechanism_data(self_masked, imputer, report=relations, shown=["w"])
    assert [column["name"] for column in made["columns"]] == ["w"]
    assert (made["own_value_found"], made["own_value_assumed"]) == (["y"], [])
    assumed = fitted_mice(self_masked, mask_model=psmvae.SelfMask(columns=["y"]))
    made = mechanism_data(self_masked, assumed, report=relations, shown=["w"])
    assert (made["own_value_found"], made["own_value_assumed"]) == ([], ["y"])


def test_a_complete_column_is_not_missing_by_its_value(self_masked, imputer, relations):
    complete = self_masked.assign(y=self_masked["y"].fillna(0.0))
    assert mechanism_data(complete, imputer, report=relations)["own_value_found"] == []


def test_a_comparison_is_copied(self_masked, imputer, relations):
    made = mechanism_data(self_masked, imputer, report=relations)
    assert is_plain(made)
    assert made["imputer"] == "MICEImputer"
    assert made["compared"]
    assert [column["name"] for column in made["columns"]] == ["y", "w"]
    records = {record["column"]: record for record in imputer.mechanism_.records()}
    for name, column in by_name(made).items():
        record = records[name]
        assert column["fraction"] == pytest.approx(self_masked[name].isna().mean())
        assert column["chosen"] == record["chosen"]
        assert column["likelihoods"] == {
            explanation.replace("_", " "): record[explanation]
            for explanation in ("at_random", "own_value", "both")
        }
        assert column["at_risk"] == record["at_risk"]
        assert column["sentence"] == imputer.mechanism_.sentence(name)
        assert not column["assumed"]
    y, w = by_name(made)["y"], by_name(made)["w"]
    assert y["chosen"] == "own value"
    assert w["odds"] is None
    expected = imputer.mechanism_.odds("y")
    for name in ("value", "probability", "low", "high"):
        np.testing.assert_allclose(y["odds"][name], expected[name], rtol=1e-5)


def test_predictors_are_the_strongest(self_masked, relations):
    made = mechanism_data(self_masked, report=relations)
    found = psmvae.missingness(self_masked)
    y = by_name(made)["y"]["predictors"]
    singles = found.predictors[found.predictors["column"] == "y"].dropna(subset="auc")
    assert [row["predictor"] for row in y[:-1]] == singles["predictor"].tolist()[:5]
    assert y[0]["predictor"] == "x"
    np.testing.assert_allclose([row["auc"] for row in y[:-1]], singles["auc"][:5])
    assert y[-1]["by"] == y[-1]["predictor"] == "all other columns"
    assert 0.5 < y[-1]["conf_low"] < y[-1]["auc"] < y[-1]["conf_high"]
    given = mechanism_data(self_masked, report=found)
    assert by_name(given)["y"]["predictors"][:-1] == y[:-1]


def test_columns_of_an_array_are_matched_by_position(self_masked, imputer, relations):
    array = self_masked.to_numpy()
    fitted = fitted_mice(array)
    made = mechanism_data(array, fitted)
    expected = by_name(mechanism_data(self_masked, imputer, report=relations))["y"]
    y = by_name(made)["x1"]
    assert y["odds"] == expected["odds"]
    assert y["sentence"] == "x1" + expected["sentence"][1:]


def test_without_an_imputer_sentences_say_what_is_not_known(self_masked, relations):
    made = mechanism_data(self_masked, report=relations)
    assert is_plain(made)
    assert made["imputer"] is None
    assert not made["compared"]
    assert made["sets"] == []
    for column in made["columns"]:
        assert column["chosen"] is None
        assert column["likelihoods"] == {}
        assert column["sentence"].startswith(f"{column['name']}: no fitted imputer was given, so")
        assert "it is not known" in column["sentence"]


@pytest.mark.parametrize("settings", [{"mask_model": "none"}, {}])
def test_an_imputer_without_a_comparison(self_masked, relations, settings):
    imputer = MICEImputer(max_iter=1, random_state=0, **settings).fit(self_masked)
    made = mechanism_data(self_masked, imputer, report=relations)
    assert is_plain(made)
    assert not made["compared"]
    sentence = made["columns"][0]["sentence"]
    assert "MICEImputer" in sentence
    assert "it is not known" in sentence


def test_an_estimator_of_another_library(self_masked, relations):
    from sklearn.impute import SimpleImputer

    made = mechanism_data(self_masked, SimpleImputer().fit(self_masked), report=relations)
    assert is_plain(made)
    assert "SimpleImputer compares no explanations" in made["columns"][0]["sentence"]


def test_an_empty_column_has_nothing_to_compare():
    frame = mixed_table()
    made = mechanism_data(frame)
    assert is_plain(made)
    void = by_name(made)["void"]
    assert void["sentence"] == "void: no value was observed, so there is nothing to compare."
    assert void["observed"]["counts"] == []
    assert void["predictors"] == []


@pytest.mark.parametrize("table", [dates_table, hostile_table])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_dates_and_hostile_names(table, library):
    frame = table()
    made = mechanism_data(in_library(frame, library))
    assert is_plain(made)
    assert set(by_name(made)) == set(frame.columns)


@pytest.fixture(scope="module")
def with_sets(self_masked):
    return PSMVAEImputer("latent", n_sets=2, max_epochs=1, random_state=0).fit(self_masked)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_pattern_sets(self_masked, relations, with_sets, library):
    table = in_library(self_masked, library)
    made = mechanism_data(table, with_sets, report=relations)
    assert is_plain(made)
    described = with_sets.describe_sets()
    assert [one["fraction"] for one in made["sets"]] == described["size"].tolist()
    for name in ("mechanism", "missing", "differs_in"):
        assert [one[name] for one in made["sets"]] == described[name].tolist()
    names = ["x1", "x2"] if library == "numpy" else ["y", "w"]
    rates = np.array([list(one["mask_rates"].values()) for one in made["sets"]])
    assert list(made["sets"][0]["mask_rates"]) == names
    # the rates of all rows are those of the sets, weighted by their sizes
    np.testing.assert_allclose(
        described["size"].to_numpy() @ rates, self_masked[["y", "w"]].isna().mean(), atol=0.01
    )


def test_odds_of_levels_are_texts():
    rng = np.random.default_rng(0)
    z = rng.normal(size=800)
    level = np.array(["high", "low", "mid"], dtype=object)[np.digitize(z, [-0.5, 0.5])]
    frame = pd.DataFrame({"level": level, "z": z + 0.1 * rng.normal(size=800)})
    frame.loc[(level == "mid") & (rng.random(800) < 0.5), "level"] = None
    from psmvae import SelfMask

    imputer = MICEImputer(mask_model=SelfMask(columns=["level"]), max_iter=1, random_state=0)
    column = mechanism_data(frame, imputer.fit(frame))["columns"][0]
    assert column["assumed"]
    assert column["odds"]["value"] == column["observed"]["levels"] == ["high", "low", "mid"]
    assert column["observed"]["counts"] == frame["level"].value_counts().sort_index().tolist()


def counts_of(values):
    return histogram(read_columns(pd.DataFrame({"x": values})), 0)


def test_histogram_of_numbers():
    values = np.random.default_rng(0).normal(size=500)
    found = counts_of(np.append(values, np.nan))
    assert sum(found["counts"]) == 500
    expected, edges = np.histogram(values, 30)
    assert found["counts"] == expected.tolist()
    np.testing.assert_allclose(found["edges"], edges)


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 0.5],
        [1.7e308, 1.7e308],
        [5.5] * 4,
        [5e-324, 1.5],
        [2.0**60 + 0.0, 2.0**60],
        [3, 90, 40, 41, 41],
        [-7.0, -7.0, None],
    ],
)
def test_histogram_of_odd_numbers(values):
    found = counts_of(values)
    edges = np.array(found["edges"])
    assert np.isfinite(edges).all()
    assert (np.diff(edges) >= 0).all()
    assert sum(found["counts"]) == sum(value is not None for value in values)


def test_histogram_of_few_whole_numbers_has_a_bin_for_each():
    found = counts_of([20, 22, 22, 25])
    assert found["edges"] == [19.5, 20.5, 21.5, 22.5, 23.5, 24.5, 25.5]
    assert found["counts"] == [1, 0, 2, 0, 0, 1]


def test_histogram_of_levels_keeps_their_order_and_sums_rare_ones():
    ordered = pd.Categorical(["b", "a", "b", None, "c"], ["c", "b", "a"], ordered=True)
    assert counts_of(ordered) == {"edges": None, "levels": ["c", "b", "a"], "counts": [1, 2, 1]}
    many = [f"level {k:03d}" for k in range(100)] + ["level 050"] * 5
    found = counts_of(many)
    assert len(found["levels"]) == 21
    assert found["levels"][-1] == "80 other levels"
    assert found["counts"][found["levels"].index("level 050")] == 6
    assert sum(found["counts"]) == 105


def test_histogram_of_codes_and_bools():
    assert counts_of([0.0, 1.0, 1.0, np.nan])["levels"] == ["0", "1"]
    assert counts_of([True, False, True])["levels"] == ["False", "True"]
