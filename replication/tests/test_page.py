"""The results page, and the examples of docs/running.md."""

import contextlib
import io
import re
import zlib
from pathlib import Path

import pytest

from made_records import made_up, record
from psmvae_paper import EXPERIMENTS, METHODS, Cell
from psmvae_paper.catalogue import ROWS
from psmvae_paper.grid import METRICS, Column, Row, pivot
from psmvae_paper.page import write_page
from psmvae_paper.paper import paper
from psmvae_paper.remarks import CHANGES, FIGURES, WHY
from psmvae_paper.summary import (
    agreement,
    made_with,
    mnar_table,
    mnar_wins,
    rank_summary,
    table_time,
)

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[1] / "docs" / "running.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
PROMISED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def records_of(*names: str, keep=lambda cell: True) -> list[dict]:
    cells = {cell: None for name in names for cell in EXPERIMENTS[name].cells()}
    return [made_up(cell) for cell in cells if keep(cell)]


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}")[1].split("\n## ")[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a page of all experiments, one cell of which failed."""
    folder = tmp_path_factory.mktemp("page")
    records = records_of(*EXPERIMENTS)
    failed = Cell("wine", "mcar", 0.2, 3, "gain")
    records = [
        record(failed, error="RuntimeError: out of memory") if one["key"] == failed.key else one
        for one in records
    ]
    quick = [made_up(cell) for cell in EXPERIMENTS["rmse20"].quick().cells()]
    return folder, write_page(records + quick, folder / "results.md"), records


def test_page_and_figures_are_written(whole):
    folder, written, _ = whole
    text = (folder / "results.md").read_text()
    figures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert len(figures) == 7
    assert written == [folder / "results.md", *(folder / figure for figure in figures)]
    assert all((folder / figure).read_bytes().startswith(b"\x89PNG") for figure in figures)
    assert "No records yet" not in text


def test_page_describes_records(whole):
    folder, _, records = whole
    made = section((folder / "results.md").read_text(), "How the results were made")
    assert f"- {len(records):,} records, 1 of them failed. 64 more are not of" in made
    assert "- Finished 2025-03-01 to 2025-03-05." in made
    gpu = [one["cell"] for one in records if one["device"] != "cpu"]
    # one training gives both K = 1 and K = 10,000, on each table of the grid
    shared = sum(c["method"] in ("psmvae-b", "miwae") and c["measure"] == "impute" for c in gpu)
    seconds = 2.5 * len(gpu) - 2.0 * shared
    assert f"- NVIDIA H200: {len(gpu):,} cells, {seconds:,.0f} s." in made
    # all cells of a seed end at the same time, and each takes 2.5 s
    assert "The wall-clock time of GPU work is 12 s." in made
    assert "Versions: psmvae 1.0, torch 2.9." in made


def test_page_tables_have_all_rows_and_paper_figures(whole):
    folder, _, _ = whole
    text = (folder / "results.md").read_text()
    for name in ("rmse20", "rmse80", "pattern-sets", "multiple"):
        table = section(text, EXPERIMENTS[name].title)
        for method in EXPERIMENTS[name].methods:
            assert f"\n| {METHODS[method].label} | " in table
        for figure in paper(name).values():
            assert f"({figure.mean:.4f})".replace("(0.", "(.") in table
    twenty = section(text, EXPERIMENTS["rmse20"].title)
    assert "[4 of 5, 1 failed]" in twenty
    assert "Failed: GAIN, wine MCAR, seed 3: RuntimeError: out of memory" in twenty
    ranks = section(text, "Ranks over the twelve cells").splitlines()
    assert len([line for line in ranks if line.startswith("| ")]) == 2 + len(ROWS)


def test_page_lists_means_that_disagree(whole):
    folder, _, _ = whole
    text = section((folder / "results.md").read_text(), "Agreement with the paper")
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    good, total = map(int, re.search(r"(\d+) of (\d+) means agree", text).groups())
    # GAIN on wine lacks a seed and is not judged
    assert total == 45 + 45 + 90 + 90 + 18 + 18 + 12 - 1
    assert len(lines) == total - good
    # on other masks than the paper's, an MNAR error is not judged by its size
    mnar = [line for line in lines if "adult MNAR" in line or "credit MNAR" in line]
    assert mnar
    assert all("on the paper's masks" in line for line in mnar)
    assert f"- GAIN: {WHY['gain']}" in text


