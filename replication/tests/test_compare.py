"""Comparisons against scipy, and against small worked examples."""

import csv
import io

import numpy as np
import pytest
from scipy import stats

from made_records import LETTER, WINE, made_up, record, small
from psmvae_paper import EXPERIMENTS
from psmvae_paper.compare import (
    beside_other,
    beside_paper,
    order_agreement,
    paired,
    paired_table,
    rank_table,
    ranks,
    verdicts,
)
from psmvae_paper.grid import METRICS, Column, Entry, Grid, Row, pivot
from psmvae_paper.paper import Figure, PaperKey, paper

A, B, C = Row("mean"), Row("mice"), Row("gain")
MCAR, MNAR = Column(WINE, "mcar", 0.2), Column(WINE, "mnar", 0.2)


def grid_of(values: dict, metric="rmse", n_seeds=None) -> Grid:
    """A grid from {(row, column): values of seeds 0, 1, ...}; a text is a failure."""
    entries = {}
    for at, found in values.items():
        good = {k: v for k, v in enumerate(found) if isinstance(v, float)}
        bad = {k: v for k, v in enumerate(found) if isinstance(v, str)}
        entries[at] = Entry(good, bad, n_seeds or len(found))
    return Grid(METRICS[metric], entries)


def test_paired_p_values_match_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.2, 0.02, 5), rng.normal(0.21, 0.02, 5)
    (pair,) = paired(grid_of({(A, MCAR): x.tolist(), (B, MCAR): y.tolist()}), A, B)
    assert pair.n == 5
    assert pair.difference == pytest.approx((x - y).mean())
    assert pair.p_value == pytest.approx(stats.ttest_rel(x, y).pvalue)
    assert pair.wins == (x < y).sum()
    assert pair.ties == 0


def test_pairs_use_common_seeds():
    grid = grid_of({(A, MCAR): [0.1, 0.2, "no", 0.4], (B, MCAR): [0.2, None, 0.1, 0.4]})
    (pair,) = paired(grid, A, B)
    assert (pair.n, pair.wins, pair.ties) == (2, 1, 1)
    assert pair.difference == pytest.approx(-0.05)


def test_wins_follow_direction_of_metric():
    (pair,) = paired(grid_of({(A, MCAR): [0.9], (B, MCAR): [0.8]}, "accuracy"), A, B)
    assert (pair.wins, pair.p_value) == (1, None)


@pytest.mark.parametrize(("shift", "p_value"), [(0.0, 1.0), (0.25, 0.0)])
def test_p_value_of_constant_differences(shift, p_value):
    values = {(A, MCAR): [0.5, 0.25], (B, MCAR): [0.5 + shift, 0.25 + shift]}
    assert paired(grid_of(values), A, B)[0].p_value == p_value


def test_rows_without_common_seed_have_no_difference():
    grid = grid_of({(A, MCAR): [0.1, None], (B, MCAR): [None, 0.1]})
    assert paired(grid, A, B)[0].difference is None
    table = paired_table(grid, [A], B, "Against")
    assert table.body == [["mean", "wine", "–", "–", "–"]]


def test_paired_table_has_line_for_each_row_and_column():
    values = {(row, column): [0.1, 0.2, 0.4] for row in (A, C) for column in (MCAR, MNAR)}
    values |= {(B, MCAR): [0.2, 0.3, 0.6], (B, MNAR): [0.0, 0.1, 0.5]}
    table = paired_table(grid_of(values), [A, C], B, "Against")
    assert table.body[0][:4] == ["mean", "MCAR", "-.1333", "3 of 3"]
    assert table.body[3][:4] == ["GAIN", "MNAR", "+.0333", "1 of 3"]
    rows = list(csv.DictReader(io.StringIO(table.write("csv"))))
    assert rows[3]["mechanism"] == "mnar"
    assert (rows[3]["method"], rows[3]["against"], rows[3]["wins"]) == ("gain", "mice", "1")


def test_ranks_are_averaged_over_seeds():
    rng = np.random.default_rng(1)
    rows, columns = (A, B, C), (MCAR, MNAR)
    values = rng.integers(1, 6, size=(3, 2, 4)) / 10
    grid = grid_of(
        {(r, c): values[i, j].tolist() for i, r in enumerate(rows) for j, c in enumerate(columns)}
    )
    expected = stats.rankdata(values.reshape(3, -1), axis=0).mean(1)
    firsts = (values.reshape(3, -1) == values.reshape(3, -1).min(0)).sum(1)
    found = {rank.row: rank for rank in ranks(grid)}
    for row, mean, first in zip(rows, expected, firsts, strict=True):
        assert found[row].mean_rank == pytest.approx(mean)
        assert found[row].firsts == first
    order = [rank.mean_rank for rank in ranks(grid)]
    assert order == sorted(order)


