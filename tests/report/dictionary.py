"""The dictionary of a report with every part filled in."""

import numpy as np

HOSTILE = [
    "<script>alert(1)</script>",
    "</svg><p>",
    "\"quotes\" & 'single'",
    "$x^2$ and $",
    "two\nlines\tand a tab",
    "x" * 300,
    "🧪 emoji 👩‍🔬",
    "שלום עולם",
    "\u202eevil\u202c",
    "",
    "bell\x07 nul\x00 \ud800 \ufffe",
    "]]> &lt; %s {0}",
]


def report_data(names=None, n_levels=3, seed=0):
    """Return a dictionary with numeric columns and, every fourth, columns with levels."""
    rng = np.random.default_rng(seed)
    names = list(names or ["age", "bmi", "chol", "smoker", "income", "glucose"])
    d = len(names)
    fraction = np.sort(rng.uniform(0.02, 0.6, d))[::-1]
    has_levels = [k % 4 == 3 for k in range(d)]
    level_names = [
        f"{HOSTILE[k % len(HOSTILE)] if names[0] in HOSTILE else 'level'} {k}"
        for k in range(n_levels)
    ]
    kinds = ["categorical" if each else "real" for each in has_levels]
    patterns = rng.random((min(25, 2**d), d)) > fraction
    patterns[0] = True
    counts = np.sort(rng.integers(1, 4000, len(patterns)))[::-1]
    mask = rng.random((300, d)) < fraction
    correlation = np.clip(np.corrcoef(mask.T) * 4, -1, 1)
    np.fill_diagonal(correlation, 1)
    return {
        "schema": 1,
        "title": "A table",
        "table": {
            "n_rows": 10_000, "n_columns": d, "n_cells": 10_000 * d,
            "n_missing": int(10_000 * fraction.sum()), "n_complete_rows": 1000,
            "n_incomplete_columns": d, "shown": names, "n_sampled": 10_000,
        },
        "summary": {"sentences": [], "warnings": []},
        "missing": {
            "columns": [
                {
                    "name": name, "kind": kinds[k], "n_missing": int(10_000 * fraction[k]),
                    "fraction": float(fraction[k]), "influx": float(rng.uniform(0, 0.6)),
                    "outflux": float(rng.uniform(0.2, 0.9)),
                }
                for k, name in enumerate(names)
            ],
            "patterns": {
                "columns": names,
                "rows": [
                    {
                        "observed": row.tolist(), "n": int(n), "fraction": float(n / counts.sum()),
                        "n_missing": int((~row).sum()),
                    }
                    for row, n in zip(patterns, counts, strict=True)
                ],
                "n_patterns": 132,
            },
            "correlation": {"columns": names, "values": correlation.tolist()},
            "row_map": {
                "columns": names, "first_row": [100 * k for k in range(100)],
                "fraction": rng.beta(2, 2 / fraction, size=(100, d)).tolist(),
            },
            "little": {"statistic": 1.0, "df": 1, "p_value": 0.5, "sentence": ""},
        },
        "mechanism": {
            "imputer": "PSMVAEImputer", "compared": True, "own_value_found": names,
            "own_value_assumed": [],
            "columns": [
                _mechanism(name, names, fraction[k], level_names if has_levels[k] else None, rng)
                for k, name in enumerate(names)
            ],
            "sets": [
                {
                    "number": k, "fraction": share, "mechanism": "", "missing": "",
                    "differs_in": "",
                    "mask_rates": {name: float(rng.beta(0.5, 1)) for name in names},
                }
                for k, share in enumerate((0.5, 0.3, 0.15, 0.05))
            ],
        },
        "imputed": {
            "imputer": "PSMVAEImputer", "m": 20,
            "columns": [
                _imputed(name, kinds[k], level_names if has_levels[k] else None, rng)
                for k, name in enumerate(names)
            ],
            "scatters": [
                {
                    "x": names[0], "y": names[-1],
                    "observed": rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 200).tolist(),
                    "imputed": rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 100).tolist(),
                }
            ],
            "head": {"columns": names, "row_numbers": [], "cells": [], "imputed": []},
        },
        "validation": _validation(names, kinds, rng),
        "results": _results(names, rng),
        "methods": {
            "paragraph": "", "questions": [], "versions": {}, "seed": 0, "parameters": {},
            "command": "",
        },
    }  # fmt: skip