def test_unchanged_figure_is_not_written_again(tmp_path):
    records = records_of("curve")
    write_page(records, tmp_path / "results.md")
    figure = tmp_path / "results" / "curve.png"
    # the same pixels with another metadata chunk
    content = figure.read_bytes()
    chunk = b"tEXtSoftware\x00test"
    length, checksum = (len(chunk) - 4).to_bytes(4, "big"), zlib.crc32(chunk).to_bytes(4, "big")
    end = content.index(b"IEND") - 4
    other = content[:end] + length + chunk + checksum + content[end:]
    figure.write_bytes(other)
    write_page(records, tmp_path / "results.md")
    assert figure.read_bytes() == other
    figure.write_bytes(b"not an image")
    write_page(records, tmp_path / "results.md")
    assert figure.read_bytes() == content


def test_page_of_incomplete_records_shows_missing_parts(tmp_path):
    records = records_of("rmse20", keep=lambda c: c.dataset == "wine" and c.method == "mean")
    assert write_page(records, tmp_path / "results.md") == [tmp_path / "results.md"]
    text = (tmp_path / "results.md").read_text()
    assert not (tmp_path / "results").exists()
    assert re.search(r"\| mean \| – \(.2510\) \| – \(.6676\) \|.*± ", text)
    for name in ("rmse80", "pattern-sets", "curve", "inpainting"):
        assert f"No records yet: `psmvae-paper run {name}` makes them." in text
    assert "too few records to rank" in text
    assert "No records yet of the default and another method" in text


def test_page_depends_only_on_records(tmp_path):
    page = tmp_path / "results.md"
    one = records_of("rmse20", keep=lambda c: c.method == "mean")
    write_page(one, page)
    first = page.read_text()
    write_page(one + records_of("rmse20", keep=lambda c: c.method == "mice"), page)
    assert page.read_text() != first
    write_page(one, page)
    assert page.read_text() == first


