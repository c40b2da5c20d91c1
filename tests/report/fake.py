"""A report's data with every field filled, made up without an imputer."""

from itertools import pairwise

import numpy as np

from psmvae.reporting.schema import SCHEMA

HOSTILE = (
    "<script>window.hacked = true</script>",
    '"><img src=x onerror="window.hacked = true">',
    "</svg></title></style><script>window.hacked = true</script>",
    "javascript:alert(1) {{ 7 * 7 }} {% raw %}",
    "\u202etxt.exe",
    "عمر المريض",
    "🩺 pressure 👩‍⚕️",
    "",
    "a" * 300,
    "$\\frac{1}{0}$ & 'quoted' \x00\ud800",
)
NAMES = ("age", "sex", "bmi", "systolic", "cholesterol", "smoker", "income", "visit_3", "education")
_LEVELS = {"sex", "smoker", "education"}


def fake(names=NAMES, *, hostile=False, max_columns=60, optional=True):
    """Return the data of a report; ``optional=False`` is that of a table alone."""
    names = [*names, *HOSTILE] if hostile else list(names)
    rng = np.random.default_rng(0)
    kinds = {name: "categorical" if name in _LEVELS else "real" for name in names}
    rates = {name: round(0.45 * k / len(names), 4) for k, name in enumerate(names)}
    incomplete = [name for name in names if rates[name] > 0]
    shown = sorted(names, key=lambda name: -rates[name])[:max_columns]
    shown_incomplete = [name for name in shown if rates[name] > 0]
    data = {
        "schema": SCHEMA,
        "title": f"Report on {names[-1] if hostile else 'patients.csv'}",
        "table": {
            "n_rows": 12_345,
            "n_columns": len(names),
            "n_cells": 12_345 * len(names),
            "n_missing": int(12_345 * sum(rates.values())),
            "n_complete_rows": 2_345,
            "n_incomplete_columns": len(incomplete),
            "shown": shown,
            "n_sampled": 10_000,
        },
        "summary": _summary(names),
        "missing": _missing(names, kinds, rates, incomplete, rng),
        "mechanism": _mechanism(shown_incomplete, names, rates, kinds, optional, rng),
        "imputed": None,
        "validation": None,
        "results": None,
        "methods": _methods(names),
    }
    if optional:
        data["imputed"] = _imputed(shown_incomplete, kinds, rng)
        data["validation"] = _validation(shown_incomplete, kinds, rng)
        data["results"] = _results(names)
    return data


def _summary(names):
    return {
        "sentences": [
            "18.2 % of the 111,105 cells are missing, in 8 of 9 columns; 2,345 of 12,345 rows "
            "(19.0 %) are complete.",
            "The rows fall into 3 pattern sets of 61 %, 27 % and 12 % of the rows.",
            f"The mask of {names[-1]} is explained best by its own value: 40 % of the high values "
            "go missing. The other 7 columns are taken to be missing at random.",
            "On 2,000 held-out cells the imputer has an error of 0.62 standard deviations, MICE "
            "0.71 and the mean 1.00; 89 % of the 90 % intervals contain the value.",
            "Beware of 2 warnings, listed below.",
        ],
        "warnings": [
            f"More than 40 % of {names[-1]} is missing: results depend on the model.",
            "12 imputed values of bmi are outside the observed range.",
        ],
    }


def _missing(names, kinds, rates, incomplete, rng):
    columns = sorted(incomplete, key=lambda name: rates[name])
    rows = []
    for k in range(min(12, 2 + len(columns))):
        observed = (rng.random(len(columns)) > 0.12 * min(k, 4)).tolist()
        rows.append(
            {
                "observed": observed,
                "n": 4_000 // (k + 1),
                "fraction": 4_000 // (k + 1) / 12_345,
                "n_missing": observed.count(False),
            }
        )
    n = len(columns)
    noise = rng.uniform(-0.3, 1, (n, n))
    correlation = np.round((noise + noise.T) / 2, 3)
    np.fill_diagonal(correlation, 1)
    return {
        "columns": [
            {
                "name": name,
                "kind": kinds[name],
                "n_missing": int(12_345 * rates[name]),
                "fraction": rates[name],
                "influx": round(rates[name] / 2, 3),
                "outflux": round(1 - rates[name], 3) if rates[name] else None,
            }
            for name in names
        ],
        "patterns": {"columns": columns, "rows": rows, "n_patterns": 41},
        "correlation": {"columns": columns, "values": correlation.tolist()},
        "row_map": {
            "columns": columns,
            "first_row": list(range(0, 12_300, 123)),
            "fraction": rng.random((100, n)).round(2).tolist(),
        },
        "little": {
            "statistic": 412.7,
            "df": 213,
            "p_value": 2e-9,
            "sentence": "Little's test speaks against values missing completely at random "
            "(d² = 412.70, df = 213, p < 0.001).",
        },
    }


