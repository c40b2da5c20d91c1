"""What the command line says of a table that may not be read as it is meant."""

import csv
import io

import pytest

from psmvae.table.text import MISSING

MEAN = ["--method", "mean"]


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def warnings_of(result):
    assert result.code == 0, result.err
    return [line for line in result.err.splitlines() if line.startswith("warning: ")]


@pytest.fixture
def stray(tmp_path):
    """Numbers with holes and one word."""
    path = tmp_path / "stray.csv"
    income = ["unknown" if i == 50 else "" if i % 20 == 0 else str(1000 * i) for i in range(1, 201)]
    path.write_text("income,y\n" + "".join(f"{x},{i}\n" for i, x in enumerate(income)))
    return path


def test_a_stray_word_is_named_with_its_remedy(psmvae, refused, stray, tmp_path):
    arguments = ["impute", stray, *MEAN, "-o"]
    (line,) = warnings_of(psmvae(*arguments, tmp_path / "one.csv"))
    assert "'income'" in line
    assert "'unknown' (1 cell)" in line
    assert "--na unknown reads it as missing" in line
    assert warnings_of(psmvae(*arguments, tmp_path / "two.csv", "--na", "unknown")) == []
    filled = [float(row["income"]) for row in rows(tmp_path / "two.csv")]
    assert filled[19] == filled[49] == pytest.approx(100_238, rel=0.01)
    message = refused(1, *arguments, tmp_path / "three.csv", "--kind", "income=real")
    assert "--na unknown" in message


def test_where_nothing_is_missing_codes_are_named(psmvae, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = [f"{'.' if i % 9 == 0 else i},{'?' if i % 5 == 0 else 'x'},u\n" for i in range(60)]
    source.write_text("a,b,c\n" + "".join(lines))
    line = warnings_of(psmvae("impute", source, "-o", output, *MEAN))[-1]
    assert "no cell is missing" in line
    assert "'a' holds '.' (7 cells)" in line
    assert "'b' holds '?' (12 cells)" in line
    assert "'c'" not in line
    assert "--na . --na '?'" in line
    arguments = ["--na", ".", "--na", "?", "--force", *MEAN]
    result = psmvae("impute", source, "-o", output, *arguments)
    assert warnings_of(result) == []
    assert "19 missing cells" in result.err


def test_a_full_table_without_codes_is_not_doubted(psmvae, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n1.5,x\n2.5,y\n3.5,x\n")
    assert warnings_of(psmvae("impute", source, "-o", tmp_path / "out.csv", *MEAN)) == []


def test_help_lists_what_is_read_as_missing(psmvae):
    text = " ".join(psmvae("impute", "--help").out.replace("│", " ").split())
    assert all(f"{mark}," in text or f"{mark} and" in text for mark in MISSING[1:-1])
