"""``psmvae analyse``: pooled estimates of a formula, from long files."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

pytest.importorskip("statsmodels")

# written by benchmarks/r_pool.R
R = json.loads((Path(__file__).parent.parent / "multiple" / "r_pool.json").read_text())[
    "statsmodels"
]
FORMULA = {
    "ols": ["--formula", "y ~ x1 + x2 + g"],
    "binomial": ["--formula", "z ~ x1 + x2 + y", "--family", "binomial"],
    "poisson": ["--formula", "count ~ x1 + x2 + y", "--family", "poisson"],
}
TERMS = {"(Intercept)": "Intercept", "gb": "g[T.b]", "gc": "g[T.c]"}
NULL = "x2 = 0, g[T.b] = 0, g[T.c] = 0"


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """Five imputations by R's mice."""
    path = tmp_path_factory.mktemp("long") / "all.csv"
    frame = pd.DataFrame(R["data"])
    frame["answer"] = np.where(frame["z"] == 1, "yes", "no")
    frame.to_csv(path, index=False)
    return path


def pooled(text):
    """The rows of a CSV table by term."""
    return {row["term"]: row for row in csv.DictReader(io.StringIO(text))}


@pytest.mark.parametrize("model", FORMULA)
def test_pooled_estimates_equal_those_of_r(psmvae, long, model):
    result = psmvae("analyse", long, *FORMULA[model], "--format", "csv")
    assert result.code == 0, result.err
    found = pooled(result.out)
    terms = [TERMS.get(term, term) for term in R[model]["terms"]]
    for name, expected in R[model]["pooled"].items():
        values = [float(found[term][name]) for term in terms]
        np.testing.assert_allclose(values, expected, rtol=1e-7)


@pytest.mark.parametrize("method", ["D1", "D2", "D3"])
def test_tests_of_several_terms(psmvae, long, method):
    options = [] if method == "D1" else ["--method", method]
    result = psmvae("analyse", long, *FORMULA["ols"], "--test", NULL, *options)
    assert result.code == 0, result.err
    expected = R["ols"]["D1_dfcom" if method == "D1" else method]
    line = result.out.splitlines()[-1]
    assert line.startswith(f"{method} test of {NULL}: F(3, {expected['df2']:.1f})")
    assert f"= {expected['F.value']:.3f}, p = {expected['P(>F)']:.3f}" in line


def test_table_of_a_new_process(psmvae_process, long):
    result = psmvae_process("analyse", long, *FORMULA["ols"])
    assert result.code == 0, result.err
    head, rule, *rows = result.out.splitlines()
    assert re.split(r"\s{2,}", head)[:5] == [
        "term",
        "estimate",
        "std. error",
        "95% low",
        "95% high",
    ]
    assert set(rule) == {"-"}
    assert [row.split()[0] for row in rows] == ["Intercept", "g[T.b]", "g[T.c]", "x1", "x2"]
    estimate = R["ols"]["pooled"]["estimate"][1]
    assert float(rows[3].split()[1]) == pytest.approx(estimate, abs=1e-4)
    assert result.err == ""


def test_infinite_degrees_of_freedom(psmvae, long, tmp_path):
    path, frame = tmp_path / "same.csv", pd.read_csv(long)
    whole = frame[frame[".imp"] == 1]
    pd.concat([whole.assign(**{".imp": k}) for k in range(4)]).to_csv(path, index=False)
    formula = ["--formula", "count ~ x1 + x2", "--family", "poisson"]
    for method in ("D1", "D2", "D3"):
        result = psmvae("analyse", path, *formula, "--test", "x1 = 0, x2 = 0", "--method", method)
        assert result.code == 0, result.err
        line = result.out.splitlines()[-1]
        assert ("F(2, inf)" in line) == (method != "D1"), line
        assert "nan" not in line
    result = psmvae("analyse", path, *formula, "--df", "rubin")
    assert [row.split()[6] for row in result.out.splitlines()[2:]] == ["inf"] * 3


def test_markdown_and_latex(psmvae, long, tmp_path):
    options = ["--formula", "y ~ x1 + np.minimum(x2, 5)", "--test", "x1 = 0"]
    for name, start, row in (
        ("out.md", "| term | estimate |", "| np.minimum(x2, 5) | "),
        ("out.tex", r"\begin{tabular}{lrrrrrrrr}", "np.minimum(x2, 5) & "),
    ):
        output = tmp_path / name
        result = psmvae("analyse", long, *options, "-o", output)
        assert (result.code, result.out) == (0, "")
        assert f"wrote {output}" in result.err
        lines = output.read_text().splitlines()
        assert lines[0].startswith(start)
        assert any(line.startswith(row) for line in lines)
        assert lines[-1].startswith("D1 test of x1 = 0")
    assert r"95\% low" in (tmp_path / "out.tex").read_text()


