"""``psmvae impute``: filled tables in every format, multiple imputation, model files."""

import csv
import io

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from psmvae import MICEImputer, MultipleImputation
from psmvae.table import read_table, write_table

QUICK = ["--epochs", "2", "--draws", "4", "--device", "cpu"]
MEAN = ["--method", "mean"]


def rows(path, delimiter=","):
    return list(csv.DictReader(io.StringIO(path.read_text()), delimiter=delimiter))


def test_missing_cells_are_filled_and_observed_cells_keep_their_text(
    psmvae_process, table, tmp_path
):
    output = tmp_path / "filled.csv"
    result = psmvae_process("impute", table, "-o", output, *QUICK)
    assert result.code == 0, result.err
    before, after = rows(table), rows(output)
    assert len(after) == len(before)
    assert list(after[0]) == list(before[0])
    for old, new in zip(before, after, strict=True):
        assert all(new.values())
        assert all(new[name] == value for name, value in old.items() if value)
    assert {row["city"] for row in after} == {"Basel", "Ghent", "Lyon"}
    assert {row["member"] for row in after} == {"yes", "no"}
    assert all(row["age"].isdigit() for row in after)

    assert result.out == ""
    assert "12 rows, 7 missing cells" in result.err
    assert "filled 7" in result.err
    assert f"wrote {output}" in result.err
    # no progress bar outside a terminal
    assert "epoch" not in result.err


def test_same_seed_gives_the_same_file_and_quiet_writes_nothing(psmvae, big_table, tmp_path):
    for name in ("one", "two"):
        arguments = ["-o", tmp_path / f"{name}.csv", "--seed", 3, "--quiet", *QUICK]
        result = psmvae("impute", big_table, *arguments)
        assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_multiple_writes_one_long_file_by_default(psmvae, table, tmp_path):
    output = tmp_path / "long.csv"
    result = psmvae("impute", table, "-o", output, "--multiple", 3, *QUICK)
    assert result.code == 0, result.err
    incomplete, long = rows(output)[:12], rows(output)[12:]
    assert list(long[0])[:3] == [".imp", ".id", "id"]
    assert [row[".imp"] for row in incomplete] == ["0"] * 12
    assert [{name: row[name] for name in rows(table)[0]} for row in incomplete] == rows(table)
    assert [row[".imp"] for row in long] == ["1"] * 12 + ["2"] * 12 + ["3"] * 12
    assert [row[".id"] for row in long] == [str(i) for i in range(1, 13)] * 3
    assert all(all(row.values()) for row in long)
    # observed cells have the same text in every imputation
    assert [row["income"] for row in long if row["id"] == "1"] == ["51200.50"] * 3
    # drawn cells differ
    assert len({row["income"] for row in long if row["id"] == "3"}) > 1


def test_multiple_writes_one_file_per_imputation_if_the_name_contains_i(psmvae, table, tmp_path):
    result = psmvae("impute", table, "-o", tmp_path / "filled_{i}.csv", "--multiple", 3, *MEAN)
    assert result.code == 0, result.err
    files = sorted(path.name for path in tmp_path.glob("filled_*"))
    assert files == ["filled_1.csv", "filled_2.csv", "filled_3.csv"]
    for name in files:
        assert next(iter(rows(tmp_path / name)[0])) == "id"
        assert all(all(row.values()) for row in rows(tmp_path / name))


def test_multiple_of_a_parquet_file_has_integer_numbers(psmvae, tmp_path):
    source, output = tmp_path / "in.parquet", tmp_path / "long.parquet"
    pa.parquet.write_table(pa.table({"a": [1.5, None, 3.0, 2.5], "b": [1, 2, None, 4]}), source)
    result = psmvae("impute", source, "-o", output, "--multiple", 2, *MEAN)
    assert result.code == 0, result.err
    long = pa.parquet.read_table(output)
    assert long.column_names == [".imp", ".id", "a", "b"]
    assert long.column(".imp").to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    assert long.slice(0, 4).drop([".imp", ".id"]).equals(pa.parquet.read_table(source))
    assert long.schema.field("b").type == pa.int64()


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_multiple_writes_what_the_library_writes(psmvae, table, tmp_path, extension):
    output, expected = tmp_path / f"long.{extension}", tmp_path / f"expected.{extension}"
    options = ["--method", "mice", "--seed", 4]
    assert psmvae("impute", table, "-o", output, "--multiple", 3, *options).code == 0
    original = read_table(table)
    imputer = MICEImputer(random_state=4).fit(original)
    mi = imputer.impute_multiple(original, m=3, random_state=4)
    write_table(mi.to_long(), expected)
    found, wanted = read_table(output), read_table(expected)
    assert found.column_names == wanted.column_names
    for name in wanted.column_names:
        values = zip(found[name].to_pylist(), wanted[name].to_pylist(), strict=True)
        # text files have six digits of filled cells
        for one, other in values:
            assert one == (pytest.approx(other, rel=1e-5) if isinstance(other, float) else other)
    assert MultipleImputation.from_long(found).m == 3


