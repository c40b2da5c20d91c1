"""``psmvae benchmark``: runs that resume, tables that are read, and mistakes that are told."""

import csv
import gzip
import io
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from benchmark.made_records import made_up, record
from psmvae_paper import EXPERIMENTS, METHODS, load_records
from psmvae_paper.records import FILE

PART = ["--quick", "--methods", "mean,mice"]
ONE = ["--device", "cpu", "--workers", "1"]


def write(folder, records) -> None:
    (folder / FILE).write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.fixture(scope="module")
def ran(psmvae, tmp_path_factory):
    """A folder with the records of a quick run of two methods, and what the run said."""
    folder = tmp_path_factory.mktemp("ran") / "results"
    result = psmvae("benchmark", "run", "rmse80", *PART, *ONE, "--out", folder)
    assert result.code == 0, result.err
    return folder, result


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with made-up records of experiments in full size."""
    folder = tmp_path_factory.mktemp("made")
    experiments = ("rmse20", "curve", "inpainting")
    write(folder, [made_up(cell) for name in experiments for cell in EXPERIMENTS[name].cells()])
    return folder


def test_the_list_names_every_experiment_and_method(psmvae):
    result = psmvae("benchmark", "list")
    assert result.code == 0
    first = {line.split()[0] for line in result.out.splitlines() if line and line[0] != " "}
    assert {*EXPERIMENTS, *METHODS} <= first


@pytest.mark.parametrize("arguments", [[], ["--help"], ["run", "--help"], ["page", "-h"]])
def test_help_is_given(psmvae, arguments):
    result = psmvae("benchmark", *arguments)
    assert (result.code, result.err) == (0, "")
    assert "Usage: psmvae benchmark" in result.out


def test_a_run_writes_a_record_a_cell(ran):
    folder, result = ran
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert len(lines) == 8
    assert all(json.loads(line)["metrics"]["rmse"] > 0 for line in lines)
    assert result.out == ""
    assert "8 cells run in" in result.err
    assert f"psmvae benchmark show rmse80 --quick --methods mean,mice --from {folder}" in result.err


def test_a_second_run_skips_what_is_done(ran, psmvae):
    folder, _ = ran
    before = (folder / "records.jsonl").read_bytes()
    result = psmvae("benchmark", "run", "rmse80", *PART, *ONE, "--out", folder)
    assert result.code == 0
    assert "8 of 8 cells are done already and are skipped" in result.err
    assert (folder / "records.jsonl").read_bytes() == before


def test_a_quiet_run_says_nothing(ran, psmvae):
    folder, _ = ran
    result = psmvae("benchmark", "run", "rmse80", *PART, *ONE, "--out", folder, "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_run_with_failures_says_so(psmvae, tmp_path):
    cells = EXPERIMENTS["rmse80"].quick().only(methods=["mean"]).cells()
    write(tmp_path, [record(cells[0], error="ValueError: bad luck")])
    command = ["benchmark", "run", "rmse80", "--quick", "--methods", "mean", *ONE, "-o", tmp_path]
    result = psmvae(*command)
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        "error: 1 of 4 cells failed; --retry runs them again; the first: ValueError: bad luck"
    )
    assert psmvae(*command, "--retry").code == 0
    assert psmvae(*command).code == 0


def test_the_table_is_shown(ran, psmvae):
    folder, _ = ran
    result = psmvae("benchmark", "show", "rmse80", *PART, "--from", folder)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[2].split() == ["method", "MCAR", "MNAR"]
    assert [line.split()[0] for line in lines[4:6]] == ["mean", "MICE"]
    # without the part, what was not run is there and missing
    whole = psmvae("benchmark", "show", "rmse80", "--quick", "--from", folder).out
    assert len(whole.splitlines()) == len(lines) + 14
    assert "PSMVAE default" in whole


@pytest.mark.parametrize(
    ("form", "begins"),
    [("md", "**Error of"), ("csv", "method,settings,"), ("tex", r"% needs \usepackage{booktabs}")],
)
def test_the_formats(ran, psmvae, form, begins):
    folder, _ = ran
    result = psmvae("benchmark", "show", "rmse80", *PART, "--from", folder, "--format", form)
    assert result.code == 0
    assert result.out.startswith(begins)


def test_csv_of_a_table_in_parts_is_one_table(psmvae, tmp_path):
    write(tmp_path, [made_up(cell) for cell in EXPERIMENTS["grid"].only(seeds=[0]).cells()])
    command = ["benchmark", "show", "grid", "--from", tmp_path, "--seeds", "0"]
    rows = list(csv.DictReader(io.StringIO(psmvae(*command, "--format", "csv").out)))
    assert len(rows) == 6 * 2 * 2 * 16
    assert {row["dataset"] for row in rows} == set(EXPERIMENTS["grid"].datasets)
    assert psmvae(*command).out.count("the best of its column") == 6


def test_another_metric_and_packed_records(ran, psmvae, tmp_path):
    folder, _ = ran
    packed = gzip.compress((folder / "records.jsonl").read_bytes())
    (tmp_path / "records.jsonl.gz").write_bytes(packed)
    command = ["benchmark", "show", "rmse80", *PART, "--from", tmp_path, "--metric", "fit"]
    assert "seconds to fit" in psmvae(*command).out


def test_a_figure_is_drawn(made, psmvae, refused, tmp_path):
    path = tmp_path / "curve.png"
    command = ["benchmark", "show", "curve", "--from", made, "--figure", path]
    result = psmvae(*command)
    assert (result.code, result.out, result.err) == (0, "", f"wrote {path}\n")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "--force" in refused(2, *command)
    assert psmvae(*command, "--force").code == 0


def test_ours_beside_the_papers(made, psmvae):
    result = psmvae("benchmark", "compare", "rmse20", "--from", made, "--to", "paper")
    assert result.code == 0
    assert "/ .0738 = " in next(x for x in result.out.splitlines() if x.startswith("MissForest"))
    assert result.out == psmvae("benchmark", "compare", "rmse20", "--from", made).out
    # and the default against every other, paired by seed
    assert "missing: against psmvae" in result.out
    assert "paired t test" in result.out
    both = psmvae(
        "benchmark", "compare", "rmse20", "--from", made, "--to", "paper", "--against", "mice"
    )
    assert "/ .0738 = " in both.out
    assert "missing: against mice" in both.out


def test_ours_beside_other_records(made, psmvae):
    result = psmvae("benchmark", "compare", "rmse20", "--from", made, "--to", made)
    assert result.code == 0
    rows = [line for line in result.out.splitlines() if " = 1.00" in line]
    assert len(rows) == 16
    assert all(row.count(" = 1.00") == 6 for row in rows)


def test_every_method_against_one(made, psmvae):
    command = ["benchmark", "compare", "rmse20", "--from", made, "--against", "missforest"]
    text = psmvae(*command).out
    assert "mean rank" in text
    rows = list(csv.DictReader(io.StringIO(psmvae(*command, "--format", "csv").out)))
    assert len(rows) == 15 * 6
    assert {row["against"] for row in rows} == {"missforest"}
    assert all(int(row["wins"]) <= int(row["n"]) == 5 for row in rows)


def test_the_page_is_written_and_written_again(made, psmvae, refused, tmp_path):
    page = tmp_path / "results.md"
    for _ in range(2):
        result = psmvae("benchmark", "page", "--from", made, "--to", page)
        assert result.code == 0, result.err
        assert result.err.startswith(f"wrote {page}, {tmp_path / 'results' / 'curve.png'}")
    for text in ("# Something else\n", "# Results of my own\n"):
        page.write_text(text)
        assert "--force" in refused(2, "benchmark", "page", "--from", made, "--to", page)
        assert page.read_text() == text


def test_a_picture_that_is_not_the_page_s_is_kept(made, psmvae, refused, tmp_path):
    page, picture = tmp_path / "new.md", tmp_path / "results" / "curve.png"
    picture.parent.mkdir()
    picture.write_bytes(b"mine")
    told = refused(2, "benchmark", "page", "--from", made, "--to", page)
    assert f"{picture}: the file exists already; --force" in told
    assert picture.read_bytes() == b"mine"
    assert not page.exists()
    assert psmvae("benchmark", "page", "--from", made, "--to", page, "--force").code == 0
    assert picture.read_bytes() != b"mine"


def test_the_small_version_takes_small_tables(psmvae, tmp_path):
    """Of 60 rows and 3 columns, fewer than it cuts tables to."""
    table = tmp_path / "mine.csv"
    numbers = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt(table, numbers, delimiter=",", header="a,b,c", comments="")
    what = ["rmse80", "--quick", "--methods", "mean", "--datasets", table]
    result = psmvae("benchmark", "run", *what, *ONE, "--out", tmp_path / "out")
    assert result.code == 0, result.err
    shown = psmvae("benchmark", "show", *what, "--from", tmp_path / "out")
    assert shown.code == 0, shown.err
    assert "60 rows, 3 columns" in shown.out


@pytest.mark.parametrize(
    ("arguments", "told"),
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
        (["show", "rmse80", "--from", "{ran}"], "--quick shows those of the small version"),
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
def test_mistakes_are_told_and_leave_nothing(
    refused, ran, made, tmp_path, tmp_path_factory, arguments, told
):
    folder = tmp_path_factory.mktemp("folder").with_suffix(".md")
    folder.mkdir()
    filled = [text.format(ran=ran[0], made=made, folder=folder) for text in arguments]
    assert told in refused(2, "benchmark", *filled, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_ones_own_in_a_folder_with_a_space(psmvae, refused, tmp_path):
    table, out = tmp_path / "my table.csv", tmp_path / "my results"
    rows = [f"{k % 7},{(k * k) % 11}" for k in range(40)]
    table.write_text("\n".join(["a,b", *rows]))
    part = ["--datasets", table, "--methods", "mean", "--seeds", "0"]
    result = psmvae("benchmark", "run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    # what it says to type can be typed
    typed = shlex.split(result.err.splitlines()[-1].partition("psmvae ")[2])
    shown = psmvae(*typed)
    assert shown.code == 0, shown.err
    assert "my table.csv" in shown.out
    table.write_text("a,when\n" + "".join(f"{k},2020-01-{k:02}\n" for k in range(10, 30)))
    told = refused(2, "benchmark", "run", "rmse20", *part, *ONE, "--out", tmp_path / "new")
    assert "column 'when'" in told
    assert not (tmp_path / "new").exists()


def test_a_metric_that_is_not_there_is_told_also_where_cells_failed(refused, tmp_path):
    good, bad, *_ = EXPERIMENTS["rmse20"].cells()
    write(tmp_path, [made_up(good), record(bad, error="ValueError: bad luck")])
    told = refused(2, "benchmark", "show", "rmse20", "--from", tmp_path, "--metric", "mae")
    assert "they hold rmse, crps" in told


def test_a_broken_file_of_records_is_told(refused, tmp_path):
    (tmp_path / "records.jsonl").write_text('{"key": 3}\n')
    told = refused(2, "benchmark", "show", "rmse20", "--from", tmp_path)
    assert "line 1: expected a record with a key" in told


def test_nothing_slow_is_loaded_for_the_help(python):
    code = "import sys; from psmvae.cli import main; main(['benchmark', '--help'])\n"
    code += "slow = ('torch', 'sklearn', 'matplotlib', 'pandas', 'psmvae_paper')\n"
    code += "print([name for name in slow if name in sys.modules])"
    assert python(code).splitlines()[-1] == "[]"


def test_a_small_run_on_a_file_is_shown_from_its_records_alone(psmvae, tmp_path):
    table, out = tmp_path / "mine.csv", tmp_path / "out"
    rows = [",".join(str((k * (j + 3)) % 17) for j in range(4)) for k in range(120)]
    table.write_text("\n".join(["a,b,c,d", *rows]))
    part = ["--quick", "--datasets", table, "--methods", "mean,mice"]
    result = psmvae("benchmark", "run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    show = ["benchmark", "show", "rmse20", *part, "--from", out]
    before = psmvae(*show)
    assert before.code == 0, before.err
    assert before.out.count("±") >= 4
    # cells of another size that failed are not taken for it
    cells = [replace(c, dataset=str(table)) for c in EXPERIMENTS["rmse20"].quick().cells()[:4]]
    write(out, [*load_records(out), *(record(cell, error="ValueError: no") for cell in cells)])
    table.write_text("a\n1\n")
    assert psmvae(*show).out == before.out
    table.unlink()
    assert psmvae(*show).out == before.out


def test_a_path_with_a_comma_is_one_data_set(psmvae, tmp_path):
    table, out = tmp_path / "mine, and others.csv", tmp_path / "out"
    table.write_text("a,b\n" + "".join(f"{k % 7},{k * k % 11}\n" for k in range(40)))
    part = ["--datasets", table, "--methods", "mean", "--seeds", "0"]
    result = psmvae("benchmark", "run", "rmse20", *part, *ONE, "--out", out)
    assert result.code == 0, result.err
    assert {one["cell"]["dataset"] for one in load_records(out)} == {str(table)}