def test_csv_has_the_estimates_only(psmvae, long, tmp_path):
    output = tmp_path / "out.csv"
    options = [*FORMULA["ols"], "--test", "x1 = 0", "-o", output, "--quiet"]
    result = psmvae("analyse", long, *options)
    assert result.code == 0, result.err
    assert result.err.startswith("D1 test of x1 = 0")
    assert len(pooled(output.read_text())) == 5


def test_level_degrees_of_freedom_and_ratios(psmvae, long):
    plain, other = (
        pooled(psmvae("analyse", long, *FORMULA["binomial"], "--format", "csv", *more).out)["x1"]
        for more in ([], ["--exponentiate", "--conf-level", 0.5, "--df", "rubin"])
    )
    assert float(other["estimate"]) == pytest.approx(np.exp(float(plain["estimate"])))
    assert np.exp(float(plain["conf_low"])) < float(other["conf_low"]) < float(other["estimate"])
    # m - 1 over the squared share of the variance that is due to missing data
    assert float(other["df"]) == pytest.approx(4 / float(other["lambda"]) ** 2)


def test_second_level_of_a_text_response_is_modelled(psmvae, long):
    formula = ["--formula", "answer ~ x1 + x2 + y", "--family", "binomial", "--format", "csv"]
    result = psmvae("analyse", long, *formula)
    assert "probability of answer[yes]" in result.err
    numbers = psmvae("analyse", long, *FORMULA["binomial"], "--format", "csv")
    assert pooled(result.out) == pooled(numbers.out)


@pytest.mark.parametrize("extension", ["tsv", "parquet", "feather"])
def test_file_formats(psmvae, long, tmp_path, extension):
    table, path = pa.Table.from_pandas(pd.read_csv(long)), tmp_path / f"all.{extension}"
    if extension == "parquet":
        pa.parquet.write_table(table, path)
    elif extension == "feather":
        pa.feather.write_feather(table, path)
    else:
        table.to_pandas().to_csv(path, sep="\t", index=False)
    options = [*FORMULA["ols"], "--format", "csv"]
    found = psmvae("analyse", path, *options)
    assert found.code == 0, found.err
    assert pooled(found.out) == pooled(psmvae("analyse", long, *options).out)


def test_imputed_file_is_analysed(psmvae, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=100)})
    frame.loc[rng.random(100) < 0.2, "y"] = np.nan
    frame["note"] = np.where(rng.random(100) < 0.1, "", "seen")
    source, output = tmp_path / "in.csv", tmp_path / "all.csv"
    frame.to_csv(source, index=False)
    options = ["--multiple", 5, "--method", "mice", "--ignore", "note"]
    assert psmvae("impute", source, "-o", output, *options).code == 0
    result = psmvae("analyse", output, "--formula", "y ~ x", "--format", "csv")
    assert result.code == 0, result.err
    slope = pooled(result.out)["x"]
    assert float(slope["conf_low"]) < 2 < float(slope["conf_high"])
    assert slope["dfcom"] == "98.0"


def test_rows_that_are_still_incomplete_have_a_warning(psmvae, long, tmp_path):
    path = tmp_path / "some.csv"
    frame = pd.read_csv(long)
    frame["other"] = frame["x1"].where(frame[".id"] > 7)
    frame.to_csv(path, index=False)
    result = psmvae("analyse", path, "--formula", "y ~ other")
    assert result.code == 0
    warned = [line for line in result.err.splitlines() if "left out" in line]
    assert len(warned) == 1
    assert warned[0].startswith("warning: 7 of 80 rows")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--formula", "y ~ x3"], ["no column 'x3'", "'x1', 'x2', 'g'", "Q('name')"]),
        (["--formula", "y x1"], ["response ~ term"]),
        (["--formula", "y ~ x1 + "], ["--formula"]),
        (["--formula", "g ~ x1"], ["'g'", "numeric"]),
        (["--formula", "g ~ x1", "--family", "binomial"], ["'g'", "two levels", "3"]),
        (["--formula", "count ~ x1", "--family", "binomial"], ["0 or 1", "C(count)"]),
        (["--formula", "y ~ x1", "--family", "poisson"], ["negative"]),
        (["--formula", "y ~ x1", "--test", "x2 = 0"], ["--test", "'x2'", "'x1'"]),
        (["--formula", "y ~ x1", "--method", "D2"], ["--method needs --test"]),
        (["--formula", "y ~ x1", "--conf-level", "95"], ["--conf-level"]),
        (["--formula", "y ~ x1", "--family", "gamma"], ["--family"]),
        (["--formula", "y ~ x1", "-o", "absent/out.md"], ["no folder"]),
        (
            ["--formula", "y ~ x1", "-o", "out.xlsx"],
            ["out.xlsx: the extension is none of .md, .csv, .tex"],
        ),
        (["--formula", "y ~ ."], ["'.' cannot be parsed", "without a dot"]),
        (["--formula", "y ~ x1 + blood pressure"], ["'blood pressure'", "Q('blood pressure')"]),
    ],
)
def test_wrong_options_are_usage_errors(refused, long, options, parts):
    message = refused(2, "analyse", long, *options)
    assert all(part in message for part in parts), message


