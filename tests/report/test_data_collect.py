"""All sections of a report together."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import psmvae
from psmvae.multiple import MultipleImputation
from psmvae.reporting import Report
from psmvae.reporting.data.collect import collect
from psmvae.reporting.markdown import to_markdown
from psmvae.reporting.schema import SCHEMA, ReportData
from psmvae.table import ColumnMismatchError
from report.example import check_type, dates_table, hostile_table, mixed_table


def mean_of_y(table):
    return {"mean of y": (table["y"].mean(), table["y"].var() / len(table))}


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=150)})
    df["y"] = df["x"] + rng.normal(size=150)
    df["<script>"] = rng.choice(["a", "b"], 150)
    df["y"] = df["y"].mask(rng.random(150) < 0.3)
    df["<script>"] = df["<script>"].mask(rng.random(150) < 0.1)
    imputer = psmvae.MICEImputer(random_state=0).fit(df)
    return df, imputer, imputer.impute_multiple(df, m=4)


def test_everything(study):
    df, imputer, mi = study
    steps = []
    fits = mi.analyse(mean_of_y)
    tp = psmvae.tipping_point(mi, mean_of_y, "y", [0, 1])
    data = collect(df, imputer, mi, fits, tp, title="A title", progress=steps.append)
    assert list(data) == list(ReportData.__annotations__)
    assert (data["schema"], data["title"]) == (SCHEMA, "A title")
    assert data["imputed"]["m"] == 4
    assert data["validation"]["methods"] == ["MICEImputer", "MeanImputer"]
    assert data["results"]["estimates"][0]["term"] == "mean of y"
    numbers, levels = data["validation"]["error_numbers"], data["validation"]["error_levels"]
    errors = {one["name"]: one["error"] for one in data["validation"]["columns"]}
    for method in data["validation"]["methods"]:
        of_numbers = [errors["x"][method], errors["y"][method]]
        assert numbers[method] == pytest.approx(np.mean(of_numbers))
        assert levels[method] == errors["<script>"][method]
    assert len(data["summary"]["sentences"]) == 5
    assert steps[0] == "missing values"
    assert "results" in steps
    json.dumps(data, allow_nan=False)
    text = to_markdown(data)
    assert "### Twelve questions, after van Buuren's guideline for reporting" in text
    assert "<script>" not in text.replace("\\<script\\>", "")


def test_pairs_are_chosen(study):
    df, _, mi = study
    df = df.assign(z=df["x"] ** 2)
    mi = MultipleImputation(
        df, tuple(one.assign(z=one["x"] ** 2) for one in mi), df.isna().to_numpy(), mi.info
    )
    data = collect(df, mi=mi, pairs=[("z", "y"), ("x", "z")])
    assert [(one["x"], one["y"]) for one in data["imputed"]["scatters"]] == [("z", "y"), ("x", "z")]
    assert "pairs=[('z', 'y'), ('x', 'z')]" in data["methods"]["command"]
    made = psmvae.report(df, mi=mi, pairs=[["x", "y"]])
    assert len(made.json()["imputed"]["scatters"]) == 1


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([("x", "nobody")], ValueError, r"pairs: there is no column 'nobody'; the columns are 'x'"),
        ([("x", "<script>")], ValueError, "pairs: column '<script>' is binary; a scatter plot"),
        (["xy"], TypeError, "pairs must be a list of pairs of column names"),
        ([("x", "y", "x")], TypeError, "pairs must be a list of pairs"),
    ],
)
def test_wrong_pairs_are_refused_before_any_work(study, pairs, error, message):
    df, imputer, _ = study
    steps = []
    with pytest.raises(error, match=message):
        collect(df, imputer, pairs=pairs, progress=steps.append)
    assert steps == []


def test_pairs_need_imputations(study):
    with pytest.raises(ValueError, match="give imputer or mi too"):
        collect(study[0], pairs=[("x", "y")])


def test_a_table_alone(study):
    df, _, _ = study
    data = collect(df)
    assert data["imputed"] is data["validation"] is data["results"] is None
    assert not data["mechanism"]["compared"]
    json.dumps(data, allow_nan=False)
    to_markdown(data)


def test_an_imputer_alone_gives_five_imputations(study):
    df, imputer, _ = study
    data = collect(df, imputer, validate=False)
    assert data["imputed"]["m"] == 5
    assert data["validation"] is None
    # the seed of the report is that of samples, and not of the imputations
    again = collect(df, imputer, validate=False, random_state=9)["imputed"]
    assert again["head"] == data["imputed"]["head"]
    first = imputer.impute_multiple(df, m=5)[0]
    shown = data["imputed"]["head"]
    assert len(shown["cells"]) <= len(first)


def test_imputations_without_their_imputer(study):
    df, _, mi = study
    data = collect(df, mi=MultipleImputation.from_long(mi.to_long()))
    assert data["imputed"]["m"] == 4
    assert data["validation"] is None
    paragraph = data["methods"]["paragraph"]
    assert "by [method to be added] ([software and version to be added])." in paragraph
    assert "psmvae" not in paragraph
    software = data["methods"]["questions"][4]["answer"]
    assert software.startswith("Imputations: [software and version to be added]. This report: ")
    assert "mi = psmvae.MultipleImputation.from_long(...)" in data["methods"]["command"]
    assert "4 imputations.\n" in to_markdown(data)
    page = Report(data).html()
    assert "<p>4 imputations. Imputed values" in page
    assert "Imputed by" not in page
    json.dumps(data, allow_nan=False)


def test_warnings_of_the_imputations_are_kept(study):
    df, _, _ = study
    improper = psmvae.MissForestImputer(random_state=0, n_jobs=1).fit(df)
    data = collect(df, improper, validate=False)
    found = [text for text in data["summary"]["warnings"] if "too narrow" in text]
    assert len(found) == 1


def test_polars_and_arrays():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    X[:20, 1] = np.nan
    for table in (X, pl.DataFrame(X, schema=["a", "b", "c"])):
        imputer = psmvae.MeanImputer(random_state=0).fit(table)
        data = collect(table, imputer)
        assert data["validation"]["methods"] == ["MeanImputer", "MICEImputer"]
        json.dumps(data, allow_nan=False)
        to_markdown(data)


def test_a_complete_table():
    X = np.random.default_rng(0).normal(size=(60, 2))
    data = collect(X, psmvae.MeanImputer(random_state=0).fit(X))
    assert data["summary"]["sentences"][0] == "No cell is missing in 60 rows and 2 columns."
    json.dumps(data, allow_nan=False)
    to_markdown(data)


def test_the_same_seed_gives_the_same_report(study):
    df, imputer, mi = study
    assert collect(df, imputer, mi) == collect(df, imputer, mi)


def test_an_imputer_that_is_not_fitted(study):
    with pytest.raises(NotFittedError, match=r"MICEImputer is not fitted: call imputer\.fit"):
        collect(study[0], psmvae.MICEImputer())


def test_an_imputer_of_other_columns(study):
    df, imputer, _ = study
    with pytest.raises(ColumnMismatchError, match="'x'"):
        collect(df.rename(columns={"x": "other"}), imputer)


def test_imputations_of_another_table(study):
    df, _, mi = study
    with pytest.raises(ValueError, match="another table than X: it has 150 rows, and X has 100"):
        collect(df[:100], mi=mi)
    with pytest.raises(ValueError, match="another table than X: the columns differ in"):
        collect(df.rename(columns={"x": "other"}), mi=mi)
    with pytest.raises(ValueError, match="have another order"):
        collect(df[["y", "x", "<script>"]], mi=mi)


@pytest.mark.parametrize("name", ["imputer", "mi"])
def test_objects_of_other_types(study, name):
    with pytest.raises(TypeError, match=f"{name} must be"):
        collect(study[0], **{name: 3})


@pytest.mark.parametrize("make", [mixed_table, hostile_table, dates_table])
def test_odd_tables_follow_the_schema(make):
    frame = make()
    imputer = None
    if make is not dates_table:
        with warnings.catch_warnings():
            # an empty column, an identifier
            warnings.simplefilter("ignore")
            imputer = psmvae.MeanImputer(random_state=0).fit(frame)
    data = collect(frame, imputer)
    check_type(data, ReportData)
    json.dumps(data, allow_nan=False)
    to_markdown(data).encode()
    if imputer is not None:
        assert data["validation"]["methods"] == ["MeanImputer", "MICEImputer"]
