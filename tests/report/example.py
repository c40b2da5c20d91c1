"""Tables of all kinds, imputations without a model, and a complete report for tests.

``mixed_table``, ``hostile_table`` and ``wide_table`` are pandas frames with missing cells;
``in_library`` converts them; ``imputations`` completes a table by draws of observed values;
``report_data`` returns a `ReportData` in which every section is filled.
"""

import types
import typing

import numpy as np
import pandas as pd

from psmvae import MultipleImputation
from psmvae.reporting.data.columns import read_columns
from psmvae.reporting.data.imputed import imputed_data
from psmvae.reporting.data.mechanism import mechanism_data
from psmvae.reporting.data.missing import missing_data
from psmvae.reporting.data.relations import mask_relations
from psmvae.reporting.data.table import table_data
from psmvae.reporting.schema import SCHEMA

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "\"quotes' & ampersand",
    "</svg></style><img src=x onerror=alert(1)>",
    "שם מימין לשמאל \u202e",
    "🙂 emoji",
    "long " + "x" * 295,
    "",
    "$math_{x}$ \\frac{1}{2} %s {0}",
)
"""Names that a page must show as text."""


def mixed_table(n=300, seed=0):
    """Return a frame with all kinds of columns, among them an empty and a constant one."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, n).round(1)
    income = np.exp(rng.normal(8, 0.5, n) + 0.01 * (age - 50))
    frame = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "visits": pd.array(rng.poisson(12, n), dtype="Int64"),
            "smoker": pd.array(rng.random(n) < 0.3, dtype="boolean"),
            "city": rng.choice(["Basel", "Bern", "Zürich"], n).astype(object),
            "health": pd.Categorical(
                rng.choice(["bad", "fair", "good"], n), ["bad", "fair", "good"], ordered=True
            ),
            "group": pd.Categorical(rng.choice(["a", "b", "c", "d"], n)),
            "code": rng.choice([0.0, 1.0], n),
            "id": rng.permutation(n) * 1.5,
            "constant": np.full(n, 7.5),
            "void": np.full(n, np.nan),
        }
    )
    lost = {
        "income": (income > 3500) & (rng.random(n) < 0.7),
        "visits": rng.random(n) < 0.15,
        "smoker": (age > 55) & (rng.random(n) < 0.5),
        "city": rng.random(n) < 0.1,
        "health": rng.random(n) < 0.2,
        "group": rng.random(n) < 0.05,
        "code": rng.random(n) < 0.12,
        "constant": rng.random(n) < 0.1,
    }
    for name, where in lost.items():
        frame.loc[where, name] = None
    return frame


def hostile_table(n=200, seed=1):
    """Return a frame whose names and levels are those of `HOSTILE_NAMES`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            name: rng.normal(size=n) if k % 2 else rng.choice(HOSTILE_NAMES, n).astype(object)
            for k, name in enumerate(HOSTILE_NAMES)
        }
    )
    for name in HOSTILE_NAMES:
        frame.loc[rng.random(n) < 0.2, name] = None
    return frame


def dates_table(n=120, seed=2):
    """Return a frame with columns that no imputer models, and one that they do."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    frame = pd.DataFrame({"day": days, "x": rng.normal(size=n)})
    frame["date"] = [day.date() for day in days]
    frame.loc[:19, "day"] = pd.NaT
    frame.loc[30:59, "date"] = None
    frame.loc[rng.random(n) < 0.3, "x"] = np.nan
    return frame


def wide_table(n=100, n_columns=70, seed=3):
    """Return a frame with more columns than are shown; later ones have more missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_columns))
    x[rng.random(x.shape) < np.arange(n_columns) / n_columns * 0.3] = np.nan
    return pd.DataFrame(x, columns=[f"column {j}" for j in range(n_columns)])


