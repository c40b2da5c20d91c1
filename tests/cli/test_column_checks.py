"""Warnings about columns whose text may mean something else: numbers, codes for missing cells."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
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
    """A numeric column with missing cells and one word."""
    path = tmp_path / "stray.csv"
    income = ["unknown" if i == 50 else "" if i % 20 == 0 else str(1000 * i) for i in range(1, 201)]
    path.write_text("income,y\n" + "".join(f"{x},{i}.5\n" for i, x in enumerate(income)))
    return path


def test_word_in_a_numeric_column_is_named_with_the_option_to_read_it_as_missing(
    psmvae, refused, stray, tmp_path
):
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


def test_codes_are_named_in_a_table_without_missing_cells(psmvae, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = [
        f"{'.' if i % 9 == 0 else i},{'?' if i % 5 == 0 else 'xy'[i % 2]},{'uv'[i % 2]}\n"
        for i in range(60)
    ]
    source.write_text("a,b,c\n" + "".join(lines))
    line = warnings_of(psmvae("impute", source, "-o", output, *MEAN))[-1]
    assert "no cell is missing" in line
    assert "'a' has '.' (7 cells)" in line
    assert "'b' has '?' (12 cells)" in line
    assert "'c'" not in line
    assert "--na . --na '?'" in line
    arguments = ["--na", ".", "--na", "?", "--force", *MEAN]
    result = psmvae("impute", source, "-o", output, *arguments)
    assert warnings_of(result) == []
    assert "19 missing cells" in result.err


def test_complete_table_without_codes_has_no_warning(psmvae, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n1.5,x\n2.5,y\n3.5,x\n")
    assert warnings_of(psmvae("impute", source, "-o", tmp_path / "out.csv", *MEAN)) == []


def test_help_lists_the_texts_of_missing_cells(psmvae):
    text = " ".join(psmvae("impute", "--help").out.replace("│", " ").split())
    assert all(f"{mark}," in text or f"{mark} and" in text for mark in MISSING[1:-1])


def test_word_in_a_numeric_column_of_a_parquet_file_has_no_option(psmvae, tmp_path):
    # --na does not change the type of a column in such a file
    source = tmp_path / "in.parquet"
    words = ["unknown" if i == 50 else str(1000 * i) for i in range(200)]
    pq.write_table(pa.table({"income": words, "y": [None, *range(199)]}), source)
    (line,) = warnings_of(psmvae("impute", source, "-o", tmp_path / "out.parquet", *MEAN))
    assert "'unknown' (1 cell)" in line
    assert "--na" not in line


def test_kind_that_does_not_fit_names_one_that_does(refused, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("the size,y\n1,1\n2,\n3,3\n")
    arguments = ["impute", source, "-o", tmp_path / "out.csv", *MEAN]
    message = refused(1, *arguments, "--kind", "the size=binary")
    assert "--kind 'the size=" in message


def test_codes_stay_in_ignored_columns_of_a_parquet_file(psmvae, tmp_path):
    path, output = tmp_path / "t.parquet", tmp_path / "filled.parquet"
    pq.write_table(pa.table({"id": [-999, 1, 2, 3], "x": [-999.0, 1.0, 2.0, 4.0]}), path)
    arguments = ["--na=-999", "--ignore", "id", "--method", "mean"]
    assert psmvae("impute", path, "-o", output, *arguments).code == 0
    filled = pq.read_table(output)
    assert filled["id"].to_pylist() == [-999, 1, 2, 3]
    assert filled["x"].to_pylist()[1:] == [1.0, 2.0, 4.0]
    assert filled["x"][0].as_py() > 0
