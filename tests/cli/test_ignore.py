"""``--ignore``: columns that are copied to the output and not modelled."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

MEAN = ["--method", "mean"]
TEXT = """id,a,seen,b
007,1.5,2020-01-01,x
NA,,2020-02-30,y
,2.5,,x
n/a,3.5,2020-01-02,
"""
FILLED = """id,a,seen,b
007,1.5,2020-01-01,x
NA,2.5,2020-02-30,y
,2.5,,x
n/a,3.5,2020-01-02,x
"""
IGNORED = ["--ignore", "id", "--ignore", "seen"]


@pytest.fixture
def dated(tmp_path):
    path = tmp_path / "dated.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def fitted(psmvae, dated, tmp_path):
    """A model fitted with two columns ignored."""
    path = tmp_path / "m.safetensors"
    result = psmvae("fit", dated, "-o", path, *IGNORED, *MEAN)
    assert result.code == 0, result.err
    return path


def test_ignored_column_keeps_its_text(psmvae, dated, tmp_path):
    output = tmp_path / "out.csv"
    result = psmvae("impute", dated, "-o", output, *IGNORED, *MEAN)
    assert result.code == 0, result.err
    assert output.read_text() == FILLED
    assert "2 missing cells, not modelled: id, seen" in result.err
    assert "warning" not in result.err


def test_ignored_column_is_in_every_imputation(psmvae, dated, tmp_path):
    output = tmp_path / "long.csv"
    result = psmvae("impute", dated, "-o", output, "--multiple", 2, *IGNORED, *MEAN)
    assert result.code == 0, result.err
    lines = output.read_text().splitlines()
    assert lines[0] == ".imp,.id,id,a,seen,b"
    assert [line.split(",")[2] for line in lines[1:]] == ["007", "NA", "", "n/a"] * 3


def test_ignored_column_may_have_an_unsupported_type(psmvae, tmp_path):
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    days = pa.array([1, None, 3], pa.date32())
    table = pa.table({"day": days, "a": [1.5, None, 2.5], "list": [[1], None, [2, 3]]})
    pa.parquet.write_table(table, source)
    ignored = ["--ignore", "day", "--ignore", "list"]
    result = psmvae("impute", source, "-o", output, *ignored, *MEAN)
    assert result.code == 0, result.err
    filled = pa.parquet.read_table(output)
    long = tmp_path / "long.parquet"
    result = psmvae("impute", source, "-o", long, "--multiple", 2, *ignored, *MEAN)
    assert result.code == 0, result.err
    third = pa.parquet.read_table(long).slice(6).drop([".imp", ".id"])
    assert third.schema == table.schema
    assert third["list"].to_pylist() == table["list"].to_pylist()
    assert filled.schema == table.schema
    assert filled["day"].equals(table["day"])
    assert filled["list"].equals(table["list"])
    assert filled["a"].to_pylist() == [1.5, 2.0, 2.5]


def test_model_file_stores_the_ignored_columns(psmvae, fitted, dated, tmp_path):
    output = tmp_path / "out.csv"
    result = psmvae("impute", dated, "-m", fitted, "-o", output)
    assert result.code == 0, result.err
    assert output.read_text() == FILLED
    # new tables need not have them
    dated.write_text("b,a\n,2.5\nx,\n")
    result = psmvae("impute", dated, "-m", fitted, "-o", output, "--force")
    assert result.code == 0, result.err
    assert output.read_text() == "b,a\nx,2.5\nx,2.5\n"
    assert json.loads(psmvae("info", fitted, "--json").out)["ignored_columns"] == ["id", "seen"]


def test_more_columns_can_be_ignored_with_a_model_file(psmvae, refused, fitted, dated, tmp_path):
    dated.write_text("note,b,id,a\nhm,,1,2.5\n,x,2,\n")
    arguments = ["impute", dated, "-m", fitted, "-o", tmp_path / "out.csv"]
    assert "--ignore note" in refused(1, *arguments)
    assert psmvae(*arguments, "--ignore", "note").code == 0
    assert (tmp_path / "out.csv").read_text() == "note,b,id,a\nhm,x,1,2.5\n,x,2,2.5\n"
    message = refused(2, *arguments, "--force", "--ignore", "note", "--ignore", "a")
    assert "was fitted on 'a'" in message


def test_sets_ignores_columns(psmvae, dated, tmp_path):
    quick = ["--epochs", "2", "--draws", "4", "--device", "cpu"]
    result = psmvae("sets", dated, "-o", tmp_path / "sets.csv", *IGNORED, *quick)
    assert result.code == 0, result.err
    assert "not modelled: id, seen" in result.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--ignore", "height"], "--ignore: no column 'height'"),
        (["--ignore", "id", "--kind", "id=real"], "--kind: 'id' is excluded by --ignore"),
        (["--ignore=id", "--ignore=a", "--ignore=seen", "--ignore=b"], "no column is left"),
    ],
)
def test_invalid_ignore_is_refused(refused, dated, tmp_path, options, named):
    assert named in refused(2, "impute", dated, "-o", tmp_path / "out.csv", *options)


def test_errors_and_warnings_name_the_column_to_ignore(psmvae, refused, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    arguments = ["impute", source, "-o", output, *MEAN]
    source.write_text("the day,a\n2020-01-01,1\n2020-01-02,\n")
    assert "--ignore 'the day'" in refused(1, *arguments)
    source.write_text("id,a\n" + "".join(f"P{i},{i % 7}\n" for i in range(1100)))
    message = refused(1, *arguments)
    assert "1100 levels" in message
    assert "--ignore id" in message
    source.write_text("id,a\n" + "".join(f"P{i},{i % 7}\n" for i in range(30)))
    result = psmvae(*arguments)
    assert result.code == 0, result.err
    assert "warning: column 'id' looks like an identifier" in result.err
    assert "--ignore id leaves it out" in result.err
