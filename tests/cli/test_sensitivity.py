"""``psmvae sensitivity``: shifts of imputed values, from long files."""

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("statsmodels")

TESTS = Path(__file__).parent.parent
# written by benchmarks/r_delta.R
R = json.loads((TESTS / "sensitivity" / "r_delta.json").read_text())
FORMULA = ["--formula", "y ~ x1 + x2 + g", "--term", "x1", "--column", "y"]


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """Five imputations by R's mice."""
    path = tmp_path_factory.mktemp("long") / "all.csv"
    data = json.loads((TESTS / "multiple" / "r_pool.json").read_text())["statsmodels"]["data"]
    pd.DataFrame(data).to_csv(path, index=False)
    return path


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_estimates_equal_those_of_r(psmvae, long):
    result = psmvae("sensitivity", long, *FORMULA, "--delta=-2:2:5", "--format", "csv")
    assert result.code == 0, result.err
    found = rows(result.out)
    assert [float(row["delta"]) for row in found] == R["deltas"]
    for row, expected in zip(found, R["all"], strict=True):
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-7)
    assert "does not turn in this range." in result.err


def test_table_sentence_and_picture_of_a_new_process(psmvae_process, long, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "out.png"
    arguments = [*FORMULA, "--delta", "0,4,8", "--by", "z", "--plot", picture]
    result = psmvae_process("sensitivity", long, *arguments)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].split("  ")[0] == "delta 0"
    assert lines[0].endswith("conclusion holds")
    assert len(lines) == 2 + 9 + 2
    assert lines[-1].startswith("With the same estimand and analysis, adding δ to the imputed")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {picture}" in result.err


def test_other_operations_and_families(psmvae, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "sick": np.where(x + rng.normal(size=200) > 0, "yes", "no")})
    frame.loc[rng.random(200) < 0.2, "sick"] = None
    source, output = tmp_path / "in.csv", tmp_path / "all.csv"
    frame.to_csv(source, index=False)
    assert psmvae("impute", source, "-o", output, "--multiple", 5, "--method", "mice").code == 0
    arguments = ["--formula", "sick ~ x", "--family", "binomial", "--column", "sick"]
    report = tmp_path / "out.md"
    result = psmvae(
        "sensitivity", output, *arguments, "--delta", "0.1,1,10", "--operation", "odds of yes",
        "-o", report,
    )  # fmt: skip
    assert (result.code, result.out) == (0, "")
    assert "probability of sick[yes]" in result.err
    text = report.read_text()
    assert text.startswith("| delta | estimate |")
    assert "multiplying the odds of yes in the imputed cells of sick by δ" in text


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--delta", "0:20"], ["--delta '0:20'", "0:20:21", "0,2,5"]),
        (["--delta", "0:20:1"], ["--delta"]),
        (["--delta", "a,b"], ["--delta"]),
        (["--delta", "3"], ["--delta"]),
        (["--delta", "0:1:3", "--column", "bmi"], ["--column", "'bmi'", "'x1'"]),
        (["--delta", "0:1:3", "--by", "arm"], ["--by", "'arm'"]),
        (["--delta", "0:1:3", "--term", "x3"], ["--term", "'x3'", "'x1', 'x2'"]),
        (["--delta", "0:1:3", "--operation", "divide"], ["--operation 'divide'"]),
        (["--delta", "0:1:3", "--operation", "odds"], ["factors above 0"]),
        (["--delta", "0:1:3", "--plot", "out.jpg"], ["--plot", ".png"]),
        (["--delta", "0:1:3", "--plot", "absent/out.png"], ["no folder"]),
        (["--delta", "0:1:3", "--formula", "y x1"], ["response ~ term"]),
    ],
)
def test_wrong_options_are_usage_errors(refused, long, options, parts):
    message = refused(2, "sensitivity", long, *FORMULA, *options)
    assert all(part in message for part in parts), message


def test_the_term_must_be_named(refused, long):
    arguments = ["--formula", "y ~ x1 + x2", "--column", "y", "--delta", "0:1:3"]
    message = refused(2, "sensitivity", long, *arguments)
    assert "--term: name the term of interest; the formula has 'Intercept', 'x1', 'x2'" in message


def test_other_errors(refused, long, tmp_path, monkeypatch):
    delta = ["--delta", "0:1:3"]
    message = refused(1, "sensitivity", long, *FORMULA, *delta, "--column", "z")
    assert "'z' has no imputed cells" in message
    message = refused(1, "sensitivity", long, *FORMULA, *delta, "--by", "x2")
    assert "by='x2' has missing values" in message
    kept = tmp_path / "out.png"
    kept.write_text("mine")
    assert "--force" in refused(2, "sensitivity", long, *FORMULA, *delta, "--plot", kept)
    assert kept.read_text() == "mine"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    new = tmp_path / "new.png"
    message = refused(1, "sensitivity", long, *FORMULA, *delta, "--plot", new)
    assert "pip install 'psmvae[plot]'" in message
    assert not new.exists()


