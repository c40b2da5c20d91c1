"""``--kind`` with levels, ``--bounds`` and ``--derive``, and the list of columns."""

import csv
import io

import numpy as np
import pytest

MEAN = ["--method", "mean"]


@pytest.fixture
def body(tmp_path):
    """Sixty rows with codes, an ordered text column and a derived column."""
    rng = np.random.default_rng(0)
    lines = ["hgt,wgt,bmi,edu,sex,tv"]
    for i in range(60):
        hgt, wgt = rng.normal(170, 9), rng.normal(70, 9)
        bmi = f"{wgt / (hgt / 100) ** 2:.2f}"
        weight = "" if i % 5 == 0 else f"{wgt:.1f}"
        edu = "" if i % 7 == 0 else ("Low", "High")[i % 2]
        # row 5 has a BMI but no weight
        bmi = bmi if weight or i == 5 else ""
        lines.append(f"{hgt:.1f},{weight},{bmi},{edu},{1 + i % 2},{'' if i % 9 == 0 else i % 4}")
    path = tmp_path / "body.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def test_columns_are_listed_with_their_kinds_and_reasons(psmvae_process, body, tmp_path):
    options = ["--kind", "edu=ordinal:Low,Middle,High", "--bounds", "wgt=30:200"]
    options += ["--derive", "bmi=wgt / (hgt / 100) ** 2"]
    result = psmvae_process("impute", body, "-o", tmp_path / "out.csv", *MEAN, *options)
    assert result.code == 0, result.err
    lines = [" ".join(line.split()) for line in result.err.splitlines()]
    assert "hgt real numbers with fractions; at least 0" in lines
    assert "wgt real numbers with fractions; between 30 and 200" in lines
    assert "bmi derived wgt / (hgt / 100) ** 2" in lines
    assert "edu ordinal declared: Low < Middle < High" in lines
    assert "sex binary whole numbers, 2 distinct values (1 and 2)" in lines
    assert "tv ordinal whole numbers, the codes 0 to 3" in lines
    assert "change with --kind COLUMN=KIND or --bounds COLUMN=LOW:HIGH" in lines
    for old, new in zip(rows(body), rows(tmp_path / "out.csv"), strict=True):
        assert all(new.values())
        computed = float(new["wgt"]) / (float(new["hgt"]) / 100) ** 2
        assert float(new["bmi"]) == pytest.approx(computed, abs=0.05)
        # the text of what did not change is kept
        kept = {name for name in old if old[name] and (name != "bmi" or old["wgt"])}
        assert all(new[name] == old[name] for name in kept)
        assert new["tv"] in "0123"


def test_quiet_lists_nothing_and_info_shows_reasons(psmvae, body, tmp_path):
    model = tmp_path / "model.safetensors"
    result = psmvae("fit", body, "-o", model, "--quiet", *MEAN, "--derive", "bmi=wgt/(hgt/100)**2")
    assert (result.code, result.err) == (0, "")
    shown = " ".join(psmvae("info", model).out.replace("│", " ").split())
    assert "derived:" in shown
    again = psmvae("impute", body, "-m", model, "-o", tmp_path / "out.csv")
    assert again.code == 0, again.err
    assert "--kind" not in again.err
    assert all(row["bmi"] for row in rows(tmp_path / "out.csv"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bounds", "wgt"], "COLUMN=LOW:HIGH"),
        (["--bounds", "wgt=0-5"], "COLUMN=LOW:HIGH"),
        (["--bounds", "wgt=a:b"], "COLUMN=LOW:HIGH"),
        (["--bounds", "wgt=9:5"], "lower bound is above"),
        (["--bounds", "weight=0:5"], "no column 'weight'"),
        (["--derive", "bmi"], "COLUMN=FORMULA"),
        (["--derive", "=wgt"], "COLUMN=FORMULA"),
        (["--derive", "body=wgt*2"], "no column 'body'"),
        (["--kind", "edu=ordinal:"], "levels of column 'edu'"),
        (["--kind", "edu=colour:a,b"], "the kinds are"),
        (["--derive", "bmi=wgt*2", "--ignore", "bmi"], "excluded by --ignore"),
    ],
)
def test_options_that_cannot_be_used(refused, body, tmp_path, options, words):
    output = tmp_path / "out.csv"
    assert words in refused(2, "impute", body, "-o", output, *MEAN, *options)
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bounds", "hgt=0:150"], "widen --bounds hgt=LOW:HIGH"),
        (["--kind", "edu=ordinal:Low,Middle"], "--kind edu=ordinal:Low,Middle,High"),
        (["--derive", "bmi=wgt / height"], "no column 'height'"),
        (["--derive", "bmi=open('x')"], "is not arithmetic"),
        (["--derive", "bmi=edu * 2"], "'edu' holds strings"),
    ],
)
def test_options_that_do_not_fit_the_table(refused, body, tmp_path, options, words):
    output = tmp_path / "out.csv"
    assert words in refused(1, "impute", body, "-o", output, *MEAN, *options)
    assert not output.exists()


def test_open_sides_and_names_with_equals_signs(psmvae, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("a=b,c\n<=5,1.5\n>5,-2.5\n,\n<=5,0.5\n>5,1.0\n<=5,0.25\n")
    options = ["--kind", "a=b=ordinal:<=5,>5", "--bounds", "c=:2", "--bounds", "c=-9:"]
    result = psmvae("impute", source, "-o", output, *MEAN, *options)
    assert result.code == 0, result.err
    assert "declared: <=5 < >5" in result.err
    assert "at least -9" in result.err


def test_a_fit_that_learned_nothing_names_the_options(psmvae, table, tmp_path):
    quick = ["--epochs", "2", "--draws", "4", "--device", "cpu"]
    result = psmvae("impute", table, "-o", tmp_path / "out.csv", *quick)
    assert "warning: the table has 12 rows" in result.err
    assert "compare with --method mice" in result.err