def _mechanism(name, names, fraction, levels, rng):
    if levels is None:
        values = rng.normal(50, 10, 500)
        counts, edges = np.histogram(values, bins=20)
        x = np.linspace(edges[0], edges[-1], 40)
        observed = {"edges": edges.tolist(), "levels": None, "counts": counts.tolist()}
        p = 0.5 / (1 + np.exp(-(x - 55) / 5)) + 0.02
        value = x.tolist()
    else:
        observed = {
            "edges": None,
            "levels": levels,
            "counts": rng.integers(5, 500, len(levels)).tolist(),
        }
        p = rng.uniform(0.1, 0.6, len(levels))
        value = list(levels)
    low, high = np.clip(p - 0.08, 0, 1), np.clip(p + 0.1, 0, 1)
    others = [each for each in names if each != name][:5]
    predictors = [
        {
            "predictor": each, "by": "mask" if k % 2 else "value", "auc": 0.8 - 0.05 * k,
            "conf_low": 0.75 - 0.05 * k, "conf_high": 0.84 - 0.05 * k,
        }
        for k, each in enumerate(others)
    ]  # fmt: skip
    predictors.append(
        {
            "predictor": "",
            "by": "all other columns",
            "auc": 0.86,
            "conf_low": None,
            "conf_high": None,
        }
    )
    return {
        "name": name, "fraction": float(fraction), "chosen": "own value", "assumed": False,
        "likelihoods": {"own value": 3.0, "at random": 1.0}, "at_risk": 0.3,
        "sentence": "",
        "odds": {
            "value": value, "probability": p.tolist(), "low": low.tolist(), "high": high.tolist()
        },
        "observed": observed, "predictors": predictors,
    }  # fmt: skip


def _imputed(name, kind, levels, rng):
    column = {
        "name": name, "kind": kind, "n_imputed": 100, "n_outside": 0, "observed": None,
        "imputed": None, "density": None, "bars": None, "strip": None,
    }  # fmt: skip
    if levels is not None:
        observed, imputed = rng.dirichlet(np.ones(len(levels)), 2)
        column["bars"] = {
            "levels": levels, "observed": observed.tolist(), "imputed": imputed.tolist(),
            "imputed_low": (0.8 * imputed).tolist(), "imputed_high": (1.1 * imputed).tolist(),
        }  # fmt: skip
        return column
    x = np.linspace(20, 90, 100)

    def density(mean, sd):
        return (np.exp(-0.5 * ((x - mean) / sd) ** 2) / sd / 2.507).tolist()

    column["density"] = {
        "x": x.tolist(), "observed": density(50, 9),
        "imputed": [density(58 + rng.normal(), 10 + rng.normal()) for _ in range(10)],
    }  # fmt: skip
    column["strip"] = {
        "observed": rng.normal(50, 9, 200).tolist(),
        "imputed": [rng.normal(58, 10, 50).tolist() for _ in range(5)],
    }
    return column


