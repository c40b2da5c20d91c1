"""``psmvae missingness``: text, Markdown, CSV and JSON."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def test_report_of_a_new_process(psmvae_process, table):
    result = psmvae_process("missingness", table)
    assert (result.code, result.err) == (0, "")
    assert "12 rows, 5 columns, 7 missing cells (11.7 %)" in result.out
    for title in ("Missing cells", "Patterns", "Little's test", "Which columns predict"):
        assert f"\n{title}" in f"\n{result.out}"
    assert "These data cannot tell" in result.out


def test_markdown(psmvae, table):
    result = psmvae("missingness", table, "--format", "md")
    assert result.code == 0, result.err
    assert "## Patterns" in result.out
    assert "| age | integer | 2 | 16.7 % |" in result.out


def test_csv(psmvae, table, tmp_path):
    rates = psmvae("missingness", table, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(rates)))
    assert [row["n_missing"] for row in rows] == ["0", "2", "2", "2", "1"]
    output = tmp_path / "patterns.csv"
    result = psmvae("missingness", table, "--part", "patterns", "-o", output)
    assert (result.code, result.out) == (0, "")
    assert "wrote" in result.err
    patterns = list(csv.DictReader(io.StringIO(output.read_text())))
    assert (patterns[0]["pattern"], patterns[0]["n"]) == ("11111", "5")
    for part in ("flux", "little", "predictors", "joint"):
        result = psmvae("missingness", table, "--format", "csv", "--part", part)
        assert result.code == 0, result.err
        assert "nan" not in result.out
        assert list(csv.DictReader(io.StringIO(result.out)))


def test_json(psmvae, table):
    found = json.loads(psmvae("missingness", table, "--format", "json").out)
    assert found["n_missing"] == 7
    assert found["rates"]["column"] == ["id", "age", "income", "city", "member"]
    assert found["predictors"]["auc"][0] is None


def test_ignored_columns_and_codes(psmvae, table):
    result = psmvae(
        "missingness", table, "--ignore", "id", "--na", "Basel", "--format", "json"
    )  # fmt: skip
    rates = json.loads(result.out)["rates"]
    assert rates["column"] == ["age", "income", "city", "member"]
    assert rates["n_missing"] == [2, 2, 6, 1]


def test_codes_in_a_table_without_missing_cells(psmvae, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("a,b\n" + "".join(f"{i},{'?' if i % 5 == 0 else 'yes'}\n" for i in range(40)))
    result = psmvae("missingness", path)
    assert result.code == 0
    assert "no cell is missing" in result.out
    assert "--na '?'" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "no such file"),
        (["patients.csv", "--format", "html"], "html"),
        (["patients.csv", "--part", "flux"], "--part needs --format csv"),
        (["patients.csv", "--ignore", "weight"], "no column 'weight'"),
        (["patients.csv", "-o", "patients.csv"], "the output is the input file"),
    ],
)
def test_usage_errors(refused, table, arguments, message):
    assert message in refused(2, "missingness", *arguments, cwd=table.parent)


def test_existing_output_is_kept(refused, psmvae, table, tmp_path):
    (tmp_path / "report.md").write_text("mine")
    assert "--force" in refused(2, "missingness", table, "-o", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text() == "mine"
    assert psmvae("missingness", table, "-o", tmp_path / "report.md", "--force").code == 0
    assert "## Missing cells" in (tmp_path / "report.md").read_text()


def test_dates_are_numbers(psmvae, tmp_path):
    path = tmp_path / "dates.csv"
    path.write_text("day,x\n2020-01-01,1\n2020-01-02,\n")
    assert "2 rows, 2 columns" in psmvae("missingness", path).out


def test_unsupported_columns(refused, tmp_path):
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"codes": [[1], [2]], "x": [1.0, None]}), path)
    assert "--ignore codes" in refused(1, "missingness", path)


def test_an_extension_of_another_format_is_refused(psmvae, refused, table, tmp_path):
    output = tmp_path / "r.html"
    message = refused(2, "missingness", table, "-o", output)
    assert "r.html: the extension is none of .md, .csv, .json, .txt;" in message
    assert not output.exists()
    for arguments in (["-o", tmp_path / "r.txt"], ["-o", output, "--format", "text"]):
        assert psmvae("missingness", table, *arguments).code == 0
        assert "12 rows, 5 columns" in arguments[1].read_text()


@pytest.mark.parametrize("command", ["analyse", "sensitivity"])
def test_an_extension_that_no_table_of_estimates_has(refused, table, command):
    shift = ["--column", "age", "--delta", "0,1"] if command == "sensitivity" else []
    message = refused(2, command, table, "--formula", "age ~ id", *shift, "-o", "r.html")
    assert "the extension is none of .md, .csv, .tex, .txt;" in message
