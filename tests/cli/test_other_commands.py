"""``psmvae fit``, ``sets``, ``info``, ``demo`` and ``--help``."""

import csv
import io
import json
import re

import pytest

import psmvae as package

COMMANDS = [
    "impute", "analyse", "sensitivity", "fit", "sets", "info", "missingness", "report", "simulate",
    "demo",
]  # fmt: skip
QUICK = ["--epochs", "2", "--draws", "4", "--device", "cpu"]


def test_version(psmvae_process):
    result = psmvae_process("--version")
    assert (result.code, result.out, result.err) == (0, f"psmvae {package.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(psmvae, command):
    result = psmvae(command, "--help")
    assert result.code == 0
    assert "--help" in result.out
    assert result.err == ""


def test_help_lists_the_commands_and_is_shown_without_arguments(psmvae):
    text = psmvae("--help").out
    listed = re.findall(r"^│ (\w+) ", text.partition("Commands")[2], re.MULTILINE)
    assert listed == COMMANDS
    assert psmvae().out == text


@pytest.mark.parametrize("command", ["impute", "simulate"])
def test_help_loads_neither_torch_nor_arrow(python, command):
    code = (
        "import contextlib, io, json, sys; from psmvae.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): main(['{command}', '--help'])\n"
        "print(json.dumps([n for n in ('torch', 'sklearn', 'pyarrow') if n in sys.modules]))"
    )
    assert json.loads(python(code)) == []


def test_info_shows_the_columns_of_a_model_file(psmvae, model):
    result = psmvae("info", model)
    assert result.code == 0, result.err
    for name in ("id", "age", "income", "city", "member"):
        assert name in result.out
    assert "categorical" in result.out
    assert "PSMVAEImputer" in result.out


def test_info_as_json(psmvae, model):
    result = psmvae("info", model, "--json")
    assert result.code == 0
    facts = json.loads(result.out)
    assert [column["name"] for column in facts["columns"]] == [
        "id", "age", "income", "city", "member",
    ]  # fmt: skip


def test_sets_writes_the_set_and_probabilities_of_each_row(psmvae, table, model, tmp_path):
    for source in (["-m", model], [*QUICK, "--sets", "3"]):
        output = tmp_path / "sets.csv"
        result = psmvae("sets", table, "-o", output, "--force", *source)
        assert result.code == 0, result.err
        rows = list(csv.DictReader(io.StringIO(output.read_text())))
        assert [row["row"] for row in rows] == [str(i) for i in range(1, 13)]
        for row in rows:
            p = [float(value) for name, value in row.items() if name.startswith("probability_")]
            assert sum(p) == pytest.approx(1, abs=1e-4)
            assert p[int(row["set"])] == max(p)
    assert list(rows[0]) == ["row", "set", "probability_0", "probability_1", "probability_2"]


def test_demo_prints_its_comparison_and_writes_its_files(psmvae, tmp_path):
    result = psmvae("demo", "--quick", "-o", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    for method in ("complete cases", "mean", "MICE", "PSMVAE"):
        assert method in result.out
    assert "Pooled over 20 imputations, mean outcome:" in " ".join(result.out.split())
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == [
        "demo.png", "filled.csv", "report.html", "sets.csv", "trial.csv", "truth.csv",
    ]  # fmt: skip
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")

    read = {
        name: list(csv.DictReader(io.StringIO((tmp_path / "out" / f"{name}.csv").read_text())))
        for name in ("trial", "truth", "filled", "sets")
    }
    assert len({len(rows) for rows in read.values()}) == 1
    for observed, filled, truth in zip(read["trial"], read["filled"], read["truth"], strict=True):
        assert all(filled.values())
        for name, value in observed.items():
            assert value in ("", filled[name])
            assert value in ("", truth[name])


def test_demo_does_not_replace_a_file_by_its_folder(refused, tmp_path):
    (tmp_path / "taken").write_text("mine")
    message = refused(1, "demo", "--quick", "--quiet", "-o", tmp_path / "taken")
    assert "not a folder" in message
    assert (tmp_path / "taken").read_text() == "mine"
