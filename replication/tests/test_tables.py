"""Tables from records: every figure is what the seeds say, and nothing is dropped silently."""

import csv
import io
import itertools

import numpy as np
import pytest

from made_records import LETTER, WINE, made_up, record, small
from psmvae_paper import EXPERIMENTS, METHODS, Cell, Method
from psmvae_paper.grid import METRICS, Column, Entry, Metric, Row, metrics_in, pivot, value_of
from psmvae_paper.paper import Figure, PaperKey, paper
from psmvae_paper.table_writer import ResultTable, decimals
from psmvae_paper.tables import cells_to_show, experiment_tables, failures, to_table

MCAR = Column(WINE, "mcar", 0.2)


def errors(cells, low=0.1) -> list[dict]:
    """Records whose error grows from cell to cell."""
    return [record(cell, rmse=low + 0.001 * k) for k, cell in enumerate(cells)]


def test_mean_is_over_seeds_of_row_and_column():
    cells = small().cells()
    grid = pivot(errors(cells), cells)
    assert grid.rows == [Row("mean"), Row("mice")]
    assert grid.columns == [
        Column(d, m, 0.2) for d, m in itertools.product((WINE, LETTER), ("mcar", "mnar"))
    ]
    entry = grid.at(Row("mice"), MCAR)
    expected = [0.103, 0.104, 0.105]
    assert list(entry.values) == [0, 1, 2]
    assert entry.mean == pytest.approx(np.mean(expected))
    assert entry.std == pytest.approx(np.std(expected, ddof=1))
    assert entry.complete


def test_last_record_of_a_cell_is_used():
    cells = small(seeds=(0,)).cells()
    other = Cell("spam", "mcar", 0.2, 0, "mean")
    records = [record(other, rmse=9.0), record(cells[0], rmse=0.3), record(cells[0], rmse=0.2)]
    grid = pivot(records, cells)
    assert grid.at(Row("mean"), MCAR).mean == 0.2
    assert sum(len(entry.values) for entry in grid.entries.values()) == 1


def test_failed_and_missing_cells_are_shown():
    cells = small(mechanisms=("mcar",), methods=("mean", "mice", "gain", "vae")).cells()
    there = {cell: record(cell, rmse=0.1234) for cell in cells}
    for cell in cells:
        if cell.dataset == WINE and cell.method == "mice" and cell.seed == 1:
            there[cell] = record(cell, error="ValueError: no\n way")
        if cell.dataset == WINE and cell.method == "gain" and cell.seed == 2:
            del there[cell]
        if cell.dataset == LETTER and cell.method == "gain":
            there[cell] = record(cell, error="RuntimeError: out of memory")
        if cell.method == "vae":
            there.pop(cell)
    table = to_table(pivot(there.values(), cells), "Errors")
    assert [list(row) for row in table.body] == [
        ["mean", ".1234 ± .0000", ".1234 ± .0000"],
        ["MICE", ".1234 ± .0000 [2 of 3, 1 failed]", ".1234 ± .0000"],
        ["GAIN", ".1234 ± .0000 [2 of 3]", "failed"],
        ["VAE", "–", "–"],
    ]
    assert "Failed: MICE, wine, seed 1: ValueError: no way" in table.notes
    # only what has all its seeds can be the best
    assert table.bold == {(0, 1), (0, 2), (1, 2)}


def test_many_failures_are_counted():
    cells = small(seeds=tuple(range(10))).cells()
    message = failures(pivot([record(cell, error="ValueError: no") for cell in cells], cells))
    assert len(message) == 6
    assert message[-1] == f"{len(cells) - 5} more failed."


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("rmse", (0.2, 0.1), 1),
        ("accuracy", (0.2, 0.1), 0),
        ("coverage", (0.99, 0.8), 0),
        ("width", (0.2, 0.1), None),
        ("fit", (2.0, 2.0), "both"),
    ],
)
def test_best_depends_on_metric(metric, values, best):
    cells = small(datasets=(WINE,), mechanisms=("mcar",), seeds=(0,)).cells()
    records = [record(c, **{metric: v}) for c, v in zip(cells, values, strict=True)]
    rows = pivot(records, cells, metric).best(MCAR)
    names = ["mean", "mice"]
    expected = {None: [], "both": names}.get(best) if best in (None, "both") else [names[best]]
    assert [row.method for row in rows] == expected


def test_unknown_metric_has_no_best():
    cells = small(seeds=(0,)).cells()
    grid = pivot([record(cell, mine=3.5) for cell in cells], cells, "mine")
    assert grid.metric == Metric("mine", "mine", None)
    assert to_table(grid, "Mine").bold == set()