def test_collinear_terms_are_named(refused, long):
    message = refused(1, "analyse", long, "--formula", "y ~ x1 + I(2 * x1)")
    assert "'I(2 * x1)'" in message


@pytest.mark.parametrize(
    ("change", "formula", "parts"),
    [
        (
            lambda f: f.assign(answer=f["answer"].mask(f[".imp"] == 3, "yes")),
            "answer ~ x1",
            ["'answer' must have two levels", "'yes'", "imputation 3 of 5"],
        ),
        (
            lambda f: f.assign(z=f["z"].mask(f[".imp"] == 2, 0)),
            "z ~ x1",
            ["'z' must have two levels", "'0'", "imputation 2 of 5"],
        ),
        (
            lambda f: f.assign(w=f["x1"].where(f[".imp"] == 4, f["x2"])),
            "z ~ x1 + w",
            ["linear combinations", "imputation 4 of 5"],
        ),
    ],
)
def test_an_imputation_that_cannot_be_fitted_is_named(
    refused, long, tmp_path, change, formula, parts
):
    path, frame = tmp_path / "damaged.csv", pd.read_csv(long)
    # without an incomplete table to compare with, the imputations may differ in all cells
    changed = change(frame)
    names = list(frame.columns[2:])
    changed.loc[changed[".imp"] == 0, [*names, *changed.columns.difference(frame.columns)]] = None
    changed.to_csv(path, index=False)
    message = refused(1, "analyse", path, "--formula", formula, "--family", "binomial")
    assert all(part in message for part in parts), message


def test_much_missing_information_names_the_option(psmvae, long, tmp_path):
    path, frame = tmp_path / "noisy.csv", pd.read_csv(long)
    noise = 3 * np.random.default_rng(0).normal(size=6)
    frame["w"] = frame["x1"].where(frame[".imp"] == 0, frame["x1"] + noise[frame[".imp"]])
    frame.loc[frame[".imp"] == 0, "w"] = np.nan
    frame.to_csv(path, index=False)
    result = psmvae("analyse", path, "--formula", "w ~ x2")
    assert result.code == 0, result.err
    assert "(fmi)" in result.err
    assert "psmvae impute --multiple" in result.err
    assert "how_many" not in result.err


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda f: f.drop(columns=".imp"), ["'.imp'", "--multiple", "complete("]),
        (lambda f: f[f[".imp"] < 2], ["one imputation", "--multiple"]),
        (lambda f: f[f[".imp"] > 0], ["imputation 0", "include = TRUE"]),
    ],
)
def test_tables_that_are_not_long_are_refused(refused, long, tmp_path, change, parts):
    path = tmp_path / "other.csv"
    change(pd.read_csv(long)).to_csv(path, index=False)
    message = refused(1, "analyse", path, *FORMULA["ols"])
    assert str(path) in message
    assert all(part in message for part in parts), message


def test_an_existing_file_is_kept(refused, psmvae, long, tmp_path):
    output = tmp_path / "out.md"
    output.write_text("mine")
    arguments = ["analyse", long, *FORMULA["ols"], "-o", output]
    assert "--force" in refused(2, *arguments)
    assert output.read_text() == "mine"
    assert psmvae(*arguments, "--force").code == 0
    assert output.read_text().startswith("| term |")


def test_absent_statsmodels_names_the_extra(refused, long, monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    assert "pip install 'psmvae[stats]'" in refused(1, "analyse", long, *FORMULA["ols"])