@pytest.fixture(scope="module")
def study(psmvae, tmp_path_factory):
    """Five imputations of a table with a derived column, an ordinal one and a positive one."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("study")
    frame = pd.DataFrame({"arm": rng.choice(["c", "t"], 120), "hgt": rng.normal(1.7, 0.08, 120)})
    frame["wgt"] = (22 * frame["hgt"] ** 2 + rng.normal(0, 8, 120)).mask(rng.random(120) < 0.3)
    frame["bmi"] = frame["wgt"] / frame["hgt"] ** 2
    frame["edu"] = rng.choice(["Top", "Low", "Mid"], 120)
    frame["edu"] = frame["edu"].mask(rng.random(120) < 0.3)
    frame["stay"] = np.exp(rng.normal(1, 1, 120)).round(2) + 0.01
    frame["stay"] = frame["stay"].mask(rng.random(120) < 0.3)
    frame.to_csv(folder / "b.csv", index=False)
    output = folder / "ball.csv"
    result = psmvae(
        "impute", folder / "b.csv", "-o", output, "--multiple", 5, "--method", "mice",
        "--derive", "bmi=wgt / hgt ** 2", "--kind", "edu=ordinal:Low,Mid,Top",
    )  # fmt: skip
    assert result.code == 0, result.err
    return output


def test_derived_columns_follow_a_shift(psmvae, study):
    shift = ["--column", "wgt", "--delta", "0:20:3", "--format", "csv"]
    derive = ["--derive", "bmi=wgt / hgt ** 2"]
    results = [
        psmvae("sensitivity", study, "--formula", "bmi ~ arm", *shift, *derive),
        psmvae("sensitivity", study, "--formula", "I(wgt / hgt ** 2) ~ arm", *shift),
    ]
    assert rows(results[0].out)[0]["change"] == "0.0"
    found, expected = ([float(row["change"]) for row in rows(one.out)] for one in results)
    # the file has rounded values
    assert found == pytest.approx(expected, abs=1e-5)
    assert 0 < abs(found[1]) < abs(found[2])


def test_formulas_of_derived_columns_are_checked(refused, study):
    arguments = ["sensitivity", study, "--formula", "bmi ~ arm", "--column", "wgt", "--delta=0:1:2"]
    assert "--derive 'bmi' is not" in refused(2, *arguments, "--derive", "bmi")
    assert "--derive: no column 'bmj'" in refused(2, *arguments, "--derive", "bmj=wgt")
    assert "no column 'wgh'" in refused(1, *arguments, "--derive", "bmi=wgh / hgt ** 2")


def test_a_report_of_a_long_file_takes_formulas(psmvae, study, tmp_path):
    output = tmp_path / "r.json"
    result = psmvae(
        "report", study.parent / "b.csv", "-o", output, "--imputations", study, "--formula",
        "bmi ~ arm", "--column", "wgt", "--delta", "0:20:3", "--derive", "bmi=wgt / hgt ** 2",
    )  # fmt: skip
    assert result.code == 0, result.err
    moved = json.loads(output.read_text())["results"]["tipping"]["estimate"]
    assert moved[2][0] != moved[0][0]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--delta=-100,0,5"], ["'log(stay)' is not finite in ", " of 120 rows", "at δ = -100"]),
        (["--operation", "multiply", "--delta=0,0.5,1"], ["with stay = 0;", "at δ = 0"]),
        (["--by", "arm", "--delta=-100,0"], ["at δ = -100 where arm = c, δ = -100 where arm = t"]),
    ],
)
def test_rows_are_not_left_out_where_a_term_is_not_finite(refused, study, options, parts):
    formula = ["--formula", "log(stay) ~ arm", "--column", "stay"]
    message = refused(1, "sensitivity", study, *formula, *options)
    assert all(part in message for part in parts), message


def test_warnings_of_undefined_terms_are_errors_only(psmvae, study):
    formula = ["--formula", "wgt ~ np.sqrt(Q('stay'))", "--column", "stay"]
    result = psmvae("sensitivity", study, *formula, "--delta=-100,0")
    assert result.code == 1
    assert "warning" not in result.err


def test_the_order_of_levels_is_declared(psmvae, refused, study):
    arguments = ["sensitivity", study, "--formula", "wgt ~ edu", "--term", "edu[T.Top]"]
    arguments += ["--column", "edu", "--operation", "odds", "--delta", "0.5,1,2"]
    message = refused(1, *arguments)
    assert "'edu' has 3 levels without an order" in message
    assert "(--operation 'odds of Top')" in message
    assert "(--kind edu=ordinal:Low,Mid,Top)" in message
    assert "levels=" not in message
    result = psmvae(*arguments, "--kind", "edu=ordinal:Low,Mid,Top")
    assert result.code == 0, result.err
    assert "multiplying the odds in the imputed cells of edu" in result.out
    assert "only the order" in refused(2, *arguments, "--kind", "edu=categorical")
    assert "no column 'ed'" in refused(2, *arguments, "--kind", "ed=ordinal:Low,Mid,Top")
