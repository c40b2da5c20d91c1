"""``psmvae simulate``: missing cells by a known mechanism; all other cells are unchanged."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from psmvae.cli.simulate_options import Mechanism, Tail
from psmvae.simulate import MECHANISMS, mcar, mnar_self, quantile_cut
from psmvae.simulate.table import generator
from psmvae.table.io import read_table

HALF = ["--mechanism", "mcar", "--rate", "0.5"]


def rows(path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


@pytest.fixture
def study(tmp_path):
    """2,000 rows, with trailing zeros in a numeric column."""
    rng = np.random.default_rng(0)
    income = rng.normal(50, 10, 2000)
    arm = rng.choice(["active", "control"], 2000)
    lines = [
        f"{i:05},{'NA' if i % 10 == 0 else f'{v:.3f}0'},{a},2024-01-{1 + i % 28:02}"
        for i, (v, a) in enumerate(zip(income, arm, strict=True))
    ]
    path = tmp_path / "study.csv"
    path.write_text("\n".join(["id,income,arm,day", *lines]) + "\n")
    return path


def test_names_are_those_of_the_library():
    assert [str(name) for name in Mechanism] == list(MECHANISMS)
    for tail in Tail:
        quantile_cut(np.arange(20.0).reshape(-1, 1), 0.2, np.random.default_rng(0), tail=tail)


def test_observed_cells_keep_their_text(psmvae_process, study, tmp_path):
    output, mask = tmp_path / "incomplete.csv", tmp_path / "mask.csv"
    result = psmvae_process("simulate", study, "-o", output, *HALF, "--mask", mask, "--seed", 3)
    assert result.code == 0, result.err
    assert result.out == ""
    expected = mcar(np.zeros((2000, 4)), 0.5, generator(3)).m
    incomplete, before, masks = rows(output), rows(study), rows(mask)
    assert list(incomplete[0]) == list(before[0])
    assert list(masks[0]) == [*before[0], "set"]
    for i, (new, cell, seen) in enumerate(zip(incomplete, before, masks, strict=True)):
        for j, name in enumerate(cell):
            if cell[name] == "NA":
                assert (new[name], seen[name]) == ("", "")
            elif expected[i, j]:
                assert (new[name], seen[name]) == (cell[name], "1")
            else:
                assert (new[name], seen[name]) == ("", "0")
    assert {row["set"] for row in masks} == {"0"}
    n_gone = sum(value == "0" for row in masks for name, value in row.items() if name != "set")
    assert f"made {n_gone:,} of them missing in id, income, arm, day" in result.err
    assert f"wrote {output} and {mask}" in result.err


def test_self_masking_of_one_column(psmvae, study, tmp_path):
    output, mask = tmp_path / "incomplete.csv", tmp_path / "mask.csv"
    options = ["--mechanism", "mnar-self", "--rate", 0.2, "--columns", "income", "--slope", -3]
    result = psmvae("simulate", study, "-o", output, *options, "--mask", mask)
    assert result.code == 0, result.err
    table = read_table(study)
    expected = mnar_self(table.select(["income"]), 0.2, generator(0), columns=["income"], slope=-3)
    masks = rows(mask)
    assert [row["income"] == "1" for row in masks] == expected.m[:, 0].tolist()
    assert [int(row["set"]) for row in masks] == expected.sets.tolist()
    assert all(row[name] == "1" for row in masks for name in ("id", "arm", "day"))
    lost = sum(row["income"] == "0" for row in masks) / 1800
    assert abs(lost - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 1800)


@pytest.mark.parametrize(
    "options",
    [
        ["mar", "--given", "arm", "--slope", "3"],
        ["mar"],
        ["mnar"],
        ["mnar-two", "--columns", "income", "--columns", "day"],
        ["mnar-all"],
        ["mnar-mcar"],
        ["mnar-self"],
        ["quantile", "--tail", "both", "--probability", "0.7", "--columns", "income"],
        ["blocks", "--blocks", "2"],
        ["label", "--label", "arm"],
    ],
)
def test_mechanism_makes_cells_missing(psmvae, study, tmp_path, options):
    output = tmp_path / "incomplete.tsv"
    result = psmvae("simulate", study, "-o", output, "--rate", 0.3, "--mechanism", *options, "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    incomplete = list(csv.DictReader(io.StringIO(output.read_text()), delimiter="\t"))
    before = rows(study)
    gone = 0
    for new, cell in zip(incomplete, before, strict=True):
        for name, value in cell.items():
            assert new[name] in ("", value)
            gone += new[name] == "" and value != "NA"
    assert gone > 200


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_parquet_and_feather_files_keep_their_types(psmvae, tmp_path, ending):
    table = pa.table(
        {
            "n": pa.array([1, 2, None, 4] * 25, type=pa.int16()),
            "grade": pa.array(["a", "b", "a", None] * 25).dictionary_encode(),
            "when": pa.array([0, 1, 2, 3] * 25, type=pa.timestamp("us")),
            "tags": pa.array([["x"], [], None, ["y"]] * 25),
            "raw": pa.array([b"x"] * 100),
        }
    ).replace_schema_metadata({"made": "here"})
    source, output = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write, read = (
        (pq.write_table, pq.read_table)
        if ending == "parquet"
        else (feather.write_feather, feather.read_table)
    )
    write(table, str(source))
    result = psmvae("simulate", source, "-o", output, *HALF)
    assert result.code == 0, result.err
    incomplete = read(str(output))
    assert incomplete.schema.types == read(str(source)).schema.types
    assert incomplete.schema.metadata[b"made"] == b"here"
    for name in table.column_names:
        pairs = list(zip(incomplete[name].to_pylist(), table[name].to_pylist(), strict=True))
        assert all(new is None or new == cell for new, cell in pairs)
        assert 0 < sum(new is not None for new, _ in pairs) < 90


def test_same_seed_gives_the_same_file(psmvae, study, tmp_path):
    outputs = []
    for seed in (1, 1, 2):
        output = tmp_path / "incomplete.csv"
        assert psmvae("simulate", study, "-o", output, *HALF, "--seed", seed, "--force").code == 0
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1] != outputs[2]


def test_na_adds_codes_of_missing_cells(psmvae, table, tmp_path):
    output, mask = tmp_path / "incomplete.csv", tmp_path / "mask.csv"
    options = ["--mechanism", "mcar", "--rate", 0, "--na", "Basel", "--mask", mask]
    assert psmvae("simulate", table, "-o", output, *options).code == 0
    for new, cell, seen in zip(rows(output), rows(table), rows(mask), strict=True):
        assert new == {name: "" if value == "Basel" else value for name, value in cell.items()}
        assert all((seen[name] == "1") == (value != "") for name, value in new.items())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--mechanism", "mcar"], "--rate"),
        (["--rate", "0.2"], "--mechanism"),
        (["--mechanism", "guess", "--rate", "0.2"], "--mechanism"),
        (["--mechanism", "mcar", "--rate", "1.2"], "--rate"),
        (["--mechanism", "mcar", "--rate", "nan"], "--rate"),
        (["--mechanism", "label", "--rate", "0.2"], "needs --label"),
        (["--mechanism", "label", "--rate", "0.2", "--label", "arms"], "--label: no column 'arms'"),
        ([*HALF, "--columns", "height"], "--columns: no column 'height'"),
        ([*HALF, "--slope", "2", "--tail", "low"], "--slope, --tail: not with --mechanism mcar"),
        (["--mechanism", "quantile", "--rate", "0.2", "--tail", "left"], "--tail"),
        (["--mechanism", "mar", "--rate", "0.2", "--given", "height"], "--given: no column"),
        (["--mechanism", "blocks", "--rate", "0.2", "--blocks", "0"], "--blocks"),
    ],
)
def test_invalid_option_is_named(refused, table, tmp_path, options, named):
    assert named in refused(2, "simulate", table, "-o", tmp_path / "incomplete.csv", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["mar", "--given", "age"], "must be fully observed"),
        (["blocks", "--rate", "0.9"], "cannot be met"),
        (["quantile", "--columns", "member"], "cannot be met"),
        (["mnar-self", "--slope", "0"], "slope must be"),
        (["label", "--label", "city"], "must be fully observed"),
    ],
)
def test_mechanism_that_does_not_fit_the_table_fails(refused, table, tmp_path, options, named):
    output = tmp_path / "incomplete.csv"
    message = refused(
        1, "simulate", table, "-o", output, "--rate", 0.6, "--mechanism", *options, "--mask",
        tmp_path / "mask.csv",
    )  # fmt: skip
    assert named in message
    assert [path.name for path in tmp_path.iterdir()] == ["patients.csv"]


def test_output_never_replaces_the_input_nor_another_file_without_force(
    refused, psmvae, table, tmp_path
):
    before = table.read_bytes()
    taken, new = tmp_path / "taken.csv", tmp_path / "new.csv"
    taken.write_text("mine")
    command = ["simulate", table, *HALF]
    assert "is the input" in refused(2, *command, "-o", table, "--force")
    assert "is the input" in refused(2, *command, "-o", new, "--mask", table, "--force")
    assert "--force" in refused(2, *command, "-o", taken)
    assert "--force" in refused(2, *command, "-o", new, "--mask", taken)
    assert "same file" in refused(2, *command, "-o", new, "--mask", new)
    assert "unknown file format" in refused(2, *command, "-o", tmp_path / "incomplete.xlsx")
    assert "no such file" in refused(2, "simulate", tmp_path / "none.csv", *HALF, "-o", new)
    assert (table.read_bytes(), taken.read_text(), new.exists()) == (before, "mine", False)
    assert psmvae(*command, "-o", taken, "--force").code == 0
    assert taken.read_text() != "mine"


def test_column_named_set_is_refused_with_mask(refused, psmvae, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,set\n1,2\n3,4\n")
    command = ["simulate", path, "-o", tmp_path / "incomplete.csv", *HALF]
    assert "'set'" in refused(2, *command, "--mask", tmp_path / "mask.csv")
    assert psmvae(*command).code == 0


def test_mask_is_independent_of_a_table_drawn_with_the_same_seed(psmvae, tmp_path):
    values = np.random.default_rng(1).random(4000)
    table, output = tmp_path / "drawn.csv", tmp_path / "incomplete.csv"
    table.write_text("x,y\n" + "".join(f"{v},1\n" for v in values))
    options = ["--mechanism", "mcar", "--rate", 0.3, "--columns", "x", "--seed", 1]
    assert psmvae("simulate", table, "-o", output, *options).code == 0
    gone = np.array([row["x"] == "" for row in rows(output)])
    assert gone.mean() == pytest.approx(0.3, abs=0.03)
    assert values[gone].mean() == pytest.approx(values[~gone].mean(), abs=0.04)


def test_table_without_rows_is_refused(refused, tmp_path):
    table = tmp_path / "empty.csv"
    table.write_text("a,b\n")
    message = refused(1, "simulate", table, "-o", tmp_path / "incomplete.csv", *HALF)
    assert "empty.csv: there are column names but no rows" in message
    assert not (tmp_path / "incomplete.csv").exists()
