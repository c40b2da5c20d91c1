"""The command ``psmvae-paper`` in real processes: output, files and exit codes."""

import csv
import gzip
import io
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from made_records import made_up, record
from psmvae_paper import EXPERIMENTS, METHODS, load_records
from psmvae_paper.records import FILE

PART = ["--quick", "--methods", "mean,mice"]
ONE = ["--device", "cpu", "--workers", "1"]


def write(folder, records) -> None:
    (folder / FILE).write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.fixture(scope="module")
def ran(paper_command, tmp_path_factory):
    """A folder with the records of a quick run of two methods, and what the run said."""
    folder = tmp_path_factory.mktemp("ran") / "results"
    result = paper_command("run", "rmse80", *PART, *ONE, "--out", folder)
    assert result.code == 0, result.err
    return folder, result


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with made-up records of experiments in full size."""
    folder = tmp_path_factory.mktemp("made")
    experiments = ("rmse20", "curve", "inpainting")
    write(folder, [made_up(cell) for name in experiments for cell in EXPERIMENTS[name].cells()])
    return folder


def test_list_names_every_experiment_and_method(paper_command):
    result = paper_command("list")
    assert result.code == 0
    first = {line.split()[0] for line in result.out.splitlines() if line and line[0] != " "}
    assert {*EXPERIMENTS, *METHODS} <= first


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"], ["page", "-h"]])
def test_help_is_shown(paper_command, arguments):
    result = paper_command(*arguments)
    assert (result.code, result.err) == (0, "")
    assert "Usage: psmvae-paper" in result.out


def test_command_in_new_process_shows_records_of_repository_by_default(fresh, tmp_path):
    result = fresh("show", "rmse20", "--methods", "mean,mice", cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out.count("±") == 12 + 1
    assert list(tmp_path.iterdir()) == []


def test_records_in_current_folder_are_shown_before_those_of_repository(paper_command, tmp_path):
    (tmp_path / "results").mkdir()
    cell = EXPERIMENTS["rmse20"].cells()[0]
    write(tmp_path / "results", [record(cell, rmse=0.4321)])
    assert ".4321" in paper_command("show", "rmse20", cwd=tmp_path).out


def test_page_of_repository_is_rebuilt_from_its_records(paper_command, root, tmp_path):
    page = tmp_path / "results.md"
    result = paper_command("page", "--from", root / "records", "--to", page)
    assert result.code == 0, result.err
    assert page.read_bytes() == (root / "docs" / "results.md").read_bytes()
    drawn = {path.name for path in (tmp_path / "results").iterdir()}
    assert drawn == {path.name for path in (root / "docs" / "results").iterdir()}


def test_run_writes_record_for_each_cell(ran):
    folder, result = ran
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert len(lines) == 8
    assert all(json.loads(line)["metrics"]["rmse"] > 0 for line in lines)
    assert result.out == ""
    assert "8 cells run in" in result.err
    assert f"psmvae-paper show rmse80 --quick --methods mean,mice --from {folder}" in result.err


def test_second_run_skips_recorded_cells(ran, paper_command):
    folder, _ = ran
    before = (folder / "records.jsonl").read_bytes()
    result = paper_command("run", "rmse80", *PART, *ONE, "--out", folder)
    assert result.code == 0
    assert "8 of 8 cells have a record and are skipped" in result.err
    assert (folder / "records.jsonl").read_bytes() == before


def test_quiet_run_prints_nothing(ran, paper_command):
    folder, _ = ran
    result = paper_command("run", "rmse80", *PART, *ONE, "--out", folder, "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_failed_cells_give_exit_code_1_and_can_be_retried(paper_command, tmp_path):
    cells = EXPERIMENTS["rmse80"].quick().only(methods=["mean"]).cells()
    write(tmp_path, [record(cells[0], error="ValueError: no memory")])
    command = ["run", "rmse80", "--quick", "--methods", "mean", *ONE, "-o", tmp_path]
    result = paper_command(*command)
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        "error: 1 of 4 cells failed; --retry runs them again; the first: ValueError: no memory"
    )
    assert paper_command(*command, "--retry").code == 0
    assert paper_command(*command).code == 0


def test_show_prints_table(ran, paper_command):
    folder, _ = ran
    result = paper_command("show", "rmse80", *PART, "--from", folder)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[2].split() == ["method", "MCAR", "MNAR"]
    assert [line.split()[0] for line in lines[4:6]] == ["mean", "MICE"]
    # without the part, what was not run is there and missing
    whole = paper_command("show", "rmse80", "--quick", "--from", folder).out
    assert len(whole.splitlines()) == len(lines) + 14
    assert "PSMVAE default" in whole


@pytest.mark.parametrize(
    ("form", "begins"),
    [("md", "**Error of"), ("csv", "method,settings,"), ("tex", r"% needs \usepackage{booktabs}")],
)
def test_show_formats(ran, paper_command, form, begins):
    folder, _ = ran
    result = paper_command("show", "rmse80", *PART, "--from", folder, "--format", form)
    assert result.code == 0
    assert result.out.startswith(begins)


def test_csv_of_split_table_is_one_table(paper_command, tmp_path):
    write(tmp_path, [made_up(cell) for cell in EXPERIMENTS["grid"].only(seeds=[0]).cells()])
    command = ["show", "grid", "--from", tmp_path, "--seeds", "0"]
    rows = list(csv.DictReader(io.StringIO(paper_command(*command, "--format", "csv").out)))
    assert len(rows) == 6 * 2 * 2 * 16
    assert {row["dataset"] for row in rows} == set(EXPERIMENTS["grid"].datasets)
    assert paper_command(*command).out.count("the best of its column") == 6


def test_show_other_metric_from_compressed_records(ran, paper_command, tmp_path):
    folder, _ = ran
    packed = gzip.compress((folder / "records.jsonl").read_bytes())
    (tmp_path / "records.jsonl.gz").write_bytes(packed)
    command = ["show", "rmse80", *PART, "--from", tmp_path, "--metric", "fit"]
    assert "seconds to fit" in paper_command(*command).out


def test_show_draws_figure(made, paper_command, error_of, tmp_path):
    path = tmp_path / "curve.png"
    command = ["show", "curve", "--from", made, "--figure", path]
    result = paper_command(*command)
    assert (result.code, result.out, result.err) == (0, "", f"wrote {path}\n")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "--force" in error_of(2, *command)
    assert paper_command(*command, "--force").code == 0


def test_compare_with_paper(made, paper_command):
    result = paper_command("compare", "rmse20", "--from", made, "--to", "paper")
    assert result.code == 0
    assert "/ .0738 = " in next(x for x in result.out.splitlines() if x.startswith("MissForest"))
    assert result.out == paper_command("compare", "rmse20", "--from", made).out
    # and the default against every other, paired by seed
    assert "missing: against psmvae" in result.out
    assert "paired t test" in result.out
    both = paper_command("compare", "rmse20", "--from", made, "--to", "paper", "--against", "mice")
    assert "/ .0738 = " in both.out
    assert "missing: against mice" in both.out


def test_compare_with_other_records(made, paper_command):
    result = paper_command("compare", "rmse20", "--from", made, "--to", made)
    assert result.code == 0
    rows = [line for line in result.out.splitlines() if " = 1.00" in line]
    assert len(rows) == 16
    assert all(row.count(" = 1.00") == 6 for row in rows)


def test_compare_methods_against_one(made, paper_command):
    command = ["compare", "rmse20", "--from", made, "--against", "missforest"]
    text = paper_command(*command).out
    assert "mean rank" in text
    rows = list(csv.DictReader(io.StringIO(paper_command(*command, "--format", "csv").out)))
    assert len(rows) == 15 * 6
    assert {row["against"] for row in rows} == {"missforest"}
    assert all(int(row["wins"]) <= int(row["n"]) == 5 for row in rows)


def test_page_replaces_own_page_only(made, paper_command, error_of, tmp_path):
    page = tmp_path / "results.md"
    for _ in range(2):
        result = paper_command("page", "--from", made, "--to", page)
        assert result.code == 0, result.err
        assert result.err.startswith(f"wrote {page}, {tmp_path / 'results' / 'curve.png'}")
    for text in ("# Something else\n", "# Results of my own\n"):
        page.write_text(text)
        assert "--force" in error_of(2, "page", "--from", made, "--to", page)
        assert page.read_text() == text


def test_page_does_not_replace_other_pictures(made, paper_command, error_of, tmp_path):
    page, picture = tmp_path / "new.md", tmp_path / "results" / "curve.png"
    picture.parent.mkdir()
    picture.write_bytes(b"mine")
    message = error_of(2, "page", "--from", made, "--to", page)
    assert f"{picture}: the file exists; --force" in message
    assert picture.read_bytes() == b"mine"
    assert not page.exists()
    assert paper_command("page", "--from", made, "--to", page, "--force").code == 0
    assert picture.read_bytes() != b"mine"


def test_quick_run_on_small_table(paper_command, tmp_path):
    """Of 60 rows and 3 columns, fewer than it cuts tables to."""
    table = tmp_path / "mine.csv"
    numbers = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt(table, numbers, delimiter=",", header="a,b,c", comments="")
    what = ["rmse80", "--quick", "--methods", "mean", "--datasets", table]
    result = paper_command("run", *what, *ONE, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    shown = paper_command("show", *what, "--from", tmp_path / "out")
    assert shown.code == 0, shown.err
    assert "60 rows, 3 columns" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rmse30"], "unknown experiment 'rmse30'; known are rmse20, rmse80, printed20"),
        (["run", "rmse20", "--quick", "--methods", "median"], "unknown method 'median'"),
        (["run", "rmse20", "--quick", "--seeds", "4-0"], "--seeds must be of the form 0-4"),
        (["run", "rmse20", "--quick", "--datasets", "iris"], "unknown data set 'iris'"),
        (["run", "rmse20", "--data-home", "nowhere"], "PSMVAE_DATA_HOME"),
        (["run", "rmse20", "--quick", "--workers", "0"], "--workers"),
        (["run", "rmse20", "--quick", "--device", "tpu"], "--device"),
        (["show", "rmse20", "--from", "nowhere"], "nowhere: there are no records"),
        (["show", "rmse20", "--from", "{ran}"], "no records of rmse20"),
        (["show", "rmse80", "--from", "{ran}"], "--quick shows the records of the small version"),
        (["show", "rmse20", "--from", "{made}", "--metric", "mae"], "they hold rmse, crps"),
        (["show", "rmse20", "--from", "{made}", "--format", "html"], "--format"),
        (["show", "rmse20", "--from", "{made}", "--figure", "a.png"], "a table and no figure"),
        (["show", "curve", "--from", "{made}", "--figure", "a.pdf"], "must end in .png"),
        (["show", "curve", "--from", "{made}", "--figure", "no/a.png"], "create it first"),
        (["compare", "curve", "--from", "{made}"], "the paper prints no table for curve"),
        (["compare", "rmse80", *PART, "--from", "{ran}"], "none of these cells"),
        (["compare", "rmse20", "--from", "{made}", "--metric", "crps"], "the paper prints rmse"),
        (["compare", "rmse20", "--from", "{made}", "--to", "nowhere"], "nowhere: there are no"),
        (["compare", "rmse20", "--from", "{made}", "--against", "median"], "no method 'median'"),
        (
            ["compare", "rmse20", "--to", "paper", "--against", "mice", "--format", "csv"],
            "holds one table",
        ),
        (["page", "--from", "{ran}", "--to", "page.md"], "an experiment in full size"),
        (["page", "--from", "{made}", "--to", "page.html"], "must end in .md"),
        (["page", "--from", "{made}", "--to", "{folder}"], "this is a folder"),
    ],
)
def test_usage_errors_are_one_line_and_write_nothing(
    error_of, ran, made, tmp_path, tmp_path_factory, arguments, message
):
    folder = tmp_path_factory.mktemp("folder").with_suffix(".md")
    folder.mkdir()
    filled = [text.format(ran=ran[0], made=made, folder=folder) for text in arguments]
    assert message in error_of(2, *filled, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_run_on_file_in_folder_with_space(paper_command, error_of, tmp_path):
    table, out = tmp_path / "my table.csv", tmp_path / "my results"
    rows = [f"{k % 7},{(k * k) % 11}" for k in range(40)]
    table.write_text("\n".join(["a,b", *rows]))
    part = ["--datasets", table, "--methods", "mean", "--seeds", "0"]
    result = paper_command("run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    # what it says to type can be typed
    typed = shlex.split(result.err.splitlines()[-1].partition("psmvae-paper ")[2])
    shown = paper_command(*typed)
    assert shown.code == 0, shown.err
    assert "my table.csv" in shown.out
    table.write_text("a,when\n" + "".join(f"{k},2020-01-{k:02}\n" for k in range(10, 30)))
    message = error_of(2, "run", "rmse20", *part, *ONE, "--out", tmp_path / "new")
    assert "column 'when'" in message
    assert not (tmp_path / "new").exists()


def test_unknown_metric_error_lists_recorded_metrics(error_of, tmp_path):
    good, bad, *_ = EXPERIMENTS["rmse20"].cells()
    write(tmp_path, [made_up(good), record(bad, error="ValueError: no memory")])
    message = error_of(2, "show", "rmse20", "--from", tmp_path, "--metric", "mae")
    assert "they hold rmse, crps" in message


def test_broken_records_give_usage_error(error_of, tmp_path):
    (tmp_path / "records.jsonl").write_text('{"key": 3}\n')
    message = error_of(2, "show", "rmse20", "--from", tmp_path)
    assert "line 1: expected a record with a key" in message


def test_help_loads_no_slow_libraries(python):
    code = "import sys; from psmvae_paper.cli import main; main(['run', '--help'])\n"
    code += "slow = ('torch', 'sklearn', 'matplotlib', 'pandas')\n"
    code += "print([name for name in slow if name in sys.modules])"
    assert python(code).splitlines()[-1] == "[]"


def test_quick_run_on_file_is_shown_after_file_is_gone(paper_command, tmp_path):
    table, out = tmp_path / "mine.csv", tmp_path / "out"
    rows = [",".join(str((k * (j + 3)) % 17) for j in range(4)) for k in range(120)]
    table.write_text("\n".join(["a,b,c,d", *rows]))
    part = ["--quick", "--datasets", table, "--methods", "mean,mice"]
    result = paper_command("run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    show = ["show", "rmse20", *part, "--from", out]
    before = paper_command(*show)
    assert before.code == 0, before.err
    assert before.out.count("±") >= 4
    # cells of another size that failed are not taken for it
    cells = [replace(c, dataset=str(table)) for c in EXPERIMENTS["rmse20"].quick().cells()[:4]]
    write(out, [*load_records(out), *(record(cell, error="ValueError: no") for cell in cells)])
    table.write_text("a\n1\n")
    assert paper_command(*show).out == before.out
    table.unlink()
    assert paper_command(*show).out == before.out


def test_path_with_comma_is_one_dataset(paper_command, tmp_path):
    table, out = tmp_path / "mine, and others.csv", tmp_path / "out"
    table.write_text("a,b\n" + "".join(f"{k % 7},{k * k % 11}\n" for k in range(40)))
    part = ["--datasets", table, "--methods", "mean", "--seeds", "0"]
    result = paper_command("run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    assert {one["cell"]["dataset"] for one in load_records(out)} == {str(table)}
