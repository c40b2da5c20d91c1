"""Errors: exit codes, messages, and that no file is lost or left behind."""

import json
import os
import struct

import pytest

QUICK = ["--epochs", "2", "--draws", "4", "--device", "cpu"]
MEAN = ["--method", "mean"]


@pytest.fixture(autouse=True)
def no_new_files(request, tmp_path):
    """A command that fails writes no output and no temporary file."""
    yield
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {
        "patients.csv",
        "other.csv",
        "bad.safetensors",
        "taken.csv",
        "taken.safetensors",
    }


def test_existing_output_is_kept_without_force(refused, psmvae, table, tmp_path):
    taken = tmp_path / "taken.csv"
    taken.write_text("mine")
    message = refused(2, "impute", table, "-o", taken, *QUICK)
    assert "taken.csv" in message
    assert "--force" in message
    assert taken.read_text() == "mine"
    assert psmvae("impute", table, "-o", taken, "--force", *MEAN).code == 0
    assert taken.read_text() != "mine"


def test_existing_model_file_is_kept_without_force(refused, table, tmp_path):
    taken = tmp_path / "taken.safetensors"
    taken.write_text("mine")
    assert "--force" in refused(2, "fit", table, "-o", taken, *QUICK)
    saving = ["impute", table, "-o", tmp_path / "o.csv", "--save-model", taken]
    assert "--force" in refused(2, *saving, *QUICK)
    assert taken.read_text() == "mine"


def test_one_existing_file_of_several_outputs_is_refused(refused, table, tmp_path):
    (tmp_path / "taken.csv").mkdir()
    output = tmp_path / "taken.csv" / "{i}.csv"
    (tmp_path / "taken.csv" / "patients.csv").write_text("mine")
    (tmp_path / "taken.csv" / "2.csv").symlink_to("patients.csv")
    message = refused(2, "impute", table, "-o", output, "--multiple", 3, *QUICK)
    assert "2.csv" in message
    (tmp_path / "taken.csv" / "2.csv").unlink()


@pytest.mark.parametrize("command", ["impute", "sets"])
def test_input_is_never_replaced(refused, table, command):
    before = table.read_bytes()
    message = refused(2, command, table, "-o", table, "--force", *QUICK)
    assert "patients.csv" in message
    assert table.read_bytes() == before


def test_input_is_never_replaced_through_a_link_or_a_relative_path(refused, table, tmp_path):
    before = table.read_bytes()
    link = tmp_path / "other.csv"
    link.symlink_to(table)
    refused(2, "impute", table, "-o", link, "--force", *QUICK)
    refused(2, "impute", "patients.csv", "-o", table, "--force", *QUICK, cwd=tmp_path)
    assert table.read_bytes() == before