def _validation(names, kinds, rng):
    methods = ["PSMVAEImputer", "mean", "MICE"]
    columns = []
    for name, kind in zip(names, kinds, strict=True):
        truth = rng.normal(50, 9, 100)
        point = 50 + 0.6 * (truth - 50) + rng.normal(0, 5, 100)
        numeric = kind == "real"
        columns.append(
            {
                "name": name, "kind": kind, "n": 412,
                "error": dict(zip(methods, rng.uniform(0.4, 1, 3).tolist(), strict=True)),
                "coverage": 0.89 if numeric else None,
                "truth": truth.tolist() if numeric else [],
                "point": point.tolist() if numeric else [],
                "low": (point - 12).tolist() if numeric else [],
                "high": (point + 12).tolist() if numeric else [],
                "pit": rng.multinomial(412, np.ones(10) / 10).tolist() if numeric else [0] * 10,
            }
        )  # fmt: skip
    return {
        "sentence": "", "n_cells": 412 * len(names), "methods": methods,
        "error_numbers": dict.fromkeys(methods, 0.5), "error_levels": dict.fromkeys(methods, 0.3),
        "coverage": 0.89,
        "pit": rng.multinomial(1000, np.ones(10) / 10).tolist(), "columns": columns,
        "training": {
            "epoch": list(range(0, 300, 2)),
            "validation_error": [0.6 + 0.4 * np.exp(-k / 30) + 0.0004 * k for k in range(150)],
            "seconds": 12.0,
        },
        "effective_sample_size": None,
        "convergence": {
            "columns": names, "r_hat_mean": rng.uniform(1, 1.15, len(names)).tolist(),
            "r_hat_sd": [None, *rng.uniform(1, 1.1, len(names) - 1)],
            "traces": {
                name: rng.normal(50, 1, (5, 20)).tolist() for name in list(dict.fromkeys(names))[:6]
            },
        },
    }  # fmt: skip


def _results(names, rng):
    terms = ["Intercept", *names[:5]]
    rows = []
    for term in terms:
        estimate = float(rng.normal())
        rows.append(
            {
                "term": term, "estimate": estimate, "std_error": 0.3, "df": 40.0, "p_value": 0.02,
                "conf_low": estimate - 0.6, "conf_high": estimate + 0.6, "fmi": 0.3,
                "complete_cases": [estimate + 0.2, estimate - 0.8, estimate + 1.2],
            }
        )  # fmt: skip
    delta = np.linspace(-10, 10, 21)
    estimate = 2 - 0.2 * delta
    return {
        "m": 20, "dfcom": 998.0, "df_rule": "barnard-rubin",
        "estimates": rows,
        "assumptions": [
            {
                "assumption": each, "term": names[0], "estimate": 1.0 + k / 5, "conf_low": 0.4,
                "conf_high": 2.0 + k / 5, "p_value": 0.01, "null": 0.5, "alpha": 0.1,
            }
            for k, each in enumerate(("complete cases", "mar", "latent", "self"))
        ],
        "assumptions_sentence": "",
        "tipping": {
            "column": names[0], "term": names[1], "operation": "add", "null": 0.0, "alpha": 0.1,
            "neutral": 0.0, "axes": [delta.tolist()], "margin": (estimate - 1.1)[:, None].tolist(),
            "groups": [], "estimate": estimate[:, None].tolist(),
            "conf_low": (estimate - 1.1)[:, None].tolist(),
            "conf_high": (estimate + 1.1)[:, None].tolist(),
            "p_value": [[0.01]] * 21, "holds": (estimate[:, None] > 1.1).tolist(), "points": [4.5],
            "sentence": "",
        },
    }  # fmt: skip


def tipping_map(data):
    """Return the tipping point analysis of a report with a δ for each of two groups."""
    one, two = np.linspace(-10, 10, 11), np.linspace(-8, 8, 9)
    estimate = 2 - 0.2 * one[:, None] + 0.15 * two
    return {
        **data["results"]["tipping"], "axes": [one.tolist(), two.tolist()],
        "margin": (estimate - 1.1).tolist(),
        "groups": ["treated", "placebo"], "estimate": estimate.tolist(), "points": [],
        "conf_low": (estimate - 1.1).tolist(), "conf_high": (estimate + 1.1).tolist(),
        "p_value": np.full(estimate.shape, 0.01).tolist(), "holds": (estimate > 1.1).tolist(),
    }  # fmt: skip