def test_failed_cell_has_last_rank_and_missing_cell_none():
    grid = grid_of(
        {(A, MCAR): [0.1, "no"], (B, MCAR): [0.2, 0.2], (C, MCAR): [0.3, None]}, n_seeds=2
    )
    found = {rank.row: rank for rank in ranks(grid)}
    assert found[A].mean_rank == 1.5
    assert found[B].mean_rank == 1.5
    assert found[C].mean_rank is None
    assert found[C].n_missing == 1
    # only B has all seeds, so only its mean can be the best
    assert [found[row].best_columns for row in (A, B, C)] == [0, 1, 0]
    body = {row[0]: row[1:] for row in rank_table(grid, "Ranks").body}
    assert body["GAIN"] == ["lacks 1", "–", "0"]


def test_columns_of_few_rows_are_not_ranked():
    values = {(row, MCAR): [0.1, 0.2] for row in (A, B, C)} | {(A, MNAR): [0.1, 0.2]}
    assert all(rank.mean_rank is not None for rank in ranks(grid_of(values)))


def test_no_ranks_without_records():
    cells = small().cells()
    table = rank_table(pivot([], cells), "Ranks")
    assert [row[1] for row in table.body] == ["–", "–"]
    assert "too few records" in table.notes[-1]


def test_table_beside_paper_has_ratio():
    experiment = EXPERIMENTS["rmse20"].only(datasets=[WINE], methods=["mean", "psmvae"], seeds=[0])
    cells = experiment.cells()
    grid = pivot([record(cell, rmse=0.3530) for cell in cells], cells)
    table = beside_paper(grid, paper("rmse20"), "Beside")
    assert table.body == [
        ["mean", ".3530 / .1765 = 2.00", ".3530 / .1591 = 2.22"],
        ["PSMVAE default", ".3530 / –", ".3530 / –"],
    ]
    assert table.facts[0]["ratio"] == pytest.approx(2.0)


def test_table_beside_other_records_has_ratio():
    cells = small(mechanisms=("mcar",)).cells()
    ours = pivot([record(cell, rmse=0.3) for cell in cells if cell.dataset == WINE], cells)
    theirs = pivot([record(cell, rmse=0.2) for cell in cells], cells)
    table = beside_other(ours, theirs, "Beside", "of old/")
    assert table.body[0] == ["mean", ".3000 / .2000 = 1.50", "– / .2000"]
    assert "of old/" in table.notes[0]


@pytest.mark.parametrize(
    ("method", "ratio", "verdict"),
    [
        ("mean", 1.029, "agrees"),
        ("mice", 1.031, "higher"),
        ("missforest", 0.96, "lower"),
        ("psmvae-b", 1.049, "agrees"),
        ("psmvae-b-10000", 0.94, "lower"),
        ("psmvae-b", 1.06, "higher"),
        ("vae", 0.91, "agrees"),
        ("vae", 0.89, "lower"),
    ],
)
def test_tolerance_of_errors(method, ratio, verdict):
    grid = grid_of({(Row(method), MCAR): [0.2 * ratio]})
    printed = {PaperKey(WINE, "mcar", 0.2, method): Figure(0.2, 0.0)}
    assert [found.verdict for found in verdicts(grid, printed)] == [verdict]


@pytest.mark.parametrize(("ours", "verdict"), [(0.74, "agrees"), (0.64, "lower"), (0.8, "higher")])
def test_tolerance_of_accuracies(ours, verdict):
    grid = grid_of({(A, MNAR): [ours]}, "set_accuracy")
    printed = {PaperKey(WINE, "mnar", 0.2, "mean"): Figure(0.7, 0.1)}
    assert [found.verdict for found in verdicts(grid, printed)] == [verdict]


def test_incomplete_mean_has_no_verdict():
    printed = {PaperKey(WINE, "mcar", 0.2, "mean"): Figure(0.2, 0.0)}
    assert verdicts(grid_of({(A, MCAR): [0.2]}, n_seeds=5), printed) == []


def test_order_agreement_is_spearmans_correlation():
    experiment = EXPERIMENTS["rmse80"]
    cells = experiment.cells()
    grid = pivot([made_up(cell) for cell in cells], cells)
    column = Column("breast", "mnar", 0.8)
    printed = paper("rmse80")
    rows = [row for row in grid.rows if row.method != "psmvae"]
    ours = [grid.at(row, column).mean for row in rows]
    theirs = [printed[PaperKey(*column[:3], row.method)].mean for row in rows]
    expected = stats.spearmanr(ours, theirs).statistic
    assert order_agreement(grid, printed, column) == pytest.approx(expected)
    assert order_agreement(grid, printed, Column(LETTER, "mnar", 0.8)) is None
    same = grid_of({(row, column): [0.5] for row in rows})
    assert order_agreement(same, printed, column) is None