def _histogram(levels):
    if levels:
        return {"edges": None, "levels": ["no", "yes", "<b>other</b>"], "counts": [500, 300, 20]}
    return {
        "edges": list(range(11)),
        "levels": None,
        "counts": [1, 5, 20, 50, 80, 70, 40, 20, 8, 2],
    }


def _mechanism(shown, names, rates, kinds, compared, rng):
    columns = []
    for k, name in enumerate(shown):
        own = k % 3 == 0
        levels = kinds[name] == "categorical"
        columns.append(
            {
                "name": name,
                "fraction": rates[name],
                "chosen": None if not compared else "own value" if own else "at random",
                "assumed": k == 3,
                "likelihoods": {"at random": 12.4, "own value": 13.1, "both": 15.0}
                if compared
                else {},
                "at_risk": 0.31 if own else None,
                "sentence": f"{name}: taken to be missing at random (its value explains 12.1 nats "
                "above chance, the other columns 13.9).",
                "odds": {
                    "value": ["no", "yes", "<b>other</b>"] if levels else list(range(10)),
                    "probability": [0.1, 0.3, 0.2]
                    if levels
                    else np.linspace(0.1, 0.6, 10).tolist(),
                    "low": [0.05, 0.2, 0.1] if levels else np.linspace(0.05, 0.4, 10).tolist(),
                    "high": [0.2, 0.4, 0.5] if levels else np.linspace(0.2, 0.8, 10).tolist(),
                }
                if own and compared
                else None,
                "observed": _histogram(levels),
                "predictors": [
                    {
                        "predictor": names[(k + j) % len(names)],
                        "by": "value" if j % 2 else "mask",
                        "auc": 0.8 - 0.05 * j,
                        "conf_low": 0.75 - 0.05 * j,
                        "conf_high": None if j == 3 else 0.85 - 0.05 * j,
                    }
                    for j in range(4)
                ]
                + [
                    {
                        "predictor": "all other columns",
                        "by": "all other columns",
                        "auc": 0.86,
                        "conf_low": 0.83,
                        "conf_high": 0.89,
                    }
                ],
            }
        )
    sets = [
        {
            "number": k + 1,
            "fraction": fraction,
            "mechanism": mechanism,
            "missing": f"{names[-1]} 40 %, {names[-2:][0]} 31 %",
            "differs_in": f"{names[0]} higher by 0.8 standard deviations",
            "mask_rates": {name: min(1.0, rates[name] * (k + 1)) for name in shown},
        }
        for k, (fraction, mechanism) in enumerate(
            [(0.61, "at random"), (0.27, f"high {names[-1]} go missing"), (0.12, "drop-out")]
        )
    ]
    return {
        "imputer": "PSMVAEImputer" if compared else None,
        "compared": compared,
        "columns": columns,
        "own_value_found": [one["name"] for one in columns if one["odds"] and not one["assumed"]],
        "own_value_assumed": [one["name"] for one in columns if one["odds"] and one["assumed"]],
        "sets": sets if compared else [],
    }


def _imputed(shown, kinds, rng):
    columns = []
    x = np.linspace(-3, 6, 60)
    for k, name in enumerate(shown):
        levels = kinds[name] == "categorical"
        summary = {"n": 4_000, "mean": 1.2345, "sd": 1.01, "low": -2.9, "high": 5.2}
        columns.append(
            {
                "name": name,
                "kind": kinds[name],
                "n_imputed": 5_000 - 20 * k,
                "n_outside": 0 if levels else 12 - k if k < 12 else 0,
                "observed": None if levels else summary,
                "imputed": None if levels else {**summary, "mean": 1.5, "n": 5_000},
                "density": None
                if levels
                else {
                    "x": x.tolist(),
                    "observed": np.exp(-((x - 1) ** 2)).tolist(),
                    "imputed": [np.exp(-((x - 1.5 - j / 20) ** 2)).tolist() for j in range(5)],
                },
                "bars": {
                    "levels": ["no", "yes", "<b>other</b>"],
                    "observed": [0.5, 0.4, 0.1],
                    "imputed": [0.4, 0.5, 0.1],
                    "imputed_low": [0.35, 0.45, 0.05],
                    "imputed_high": [0.45, 0.55, 0.15],
                }
                if levels
                else None,
                "strip": None
                if levels
                else {
                    "observed": rng.normal(size=40).tolist(),
                    "imputed": rng.normal(size=(5, 20)).tolist(),
                },
            }
        )
    numeric = [name for name in shown if kinds[name] != "categorical"]
    points = rng.normal(size=(30, 2)).tolist()
    return {
        "imputer": "PSMVAEImputer",
        "m": 20,
        "columns": columns,
        "scatters": [
            {"x": one, "y": other, "observed": points, "imputed": points[:10]}
            for one, other in list(pairwise(numeric))[:4]
        ],
        "head": {
            "columns": shown,
            "row_numbers": list(range(8)),
            "cells": [
                [f"{value:.2f}" if j else "<i>no</i>" for j, value in enumerate(row)]
                for row in rng.normal(size=(8, len(shown)))
            ],
            "imputed": (rng.random((8, len(shown))) < 0.3).tolist(),
        },
    }


