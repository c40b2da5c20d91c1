"""Small sections of a report, made by hand."""

from psmvae.reporting.data.sections import Sections

NAMES = ("age", "bmi", "<b>|`x`", "empty")
N_MISSING = (0, 60, 75, 100)


def sections(**changes):
    """Return sections of a table of 100 rows; ``changes`` replace whole sections."""
    given = {
        "table": table(),
        "missing": missing(),
        "mechanism": mechanism(),
        "imputed": imputed(),
        "validation": validation(),
        "results": results(),
    }
    return Sections(**(given | changes))


def table():
    return {
        "n_rows": 100, "n_columns": 4, "n_cells": 400, "n_missing": 235, "n_complete_rows": 0,
        "n_incomplete_columns": 3, "shown": list(NAMES[::-1]), "n_sampled": 100,
    }  # fmt: skip


def missing(p_value=0.0004):
    columns = [
        {"name": name, "kind": "real", "n_missing": n, "fraction": n / 100, "influx": 0.5,
         "outflux": None}
        for name, n in zip(NAMES, N_MISSING, strict=True)
    ]  # fmt: skip
    incomplete = list(NAMES[1:])
    rows = [
        {"observed": [False, False, False], "n": 55, "fraction": 0.55, "n_missing": 3},
        {"observed": [True, False, False], "n": 45, "fraction": 0.45, "n_missing": 2},
    ]
    return {
        "columns": columns,
        "patterns": {"columns": incomplete, "rows": rows, "n_patterns": 2},
        "correlation": {"columns": incomplete, "values": [[1.0, None, 0.1]] * 3},
        "row_map": {"columns": incomplete, "first_row": [0], "fraction": [[0.6, 0.75, 1.0]]},
        "little": {
            "statistic": 20.0,
            "df": 3.0,
            "p_value": p_value,
            "sentence": "Not made." if p_value is None else "A sentence.",
        },
    }


def mechanism(chosen="own value", *, assumed=False):
    predictor = {"predictor": "age", "by": "value", "auc": 0.8, "conf_low": 0.7, "conf_high": 0.9}
    columns = [
        {"name": name, "fraction": 0.6, "chosen": chosen if name == "bmi" else "at random",
         "assumed": assumed, "likelihoods": {}, "at_risk": None,
         "sentence": "Words.", "odds": None,
         "observed": {"edges": [0.0, 1.0], "levels": None, "counts": [3]},
         "predictors": [predictor]}
        for name in NAMES[1:3]
    ]  # fmt: skip
    sets = [
        {"number": k, "fraction": 0.5, "mechanism": "MAR", "missing": "bmi 50 %",
         "differs_in": "age +0.5 SD", "mask_rates": {"bmi": 0.5}}
        for k in range(2)
    ]  # fmt: skip
    by_own_value = ["bmi"] if chosen == "own value" else []
    return {
        "imputer": "MICEImputer", "compared": True, "columns": columns, "sets": sets,
        "own_value_found": [] if assumed else by_own_value,
        "own_value_assumed": by_own_value if assumed else [],
    }  # fmt: skip


def imputed():
    summary = {"n": 40, "mean": 1.0, "sd": 2.0, "low": -1.0, "high": 3.0}
    plain = {"density": None, "strip": None, "n_outside": 0}
    columns = [
        {**plain, "name": "bmi", "kind": "real", "n_imputed": 60, "n_outside": 60,
         "observed": summary, "imputed": summary, "bars": None},
        {**plain, "name": NAMES[2], "kind": "binary", "n_imputed": 75, "observed": None,
         "imputed": None,
         "bars": {"levels": ["no|", "</b>"], "observed": [0.5, 0.5], "imputed": [0.4, 0.6],
                  "imputed_low": [0.3, 0.5], "imputed_high": [0.5, 0.7]}},
    ]  # fmt: skip
    head = {
        "columns": list(NAMES[:3]), "row_numbers": [0, 1],
        "cells": [["1", "2", "no|"], ["3", "", "a\nb"]],
        "imputed": [[False, True, False], [False, False, True]],
    }  # fmt: skip
    return {"imputer": "MICEImputer", "m": 5, "columns": columns, "scatters": [], "head": head}


def validation(coverage=0.7, sizes=None):
    column = {
        "name": "bmi", "kind": "real", "n": 200,
        "error": {"PSMVAEImputer": 1.2, "MeanImputer": 1.0, "MICEImputer": 0.5},
        "coverage": coverage, "truth": [], "point": [], "low": [], "high": [], "pit": [20] * 10,
    }  # fmt: skip
    return {
        "sentence": "What was done.", "n_cells": 200, "methods": list(column["error"]),
        "error_numbers": column["error"], "error_levels": dict.fromkeys(column["error"]),
        "coverage": coverage, "pit": [20] * 10, "columns": [column],
        "training": {"epoch": [1, 2], "validation_error": [0.9, None], "seconds": 3.0},
        "effective_sample_size": sizes or [1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 4.0],
        "convergence": {"columns": ["bmi", "age"], "r_hat_mean": [1.01, None],
                        "r_hat_sd": [1.3, 1.0], "traces": {}},
    }  # fmt: skip


def results():
    estimate = {
        "term": "slope", "estimate": 2.0, "std_error": 0.5, "df": None, "p_value": 0.0001,
        "conf_low": 1.0, "conf_high": 3.0, "fmi": 0.62, "complete_cases": [1.0, -0.5, 2.5],
    }  # fmt: skip
    without = estimate | {"term": "mean", "std_error": None, "conf_low": None, "conf_high": None,
                          "p_value": None, "fmi": None, "complete_cases": None}  # fmt: skip
    assumption = {"assumption": "mar", "term": "slope", "estimate": 2.0, "conf_low": 1.0,
                  "conf_high": 3.0, "p_value": None, "null": 0.0, "alpha": 0.1}  # fmt: skip
    return {
        "m": 5, "dfcom": None, "df_rule": "rubin",
        "estimates": [estimate, without],
        "assumptions": [assumption], "assumptions_sentence": "Assumptions agree.",
        "tipping": {
            "column": "bmi", "term": "slope", "operation": "add", "null": 0.0,
            "alpha": 0.1, "neutral": 0.0, "axes": [[0.0, 1.0], [0.0, 2.0]],
            "groups": ["control", "treated"], "estimate": [[2.0, 1.0], [1.5, 0.1]],
            "conf_low": [[1.0, 0.2], [0.5, -1.0]], "conf_high": [[3.0, 2.0], [2.5, 1.2]],
            "margin": [[1.0, 0.2], [0.5, -1.0]],
            "p_value": [[0.001, 0.02], [0.01, None]], "holds": [[True, True], [True, False]],
            "points": [], "sentence": "It turns.",
        },
    }  # fmt: skip