def in_library(frame, library):
    """Return the frame as a table of pandas, polars, pyarrow or numpy (objects)."""
    if library == "pandas":
        return frame
    if library == "numpy":
        return frame.astype(object).where(frame.notna(), None).to_numpy()
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if library == "pyarrow":
        return table
    import polars as pl

    # by a dict, since polars otherwise renames a column without a name
    return pl.DataFrame(
        {name: pl.from_arrow(column) for name, column in zip(frame, table, strict=True)}
    )


def imputations(frame, m=3, seed=0):
    """Complete a pandas frame by draws of observed values; empty columns stay empty."""
    rng = np.random.default_rng(seed)
    missing = frame.isna().to_numpy() & frame.notna().any().to_numpy()
    tables = []
    for _ in range(m):
        table = frame.copy()
        for j, name in enumerate(frame):
            rows = np.flatnonzero(missing[:, j])
            donors = frame[name].dropna()
            if len(rows):
                table.loc[rows, name] = donors.iloc[rng.integers(len(donors), size=len(rows))].array
        tables.append(table)
    return MultipleImputation(frame, tuple(tables), missing, {"imputer": "HotDeck", "seed": seed})


def fitted_mice(frame, **parameters):
    """Return a quick MICE imputer with a comparison of mechanisms."""
    from psmvae import MICEImputer

    given = {"mask_model": "auto", "max_iter": 2, "random_state": 0} | parameters
    return MICEImputer(**given).fit(frame)


def report_data(frame=None, mi=None, imputer=None):
    """Return a report of a table in which no section is None.

    Sections 2 to 4 are computed from the table; the others hold plausible numbers.
    """
    frame = mixed_table() if frame is None else frame
    mi = imputations(frame, m=5) if mi is None else mi
    columns = read_columns(frame)
    table = table_data(columns)
    relations = mask_relations(columns, shown=table["shown"])
    imputed = imputed_data(mi, columns=columns, shown=table["shown"])
    return {
        "schema": SCHEMA,
        "title": "Missing values and imputations",
        "table": table,
        "summary": {
            "sentences": [
                f"{table['n_missing']:,} of {table['n_cells']:,} cells are missing.",
                "Rows fall into one pattern set.",
                "Explanations of the masks were not compared.",
                "Of 100 held-out cells, 90 % were within their 90 % intervals.",
                "There is one warning.",
            ],
            "warnings": ["column 'void' has no observed value"],
        },
        "missing": missing_data(columns, report=relations, shown=table["shown"]),
        "mechanism": mechanism_data(columns, imputer, report=relations, shown=table["shown"]),
        "imputed": imputed,
        "validation": _validation([column["name"] for column in imputed["columns"]]),
        "results": _results(),
        "methods": _methods(),
    }


def _validation(names):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    point = 0.8 * truth + 0.4 * rng.normal(size=40)
    numbers = {
        "truth": truth.tolist(),
        "point": point.tolist(),
        "low": (point - 0.9).tolist(),
        "high": (point + 0.9).tolist(),
        "pit": [5, 4, 3, 4, 4, 5, 3, 4, 4, 4],
    }
    levels = {name: [] for name in numbers}
    error = {"PSMVAEImputer": 0.52, "mean": 1.0, "MICE": 0.55}
    columns = [
        {
            "name": name,
            "kind": "real" if k % 2 == 0 else "categorical",
            "n": 40,
            "error": {method: value + 0.01 * k for method, value in error.items()},
            "coverage": 0.9 if k % 2 == 0 else None,
            **(numbers if k % 2 == 0 else levels),
        }
        for k, name in enumerate(names)
    ]
    return {
        "sentence": "5 % of the observed cells were held out, and the imputer was fitted again.",
        "n_cells": 40 * len(names),
        "methods": list(error),
        "error_numbers": dict(error),
        "error_levels": dict(error),
        "coverage": 0.9,
        "pit": [22, 18, 20, 21, 19, 20, 17, 23, 20, 20],
        "columns": columns,
        "training": {
            "epoch": list(range(0, 50, 5)),
            "validation_error": [1.0, 0.8, 0.7, 0.64, 0.6, 0.57, None, 0.54, 0.53, 0.53],
            "seconds": 12.5,
        },
        "effective_sample_size": [3.0, 12.0, 40.0, 120.0, 300.0, 700.0, 1000.0],
        "convergence": {
            "columns": names,
            "r_hat_mean": [1.01] * len(names),
            "r_hat_sd": [1.02] * (len(names) - 1) + [None],
            "traces": {name: np.round(rng.normal(size=(3, 20)), 3).tolist() for name in names[:6]},
        },
    }


