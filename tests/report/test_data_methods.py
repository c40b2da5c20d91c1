"""The methods paragraph, van Buuren's questions, and what repeats the analysis."""

import json
import platform
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import psmvae
from psmvae.multiple import Analyses
from psmvae.reporting.data import repeat
from psmvae.reporting.data.collect import collect
from psmvae.reporting.data.methods import methods_data
from psmvae.reporting.data.results import results_data
from report import parts


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["age", "bmi"])
    frame.loc[:9, "bmi"] = np.nan
    frame["sum"] = frame["age"] + frame["bmi"]
    return frame


def made(**changes):
    return methods_data(parts.sections(**changes), title="T", random_state=0)


def answers(data):
    return {one["question"].partition(":")[0]: one["answer"] for one in data["questions"]}


def test_twelve_questions_in_order():
    data = made()
    assert list(answers(data)) == [
        "Amount", "Reasons", "Consequences", "Method", "Software", "Number of imputations",
        "Imputation model", "Derived variables", "Diagnostics", "Pooling", "Complete cases",
        "Sensitivity",
    ]  # fmt: skip
    assert all(one["answer"] for one in data["questions"])
    json.dumps(data, allow_nan=False)


def test_answers_have_the_numbers_of_the_analysis():
    found = answers(made())
    assert "235 of 400 cells (58.8 %)" in found["Amount"]
    assert "bmi 60 (60.0 %)" in found["Amount"]
    assert "The best predictors of missing cells: for bmi, age; for" in found["Reasons"]
    mechanism = parts.mechanism()
    mechanism["columns"][0]["predictors"][0]["by"] = "mask"
    found_by_mask = answers(made(mechanism=mechanism))["Reasons"]
    assert "for bmi, whether age is missing" in found_by_mask
    assert "100 rows (100.0 %)" in found["Consequences"]
    assert "A sentence." in found["Consequences"]
    assert "5 completed tables" in found["Number of imputations"]
    # logit 0.62 + 1.96 √(2 / 5) has expit 0.849, and 1 + (0.849 / 0.05)² / 2 is 145.3
    assert "146 are needed" in found["Number of imputations"]
    assert "R-hat of the chains is 1.300" in found["Diagnostics"]
    assert "60 imputed values" in found["Diagnostics"]
    assert "Rubin's rules" in found["Pooling"]
    assert "0 complete rows" in found["Complete cases"]
    assert "differ in whether they contain 0 for slope" in found["Complete cases"]
    assert found["Sensitivity"].startswith("Assumptions agree. It turns.")


def test_what_is_not_known_is_for_the_author():
    nothing = dict.fromkeys(("imputed", "validation", "results"))
    found = answers(made(**nothing))
    for name in ("Reasons", "Method", "Software", "Imputation model", "Diagnostics", "Pooling"):
        assert "[Add: " in found[name]
    assert found["Number of imputations"] == "No imputations were given."


def test_the_imputer_is_described(frame):
    imputer = psmvae.MICEImputer(method="pmm", derived={"sum": "age + bmi"}, random_state=7)
    data = made(imputer=imputer.fit(frame), mechanism=parts.mechanism("at random"))
    found = answers(data)
    assert "multivariate imputation by chained equations" in found["Method"]
    assert "missing at random" in found["Method"]
    assert "method='pmm'" in found["Software"]
    assert "Seed 7" in found["Software"]
    assert "2 columns, by kind: real: age and bmi" in found["Imputation model"]
    assert "sum = age + bmi" in found["Derived variables"]
    assert data["seed"] == 7
    assert data["parameters"] == {"method": "'pmm'", "derived": "{'sum': 'age + bmi'}"}
    assert "imputed 5 times by multivariate imputation by chained equations" in data["paragraph"]
    assert "70.0 % of the numeric values" in data["paragraph"]


def test_values_that_explain_their_absence(frame):
    imputer = psmvae.MICEImputer(random_state=0).fit(frame[["age", "bmi"]])
    found = answers(made(imputer=imputer))
    assert "missing depending on their own values in bmi" in found["Method"]
    found = answers(made(imputer=imputer, mechanism=parts.mechanism(assumed=True)))
    assert "bmi (assumed by the analyst)" in found["Method"]
    assert "assumed to be missing because of them" in found["Reasons"]


def test_a_column_that_is_not_shown_is_not_claimed_to_be_missing_at_random():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=500), "w": rng.normal(size=500)})
    frame.loc[(frame["y"] > 1) & (rng.random(500) < 0.6), "y"] = np.nan
    frame.loc[rng.random(500) < 0.6, "w"] = np.nan
    imputer = psmvae.MICEImputer(mask_model="auto", max_iter=2, random_state=0).fit(frame)
    data = collect(frame, imputer, max_columns=1, validate=False)
    assert data["table"]["shown"] == ["w"]
    assert "on their own values in y (chosen by a comparison" in data["methods"]["paragraph"]
    sentence = data["summary"]["sentences"][2]
    assert sentence.endswith(
        "missing because of their own values was chosen by a comparison for y."
    )
    assert any("The missing cells of y seem" in text for text in data["summary"]["warnings"])


