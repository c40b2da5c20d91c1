"""``psmvae fit``, ``sets``, ``info``, ``demo`` and the help."""

import csv
import io
import json

import pytest

import psmvae as package

QUICK = ["--epochs", "2", "--draws", "4", "--device", "cpu"]


def test_version(fresh):
    result = fresh("--version")
    assert (result.code, result.out, result.err) == (0, f"psmvae {package.__version__}\n", "")


@pytest.mark.parametrize("command", [[], ["impute"], ["fit"], ["sets"], ["info"], ["demo"]])
def test_help(psmvae, command):
    result = psmvae(*command, "--help")
    assert result.code == 0
    assert "--help" in result.out
    assert result.err == ""


def test_no_arguments_show_the_help(psmvae):
    assert psmvae().out == psmvae("--help").out


def test_help_loads_neither_torch_nor_arrow(python):
    code = (
        "import contextlib, io, json, sys; from psmvae.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['impute', '--help'])\n"
        "print(json.dumps([n for n in ('torch', 'sklearn', 'pyarrow') if n in sys.modules]))"
    )
    assert json.loads(python(code)) == []


def test_fit_writes_a_model_that_info_describes(psmvae, model):
    result = psmvae("info", model)
    assert result.code == 0, result.err
    for name in ("id", "age", "income", "city", "member"):
        assert name in result.out
    assert "categorical" in result.out


def test_info_as_json(fresh, model):
    result = fresh("info", model, "--json")
    assert result.code == 0
    facts = json.loads(result.out)
    assert [column["name"] for column in facts["columns"]] == [
        "id", "age", "income", "city", "member",
    ]  # fmt: skip


def test_sets_gives_one_row_each_with_probabilities(psmvae, table, model, tmp_path):
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


def test_the_demo_shows_its_table_and_leaves_its_files(psmvae, tmp_path):
    result = psmvae("demo", "--quick", "-o", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    for method in ("complete cases", "mean", "MICE", "PSMVAE"):
        assert method in result.out
    assert "adjusted Rand index" in " ".join(result.out.split())
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["demo.png", "filled.csv", "sets.csv", "trial.csv", "truth.csv"]
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")

    read = {
        name: list(csv.DictReader(io.StringIO((tmp_path / "out" / f"{name}.csv").read_text())))
        for name in ("trial", "truth", "filled", "sets")
    }
    assert len({len(rows) for rows in read.values()}) == 1
    for holes, filled, truth in zip(read["trial"], read["filled"], read["truth"], strict=True):
        assert all(filled.values())
        for name, value in holes.items():
            assert value in ("", filled[name])
            assert value in ("", truth[name])


def test_the_demo_overwrites_its_own_files_but_no_file_in_the_folders_place(refused, tmp_path):
    (tmp_path / "taken").write_text("mine")
    message = refused(1, "demo", "--quick", "--quiet", "-o", tmp_path / "taken")
    assert "not a folder" in message
    assert (tmp_path / "taken").read_text() == "mine"