def _validation(shown, kinds, rng):
    columns = []
    for k, name in enumerate(shown):
        levels = kinds[name] == "categorical"
        truth = rng.normal(size=0 if levels else 20)
        columns.append(
            {
                "name": name,
                "kind": kinds[name],
                "n": 250,
                "error": {"PSMVAEImputer": 0.6 + k / 100, "MICE": 0.7, "mean": 1.0},
                "coverage": None if levels else 0.88,
                "truth": truth.tolist(),
                "point": (truth * 0.8).tolist(),
                "low": (truth * 0.8 - 1).tolist(),
                "high": (truth * 0.8 + 1).tolist(),
                "pit": [] if levels else [20, 25, 30, 25, 22, 28, 26, 24, 25, 25],
            }
        )
    return {
        "sentence": "20 % of the observed cells were held out, and the imputer was fitted again "
        "without them.",
        "n_cells": 2_000,
        "methods": ["PSMVAEImputer", "MICE", "mean"],
        "error_numbers": {"PSMVAEImputer": 0.62, "MICE": 0.71, "mean": 1.0},
        "error_levels": {"PSMVAEImputer": 0.2, "MICE": None, "mean": 0.4},
        "coverage": 0.89,
        "pit": [190, 210, 200, 195, 205, 200, 198, 202, 210, 190],
        "columns": columns,
        "training": {
            "epoch": list(range(1, 41)),
            "validation_error": [1 / (1 + k / 10) for k in range(40)],
            "seconds": 12.3,
        },
        "effective_sample_size": [3.0, 8.0, 20.0, 45.0, 80.0, 120.0, 200.0],
        "convergence": {
            "columns": list(shown[:6]),
            "r_hat_mean": [1.01, 1.02, None, 1.0, 1.12, 1.0][: len(shown[:6])],
            "r_hat_sd": [1.0] * len(shown[:6]),
            "traces": {name: rng.normal(size=(4, 20)).tolist() for name in shown[:6]},
        },
    }


def _results(names):
    return {
        "m": 20,
        "dfcom": None,
        "df_rule": "rubin",
        "estimates": [
            {
                "term": term,
                "estimate": estimate,
                "std_error": 0.1234,
                "df": 512.3,
                "p_value": p,
                "conf_low": estimate - 0.25,
                "conf_high": estimate + 0.25,
                "fmi": 0.23,
                "complete_cases": None
                if k == 2
                else [estimate * 1.1, estimate - 0.5, estimate + 0.6],
            }
            for k, (term, estimate, p) in enumerate(
                [("Intercept", 12.3, 1e-9), (names[0], -0.52, 0.012), (names[-1], 0.0123, 0.83)]
            )
        ],
        "assumptions": [
            {
                "assumption": assumption,
                "term": names[0],
                "estimate": estimate,
                "conf_low": estimate - 0.3,
                "conf_high": estimate + 0.3,
                "p_value": 0.01,
                "null": 0.0,
                "alpha": 0.05,
            }
            for assumption, estimate in [("complete cases", -0.6), ("mar", -0.52), ("self", -0.3)]
        ],
        "assumptions_sentence": "The conclusion holds under all assumptions.",
        "tipping": {
            "column": names[-1],
            "term": names[0],
            "operation": "add",
            "null": 0.0,
            "alpha": 0.05,
            "neutral": 0.0,
            "axes": [[-2.0, -1.0, 0.0, 1.0, 2.0]],
            "groups": [],
            "estimate": [[-0.7], [-0.6], [-0.52], [-0.3], [-0.1]],
            "conf_low": [[-1.0], [-0.9], [-0.8], [-0.6], [-0.4]],
            "conf_high": [[-0.4], [-0.3], [-0.2], [-0.01], [0.2]],
            "p_value": [[0.001], [0.001], [0.002], [0.04], [0.5]],
            "margin": [[0.4], [0.3], [0.2], [0.01], [-0.2]],
            "holds": [[True], [True], [True], [True], [False]],
            "points": [1.1],
            "sentence": "The conclusion turns at δ = 1.10.",
        },
    }


def _methods(names):
    return {
        "paragraph": f"Of 12,345 rows, 2,345 were complete. Missing values of {names[-1]} and 7 "
        "other columns were imputed 20 times by a deep pattern-set mixture model (psmvae 0.2). "
        "Estimates were pooled by Rubin's rules with Barnard–Rubin degrees of freedom.",
        "questions": [
            {"question": f"Question {k} of the list?", "answer": f"Answer {k} about {names[0]}."}
            for k in range(1, 13)
        ],
        "versions": {"psmvae": "0.2.0", "Python": "3.12.1", "torch": "2.5.0"},
        "seed": 0,
        "parameters": {"mask_model": "'auto'", "max_epochs": "500"},
        "command": "psmvae report patients.csv -o report.html --seed 0",
    }