@pytest.mark.parametrize("value", [None, float("nan"), True, 10**400, "a word", [], [[1, 2]]])
def test_non_numeric_values_are_none(value):
    assert value_of({"metrics": {"rmse": value}}, "rmse") is None


def test_metrics_in_lists_numeric_metrics():
    cell = Cell("digits", "mcar", 0.2, 0, "gain", measure="inpaint")
    assert metrics_in([made_up(cell)]) == [
        *("rmse", "crps", "coverage", "width", "bias"),
        *("fit", "impute"),
    ]


def test_default_metric_of_each_measure():
    for measure, name in (("impute", "rmse"), ("sets", "set_accuracy"), ("multiple", "accuracy")):
        cells = small(measure=measure).cells()
        assert pivot([made_up(cell) for cell in cells], cells).metric is METRICS[name]


def test_names_show_differing_parts():
    cells = small(
        mechanisms=("mcar",),
        methods=("psmvae-b", "mean"),
        n_rows=(100, 2000),
        sweep=((("pi", 0.1), ("n_sets", 2)), (("pi", 0.5), ("n_sets", 2))),
        epochs=5,
    ).cells()
    grid = pivot([], cells)
    assert set(grid.row_names().values()) == {
        *("PSMVAE(b) K=1, pi=0.1", "PSMVAE(b) K=1, pi=0.5", "mean, pi=0.1", "mean, pi=0.5")
    }
    assert list(grid.column_names().values()) == [
        *("wine 100 rows", "wine 2,000 rows", "letter 100 rows", "letter 2,000 rows")
    ]
    assert grid.shared() == "MCAR, 20 % missing"
    assert grid.empty


def test_file_is_named_without_folder():
    assert Column("/home/me/patients.csv", "mcar", 0.2).texts()[0] == "patients.csv"


def test_files_of_same_name_show_folders():
    cells = small(datasets=("a/mine.csv", "b/mine.csv"), mechanisms=("mcar",)).cells()
    grid = pivot(errors(cells), cells)
    assert list(grid.column_names().values()) == ["a/mine.csv", "b/mine.csv"]
    assert "mine.csv" not in grid.shared()


def test_records_of_unknown_cells_are_ignored():
    experiment = small()
    records = errors(experiment.cells())
    newer = {"key": "f" * 16, "cell": records[0]["cell"] | {"method": "new", "colour": 1}}
    odd = [newer, {"key": "0" * 16}, {"key": "1" * 16, "cell": {"method": "older"}}]
    assert cells_to_show(experiment, [*odd, *records]) == experiment.cells()


def test_paper_figures_are_in_brackets():
    experiment = EXPERIMENTS["rmse20"].only(datasets=[WINE], methods=["missforest", "psmvae"])
    records = [record(cell, rmse=0.08) for cell in experiment.cells()]
    (table,) = experiment_tables(experiment, records, paper=paper("rmse20"))
    assert table.body[0] == ["MissForest", ".0800 ± .0000 (.0738)", ".0800 ± .0000 (.0698)"]
    assert table.body[1][1] == ".0800 ± .0000"
    assert table.facts[0]["paper_std"] == 0.0023


def test_paper_tables_match_methods_and_cells():
    printed = {"rmse20": 90, "rmse80": 90, "grid": 180, "pattern-sets": 18, "multiple": 12}
    printed |= {"printed20": 90, "printed80": 90, "printed-sets": 18}
    for name, experiment in EXPERIMENTS.items():
        cells = {(c.dataset, c.mechanism, c.rate, c.method) for c in experiment.cells()}
        assert set(paper(name)) <= cells, name
        assert len(paper(name)) == printed.get(name, 0)
        assert {key.method for key in paper(name)} <= set(METHODS)
    key = PaperKey("breast", "mnar", 0.8, "mice-sample")
    assert paper("multiple")[key] == Figure(0.9578, 0.0096)


def test_wide_grid_is_split_by_dataset():
    experiment = EXPERIMENTS["grid"].only(seeds=[0])
    tables = experiment_tables(experiment, [made_up(cell) for cell in experiment.cells()])
    assert [len(table.head) for table in tables] == [5] * 6
    assert all(len(table.body) == 16 for table in tables)
    assert tables[0].title.endswith(": adult")


def test_table_is_transposed_for_few_methods():
    experiment = EXPERIMENTS["rate"]
    cells = experiment.cells()
    low = [record(cell, rmse=0.1 if cell.method == "mice" else 0.2) for cell in cells]
    (table,) = experiment_tables(experiment, low)
    assert table.head[:2] == ["on", "PSMVAE(a) K=10000"]
    assert [row[0] for row in table.body] == [
        f"{m} {r} %" for m in ("MCAR", "MNAR") for r in range(20, 90, 10)
    ]
    mice = table.head.index("MICE")
    assert table.bold == {(i, mice) for i in range(14)}