def _results():
    delta = [-2.0, -1.0, 0.0, 1.0, 2.0]
    p_value = [[0.2], [0.08], [0.03], [0.01], [0.004]]
    return {
        "m": 5,
        "dfcom": 298.0,
        "df_rule": "barnard-rubin",
        "estimates": [
            {
                "term": term,
                "estimate": estimate,
                "std_error": 0.1,
                "df": 88.0,
                "p_value": 0.03,
                "conf_low": estimate - 0.2,
                "conf_high": estimate + 0.2,
                "fmi": 0.3,
                "complete_cases": [estimate + 0.05, estimate - 0.3, estimate + 0.4],
            }
            for term, estimate in (("Intercept", 1.2), ("age", 0.25))
        ],
        "assumptions": [
            {
                "assumption": assumption,
                "term": "age",
                "estimate": estimate,
                "conf_low": estimate - 0.2,
                "conf_high": estimate + 0.2,
                "p_value": 0.03,
                "null": 0.0,
                "alpha": 0.05,
            }
            for assumption, estimate in (("at random", 0.25), ("own value", 0.21))
        ],
        "assumptions_sentence": "The conclusion is the same under both assumptions.",
        "tipping": {
            "column": "income",
            "term": "age",
            "operation": "add",
            "null": 0.0,
            "alpha": 0.05,
            "neutral": 0.0,
            "axes": [delta],
            "groups": [],
            "estimate": [[0.25 + 0.05 * value] for value in delta],
            "conf_low": [[0.05 + 0.05 * value] for value in delta],
            "conf_high": [[0.45 + 0.05 * value] for value in delta],
            "p_value": p_value,
            "margin": [[0.05 + 0.05 * value] for value in delta],
            "holds": [[value[0] < 0.05] for value in p_value],
            "points": [-1.0],
            "sentence": "The conclusion changes at δ = -1.",
        },
    }


def _methods():
    return {
        "paragraph": "Missing values were imputed five times.",
        "questions": [
            {"question": f"Question {k}?", "answer": f"Answer {k}."} for k in range(1, 13)
        ],
        "versions": {"psmvae": "0.2", "python": "3.11"},
        "seed": 0,
        "parameters": {"m": "5"},
        "command": "psmvae report table.csv -o report.html",
    }


def check_type(value, annotation, where="report"):
    """Raise AssertionError where a value does not match its annotation, TypedDicts included."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if typing.is_typeddict(annotation):
        hints = typing.get_type_hints(annotation)
        assert isinstance(value, dict), where
        assert set(value) == set(hints), (where, set(value) ^ set(hints))
        for name, hint in hints.items():
            check_type(value[name], hint, f"{where}.{name}")
    elif origin is list:
        assert type(value) is list, (where, type(value))
        for k, item in enumerate(value):
            check_type(item, arguments[0], f"{where}[{k}]")
    elif origin is dict:
        assert type(value) is dict, where
        for name, item in value.items():
            check_type(name, arguments[0], f"{where} key")
            check_type(item, arguments[1], f"{where}[{name!r}]")
    elif origin is typing.Literal:
        assert value in arguments, (where, value)
    elif origin in (typing.Union, types.UnionType):
        errors = []
        for one in arguments:
            try:
                return check_type(value, one, where)
            except AssertionError as error:
                errors.append(error)
        raise errors[0]
    elif annotation is type(None):
        assert value is None, (where, value)
    elif annotation is float:
        # as in typing: an int is a float, a bool is neither here
        assert type(value) in (float, int), (where, type(value))
    else:
        assert type(value) is annotation, (where, type(value))
    return None
