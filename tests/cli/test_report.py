"""``psmvae report`` in a real subprocess."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

MICE = ["--method", "mice", "--mask-model", "auto"]


@pytest.fixture
def patients(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, 150)
    table = pd.DataFrame({"age": age, "bmi": 20 + 0.1 * age + rng.normal(size=150)}).round(2)
    table["<b>site</b>"] = np.where(rng.random(150) < 0.5, "north", "south")
    table.loc[rng.random(150) < 0.2, "bmi"] = np.nan
    path = tmp_path / "patients.csv"
    table.to_csv(path, index=False)
    return path


def test_a_report_with_an_analysis_and_a_tipping_point(psmvae, patients, tmp_path):
    page = tmp_path / "report.html"
    analysis = ["--formula", "bmi ~ age", "--column", "bmi", "--delta", "0:5:3", "--term", "age"]
    result = psmvae("report", patients, "-o", page, *MICE, "--multiple", 3, *analysis)
    assert result.code == 0, result.err
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "patients.csv" in text
    assert "Tipping point" in text
    assert "<b>site" not in text
    assert "&lt;b&gt;site" in text
    assert "are missing, most in bmi" in result.err


@pytest.mark.parametrize("name", ["r.json", "r.md"])
def test_other_formats_and_imputations_of_a_file(psmvae, patients, tmp_path, name):
    long = tmp_path / "all.csv"
    assert psmvae("impute", patients, "-o", long, "--multiple", 3, "--method", "mice").code == 0
    result = psmvae(
        "report", patients, "-o", tmp_path / name, "--imputations", long, "--title", "T"
    )
    assert result.code == 0, result.err
    text = (tmp_path / name).read_text()
    if name.endswith("json"):
        data = json.loads(text)
        # as Report.write_json writes it
        assert text == json.dumps(data, indent=1, allow_nan=False) + "\n"
        assert data["imputed"]["m"] == 3
        assert data["validation"] is None
        assert data["title"] == "T"
    else:
        assert text.startswith("# T")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delta", "0:1:2"], "--delta needs --column"),
        (["--column", "bmi", "--delta", "0:1:2"], "--column needs --formula"),
        (["--formula", "bmi"], "is not of the form"),
        (["--imputations", "all.csv", "--multiple", "5"], "--imputations has them"),
        (["--imputations", "all.csv", "--method", "mice"], "--method has no effect"),
        (
            ["--column", "nobody", "--delta", "0:1:2", "--formula", "bmi ~ age"],
            "no column 'nobody'",
        ),
        (["--pair", "bmi"], "--pair: 'bmi' is not of the form COLUMN,COLUMN"),
        (["--pair", "bmi,nobody"], "--pair: no column 'nobody' in the table"),
    ],
)
def test_wrong_options_are_refused_before_any_work(refused, patients, tmp_path, options, message):
    output = tmp_path / "r.html"
    assert message in refused(2, "report", patients, "-o", output, *options)
    assert not output.exists()


def test_packages_of_a_page_are_checked_before_any_work(monkeypatch, refused, patients, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    message = refused(
        1, "report", patients, "-o", tmp_path / "r.html", "--model", "none.safetensors"
    )
    assert 'needs jinja2: pip install "psmvae[report]"' in message


def test_pairs_of_columns(psmvae, refused, patients, tmp_path):
    table = pd.read_csv(patients)
    table["a, b"] = table["age"] + table["bmi"]
    table.to_csv(patients, index=False)
    output = tmp_path / "r.json"
    pairs = ["--pair", "age,bmi", "--pair", "bmi,a, b", "--pair", "a, b,age"]
    options = ["--no-validation", "--multiple", 2, "--method", "mice"]
    result = psmvae("report", patients, "-o", output, *options, *pairs)
    assert result.code == 0, result.err
    scatters = json.loads(output.read_text())["imputed"]["scatters"]
    assert [(one["x"], one["y"]) for one in scatters] == [
        ("age", "bmi"), ("bmi", "a, b"), ("a, b", "age"),
    ]  # fmt: skip
    wrong = ["--pair", "age,<b>site</b>"]
    message = refused(1, "report", patients, "-o", tmp_path / "other.html", *wrong)
    assert "a scatter plot needs numbers" in message


def test_an_existing_report_and_other_formats_are_refused(refused, patients, tmp_path):
    (tmp_path / "r.html").write_text("mine")
    assert "exists" in refused(2, "report", patients, "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "mine"
    assert ".html, .md or .json" in refused(2, "report", patients, "-o", tmp_path / "r.csv")


def test_imputations_of_another_table_are_refused(psmvae, refused, patients, tmp_path):
    other, long = tmp_path / "other.csv", tmp_path / "all.csv"
    pd.read_csv(patients).head(100).to_csv(other, index=False)
    assert psmvae("impute", other, "-o", long, "--multiple", 2, "--method", "mice").code == 0
    message = refused(1, "report", patients, "-o", tmp_path / "r.html", "--imputations", long)
    assert "another table" in message