def test_added_method_is_shown_below_others():
    experiment = small()
    mine = [record(Cell(WINE, "mcar", 0.2, seed, "mine"), rmse=0.05) for seed in (0, 1)]
    elsewhere = [record(Cell("spam", "mcar", 0.2, 0, "mine"), rmse=0.05)]
    not_asked = [record(Cell(WINE, "mcar", 0.2, 0, "vae"), rmse=0.05)]
    records = errors(experiment.cells()) + mine + elsewhere + not_asked
    (table,) = experiment_tables(experiment, records)
    assert [row[0] for row in table.body] == ["mean", "MICE", "mine"]
    assert table.body[2][1:] == [".0500 ± .0000", "–", "–", "–"]
    METHODS["mine"] = Method("mine", "My method", fit="mine", make=lambda seed, device: None)
    try:
        (table,) = experiment_tables(experiment, records)
        assert table.body[2][0] == "My method"
    finally:
        del METHODS["mine"]
    assert len(cells_to_show(experiment, records)) == len(experiment.cells()) + 2


ODD = ResultTable(
    "50 % & more_",
    ["method", "wine | beer"],
    [["a|b", ".5 ± .1"], ["c", "–"]],
    {(0, 1)},
    ["A note."],
)


def test_markdown_escapes_pipes():
    lines = ODD.write("md").splitlines()
    assert lines[0] == "**50 % & more_**"
    assert lines[2] == "| method | wine \\| beer |"
    assert lines[4] == "| a\\|b | **.5 ± .1** |"
    assert lines[-1] == "A note."


def test_text_marks_best_and_aligns_digits():
    lines = (
        ResultTable("T", ["m", "x"], [["a", ".25"], ["b", ".5"]], {(0, 1)})
        .write("text")
        .splitlines()
    )
    assert lines[4:6] == ["a  .25 *", "b   .5"]
    assert lines[-1] == "* the best of its column"


def test_latex_escapes_special_characters():
    text = ODD.write("tex")
    assert r"\caption{50 \% \& more\_. A note.}" in text
    assert r"a|b & \textbf{.5 $\pm$ .1} \\" in text
    assert r"c & -- \\" in text
    odd = ResultTable("", ["p < .001"], [["x^2 ~ y"]]).write("tex")
    assert "p $<$ .001" in odd
    assert r"x\textasciicircum{}2 \textasciitilde{} y" in odd


def test_csv_has_unrounded_values():
    cells = small().cells()
    table = to_table(pivot(errors(cells), cells), "Errors")
    rows = list(csv.DictReader(io.StringIO(table.write("csv"))))
    assert len(rows) == 8
    assert rows[0]["method"] == "mean"
    assert float(rows[0]["mean"]) == pytest.approx(0.101)
    assert (rows[0]["n_seeds"], rows[0]["n_failed"], rows[0]["paper_mean"]) == ("3", "0", "")
    assert ODD.write("csv").splitlines()[1] == "a|b,.5 ± .1"


def test_unknown_format_is_rejected():
    with pytest.raises(ValueError, match="how must be one of text, md, csv, tex, got 'html'"):
        ODD.write("html")


@pytest.mark.parametrize(
    ("value", "text"), [(0.05, ".0500"), (1.5, "1.5000"), (10.05, "10.0500"), (-0.25, "-.2500")]
)
def test_decimals_omit_leading_zero(value, text):
    assert decimals(value) == text


def test_one_seed_has_no_standard_deviation():
    assert Entry({0: 0.5}, {}, 1).text(METRICS["rmse"]) == ".5000"
    assert Entry({0: 0.5}, {}, 5).text(METRICS["rmse"]) == ".5000 [1 of 5]"


def test_mechanism_names_in_tables():
    names = [Column("wine", name, 0.2).texts()[1] for name in ("mcar", "mnar-mcar", "mnar-self")]
    assert names == ["MCAR", "MNAR+MCAR", "MNAR self"]


def test_row_names_show_number_of_draws():
    """Also where an experiment takes fewer than the method has."""
    few = EXPERIMENTS["rmse20"].quick()
    named = pivot([], few.cells()).row_names().values()
    assert {"PSMVAE(b) K=20", "PSMVAE(b) K=1", "not-MIWAE, n_draws=20"} <= set(named)
    assert not any("10000" in name or "K=20, " in name for name in named)
    curve = pivot([], EXPERIMENTS["curve"].cells()).row_names().values()
    assert {"PSMVAE(b) K=1000", "MIWAE K=1000"} <= set(curve)