@pytest.mark.parametrize(
    ("file", "records", "message"),
    [
        ("page.txt", ["wine"], r"path must end in \.md"),
        ("no/page.md", ["wine"], "path must be in a folder that exists"),
        ("page.md", [], "records must hold some of an experiment in full size"),
    ],
)
def test_invalid_page_arguments_are_rejected(file, records, message, tmp_path):
    made = records_of("rmse20", keep=lambda c: c.dataset in records)
    with pytest.raises(ValueError, match=message):
        write_page(made, tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_records_without_device_are_counted():
    cell = EXPERIMENTS["rmse20"].cells()[0]
    bare = {"key": cell.key, "cell": cell.to_json(), "metrics": {"rmse": 0.1}, "error": None}
    text = " ".join(made_with([bare]))
    assert "1 records, 0 of them failed." in text
    assert "unknown: 1 cells" in text


def test_shared_training_time_counts_once():
    one, many = (Cell("wine", "mcar", 0.2, 0, f"psmvae-b{end}") for end in ("", "-10000"))
    together = [record(one, rmse=0.1), record(many, rmse=0.1)]
    assert "NVIDIA H200: 2 cells, 3 s." in made_with(together)
    apart = [together[0], together[1] | {"seconds": {"fit": 4.0, "impute": 0.5}}]
    assert "NVIDIA H200: 2 cells, 7 s." in made_with(apart)


def test_methods_run_on_cpu_are_listed():
    made = records_of("rmse20", keep=lambda c: c.method in ("psmvae", "mice", "mean"))
    keys = [one["key"] for one in made]
    assert table_time(made, keys).endswith("On a CPU: cells of MICE, mean.")
    on_gpu = [one for one in made if one["cell"]["method"] == "psmvae"]
    assert "CPU" not in table_time(on_gpu, keys)


def test_records_from_before_a_change_are_noted(tmp_path):
    made = records_of("rate", keep=lambda c: c.method in ("psmvae", "mice"))
    for one in made:
        new = one["cell"]["rate"] == 0.3
        one["settings"] = {"n_sets": 5} | ({"impute_from": "x_obs"} if new else {})
    failed = next(one for one in made if one["cell"]["method"] == "psmvae")
    failed |= {"settings": {}, "error": "ValueError: no"}
    write_page(made, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    since = f"Not run again since {CHANGES['impute_from'][1]}: PSMVAE default"
    # at seven rates, two mechanisms and five seeds; 80 % is in a table too
    shown = {
        "How the results were made": 59,
        "Error by missing rate": 59,
        "Error of single imputation at 80": 10,
    }
    for heading, n_old in shown.items():
        assert f"{since} ({n_old} records)." in text.split(f"## {heading}")[1].split("##")[0]
    assert text.count(since) == len(shown)


def test_wins_are_counted_on_mnar_cells():
    cells = EXPERIMENTS["rmse20"].cells()

    def error(cell: Cell) -> float:
        better = cell.method == "psmvae" and cell.mechanism == "mnar" and cell.dataset != "wine"
        return 0.1 if better else 0.2 - 0.01 * (cell.method == "missforest")

    grid = pivot([record(cell, rmse=error(cell)) for cell in cells], cells)
    text = mnar_wins(grid)
    assert text[0] == (
        "PSMVAE default against MissForest, MNAR: lower error on 10 of 15 seeds, "
        "lower mean on 2 of 3 cells."
    )
    table = mnar_table(grid)
    assert table.head == ["on", "MissForest", "MICE", "PSMVAE(b) K=10000"]
    assert table.body[0] == [
        "adult",
        *["-.0900 (5 of 5; p < .001)", *2 * ["-.1000 (5 of 5; p < .001)"]],
    ]
    assert table.body[2][2] == "+.0000 (0 of 5, 5 equal; p 1.000)"
    assert table.body[3] == ["all wins", "10 of 15", "10 of 15", "10 of 15"]


def test_rank_summary_names_default():
    cells = EXPERIMENTS["rmse20"].cells()
    errors = {"psmvae": 0.2, "mice": 0.1}
    grid = pivot([record(c, rmse=errors.get(c.method, 0.3)) for c in cells], cells)
    text = rank_summary(grid)
    assert "of 16 rows: MICE 1.00; PSMVAE default 2.00;" in text
    assert text.endswith("PSMVAE default is 2 of 16 (2.00) and has the best mean on 0 of 6 cells.")


def test_agreement_counts_means_and_rank_correlations():
    cells = EXPERIMENTS["rmse20"].cells()
    printed = paper("rmse20")
    figures = {tuple(key): figure.mean for key, figure in printed.items()}
    records = [
        record(cell, rmse=figures.get((cell.dataset, cell.mechanism, 0.2, cell.method), 0.1))
        for cell in cells
    ]
    mcar, mnar = agreement(pivot(records, cells), printed)
    assert mcar == "MCAR: 45 of 45 means agree with the paper's; 0 lower, 0 higher."
    assert "adult 1.00, letter 1.00, wine 1.00." in mnar
    assert agreement(pivot([], cells), printed) == [
        "There are no complete means to compare with the paper's yet."
    ]


def test_remarks_are_about_known_methods_and_experiments():
    assert set(WHY) <= set(METHODS)
    assert set(FIGURES) <= set(EXPERIMENTS)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_examples_of_running_guide(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed, code, before = io.StringIO(), BLOCKS[number], dict(METHODS)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"docs/running.md, example {number + 1}", "exec"), {})
    finally:
        METHODS.clear()
        METHODS.update(before)
    assert printed.getvalue().splitlines() == PROMISED.findall(code) != []


def test_running_guide_names_every_experiment():
    names = set(re.findall(r"`([a-z0-9-]+)`", DOCS.read_text()))
    assert set(EXPERIMENTS) <= names
    assert {"rmse", "crps", "coverage", "width", "bias"} <= names & set(METRICS)


def test_grid_of_one_column_keeps_rows():
    grid = pivot(records_of("rmse20"), EXPERIMENTS["rmse20"].cells())
    one = grid.only([Column("wine", "mnar", 0.2)])
    assert one.rows == [Row(method) for method in ROWS]


def test_page_has_gpu_time_of_tables(whole):
    folder, _, records = whole
    keys = {cell.key for name in ("rmse20", "rmse80") for cell in EXPERIMENTS[name].cells()}
    on_gpu = sum(one["device"] != "cpu" and one["key"] in keys for one in records)
    time = section((folder / "results.md").read_text(), "Time")
    assert f"{on_gpu:,} cells of both tables were run on a GPU, in 12 s of wall-clock" in time
