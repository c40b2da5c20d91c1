"""The report in five sentences, and what to beware of."""

import json

import numpy as np
import pytest

import psmvae
from psmvae.reporting.data.cautions import cautions
from psmvae.reporting.data.summary import summary_data
from report import parts


def has(warned, *words):
    return any(all(word in text for word in words) for text in warned)


def test_five_sentences_with_numbers():
    data = summary_data(parts.sections(), ["A note."])
    how_much, sets, mechanism, good, beware = data["sentences"]
    assert "235 (58.8 %) are missing" in how_much
    assert "most in empty (100.0 %)" in how_much
    assert "; no row is complete." in how_much
    assert "2 patterns" in sets
    assert "lacks bmi, <b>|`x`" in sets
    assert "(55 rows, 55.0 %)" in sets
    assert "2 sets" in sets
    assert "p < 0.001" in mechanism
    assert "bmi" in mechanism
    assert "200 held-out cells" in good
    assert "1.20 by PSMVAEImputer, 1.00 by MeanImputer and 0.50 by MICEImputer" in good
    assert "wrong levels" not in good
    assert "70.0 %" in good
    assert f"{len(data['warnings'])} warnings" in beware
    assert data["warnings"][-1] == "A note."
    json.dumps(data, allow_nan=False)


def test_all_warnings_are_there():
    warned = cautions(parts.sections())
    assert has(warned, "No value was observed of empty")
    assert has(warned, "More than half of the cells", "<b>|`x`", "(75.0 %)", "bmi (60.0 %)")
    assert has(warned, "Fewer than 30 values", "(25)")
    assert has(warned, "bmi seem to depend on their own values", "cannot check")
    assert has(warned, "90 % intervals", "70.0 % only: imputations are biased, or vary too little")
    assert has(warned, "low in bmi (70.0 %): imputations are biased there, or vary too little")
    assert has(warned, "Held-out cells of bmi were predicted worse than by the mean")
    assert has(warned, "median effective sample size of the rows is 1.5")
    assert has(warned, "R-hat is above 1.1 for bmi (1.30)")
    assert has(warned, "outside the observed range in bmi (20.0 %)")
    assert has(warned, "More than half of the information about slope (0.62)")
    assert has(warned, "of 5 imputations would change", "146 are needed")
    assert has(warned, "conclusion about slope turns")


def test_a_good_analysis_has_the_one_caveat():
    complete = parts.missing()
    complete["columns"] = [
        one | {"n_missing": 10, "fraction": 0.1} for one in complete["columns"][:2]
    ]
    imputed = parts.imputed()
    imputed["columns"] = imputed["columns"][1:]
    good = parts.validation(coverage=0.89, sizes=[9.0] * 7)
    good["columns"][0]["error"]["PSMVAEImputer"] = 0.5
    good["convergence"] = None
    warned = cautions(
        parts.sections(
            missing=complete,
            mechanism=parts.mechanism("at random"),
            imputed=imputed,
            validation=good,
            results=None,
        )
    )
    assert len(warned) == 1
    assert "cannot show" in warned[0]


def test_an_assumed_mechanism_is_called_assumed():
    warned = cautions(parts.sections(mechanism=parts.mechanism(assumed=True)))
    assert has(warned, "bmi depend on their own values was assumed")


@pytest.mark.parametrize(
    ("coverage", "n", "warned"), [(0.8, 500, True), (0.8, 60, False), (0.86, 5000, False)]
)
def test_low_coverage_is_more_than_chance(coverage, n, warned):
    data = parts.validation(coverage=coverage)
    data["columns"][0]["n"] = n
    assert has(cautions(parts.sections(validation=data)), "true value in") == warned


def test_without_anything_but_a_table():
    nothing = dict.fromkeys(("imputed", "validation", "results"))
    mechanism = parts.mechanism(None) | {"compared": False, "sets": []}
    data = summary_data(parts.sections(**nothing, mechanism=mechanism))
    assert "were not compared" in data["sentences"][2]
    assert "not measured" in data["sentences"][3]


def test_little_test_without_a_result():
    sentence = summary_data(parts.sections(missing=parts.missing(None)))["sentences"][2]
    assert sentence.startswith("Not made; ")
    sentence = summary_data(parts.sections(missing=parts.missing(0.3)))["sentences"][2]
    assert "no evidence against cells missing completely at random (p = 0.300)" in sentence


def test_a_baseline_without_an_error_is_left_out():
    data = parts.validation()
    data["error_numbers"] = {"PSMVAEImputer": None, "MeanImputer": 1.0}
    data["error_levels"] = {"PSMVAEImputer": 0.25, "MeanImputer": None}
    sentence = summary_data(parts.sections(validation=data))["sentences"][3]
    assert "numeric columns was 1.00 by MeanImputer, in standard deviations, and" in sentence
    assert "the mean share of wrong levels was 25.0 % by PSMVAEImputer;" in sentence
    data["error_numbers"] = data["error_levels"] = dict.fromkeys(data["methods"])
    sentence = summary_data(parts.sections(validation=data))["sentences"][3]
    assert "the error is not defined" in sentence


def test_a_failed_check_is_a_warning():
    failed = parts.validation() | {"methods": [], "columns": [], "coverage": None}
    data = summary_data(parts.sections(validation=failed))
    assert "What was done." in data["warnings"]
    assert "not measured" in data["sentences"][3]


def test_warnings_of_the_imputer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[:5, 0] = np.nan
    improper = psmvae.MissForestImputer(max_iter=1, random_state=0, n_jobs=1).fit(X)
    warned = cautions(parts.sections(imputer=improper))
    assert has(warned, "do not include the uncertainty of its parameters")
    assert has(warned, "did not converge in 1 rounds")
    small = psmvae.PSMVAEImputer(max_epochs=1, random_state=0).fit(X)
    assert has(cautions(parts.sections(imputer=small)), "fitted to 40 rows", "115 observed cells")


def test_rows_of_which_each_has_its_own_pattern():
    data = parts.missing()
    data["patterns"]["rows"] = [row | {"n": 1} for row in data["patterns"]["rows"]]
    sentence = summary_data(parts.sections(missing=data))["sentences"][1]
    assert "2 patterns of missing cells; no two incomplete rows have the same one" in sentence