def test_the_model_of_the_masks_is_named(frame):
    X = frame[["age", "bmi"]]
    for setting, words in (
        ("latent", "missing at random given the latent variables of the model."),
        ("none", "taken to be missing at random."),
        ("logistic", "missing not at random, by the selection model LogisticMask("),
    ):
        imputer = psmvae.PSMVAEImputer(setting, max_epochs=1, random_state=0).fit(X)
        assert words in made(imputer=imputer, mechanism=parts.mechanism(None))["paragraph"]


def test_pooled_on_a_scale(frame):
    fits = Analyses([{"r": (0.2, 0.01)}, {"r": (0.21, 0.01)}])
    found = answers(made(analyses=fits.pool(scale="fisher_z")))
    assert "'fisher_z'" in found["Pooling"]


@pytest.mark.parametrize(
    ("imputer", "words"),
    [
        (psmvae.MeanImputer(), ["completely at random", "Each column was imputed by itself"]),
        (psmvae.MICEImputer(max_iter=2), ["at random", "one after the other", "by linear reg"]),
        (psmvae.MICEImputer(max_iter=2, method="pmm"), ["predictive mean matching"]),
        (psmvae.MissForestImputer(n_jobs=1), ["one after the other", "forests of trees"]),
        (psmvae.VAEImputer(max_epochs=1), ["by Bayesian regressions on the other columns and on"]),
        (psmvae.VAEImputer(max_epochs=1, draws="model"), ["drawn together, with the weights"]),
        (psmvae.GAINImputer(max_epochs=1), ["completely at random", "all missing cells of a row"]),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_procedure_is_that_of_the_class(frame, imputer, words):
    fitted = imputer.set_params(random_state=0).fit(frame[["age", "bmi"]])
    found = answers(made(imputer=fitted, mechanism=parts.mechanism(None)))
    for word in words:
        assert word in found["Method"]
    alone = isinstance(imputer, psmvae.MeanImputer)
    expected = "No column predicted another." if alone else "was predicted by all others."
    assert expected in found["Imputation model"]


@pytest.mark.filterwarnings("ignore")
def test_predictors_that_were_chosen_or_left_out_are_named(frame):
    X = frame[["age", "bmi"]].assign(same=frame["age"] * 2, age2=frame["age"] ** 2)
    imputer = psmvae.MICEImputer(
        predictors={"bmi": ["age", "same", "age2"]}, max_iter=2, random_state=0
    ).fit(X)
    assert imputer.dropped_
    answer = answers(made(imputer=imputer))["Imputation model"]
    assert "The analyst chose the predictors of bmi." in answer
    assert "Constant or collinear predictors were left out for bmi." in answer
    assert "all others" not in answer


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "Rubin (1987)"),
        ({"dfcom": 98}, "Barnard and Rubin (1999) for 98 of complete data"),
        ({"dfcom": 98, "df": "rubin"}, "Rubin (1987)"),
    ],
)
def test_degrees_of_freedom_are_those_that_were_used(frame, given, words):
    pooled = Analyses([{"r": (0.2, 0.01)}, {"r": (0.25, 0.01)}]).pool(**given)
    data = made(analyses=pooled, results=results_data(pooled))
    assert f"with degrees of freedom of {words}" in answers(data)["Pooling"]
    assert f"with degrees of freedom of {words}" in data["paragraph"]


def test_versions_of_loaded_libraries():
    found = repeat.versions()
    assert found["psmvae"] == psmvae.__version__
    assert found["Python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert "scikit-learn" in found


def test_the_code_runs(frame):
    X = frame[["age", "bmi"]]
    imputer = psmvae.MICEImputer(max_iter=3, random_state=4).fit(X)
    code = made(imputer=imputer, results=None)["command"]
    assert code.endswith("psmvae.report(X, imputer=imputer, mi=mi, title='T')")
    space = {"X": X}
    exec(code.rpartition("\n")[0], space)
    pd.testing.assert_frame_equal(space["mi"][0], imputer.impute_multiple(X, m=5)[0])


def test_without_a_seed_the_code_says_so(frame):
    data = made(imputer=psmvae.MeanImputer().fit(frame))
    assert data["seed"] is None
    assert "# random_state was not an integer" in data["command"]


def test_a_given_command_is_kept():
    data = methods_data(parts.sections(), title="T", random_state=0, command="psmvae report a.csv")
    assert data["command"] == "psmvae report a.csv"


def test_a_comparison_that_was_not_made_is_not_claimed(frame):
    imputer = psmvae.MICEImputer(mask_model="auto", random_state=0).fit(frame)
    imputer.mechanism_ = replace(imputer.mechanism_, findings={})
    found = made(imputer=imputer, mechanism=parts.mechanism(None) | {"compared": False})
    assert "explanations of the masks were not compared" in found["paragraph"]
    assert "no column had values" not in found["paragraph"]