@pytest.mark.parametrize("extension", ["tsv", "parquet", "feather"])
def test_format_is_kept(psmvae, tmp_path, extension):
    source, output = tmp_path / f"in.{extension}", tmp_path / f"out.{extension}"
    values = {
        "a": [1.5, None, 3.25, 2.5, 0.5],
        "b": [1, 2, 3, None, 5],
        "c": [*list("xyx"), None, "y"],
    }
    if extension == "parquet":
        pa.parquet.write_table(pa.table(values), source)
    elif extension == "feather":
        pa.feather.write_feather(pa.table(values), source)
    else:
        lines = zip(*values.values(), strict=True)
        text = ["\t".join("" if v is None else str(v) for v in line) for line in lines]
        source.write_text("\n".join(["\t".join(values), *text]) + "\n")
    result = psmvae("impute", source, "-o", output, *MEAN)
    assert result.code == 0, result.err

    if extension in ("parquet", "feather"):
        read = pa.parquet.read_table if extension == "parquet" else pa.feather.read_table
        filled = read(output)
        assert filled.schema.equals(pa.table(values).schema)
        assert filled.column("a").null_count == filled.column("c").null_count == 0
        assert filled.column("a").to_pylist()[2] == 3.25
    else:
        filled = rows(output, "\t")
        assert [row["a"] for row in filled][2] == "3.25"
        assert all(all(row.values()) for row in filled)


def test_na_adds_codes_of_missing_cells_and_the_format_can_change(psmvae, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("a,b,c\n1.5,u,1\n-999,v,2\n2.5,unknown,3\n3.5,u,-999\n2.0,v,5\n")
    result = psmvae("impute", source, "-o", output, "--na=-999", "--na", "unknown", *MEAN)
    assert result.code == 0, result.err
    filled = pa.parquet.read_table(output)
    assert filled.schema.types == [pa.float64(), pa.string(), pa.int64()]
    assert filled.column("a")[1].as_py() > -100
    assert filled.column("b")[2].as_py() in ("u", "v")
    assert filled.column("c")[3].as_py() > -100


def test_model_file_imputes_new_rows_in_another_column_order(psmvae, table, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("income,id,age,member,city\n,90,40,no,Ghent\n50000,91,,yes,Lyon\n")
    result = psmvae("impute", new, "-m", model, "-o", tmp_path / "filled.csv", "--draws", 4)
    assert result.code == 0, result.err
    filled = rows(tmp_path / "filled.csv")
    assert list(filled[0]) == ["income", "id", "age", "member", "city"]
    assert all(all(row.values()) for row in filled)


def test_saved_model_gives_the_same_file(psmvae, table, tmp_path):
    saved = tmp_path / "m.safetensors"
    first = ["-o", tmp_path / "one.csv", "--save-model", saved]
    assert psmvae("impute", table, *first, *QUICK).code == 0
    second = ["-o", tmp_path / "two.csv", "-m", saved, "--draws", 4, "--device", "cpu"]
    assert psmvae("impute", table, *second).code == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        # the mask model p(m|x) has a training phase of its own, which takes longer
        ["--mask-model", "self", "--max-time", "0.5"],
        ["--mask-model", "none"],
        ["--method", "gmvae", "--mask-model", "latent"],
        ["--method", "not-miwae", "--mask-model", "linear"],
        ["--sets", "2", "--members", "2", "--kind", "id=real", "--kind", "age=categorical"],
    ],
)
def test_model_options_are_accepted(psmvae, table, tmp_path, options):
    output = tmp_path / "filled.csv"
    result = psmvae("impute", table, "-o", output, *options, *QUICK)
    assert result.code == 0, result.err
    assert all(all(row.values()) for row in rows(output))


def test_column_without_observed_cells_has_a_warning_and_stays_missing(psmvae, tmp_path):
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("a,b,empty\n1.5,2,\n,3,\n2.5,,\n3.5,1,\n")
    result = psmvae("impute", source, "-o", output, *MEAN)
    assert result.code == 0, result.err
    warned = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert len([line for line in warned if "empty" in line]) == 1
    assert "UserWarning" not in result.err
    assert "filled 2 of" in result.err
    assert {row["empty"] for row in rows(output)} == {""}


def test_unknown_level_is_an_error_or_treated_as_missing(psmvae, refused, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("id,age,income,city,member\n1,,50000,Paris,yes\n")
    arguments = ["impute", new, "-m", model, "-o", tmp_path / "filled.csv"]
    message = refused(1, *arguments)
    assert "city" in message
    assert "Paris" in message
    assert "--handle-unknown missing" in message
    assert psmvae(*arguments, "--handle-unknown", "missing").code == 0
    assert rows(tmp_path / "filled.csv")[0]["city"] == "Paris"


def test_real_column_with_integers_in_new_rows_is_not_rounded(psmvae, tmp_path):
    source, model = tmp_path / "share.csv", tmp_path / "share.safetensors"
    source.write_text("share,y\n" + "".join(f"{i / 40},{i / 20}\n" for i in range(41)))
    assert psmvae("fit", source, "-o", model, "--method", "mice").code == 0
    new, output = tmp_path / "new.csv", tmp_path / "filled.csv"
    new.write_text("share,y\n1,1.9\n0,0.1\n,1.0\n,1.2\n")
    result = psmvae("impute", new, "-m", model, "-o", output)
    assert result.code == 0, result.err
    shares = [row["share"] for row in rows(output)]
    assert shares[:2] == ["1", "0"]
    assert [float(share) for share in shares[2:]] == pytest.approx([0.5, 0.6], abs=0.02)