@pytest.mark.parametrize(
    "output", ["filled.xlsx", "filled", "no/such/folder/filled.csv", "patients.csv/filled.csv"]
)
def test_output_path_that_cannot_be_written_is_a_usage_error(refused, table, output):
    refused(2, "impute", table, "-o", output, *QUICK, cwd=table.parent)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_write_permission_is_a_usage_error(refused, table, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    refused(2, "impute", table, "-o", tmp_path / "closed" / "filled.csv", *QUICK)


@pytest.mark.parametrize("output", ["m.csv", "m", "no/such/folder/m.safetensors"])
def test_model_output_must_be_a_safetensors_path_in_an_existing_folder(refused, table, output):
    refused(2, "fit", table, "-o", output, *QUICK, cwd=table.parent)
    refused(2, "impute", table, "-o", "o.csv", "--save-model", output, *QUICK, cwd=table.parent)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--sets", "0"], "--sets"),
        (["--members", "many"], "--members"),
        (["--draws", "-1"], "--draws"),
        (["--epochs", "0"], "--epochs"),
        (["--seed", "-3"], "--seed"),
        (["--multiple", "0"], "--multiple"),
        (["--mask-model", "guess"], "--mask-model"),
        (["--device", "tpu"], "--device"),
        (["--handle-unknown", "ignore"], "--handle-unknown"),
        (["--kind", "age"], "--kind"),
        (["--kind", "age=colour"], "colour"),
        (["--kind", "height=real"], "height"),
        (["--self-masked", "height"], "height"),
        (["--self-masked", "age", "--mask-model", "latent"], "--self-masked"),
        (["--sign", "low"], "--self-masked"),
        (["--method", "knn"], "--method"),
        (["--max-time", "0"], "--max-time"),
        (["--max-time", "nan"], "--max-time"),
        (["--max-time", "soon"], "--max-time"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_invalid_option_is_named(refused, table, tmp_path, options, named):
    message = refused(2, "impute", table, "-o", tmp_path / "filled.csv", *options)
    assert named in message


def test_required_argument_or_unknown_command_is_named(refused, table):
    assert "--output" in refused(2, "impute", table)
    assert "TABLE" in refused(2, "impute", "-o", "filled.csv")
    assert "frobnicate" in refused(2, "frobnicate")


@pytest.mark.parametrize(
    "options",
    [
        ["--sets", "3"],
        ["--mask-model", "self"],
        ["--kind", "age=real"],
        ["--save-model", "x.safetensors"],
        ["--method", "psmvae"],
        ["--max-time", "5"],
    ],
)
def test_model_option_is_refused_with_a_model_file(refused, table, model, tmp_path, options):
    arguments = ["impute", table, "-o", tmp_path / "filled.csv", "-m", model]
    assert options[0] in refused(2, *arguments, *options)


def test_number_of_an_imputation_in_the_output_needs_multiple(refused, table, tmp_path):
    assert "--multiple" in refused(2, "impute", table, "-o", tmp_path / "filled_{i}.csv", *QUICK)


def test_braces_other_than_i_are_refused_with_multiple(refused, psmvae, table, tmp_path):
    for name in ("dd{j}.csv", "dd{}.csv", "dd{i}{j}.csv"):
        message = refused(2, "impute", table, "-o", tmp_path / name, "--multiple", 2, *QUICK)
        assert "{i}" in message
    # without --multiple, braces are part of the name
    named = tmp_path / "dd{j}.csv"
    assert psmvae("impute", table, "-o", named, "--method", "mean").code == 0
    named.unlink()


def test_table_without_rows_is_refused(refused, tmp_path):
    source = tmp_path / "other.csv"
    source.write_text("a,b\n")
    message = refused(1, "impute", source, "-o", tmp_path / "filled.csv", *QUICK)
    assert f"{source}: there are column names but no rows" in message


@pytest.mark.parametrize("name", [".imp", ".id"])
def test_key_of_a_long_file_is_refused_as_a_column(refused, tmp_path, name):
    other = tmp_path / "other.csv"
    other.write_text(f"{name},a\n1,2\n2,\n3,4\n")
    arguments = ["impute", other, "--multiple", 2, *QUICK]
    message = refused(2, *arguments, "-o", tmp_path / "filled.csv")
    assert repr(name) in message
    assert "{i}" in message


@pytest.mark.parametrize("command", ["impute", "fit", "sets", "info"])
def test_input_that_does_not_exist_is_a_usage_error(refused, tmp_path, command):
    output = "m.safetensors" if command == "fit" else "o.csv"
    where = [] if command == "info" else ["-o", tmp_path / output]
    assert "nowhere.csv" in refused(2, command, tmp_path / "nowhere.csv", *where)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a,b\n",
        b"a,b\n1,2\n3\n",
        b"a,a\n1,2\n3,4\n",
        bytes(range(256)) * 4,
        b"a,b\ninf,1\n2,3\n",
        b"a,b\n2020-01-01,1\n2021-01-01,\n",
    ],
    ids=["empty", "header", "ragged", "duplicate", "binary", "infinite", "dates"],
)
def test_file_that_is_not_a_table_has_a_one_line_error(refused, tmp_path, content):
    source = tmp_path / "other.csv"
    source.write_bytes(content)
    refused(1, "impute", source, "-o", tmp_path / "filled.csv", *QUICK)


def test_folder_or_unknown_format_is_refused(refused, table, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    refused(2, "impute", tmp_path / "folder.csv", "-o", tmp_path / "filled.csv", *QUICK)
    (tmp_path / "bad.safetensors").write_text("a,b\n1,2\n")
    refused(1, "impute", tmp_path / "bad.safetensors", "-o", tmp_path / "filled.csv", *QUICK)


def test_csv_file_with_parquet_extension_is_named(refused, table, tmp_path):
    fake = table.rename(tmp_path / "fake.parquet")
    try:
        assert "fake.parquet" in refused(1, "impute", fake, "-o", tmp_path / "filled.csv", *QUICK)
    finally:
        fake.unlink()


def test_columns_that_differ_from_the_model_are_named(refused, model, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("id,age,height\n1,2,3\n4,,6\n")
    message = refused(1, "impute", other, "-m", model, "-o", tmp_path / "filled.csv")
    assert "height" in message
    assert "income" in message


def newer(content: bytes) -> bytes:
    """The same model file with all numbers and versions in its metadata increased."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    raised = {
        key: json.dumps(int(value) + 1) if value.isdigit() else value
        for key, value in header["__metadata__"].items()
    }
    header["__metadata__"] = raised
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "stub": lambda content: content[:5],
    "empty": lambda content: b"",
    "zip": lambda content: b"PK\x03\x04" + content,
    "csv": lambda content: b"a,b\n1,2\n",
    "no-metadata": lambda content: struct.pack("<Q", 2) + b"{}",
    "newer": newer,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_unreadable_model_file_is_named(refused, model, tmp_path, damage):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(DAMAGE[damage](model.read_bytes()))
    message = refused(1, "info", bad)
    assert "bad.safetensors" in message
    assert ("newer" in message) == (damage == "newer")


@pytest.mark.parametrize("command", ["impute", "sets"])
def test_newer_model_file_is_refused_by_every_command(refused, table, model, tmp_path, command):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(newer(model.read_bytes()))
    message = refused(1, command, table, "-m", bad, "-o", tmp_path / "filled.csv")
    assert "newer" in message
